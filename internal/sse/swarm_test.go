package sse_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/sse"
)

// Properties: with 200 subscribers of one journal, of which 20 stall until the
// server cuts them off and 20 cut the connection themselves again and again,
//   - each of the 200 sees each entry once and in order,
//   - each stalled one was ended as a slow consumer, and no other was,
//   - nothing is left when all are gone.
func TestSwarm(t *testing.T) {
	const (
		subscribers = 200
		stalling    = 20
		cutting     = 20
		entries     = 400
	)
	// The write timeout is generous: the 160 steady ones share few processors.
	s := newServer(t, sse.Options{WriteTimeout: 3 * time.Second, LastTimeout: 3 * time.Second})
	j := newJournal(strings.Repeat("x", 2<<10)) // in all more than the buffers of the kernel take
	var mu sync.Mutex
	slow := make(map[string]chan struct{})
	for i := range stalling {
		slow[name(i)] = make(chan struct{})
	}
	ts := serve(t, j.handler(s, func(client string, err error) {
		if !errors.Is(err, sse.ErrSlowConsumer) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if c, ok := slow[client]; !ok {
			t.Errorf("%s was ended as a slow consumer", client)
		} else if c != nil {
			close(c)
			slow[client] = nil
		}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()

	var (
		wg      sync.WaitGroup
		steady  atomic.Int64
		reached = make(chan struct{}) // all others have everything
	)
	for i := range subscribers {
		w := &swarmer{url: ts.URL, name: name(i), entries: entries}
		switch {
		case i < stalling:
			mu.Lock()
			w.stalled = slow[w.name]
			mu.Unlock()
		case i < stalling+cutting:
			w.cutAfter = 7 + i
		}
		wg.Go(func() {
			if err := w.run(ctx); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
			if w.stalled == nil && steady.Add(1) == subscribers-stalling {
				close(reached)
			}
		})
	}
	for range entries {
		j.append()
	}
	// The stalled ones are still stalled, or were cut off: nobody waited.
	select {
	case <-reached:
	case <-ctx.Done():
		t.Error("the others did not get everything")
	}
	wg.Wait()
	eventually(t, func() bool { return s.Streams() == 0 }, func() string { return fmt.Sprint(s.Streams(), " streams left") })
}

func name(i int) string { return fmt.Sprint("client ", i) }

// swarmer is one subscriber of the swarm.
type swarmer struct {
	url, name string
	entries   int
	stalled   <-chan struct{} // stop reading until it is closed
	cutAfter  int             // cut the connection after so many entries
	check     checker
}

// run subscribes until everything was seen; each new subscription resumes.
func (w *swarmer) run(ctx context.Context) error {
	transport := &http.Transport{DialContext: dialSmall}
	defer transport.CloseIdleConnections()
	for w.check.at < w.entries {
		header := http.Header{"X-Client": {w.name}}
		if w.check.at > 0 {
			header.Set("Last-Event-ID", fmt.Sprint(w.check.at))
		}
		if err := w.subscribe(ctx, sse.ClientOptions{
			Request: sse.NewRequest(http.MethodPost, w.url, header, []byte("{}")),
			HTTP:    &http.Client{Transport: transport},
			MinWait: time.Millisecond,
		}); err != nil {
			return err
		}
	}
	return nil
}

// subscribe reads one subscription until it was seen to the end or is cut.
func (w *swarmer) subscribe(ctx context.Context, options sse.ClientOptions) error {
	n := 0
	for e, err := range sse.Subscribe(ctx, options) {
		if err != nil {
			return err
		}
		if err := w.check.take(e); err != nil {
			return err
		}
		if n++; w.stalled != nil && n == 5 {
			select {
			case <-w.stalled:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if n == w.cutAfter || w.check.at == w.entries {
			return nil
		}
	}
	return nil
}

// dialSmall connects with a small receive buffer, so that a client that stalls
// is felt by the server soon.
func dialSmall(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetReadBuffer(32 << 10)
}
