package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"koine/client"
)

// scripted is a server that answers each request for a stream with the next text, which
// then ends.
func scripted(t *testing.T, answers ...string) (url string, asked *[]string) {
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var request struct {
			Params struct {
				SinceSequence int64
				Metadata      struct{ Koine struct{ Resume string } }
			}
		}
		switch {
		case r.Method == http.MethodGet:
			fmt.Fprint(w, `{"name": "scripted", "url": "http://x/", "capabilities": {"knowledgeGraph": true, "messaging": {"channels": {}}}}`)
		case json.Unmarshal(body, &request) != nil:
			t.Errorf("asked %s", body)
		case len(answers) == 0:
			w.WriteHeader(http.StatusForbidden)
		default:
			*asked = append(*asked, fmt.Sprintf("%s%d/%s", request.Params.Metadata.Koine.Resume, request.Params.SinceSequence, r.Header.Get("Last-Event-ID")))
			answer := answers[0]
			answers = answers[1:]
			w.Header().Set("Content-Type", "text/event-stream")
			if answer == "busy" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			if strings.HasPrefix(answer, "{") {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprint(w, answer)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func told(id, result string) string {
	if id != "" {
		id = "id: " + id + "\n"
	}
	return id + "data: {\"jsonrpc\": \"2.0\", \"id\": 1, " + result + "}\n\n"
}

func stood(subject, more string) string {
	return `"result": {"op": "add", "statement": {"subject": {"id": "` + subject + `"}}, "changeMetadata": {"snapshot": true` + more + `}}`
}

func failed(reason string) string {
	return `"error": {"code": -32012, "message": "it ends", "data": {"reason": "` + reason + `"}}`
}

// If a server cannot continue from the client's position, a new snapshot is delivered, and
// the program is notified; likewise after an interrupted snapshot.
func TestResync(t *testing.T) {
	change := func(id, subject string) string {
		return told(id, `"result": {"op": "add", "statement": {"subject": {"id": "`+subject+`"}}, "changeMetadata": {"position": "`+id+`"}}`)
	}
	snapshot := told("", stood("a", "")) + told("p2", stood("b", `, "snapshotEnd": true, "position": "p2"`))
	url, asked := scripted(t,
		change("p1", "x")+told("", failed("SERVER_SHUTDOWN")),
		told("", failed("RESYNC")),
		told("", stood("a", "")), // and it is cut short
		snapshot+change("p3", "y"),
		"{"+failed("POSITION_GONE")+"}",
		"id: p4\n\n", // a snapshot of nothing
		change("p5", "z")+told("", failed("UNAUTHENTICATED")),
	)
	var got, moved []string
	var last error
	for change, err := range open(t, url, "").Subscribe(bounded(t), client.Subscription{OnPosition: func(from string) { moved = append(moved, from) }}) {
		if last = err; err == nil {
			got = append(got, string(change.Op)+change.Statement.Subject.ID)
		}
	}
	if !errors.Is(last, client.Unauthenticated) {
		t.Error(last)
	}
	if text := strings.Join(got, " "); text != "addx resync adda resync adda addb addy resync addz" {
		t.Error(text)
	}
	if text := strings.Join(moved, " "); text != "p1 snapshot p2 p3 snapshot p4 p5" {
		t.Error(text)
	}
	if text := strings.Join(*asked, " "); text != "0/ 0/p1 snapshot0/ snapshot0/ snapshot0/p3 snapshot0/ snapshot0/p4" {
		t.Error(text)
	}
}

// After the replacement of a graph the caller reads it again, if it can, and the changes
// after the replacement follow; but everything is read again if it cannot, if the stream
// ended for another reason, or without a position to continue from.
func TestRereadGraph(t *testing.T) {
	replaced := func(id, graph string) string {
		return told(id, `"result": {"op": "graphReplaced", "graph": "`+graph+`", "changeMetadata": {"revision": 7, "position": "`+id+`"}}`)
	}
	behind := func(id string) string {
		return told("", `"error": {"code": -32012, "message": "it ends", "data": {"reason": "RESYNC", "oldestPosition": "`+id+`"}}`)
	}
	change := func(id, subject string) string {
		return told(id, `"result": {"op": "add", "statement": {"subject": {"id": "`+subject+`"}}, "changeMetadata": {"position": "`+id+`"}}`)
	}
	snapshot := func(id string) string {
		return told(id, stood("s", `, "snapshotEnd": true, "position": "`+id+`"`))
	}
	url, asked := scripted(t,
		replaced("p1", "urn:g")+behind("p2"),
		change("p3", "a")+replaced("p4", "urn:refused")+behind("p5"),
		snapshot("p6")+replaced("p7", "urn:g")+change("p8", "b")+behind("p9"), // that is not why it ends
		snapshot("p10")+replaced("p11", "urn:g")+told("", failed("RESYNC")),   // it does not say where
		snapshot("p12")+replaced("p13", "urn:broken")+behind("p14"),
	)
	broken := errors.New("the disk is full")
	var got []string
	var last error
	subscription := client.Subscription{RereadGraph: func(_ context.Context, c *client.Change) error {
		switch c.Graph {
		case "urn:refused":
			return &client.Error{Reason: "PERMISSION_DENIED"}
		case "urn:broken":
			return broken
		}
		got = append(got, "reread "+c.Graph)
		return nil
	}}
	for change, err := range open(t, url, "").Subscribe(bounded(t), subscription) {
		if last = err; err == nil {
			got = append(got, string(change.Op)+change.Statement.Subject.ID)
		}
	}
	if !errors.Is(last, broken) {
		t.Errorf("it ends with %v", last)
	}
	want := "graphReplaced reread urn:g adda graphReplaced resync adds graphReplaced addb resync adds graphReplaced resync adds graphReplaced"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if text := strings.Join(*asked, " "); text != "0/ 0/p2 snapshot0/ snapshot0/ snapshot0/" {
		t.Error(text)
	}
}

// A position of the caller's own that is gone is an error, and so are messages that a
// channel no longer has.
func TestPositionGone(t *testing.T) {
	gone := `{"error": {"code": -32602, "message": "gone", "data": {"reason": "POSITION_GONE", "oldestPosition": "o", "oldestSequence": 7}}}`
	message := func(n int) string {
		return told(fmt.Sprint(n), fmt.Sprintf(`"result": {"kind": "messageEvent", "event": {"sequence": %d}}`, n))
	}
	url, asked := scripted(t, gone, message(1)+message(2)+told("", failed("RESYNC")), message(2)+told("", `"result": {"kind": "new"}`)+message(3), gone)
	c := open(t, url, "")
	var e *client.Error
	for _, err := range c.Subscribe(bounded(t), client.Subscription{From: "p0"}) {
		if !errors.As(err, &e) || e.Reason != client.PositionGone || e.OldestPosition != "o" || e.Status != http.StatusBadRequest {
			t.Error(err)
		}
	}
	var got []int64
	for m, err := range c.Stream(bounded(t), "x", client.StreamOptions{}) {
		if err == nil {
			got = append(got, m.Sequence)
		} else if !errors.As(err, &e) || e.Reason != client.PositionGone || e.OldestSequence != 7 {
			t.Error(err)
		}
	}
	if fmt.Sprint(got) != "[1 2 3]" {
		t.Error(got)
	}
	if text := strings.Join(*asked, " "); text != "0/p0 0/ 2/ 2/3" {
		t.Error(text)
	}
}

// With FailFast, a first stream that fails is returned at once; one that has worked is
// reconnected, also after a resync.
func TestFailFirst(t *testing.T) {
	first := client.Retry{FailFast: true, MinWait: time.Millisecond, MaxWait: time.Millisecond}
	change := told("p1", `"result": {"op": "add", "changeMetadata": {"position": "p1"}}`)
	message := told("1", `"result": {"kind": "messageEvent", "event": {"sequence": 1}}`)
	for _, row := range []struct {
		answers       []string
		changes, asks int // that are told, and made
	}{
		{[]string{"busy", change}, 0, 1},
		{[]string{change, "busy", change}, 2, 4},
		{[]string{change + told("", failed("RESYNC")), "busy", change}, 3, 4}, // one of them the resync
	} {
		url, asked := scripted(t, append(row.answers, "{"+failed("PERMISSION_DENIED")+"}")...)
		c, err := client.Open(t.Context(), url, client.Options{Retry: first})
		if err != nil {
			t.Fatal(err)
		}
		changes := 0
		for _, err := range c.Subscribe(bounded(t), client.Subscription{From: "p0"}) {
			if err == nil {
				changes++
			}
		}
		if changes != row.changes || len(*asked) != row.asks {
			t.Errorf("%d changes after %d requests, want %d after %d", changes, len(*asked), row.changes, row.asks)
		}
	}
	url, asked := scripted(t, message+told("", failed("RESYNC")), "busy", "{"+failed("PERMISSION_DENIED")+"}")
	c, err := client.Open(t.Context(), url, client.Options{Retry: first})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, last = range c.Stream(bounded(t), "x", client.StreamOptions{}) {
	}
	if !errors.Is(last, client.PermissionDenied) || len(*asked) != 3 {
		t.Errorf("%v after %d requests", last, len(*asked))
	}
}
