package sse_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/internal/sse"
)

// Properties: with 200 subscribers of one journal, of which 20 stall until the
// server has cut them off and all others are done, and 20 cut the connection
// themselves again and again,
//   - each of the 200 sees each entry once and in order,
//   - the others see all of them while the 20 are stalled,
//   - each stalled one is ended as a slow consumer and resumes,
//   - nothing is left when all are gone.
func TestSwarm(t *testing.T) {
	slowtest.Long(t)
	const (
		subscribers = 200
		stalling    = 20
		cutting     = 20
		entries     = 200
	)
	s := newServer(t, sse.Options{WriteTimeout: time.Second, LastTimeout: time.Second})
	j := newJournal(strings.Repeat("x", 4<<10)) // in all more than the buffers of the kernel take
	slow := make(chan string, entries*subscribers)
	ts := serve(t, j.handler(s, func(client string, err error) {
		if errors.Is(err, sse.ErrSlowConsumer) {
			slow <- client
		}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()

	var all, others sync.WaitGroup
	release := make(chan struct{})
	for i := range subscribers {
		w := &swarmer{url: ts.URL, name: fmt.Sprint("client ", i), entries: entries}
		group := &others
		switch {
		case i < stalling:
			w.name, w.stalled, group = "stalled", release, &all
		case i < stalling+cutting:
			w.cutAfter = 7 + i
		}
		group.Go(func() {
			if err := w.run(ctx); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
		})
	}
	for range entries {
		j.append()
	}
	for cut := 0; cut < stalling; {
		if receive(t, slow, "end of a stalled stream") == "stalled" {
			cut++
		}
	}
	others.Wait()
	close(release)
	all.Wait()
	eventually(t, func() bool { return s.Streams() == 0 }, func() string { return fmt.Sprint(s.Streams(), " streams left") })
}

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
	transport := new(http.Transport)
	if w.stalled != nil {
		transport.DialContext = dialSmall
	}
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
	return conn, conn.(*net.TCPConn).SetReadBuffer(128 << 10)
}
