package sse

import (
	"context"
	"sync"
	"time"

	r3labs "github.com/r3labs/sse/v2"
)

// Server owns the streams of a process: their number, their heartbeats and
// their end. It is safe for concurrent use. Shutdown must be called.
type Server struct {
	options Options
	hub     *r3labs.Server
	began   time.Time     // streams count their time from here
	quit    chan struct{} // closed when the ticker shall end
	ticked  chan struct{} // closed when it has
	stop    sync.Once

	mu      sync.Mutex // guards the fields below; never held while a stream is used
	streams map[*Stream]struct{}
	places  int // taken by streams and by Acquire
	closed  bool
	empty   chan struct{} // closed when the server is closed and has no stream
}

// New starts a server.
func New(options Options) *Server {
	s := &Server{
		options: options.withDefaults(),
		hub:     r3labs.New(),
		began:   time.Now(),
		quit:    make(chan struct{}),
		ticked:  make(chan struct{}),
		streams: make(map[*Stream]struct{}),
		empty:   make(chan struct{}),
	}
	s.hub.Headers = map[string]string{"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
	go s.runTicker()
	return s
}

// Open reserves a place for a stream that lives no longer than ctx, the context
// of the request (or one derived from it). The caller must call Close or Serve,
// and may call both. The error is a *Refused with ErrTooManyStreams, ErrShutdown
// or the error of Options.Admit.
//
// If ctx ends with a cause of its own, or by a deadline, that is the reason
// given to Last; a plain cancellation means that the client is gone.
func (s *Server) Open(ctx context.Context, options StreamOptions) (*Stream, error) {
	release, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	st, err := s.attachStream(context.WithoutCancel(ctx), options)
	if err != nil {
		release()
		return nil, err
	}
	st.admitted = release
	st.linkTo(ctx)
	return st, nil
}

// Attach returns a stream without a place: a connection that Shutdown ends and waits
// for, and that takes a place, by Acquire, when its client has authenticated. The error
// is a *Refused with ErrShutdown.
func (s *Server) Attach(ctx context.Context) (*Stream, error) {
	return s.attachStream(ctx, StreamOptions{})
}

// Acquire takes a place among the streams for a socket, or for a subscription on one.
// release releases it and may be called again. The error is a *Refused with
// ErrTooManyStreams or the error of Options.Admit.
func (s *Server) Acquire(ctx context.Context) (release func(), err error) {
	admitted := func() {}
	if s.options.Admit != nil {
		if admitted, err = s.options.Admit(ctx); err != nil {
			return nil, s.refusedError(err)
		}
	}
	s.mu.Lock()
	full := s.places >= s.options.MaxStreams
	if !full {
		s.places++
	}
	s.mu.Unlock()
	if full {
		admitted()
		return nil, s.refusedError(ErrTooManyStreams)
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		s.places--
		s.mu.Unlock()
		admitted()
	}), nil
}

func (s *Server) attachStream(ctx context.Context, options StreamOptions) (*Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, s.refusedError(ErrShutdown)
	}
	st := newStream(ctx, s, options)
	st.admitted = func() {}
	s.streams[st] = struct{}{}
	return st, nil
}

// Streams returns the number of places taken.
func (s *Server) Streams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places
}

// MaxEventBytes returns the limit of the block of one event.
func (s *Server) MaxEventBytes() int { return s.options.MaxEventBytes }

// Shutdown refuses new streams, ends the open ones with ErrShutdown and waits
// for them, or for ctx, whose error it returns then. It may be called again.
// Call it before http.Server.Shutdown, which waits for the streams as well.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, st := range s.refuseNew() {
		st.cancel(ErrShutdown)
	}
	s.stop.Do(func() { close(s.quit) })
	<-s.ticked
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refuseNew refuses new streams and returns the open ones.
func (s *Server) refuseNew() []*Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && len(s.streams) == 0 {
		close(s.empty)
	}
	s.closed = true
	return s.appendStreams(nil)
}

// removeStream releases the place of a stream.
func (s *Server) removeStream(st *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
	if s.closed && len(s.streams) == 0 {
		close(s.empty)
	}
}

// appendStreams appends the open streams to into; s.mu is held.
func (s *Server) appendStreams(into []*Stream) []*Stream {
	for st := range s.streams {
		into = append(into, st)
	}
	return into
}

func (s *Server) refusedError(reason error) error {
	return &Refused{Reason: reason, RetryAfter: s.options.RetryAfter}
}

// sinceStart returns the time since the server started: monotonic, and storable in an atomic.
func (s *Server) sinceStart() time.Duration { return time.Since(s.began) }

// runTicker is the one heartbeat ticker of all streams. Shutdown ends it.
func (s *Server) runTicker() {
	defer close(s.ticked)
	ticker := time.NewTicker(min(max(s.options.Heartbeat/4, minTick), maxTick))
	defer ticker.Stop()
	var streams []*Stream
	for {
		select {
		case <-s.quit:
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		streams = s.appendStreams(streams[:0])
		s.mu.Unlock()
		now := s.sinceStart()
		for _, st := range streams {
			st.beatIfSilent(now)
		}
		clear(streams)
	}
}
