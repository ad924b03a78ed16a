package httpd_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"koine/internal/httpd"
	"koine/internal/sse"
)

// The server's limits do not affect streams: they outlive the stall timeout, take no
// place among the requests in progress, and end first at shutdown.
func TestStreams(t *testing.T) {
	const stall = 50 * time.Millisecond
	events := sse.New(sse.Options{Heartbeat: 4 * stall})
	s := newServer(httpd.Options{Streams: events, StallTimeout: stall, MaxRequests: 1})
	s.HandleRPC(whoami)
	s.Handle("POST /stream", httpd.Plain, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		st, err := events.Open(r.Context(), sse.StreamOptions{Last: func(reason error, _ string) (sse.Event, bool) {
			return sse.Event{Data: []byte(reason.Error())}, true
		}})
		if err != nil {
			t.Error(err)
			return
		}
		defer st.Close()
		if err := st.Serve(w, r, func(yield func(sse.Event, error) bool) {
			if yield(sse.Event{Data: []byte("first")}, nil) {
				<-st.Context().Done()
			}
		}); err != sse.ErrShutdown {
			t.Errorf("Serve: %v", err)
		}
	}))
	r := run(t, s)
	resp, err := http.Post("http://"+r.addr+"/stream", "text/plain", strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	want := "data: first\n\n: \n\n: \n\n" // the heartbeats come long after the stall timeout
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
	if resp, body := do(t, r, "POST", "/", ""); resp.StatusCode != 200 {
		t.Errorf("a request beside the stream: got %d %s", resp.StatusCode, body)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(rest), "data: "+sse.ErrShutdown.Error()+"\n\n") {
		t.Errorf("at the end: got %q, %v", rest, err)
	}
}
