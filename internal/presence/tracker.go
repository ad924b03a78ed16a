package presence

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"koine/internal/agents"
	"koine/internal/records"
	"koine/kg"
)

// Tracker knows who is there. It is safe for concurrent use. One goroutine writes
// down what changes (writer.go), from Start to Close; before, nothing is written.
type Tracker struct {
	options Options
	mirror  records.Mirror // of which agents have a record
	writer  writer

	mu       sync.Mutex            // guards what follows; nothing is called under it
	known    map[kg.AgentID]bool   // who has a record
	tracked  map[kg.AgentID]*entry // who is there, was there, or has a connection
	upcoming *btree.BTreeG[*entry] // those to look at, by when
	journal  Journal               // nil before Start
}

// entry is one agent.
type entry struct {
	agent kg.AgentID
	signs
	now     Presence  // as of the last look
	told    Presence  // what stands in the journal
	differs time.Time // since when now is not what was told; the zero time while it is
	written time.Time // when it was told
	writing bool      // it is being told right now
	dropped bool      // what is being told is not to be there any more
	left    bool      // it deregistered, and nothing came of it since: it is not written
	leaving bool      // it said that it leaves, and nothing came of it since: it is not waited for
	at      time.Time // when to look at it; the zero time for not in upcoming
}

func (e *entry) before(other *entry) bool {
	return cmp.Or(e.at.Compare(other.at), cmp.Compare(e.agent, other.agent)) < 0
}

// New makes a tracker that knows of nobody.
func New(o Options) *Tracker {
	return &Tracker{
		options: o.withDefaults(), known: map[kg.AgentID]bool{}, tracked: map[kg.AgentID]*entry{},
		upcoming: btree.NewBTreeGOptions((*entry).before, btree.Options{NoLocks: true}),
		writer:   writer{wake: make(chan struct{}, 1)},
	}
}

// Of is the presence of an agent at this moment.
func (t *Tracker) Of(agent kg.AgentID) Presence {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	if e == nil {
		return never
	}
	t.look(e, time.Now())
	return e.now
}

// Connected says that the agent has one more connection, until release, which may be
// called again. Connections of agents without a record count from when they get one.
func (t *Tracker) Connected(agent kg.AgentID) (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	e := t.entry(agent, now)
	if e == nil {
		return func() {}
	}
	t.came(e, now)
	e.left, e.leaving = false, false
	e.connections++
	t.look(e, now)
	return sync.OnceFunc(func() { t.disconnected(e) })
}

func (t *Tracker) disconnected(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.look(e, now)
	if e.connections--; e.connections == 0 {
		e.linger = now
		if !e.leaving { // perhaps it comes again
			e.linger = now.Add(t.options.Linger)
		}
	}
	t.look(e, now)
}

// Heartbeat says that the agent is there, for as long as Options.Validity. Idle and
// Busy are what it is meanwhile; Online takes that back, and counts as something
// done; "" leaves it as it is. Offline ends what the last heartbeat said, so that
// only connections count. An agent without a record gets one.
//
// Errors: CodeInvalid for another status; CodeLimitExceeded for one agent too many;
// those of kg.Store.Update.
func (t *Tracker) Heartbeat(ctx context.Context, agent kg.AgentID, says Status) (Presence, error) {
	switch says {
	case "", Online, Idle, Busy, Offline:
	default:
		return never, kg.Errorf(kg.CodeInvalid, "there is no status %q", says).At("status")
	}
	if says == Offline {
		return t.leave(agent), nil
	}
	if err := t.register(ctx, agent); err != nil {
		return never, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	e := t.entry(agent, now)
	if e == nil {
		return never, t.full()
	}
	t.came(e, now)
	e.left, e.leaving = false, false
	e.beat = now.Add(t.options.Validity)
	switch says {
	case Online:
		e.stated, e.active = "", now
	case Idle:
		e.stated = Idle
	case Busy:
		e.stated, e.active = Busy, now
	}
	t.look(e, now)
	return e.now, nil
}

// leave ends what heartbeats and former connections said.
func (t *Tracker) leave(agent kg.AgentID) Presence {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	if e == nil {
		return never
	}
	now := time.Now()
	t.look(e, now)
	e.beat, e.linger, e.stated = earlier(e.beat, now), earlier(e.linger, now), ""
	e.leaving = e.connections > 0
	t.look(e, now)
	return e.now
}

// register sees to it that the agent has a record.
func (t *Tracker) register(ctx context.Context, agent kg.AgentID) error {
	t.mu.Lock()
	there, full, journal := t.known[agent], t.tracked[agent] == nil && len(t.tracked) >= t.options.MaxTracked || len(t.known) >= agents.MaxAgents, t.journal
	t.mu.Unlock()
	switch {
	case there:
		return nil
	case full:
		return t.full()
	case journal == nil:
		return kg.Errorf(kg.CodeClosed, "the server begins, or ends")
	}
	return journal.Register(ctx, agent)
}

func (t *Tracker) full() error {
	return kg.Errorf(kg.CodeLimitExceeded, "the presence of %d agents is known already, as many as may be", t.options.MaxTracked)
}

// Acted says that the agent wrote something: whoever is there is not idle.
func (t *Tracker) Acted(agent kg.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	if e == nil {
		return
	}
	now := time.Now()
	if e.now.Status == Idle { // else the next look is early enough
		t.look(e, now)
		e.active = now
		t.look(e, now)
		return
	}
	e.active = now
}

// Registered says whether the agent has a record.
func (t *Tracker) Registered(agent kg.AgentID, has bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !has {
		delete(t.known, agent)
		return
	}
	t.known[agent] = true
	if e := t.tracked[agent]; e != nil {
		t.look(e, time.Now())
	}
}

// Forgotten says that the agent deregistered: what was written down of it is there no
// more, and its heartbeats count no more. One that has a connection is there all the same,
// but that is not written down before something new is heard of it: that it connects,
// sends a heartbeat, or registers again (Returned).
func (t *Tracker) Forgotten(agent kg.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	if e == nil {
		return
	}
	now := time.Now()
	t.look(e, now)
	e.beat, e.linger, e.stated = earlier(e.beat, now), earlier(e.linger, now), ""
	e.told, e.dropped, e.left = never, e.writing, true
	t.look(e, now)
}

// Returned says that the agent registered: connections that it has are written down, also
// where it deregistered before.
func (t *Tracker) Returned(agent kg.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.tracked[agent]; e != nil {
		now := time.Now()
		t.look(e, now)
		e.left = false
		t.look(e, now)
	}
}

// drops tells whether what is being told of the agent is not to be written.
func (t *Tracker) drops(agent kg.AgentID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	return e != nil && e.dropped
}

// entry is what is known of the agent as of now, nil for one too many.
func (t *Tracker) entry(agent kg.AgentID, now time.Time) *entry {
	e := t.tracked[agent]
	switch {
	case e != nil:
		t.look(e, now)
		t.tracked[agent] = e // look may have forgotten it
		return e
	case len(t.tracked) >= t.options.MaxTracked:
		return nil
	}
	e = &entry{agent: agent, now: never, told: never}
	t.tracked[agent] = e
	return e
}

// came notes that something begins of an agent that was not there.
func (t *Tracker) came(e *entry, now time.Time) {
	if !e.here(now) {
		e.active = now
	}
}

// look finds out what the agent is now, and plans when to look again. It is called
// before something is said of the agent, so that what happened by itself is dated
// when it did, and after it.
func (t *Tracker) look(e *entry, now time.Time) {
	if found := e.signs.at(now, t.options.IdleAfter); found.Status != e.now.Status {
		if e.now = found; found.Status == e.told.Status && !e.writing { // what is being written will have been told
			e.now = e.told // what was in between did not last
		}
	}
	if !now.Before(e.beat) {
		e.stated = ""
	}
	switch {
	case e.now.Status == e.told.Status:
		e.differs = time.Time{}
	case e.differs.IsZero():
		e.differs = now
	}
	t.plan(e, now)
}

// plan says when to look at the agent again, and forgets one of which nothing is
// known any more.
func (t *Tracker) plan(e *entry, now time.Time) {
	var at time.Time
	switch {
	case e.writing: // planned when that is over
	case !e.differs.IsZero() && t.lasting(e):
		at = later(e.differs.Add(t.options.Settle), e.written.Add(t.options.Stay))
	default:
		at = e.signs.next(now, t.options.IdleAfter)
	}
	if !e.at.Equal(at) {
		if !e.at.IsZero() {
			t.upcoming.Delete(e)
		}
		if e.at = at; !at.IsZero() {
			t.upcoming.Set(e)
			if first, _ := t.upcoming.Min(); first == e {
				t.writer.wakeUp()
			}
		}
	}
	if e.connections == 0 && !e.writing && e.at.IsZero() && e.told.Since.IsZero() {
		delete(t.tracked, e.agent)
	}
}

// lasting tells whether what the agent is gets written.
func (t *Tracker) lasting(e *entry) bool {
	return t.known[e.agent] && !e.left || !e.told.Since.IsZero()
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
