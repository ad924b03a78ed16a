package channels

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/internal/check"
	"koine/channels/message"
	"koine/internal/jobs"
	"koine/kg"
)

// Signal is an ephemeral event for the current readers of a channel. It is not stored
// and has no sequence.
type Signal struct {
	Channel channel.ID
	From    kg.AgentID
	Kind    SignalKind
	Data    []byte // a JSON object, or nil
	Time    time.Time
	// Dropped is the number of signals dropped immediately before this one because the
	// reader was too slow.
	Dropped int
}

// SignalKind is the kind of a signal. Adapters may define further kinds.
type SignalKind string

// Signal kinds.
const (
	Typing   SignalKind = "typing"
	Reaction SignalKind = "reaction" // to the message with the id Data.messageId
)

// Limits of signals.
const (
	MaxSignalBytes     = 1 << 10 // of Data
	MaxSignalKindBytes = 64
	MaxSignalBacklog   = 64 // per reader; the oldest are dropped
	SignalsPerSecond   = 5  // per principal and channel, on average
	SignalBurst        = 10 // per principal and channel
)

// Signal sends a signal to the readers of a channel. It requires a member other than an
// observer, or the right to publish, and no mute. A Reaction must name a message of the
// channel with content that the sender can read.
//
// Errors: CodeChannelNotFound; CodePermissionDenied; CodeInvalid; CodeLimitExceeded for
// too much data; CodeRateLimited.
func (s *Service) Signal(ctx context.Context, by Caller, id channel.ID, kind SignalKind, data []byte) error {
	agent, e, err := s.table.RequireDiscoverable(by, id)
	if err != nil {
		return err
	}
	if err := by.Principal.CheckWrite(); err != nil {
		return err
	}
	if err := e.MustSignal(agent); err != nil {
		return err
	}
	if kind == "" {
		return kg.Errorf(kg.CodeInvalid, "kind is required").At("kind")
	}
	if len(kind) > MaxSignalKindBytes {
		return check.TooMuch("kind", "kind has more than %d bytes", MaxSignalKindBytes)
	}
	if data, err = check.JSONObject("data", data, MaxSignalBytes); err != nil {
		return err
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

// mayReact returns an error if the sender cannot read the message that it reacts to.
// The error is the same if the message does not exist.
func (s *Service) mayReact(ctx context.Context, e *access.Entry, agent kg.AgentID, data []byte) error {
	var to struct {
		Message message.ID `json:"messageId"`
	}
	if len(data) == 0 || json.Unmarshal(data, &to) != nil || to.Message == "" {
		return kg.Errorf(kg.CodeInvalid, "reaction requires data.messageId").At("data.messageId")
	}
	notFound := message.ErrNotInChannel("data.messageId")
	if !e.CanRead(agent) || !to.Message.IsValid() {
		return notFound
	}
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	m, err := message.Read(snapshot.Match, e.ID, to.Message)
	if err != nil {
		return err
	}
	if m == nil {
		return notFound
	}
	if m.RedactFor(s.journal.ViewerOf(agent)); m.Withheld != "" {
		return notFound
	}
	return nil
}

// Signals yields the signals of a channel from now on. A slow reader misses the oldest
// ones (Signal.Dropped). It counts as an open stream until the context is done or the
// loop ends. The loop ends with the context's cause, with CodeClosed, or, like Stream,
// when the agent can no longer read the channel.
//
// Errors: CodeChannelNotFound; CodePermissionDenied; CodeLimitExceeded for too many
// open streams.
func (s *Service) Signals(ctx context.Context, by Caller, id channel.ID) (iter.Seq2[Signal, error], error) {
	if _, _, err := s.table.OpenReadable(ctx, by, id); err != nil {
		return nil, err
	}
	release, err := s.openStream(by, id)
	if err != nil {
		return nil, err
	}
	l := newListener(nil)
	if err := s.signals.add(l, id); err != nil {
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
			list, _, closed := l.drain()
			if closed {
				yield(Signal{}, kg.Errorf(kg.CodeClosed, "server is shutting down"))
				return
			}
			if _, _, err := s.table.RequireReadable(by, id); err != nil {
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
				case <-l.woken:
				}
			}
		}
	}, nil
}

// listener is a reader of signals, and perhaps of presence.
type listener struct {
	wake      func() // does not block
	presences bool   // it reads presence

	channels map[channel.ID]bool // guarded by signalHub.mu

	mu      sync.Mutex // guards the following
	waiting []Signal
	closed  bool
	// The latest presence of each agent that was not read yet, in the order in which the
	// agents first changed. Most listeners are idle, and hold neither.
	order  []kg.AgentID
	latest map[kg.AgentID]PresenceChange

	woken chan struct{} // of readers that wait for signals alone
}

// newListener returns a listener of signals that waits for woken or, with wake, one of
// signals and presence.
func newListener(wake func()) *listener {
	l := &listener{channels: map[channel.ID]bool{}, wake: wake, presences: wake != nil}
	if wake == nil {
		l.woken = make(chan struct{}, 1)
		l.wake = func() { jobs.Wake(l.woken) }
	}
	return l
}

// enqueue queues a signal, if not nil, and wakes the reader.
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
	l.wake()
}

// enqueuePresence queues a change of presence. It replaces one of the same agent; beyond
// MaxPresenceBacklog agents the one that waits the longest is dropped.
func (l *listener) enqueuePresence(one PresenceChange) {
	l.mu.Lock()
	if _, waits := l.latest[one.Agent]; !waits {
		if len(l.order) == MaxPresenceBacklog {
			delete(l.latest, l.order[0])
			l.order = append(l.order[:0], l.order[1:]...)
		}
		l.order = append(l.order, one.Agent)
	}
	if l.latest == nil {
		l.latest = map[kg.AgentID]PresenceChange{}
	}
	l.latest[one.Agent] = one
	l.mu.Unlock()
	l.wake()
}

// drain returns the queue.
func (l *listener) drain() (list []Signal, present []PresenceChange, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, l.waiting = l.waiting, nil
	for _, agent := range l.order {
		present = append(present, l.latest[agent])
	}
	l.order, l.latest = nil, nil
	return list, present, l.closed
}

// signalHub distributes signals and presence to listeners.
type signalHub struct {
	maxListeners, maxLimiters int

	mu        sync.RWMutex // guards the following
	closed    bool
	all       map[*listener]bool
	listeners map[channel.ID]map[*listener]bool

	limiterMu sync.Mutex
	limiters  map[string]*rate.Limiter
}

func (s *signalHub) add(l *listener, ids ...channel.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return kg.Errorf(kg.CodeClosed, "server is shutting down")
	case len(s.all) >= s.maxListeners:
		return check.TooMuch("", "server has %d readers of signals, which is the limit", len(s.all))
	}
	s.all[l] = true
	for _, id := range ids {
		s.join(l, id)
	}
	return nil
}

// join adds a channel to those of a listener. The caller holds the lock.
func (s *signalHub) join(l *listener, id channel.ID) {
	if s.listeners[id] == nil {
		s.listeners[id] = map[*listener]bool{}
	}
	s.listeners[id][l], l.channels[id] = true, true
}

// leave removes a channel from those of a listener. The caller holds the lock.
func (s *signalHub) leave(l *listener, id channel.ID) {
	delete(l.channels, id)
	if set := s.listeners[id]; set[l] {
		if delete(set, l); len(set) == 0 {
			delete(s.listeners, id)
		}
	}
}

// move replaces the channels of an added listener.
func (s *signalHub) move(l *listener, now map[channel.ID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.all[l] {
		return
	}
	for id := range l.channels {
		if !now[id] {
			s.leave(l, id)
		}
	}
	for id := range now {
		if !l.channels[id] {
			s.join(l, id)
		}
	}
}

func (s *signalHub) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l)
	for id := range l.channels {
		s.leave(l, id)
	}
}

func (s *signalHub) broadcast(one Signal) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for l := range s.listeners[one.Channel] {
		l.enqueue(&one)
	}
}

// broadcastPresence tells the listeners of the channels, each once.
func (s *signalHub) broadcastPresence(one PresenceChange, ids []channel.ID) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	told := map[*listener]bool{}
	for _, id := range ids {
		for l := range s.listeners[id] {
			if l.presences && !told[l] {
				told[l] = true
				l.enqueuePresence(one)
			}
		}
	}
}

// applyCommit wakes the listeners with access that may have changed, so that they check it
// again.
func (s *signalHub) applyCommit(c *kg.Commit) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.all) == 0 {
		return
	}
	for i := range c.Changes {
		q := &c.Changes[i].Quad
		if id, part := channel.OfGraph(q.Graph); part == channel.RecordPart {
			for l := range s.listeners[id] {
				l.recheck()
			}
		} else if part == 0 { // server-wide restrictions and scopes
			for l := range s.all {
				l.recheck()
			}
			return
		}
	}
}

// recheck wakes a reader that ends with its access. A reader of presence as well does not.
func (l *listener) recheck() {
	if !l.presences {
		l.enqueue(nil)
	}
}

// close ends all listeners.
func (s *signalHub) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for l := range s.all {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		l.enqueue(nil)
	}
}

// checkRate counts a signal, or returns an error if the key exceeds its rate.
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

// evictIdle removes limiters that are full. It reports whether there is room for
// another one.
func (s *signalHub) evictIdle(now time.Time) bool {
	for of, l := range s.limiters {
		if l.TokensAt(now) >= SignalBurst {
			delete(s.limiters, of)
		}
	}
	return len(s.limiters) < s.maxLimiters
}

func errTooManySignals(wait time.Duration) *kg.Error {
	e := kg.Errorf(kg.CodeRateLimited, "signal rate limit exceeded: retry later")
	e.RetryAfter = wait
	return e
}
