package channels

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"koine/kg"
)

// Signal is what is told to those who read a channel at this moment, and to nobody
// later: it is not stored, and has no sequence.
type Signal struct {
	Channel ChannelID
	From    kg.AgentID
	Kind    SignalKind
	Data    []byte // a JSON object, or nil
	Time    time.Time
	// Dropped is how many signals before this one the reader was too slow for.
	Dropped int
}

// SignalKind says what a signal is about. Adapters may have others than those that
// are named here.
type SignalKind string

// Kinds of signals.
const (
	Typing   SignalKind = "typing"
	Reaction SignalKind = "reaction" // to the message that Data names as messageId
)

// Bounds of signals.
const (
	MaxSignalBytes     = 1 << 10 // of Data
	MaxSignalKindBytes = 64
	MaxSignalBacklog   = 64 // that wait for one reader; the oldest are dropped
	SignalsPerSecond   = 5  // of a principal in a channel, on the average
	SignalBurst        = 10 // at once
)

// Signal tells the readers of a channel something. Members may who are neither
// muted nor observers, and everybody where everybody may publish. A Reaction is to a
// message of the channel whose content the sender may read.
//
// Errors: CodeChannelNotFound; CodePermissionDenied; CodeInvalid;
// CodeLimitExceeded for too much data; CodeRateLimited past the rate.
func (s *Service) Signal(ctx context.Context, by Caller, id ChannelID, kind SignalKind, data []byte) error {
	agent, e, err := s.requireDiscoverable(by, id)
	if err != nil {
		return err
	}
	if err := by.Principal.CheckWrite(); err != nil {
		return err
	}
	if err := e.mustSignal(agent); err != nil {
		return err
	}
	if kind == "" {
		return kg.Errorf(kg.CodeInvalid, "a signal is of a kind").At("kind")
	}
	if len(kind) > MaxSignalKindBytes {
		return errTooMuch("kind", "the name of a kind has at most %d bytes", MaxSignalKindBytes)
	}
	if data, err = checkMetadata(data); err != nil {
		e := *kg.AsError(err)
		e.Field = "data"
		return &e
	}
	if len(data) > MaxSignalBytes {
		return errTooMuch("data", "%d bytes are more than the %d that a signal has", len(data), MaxSignalBytes)
	}
	now := s.options.Clock()
	if err := s.signals.checkRate(now, string(by.Principal.ID)+"\n"+string(id)); err != nil {
		return err
	}
	if kind == Reaction {
		if err := s.mayReact(ctx, e, agent, data); err != nil {
			return err
		}
	}
	s.signals.broadcast(Signal{Channel: id, From: agent, Kind: kind, Data: data, Time: now.UTC().Truncate(time.Millisecond)})
	return nil
}

// mayReact refuses a reaction to what the sender does not read: the same for a
// message that is not there.
func (s *Service) mayReact(ctx context.Context, e *entry, agent kg.AgentID, data []byte) error {
	var to struct {
		Message MessageID `json:"messageId"`
	}
	if len(data) == 0 || json.Unmarshal(data, &to) != nil || to.Message == "" {
		return kg.Errorf(kg.CodeInvalid, "a reaction names the message that it is to").At("data.messageId")
	}
	no := errNoSuchMessage("data.messageId")
	if !e.canRead(agent) || len(to.Message) > MaxIDBytes || !kg.IsAbsoluteIRI(messagePrefix+string(to.Message)) {
		return no
	}
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	m, err := readMessage(snapshot.Match, e.ID, to.Message)
	if err != nil {
		return err
	}
	if m == nil {
		return no
	}
	if m.redactFor(s.viewerOf(agent)); m.Withheld != "" {
		return no
	}
	return nil
}

// Signals yields the signals of a channel that come from now on. A reader that is
// too slow misses the oldest (Signal.Dropped). It counts as an open stream until the
// context or the loop ends, whichever is first. The loop ends with the context's
// cause, with CodeClosed, and as Stream does when the agent may not read the channel
// any more.
//
// Errors: CodeChannelNotFound; CodePermissionDenied; CodeLimitExceeded for one
// stream too many.
func (s *Service) Signals(ctx context.Context, by Caller, id ChannelID) (iter.Seq2[Signal, error], error) {
	if _, _, err := s.requireReadable(by, id); err != nil {
		return nil, err
	}
	release, err := s.openStream(by, id)
	if err != nil {
		return nil, err
	}
	l := &listener{channel: id, wake: make(chan struct{}, 1)}
	if err := s.signals.add(l); err != nil {
		release()
		return nil, err
	}
	end := sync.OnceFunc(func() {
		s.signals.remove(l)
		release()
	})
	stop := context.AfterFunc(ctx, end)
	return func(yield func(Signal, error) bool) {
		defer end()
		defer stop()
		for {
			if ctx.Err() != nil {
				yield(Signal{}, context.Cause(ctx))
				return
			}
			list, closed := l.drain()
			if closed {
				yield(Signal{}, kg.Errorf(kg.CodeClosed, "the server stops"))
				return
			}
			if _, _, err := s.requireReadable(by, id); err != nil {
				yield(Signal{}, err)
				return
			}
			for _, one := range list {
				if !yield(one, nil) {
					return
				}
			}
			if len(list) == 0 {
				select {
				case <-ctx.Done():
				case <-l.wake:
				}
			}
		}
	}, nil
}

// listener is one who reads signals.
type listener struct {
	channel ChannelID
	wake    chan struct{}

	mu      sync.Mutex // guards what follows
	waiting []Signal
	closed  bool
}

// enqueue keeps a signal, nil for none, and wakes the reader.
func (l *listener) enqueue(one *Signal) {
	if one != nil {
		l.mu.Lock()
		if len(l.waiting) == MaxSignalBacklog {
			l.waiting[1].Dropped += l.waiting[0].Dropped + 1
			l.waiting = append(l.waiting[:0], l.waiting[1:]...)
		}
		l.waiting = append(l.waiting, *one)
		l.mu.Unlock()
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// drain gives what waits.
func (l *listener) drain() (list []Signal, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, l.waiting = l.waiting, nil
	return list, l.closed
}

// signalHub hands signals on.
type signalHub struct {
	maxListeners, maxLimiters int

	mu        sync.RWMutex // guards what follows
	closed    bool
	count     int
	listeners map[ChannelID]map[*listener]bool

	limiterMu sync.Mutex
	limiters  map[string]*rate.Limiter
}

func (s *signalHub) add(l *listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return kg.Errorf(kg.CodeClosed, "the server stops")
	case s.count >= s.maxListeners:
		return errTooMuch("", "%d readers of signals are there, as many as may be", s.count)
	}
	if s.listeners[l.channel] == nil {
		s.listeners[l.channel] = map[*listener]bool{}
	}
	s.listeners[l.channel][l] = true
	s.count++
	return nil
}

func (s *signalHub) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.listeners[l.channel]; set[l] {
		s.count--
		if delete(set, l); len(set) == 0 {
			delete(s.listeners, l.channel)
		}
	}
}

func (s *signalHub) broadcast(one Signal) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l := range s.listeners[one.Channel] {
		l.enqueue(&one)
	}
}

// applyCommit lets those look again at what they may read whom a commit may concern.
func (s *signalHub) applyCommit(c *kg.Commit) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.count == 0 {
		return
	}
	for i := range c.Changes {
		q := &c.Changes[i].Quad
		if id, part := channelOfGraph(q.Graph); part == recordPart {
			for l := range s.listeners[id] {
				l.enqueue(nil)
			}
		} else if part == 0 { // bans of the whole server, scopes
			s.wakeAll()
			return
		}
	}
}

func (s *signalHub) wakeAll() {
	for _, set := range s.listeners {
		for l := range set {
			l.enqueue(nil)
		}
	}
}

// close ends all readers.
func (s *signalHub) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, set := range s.listeners {
		for l := range set {
			l.mu.Lock()
			l.closed = true
			l.mu.Unlock()
		}
	}
	s.wakeAll()
}

// checkRate refuses one signal too many.
func (s *signalHub) checkRate(now time.Time, of string) error {
	s.limiterMu.Lock()
	defer s.limiterMu.Unlock()
	l := s.limiters[of]
	if l == nil {
		if len(s.limiters) >= s.maxLimiters && !s.evictIdle(now) {
			return errTooManySignals(time.Second)
		}
		l = rate.NewLimiter(SignalsPerSecond, SignalBurst)
		s.limiters[of] = l
	}
	r := l.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return errTooManySignals(wait)
	}
	return nil
}

// evictIdle makes place; it tells whether there is any.
func (s *signalHub) evictIdle(now time.Time) bool {
	for of, l := range s.limiters {
		if l.TokensAt(now) >= SignalBurst {
			delete(s.limiters, of)
		}
	}
	return len(s.limiters) < s.maxLimiters
}

func errTooManySignals(wait time.Duration) *kg.Error {
	e := kg.Errorf(kg.CodeRateLimited, "too many signals")
	e.RetryAfter = wait
	return e
}
