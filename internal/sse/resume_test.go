package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/sse"
)

// journal is a log to follow: entries 1, 2, 3 …, whose readers each have a position of
// their own.
type journal struct {
	entry string // the data of each, behind its number

	mu   sync.Mutex
	head int
	more chan struct{} // closed and replaced when head moves
}

func newJournal(entry string) *journal {
	return &journal{entry: entry, more: make(chan struct{})}
}

func (j *journal) append() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.head++
	close(j.more)
	j.more = make(chan struct{})
}

func (j *journal) state() (head int, more <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.head, j.more
}

// follow yields the entries after from and continues until ctx ends.
func (j *journal) follow(ctx context.Context, from int) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for at := from; ; {
			head, more := j.state()
			for ; at < head; at++ {
				data := fmt.Appendf(nil, "%d %s", at+1, j.entry)
				if !yield(sse.Event{ID: strconv.Itoa(at + 1), Data: data}, nil) {
					return
				}
			}
			select {
			case <-more:
			case <-ctx.Done():
				yield(sse.Event{}, ctx.Err())
				return
			}
		}
	}
}

// handler streams the journal from behind the request's Last-Event-ID. ended,
// if not nil, is told each end with the name of the client.
func (j *journal) handler(s *sse.Server, ended func(client string, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		from, err := strconv.Atoi("0" + r.Header.Get("Last-Event-ID"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		st, err := s.Open(r.Context(), sse.StreamOptions{
			IDs:  true,
			From: strconv.Itoa(from),
			Last: func(reason error, last string) (sse.Event, bool) {
				return sse.Event{Name: "end", Data: []byte(last)}, true
			},
		})
		if err != nil {
			refuse(w, err)
			return
		}
		defer st.Close()
		client := r.Header.Get("X-Client")
		serveStream(st, w, r, j.follow(st.Context(), from), func(err error) {
			if ended != nil {
				ended(client, err)
			}
		})
	})
}

// checker holds one client's promise: each entry once and in order, and a last
// event that names the entry before it.
type checker struct{ at int }

func (c *checker) take(e sse.Event) error {
	if e.Name == "end" {
		if string(e.Data) != strconv.Itoa(c.at) {
			return fmt.Errorf("the last event says %s, entry %d came", e.Data, c.at)
		}
		return nil
	}
	number, _, _ := strings.Cut(string(e.Data), " ")
	if n, err := strconv.Atoi(number); err != nil || n != c.at+1 || e.ID != number {
		return fmt.Errorf("got entry %s with id %s after %d", number, e.ID, c.at)
	}
	c.at++
	return nil
}

// A client follows a journal across restarts of its server, without loss or
// repetition.
func TestResumeAcrossRestart(t *testing.T) {
	j := newJournal("x")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	start := func(l net.Listener) (stop func()) {
		s := newServer(t, sse.Options{})
		hs := &http.Server{Handler: j.handler(s, nil), ConnContext: sse.ConnContext}
		served := make(chan error, 1)
		go func() { served <- hs.Serve(l) }()
		return func() {
			if err := errors.Join(s.Shutdown(ctx), hs.Shutdown(ctx)); err != nil {
				t.Error(err)
			}
			<-served
		}
	}

	const restarts, each = 3, 10
	stop := start(l)
	defer func() { stop() }()
	check := checker{}
	j.append()
	for e, err := range sse.Subscribe(ctx, sse.ClientOptions{
		Request: sse.NewRequest(http.MethodGet, "http://"+address, nil, nil),
		MinWait: time.Millisecond,
		MaxWait: 10 * time.Millisecond,
		// Connections are refused while the server is away.
		MaxAttempts: -1,
	}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := check.take(e); err != nil {
			t.Fatal(err)
		}
		if e.Name == "end" {
			continue
		}
		if check.at == restarts*each {
			break
		}
		if check.at%each == 0 {
			stop()
			j.append() // without connections
			if l, err = net.Listen("tcp", address); err != nil {
				t.Fatal(err)
			}
			stop = start(l)
			continue
		}
		j.append()
	}
	if check.at != restarts*each {
		t.Errorf("saw %d entries", check.at)
	}
}

// A POST with its body and headers is sent again with each connection, and only
// the id to resume after changes.
func TestPost(t *testing.T) {
	s := newServer(t, sse.Options{})
	type request struct{ method, body, agent, last, accept string }
	requests := make(chan request, 2)
	ts := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		last := "absent"
		if values, ok := r.Header["Last-Event-Id"]; ok {
			last = values[0]
		}
		requests <- request{r.Method, string(body), r.Header.Get("X-Agent-ID"), last, r.Header.Get("Accept")}
		st, err := s.Open(r.Context(), sse.StreamOptions{IDs: true})
		if err != nil {
			t.Error(err)
			return
		}
		_ = st.Serve(w, r, list(sse.Event{ID: "p" + last, Data: []byte("x")}))
	}))
	header := http.Header{"Last-Event-ID": {""}, "X-Agent-Id": {"a"}}
	n := 0
	for _, err := range sse.Subscribe(t.Context(), sse.ClientOptions{
		Request: sse.NewRequest(http.MethodPost, ts.URL, header, []byte("{}")),
		MinWait: 1,
	}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			break
		}
	}
	for _, last := range []string{"", "p"} {
		want := request{"POST", "{}", "a", last, "text/event-stream"}
		if got := receive(t, requests, "request"); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// The largest event that a server sends by default is one that a client takes.
func TestLargestEvent(t *testing.T) {
	s := newServer(t, sse.Options{WriteTimeout: patience})
	data := strings.Repeat("x", sse.DefaultMaxEventBytes-len("id: 1\n")-len("data: \n\n"))
	ts := serve(t, handler(s, sse.StreamOptions{IDs: true}, nil, always(list(sse.Event{ID: "1", Data: []byte(data)}))))
	for e, err := range sse.Subscribe(t.Context(), sse.ClientOptions{Request: sse.NewRequest(http.MethodGet, ts.URL, nil, nil)}) {
		if err != nil || string(e.Data) != data {
			t.Errorf("got %d bytes and %v, want %d", len(e.Data), err, len(data))
		}
		break
	}
}
