package openintent_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"koine/internal/dialect/openintent"
	"koine/internal/slowtest"
	"koine/internal/sse"
)

// create posts a body as ann, and returns the id in the answer.
func (s *server) create(path, body string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(slowtest.Context(s.t), http.MethodPost, s.URL+openintent.Root+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "X-Agent-Id": {"ann"}}
	response, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		s.t.Fatal(err, response.Status, string(text))
	}
	return regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(string(text))[1]
}

// The stream of a reader that does not read ends after the time for one write, is reported
// as that of a slow one, and holds up nobody: those who send go on. Behind the last event
// that the reader got, a new stream tells the rest without a gap or a duplicate.
func TestSlowReader(t *testing.T) {
	s := start(t, openintent.Options{}, func(o *sse.Options) { o.WriteTimeout, o.LastTimeout = 200*time.Millisecond, 100*time.Millisecond })
	intent := s.create("/intents", `{"title":"Q1"}`)
	progress := s.create("/intents/"+intent+"/channels", `{"name":"progress"}`)
	const most, pad = 1000, 32 << 10
	padding, said := strings.Repeat("x", pad), 0
	say := func() {
		said++
		s.create("/channels/"+progress+"/messages", fmt.Sprintf(`{"sender":"ann","payload":{"n":%d,"pad":"%s"}}`, said, padding))
	}
	number := regexp.MustCompile(`"payload":\{"n":(\d+),`)
	for _, path := range []string{"/intents/" + intent + "/subscribe", "/subscribe/channels/" + progress, "/agents/bob/subscribe?events=messages"} {
		first := said + 1
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET %s%s HTTP/1.1\r\nHost: %s\r\nX-Agent-ID: bob\r\n\r\n", openintent.Root, path, s.Listener.Addr()); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(conn)
		response, err := http.ReadResponse(lines, nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(err, response)
		}
		var end *sse.End
		for end == nil && said-first < most {
			say()
			select {
			case e := <-s.ends:
				end = &e
			default:
			}
		}
		if end == nil || end.Reason != "SLOW_CONSUMER" || end.Transport != "openintent" {
			t.Fatalf("%s: after %d messages the stream has ended as %+v", path, said-first, end)
		}
		// The reader reads on: whole events, and then the end of the connection.
		got, next := "", first
		text, _ := io.ReadAll(response.Body)
		for _, event := range strings.Split(string(text), "\n\n") {
			id, rest, _ := strings.Cut(strings.TrimPrefix(event, "id: "), "\n")
			found := number.FindStringSubmatch(rest)
			if found == nil || !strings.HasSuffix(rest, "}") {
				continue // cut off
			}
			if n, _ := strconv.Atoi(found[1]); n != next {
				t.Fatalf("%s: message %d comes behind %d", path, n, next-1)
			}
			got = id
			next++
		}
		if got == "" || next > said {
			t.Fatalf("%s: the slow reader got messages %d to %d of %d", path, first, next-1, said)
		}
		ctx, stop := context.WithCancel(slowtest.Context(t))
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+openintent.Root+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"X-Agent-Id": {"bob"}, "Last-Event-Id": {got}}
		again, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		events := bufio.NewReader(again.Body)
		for ; next <= said; next++ {
			if found := number.FindStringSubmatch(readEvent(t, events)); found == nil || found[1] != strconv.Itoa(next) {
				t.Fatalf("%s: %v comes behind %d", path, found, next-1)
			}
		}
		stop()
		again.Body.Close()
	}
}
