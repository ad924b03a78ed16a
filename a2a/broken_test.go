package a2a_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/a2a"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// broken is an engine that fails in the given way.
type broken struct{ how string }

func (b broken) Execute(context.Context, operation.Request) operation.Result {
	if b.how == "panic" {
		panic("the secret")
	}
	return operation.Result{}
}

func (b broken) Subscribe(context.Context, operation.Request) (operation.Subscription, error) {
	switch b.how {
	case "panic":
		panic("the secret")
	case "given up":
		return nil, context.Canceled
	}
	return nil, errors.New("the secret")
}

// An unexpected error is "internal error" for the client, with its details logged once;
// the server goes on.
func TestInternalErrors(t *testing.T) {
	for _, how := range []string{"panic", "nothing"} {
		var log bytes.Buffer
		s := newTestServer(t)
		var calls []string
		handler := asCaller(a2a.NewHandler(a2a.Deps{Store: s.store, Querier: broken{how}, Streams: s.streams, Prefixes: new(kg.Prefixes)}, a2a.Options{
			Logger:  slog.New(slog.NewTextHandler(&log, nil)),
			Observe: func(method string, code int, _ time.Duration) { calls = append(calls, fmt.Sprint(method, " ", code)) },
		}))
		want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error","data":{"reason":"INTERNAL","domain":"koine",` +
			`"hint":"The server's log has the details under the request id.","requestId":"r1"}}}`
		for _, row := range []struct {
			method string
			status int
		}{{"knowledge/query", 200}, {"knowledge/subscribe", 500}} {
			log.Reset()
			calls = nil
			status, body := serve(handler, `{"jsonrpc":"2.0","id":1,"method":"`+row.method+`","params":{"query":"{a}"}}`, row.method)
			if status != row.status || body != want {
				t.Errorf("%s, %s: got %d %s", how, row.method, status, body)
			}
			if n := strings.Count(log.String(), "level=ERROR"); n != 1 || strings.Contains(body, "secret") {
				t.Errorf("%s, %s: logged %d times:\n%s", how, row.method, n, &log)
			}
			if len(calls) != 1 || calls[0] != row.method+" -32603" {
				t.Errorf("%s, %s: observed %v", how, row.method, calls)
			}
		}
		if n := s.streams.Streams(); n != 0 {
			t.Errorf("%s: %d streams are left", how, n)
		}
	}
}

// A request that its client canceled is not logged as an error.
func TestGivenUp(t *testing.T) {
	var log bytes.Buffer
	s := newTestServer(t)
	h := asCaller(a2a.NewHandler(a2a.Deps{Store: s.store, Querier: broken{"given up"}, Streams: s.streams, Prefixes: new(kg.Prefixes)}, a2a.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}))
	status, body := serve(h, `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"query":"x"}}`, "knowledge/subscribe")
	if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32012,"message":"the request was canceled","data":{"reason":"TIMEOUT","domain":"koine"}}}`; status != 503 || body != want || log.Len() > 0 {
		t.Errorf("got %d %s, logged %q", status, body, log.String())
	}
}

// ending is a subscription that yields one change and then ends.
type ending struct {
	at    kg.Position
	event *operation.Event
	why   func() error
}

func (e *ending) Execute(context.Context, operation.Request) operation.Result {
	return operation.Result{}
}

func (e *ending) Subscribe(context.Context, operation.Request) (operation.Subscription, error) {
	return e, nil
}

func (e *ending) Events() iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		if e.event == nil || yield(*e.event, nil) {
			yield(operation.Event{}, e.why())
		}
	}
}

func (e *ending) Position() kg.Position { return e.at }
func (e *ending) Close()                {}

// An established stream ends with an event that has the reason and the next step.
func TestLastEvents(t *testing.T) {
	s := newTestServer(t)
	receipt := s.set(t, kg.Add, "urn:s", kg.String(strings.Repeat("x", 2000)), "agent://x")
	at := s.store.FormatPosition(receipt.Position)
	oldest := s.store.Oldest()
	commit, err := s.store.Commit(t.Context(), kg.Principal{}, receipt.Revision)
	if err != nil {
		t.Fatal(err)
	}
	statement := kg.Statement{Quad: commit.Changes[0].Quad, Assertions: commit.Changes[0].After}
	large := &operation.Event{Changes: []kg.Event{{Op: kg.Add, Statement: statement, Commit: commit, Position: receipt.Position}}, Position: receipt.Position}
	const again = `"hint":"Resume from the position; without one, start again."`
	for _, row := range []struct {
		name  string
		event *operation.Event
		why   func() error
		want  string
		logs  int
	}{
		{"resync", nil, func() error {
			e := kg.Errorf(kg.CodeResync, "the log no longer holds what comes next")
			e.Oldest, e.Hint = &oldest, "start from a snapshot"
			return e
		}, `{"code":-32012,"message":"the log no longer holds what comes next","data":{"reason":"RESYNC","domain":"koine","hint":"start from a snapshot","oldestPosition":"` +
			s.store.FormatPosition(oldest) + `"}}`, 0},
		{"the store is closed", nil, func() error { return kg.Errorf(kg.CodeClosed, "the store was closed") },
			`{"code":-32012,"message":"the store was closed","data":{"reason":"SERVER_SHUTDOWN","domain":"koine","position":"` + at + `"}}`, 0},
		{"something unexpected", nil, func() error { return errors.New("the secret") },
			`{"code":-32603,"message":"Internal error","data":{"reason":"INTERNAL","domain":"koine","hint":"The server's log has the details under the request id.","position":"` + at + `","requestId":"r1"}}`, 1},
		{"a panic", nil, func() error { panic("the secret") },
			`{"code":-32603,"message":"Internal error","data":{"reason":"INTERNAL","domain":"koine","hint":"The server's log has the details under the request id.","position":"` + at + `","requestId":"r1"}}`, 1},
		{"its time", nil, func() error { return context.DeadlineExceeded },
			`{"code":-32012,"message":"the stream's time limit was reached","data":{"reason":"TIMEOUT","domain":"koine",` + again + `,"position":"` + at + `"}}`, 0},
		{"an event that is too large", large, func() error { return nil },
			`{"code":-32012,"message":"the next event exceeds the size limit","data":{"reason":"EVENT_TOO_LARGE","domain":"koine","hint":"Select less, then resume from the position.","position":"` + at + `"}}`, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			var end sse.End // of before the call is observed
			streams := sse.New(sse.Options{MaxEventBytes: 1000, Ended: func(_ context.Context, e sse.End) { end = e }})
			var mu sync.Mutex
			var log bytes.Buffer
			ended := make(chan int, 1)
			h := a2a.NewHandler(a2a.Deps{Store: s.store, Querier: &ending{receipt.Position, row.event, row.why}, Streams: streams, Prefixes: new(kg.Prefixes)}, a2a.Options{
				Logger:  slog.New(slog.NewTextHandler(&lockedWriter{&mu, &log}, nil)),
				Observe: func(_ string, code int, _ time.Duration) { ended <- code },
			})
			server := httptest.NewServer(asCaller(h))
			defer server.Close()
			resp, err := http.Post(server.URL, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"x"}}`))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if want := `data: {"jsonrpc":"2.0","id":1,"error":` + row.want + "}\n\n"; string(body) != want {
				t.Errorf("got  %swant %s", body, want)
			}
			var last struct {
				Code int
				Data struct{ Reason string }
			}
			if err := json.Unmarshal([]byte(row.want), &last); err != nil {
				t.Fatal(err)
			}
			if code := <-ended; code != last.Code {
				t.Errorf("the call is counted as %d, want %d", code, last.Code)
			}
			if want := (sse.End{Transport: "json-rpc", Reason: last.Data.Reason, Method: "knowledge/subscribe", Position: at}); end != want {
				t.Errorf("reported %+v, want %+v", end, want)
			}
			mu.Lock()
			defer mu.Unlock()
			if n := strings.Count(log.String(), "level=ERROR"); n != row.logs {
				t.Errorf("logged %d times, want %d:\n%s", n, row.logs, &log)
			}
			if err := streams.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// lockedWriter lets the server's goroutines and the test share a buffer.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
