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
	activity
	now          Presence  // as of the last look
	stored       Presence  // what stands in the journal
	pendingSince time.Time // since when now is not what was told; the zero time while it is
	written      time.Time // when it was told
	writing      bool      // it is being told right now
	dropped      bool      // what is being told is not to be there any more
	deregistered bool      // it deregistered, and nothing came of it since: it is not written
	signedOff    bool      // it said that it leaves, and nothing came of it since: it is not waited for
	checkAt      time.Time // when to look at it; the zero time for not in upcoming
}

func (e *entry) sortsBefore(other *entry) bool {
	return cmp.Or(e.checkAt.Compare(other.checkAt), cmp.Compare(e.agent, other.agent)) < 0
}

// New makes a tracker that knows of nobody.
func New(o Options) *Tracker {
	return &Tracker{
		options: o.withDefaults(), known: map[kg.AgentID]bool{}, tracked: map[kg.AgentID]*entry{},
		upcoming: btree.NewBTreeGOptions((*entry).sortsBefore, btree.Options{NoLocks: true}),
		writer:   writer{wake: make(chan struct{}, 1)},
	}
}

// Get is the presence of an agent at this moment.
func (t *Tracker) Get(agent kg.AgentID) Presence {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	if e == nil {
		return never
	}
	t.refreshEntry(e, time.Now())
	return e.now
}

// Connect says that the agent has one more connection, until release, which may be
// called again. Connections of agents without a record count from when they get one.
func (t *Tracker) Connect(agent kg.AgentID) (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	e := t.entryFor(agent, now)
	if e == nil {
		return func() {}
	}
	t.noteArrival(e, now)
	e.deregistered, e.signedOff = false, false
	e.connections++
	t.refreshEntry(e, now)
	return sync.OnceFunc(func() { t.releaseConnection(e) })
}

func (t *Tracker) releaseConnection(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.refreshEntry(e, now)
	if e.connections--; e.connections == 0 {
		e.lingerUntil = now
		if !e.signedOff { // perhaps it comes again
			e.lingerUntil = now.Add(t.options.Linger)
		}
	}
	t.refreshEntry(e, now)
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
		return t.endHeartbeat(agent), nil
	}
	if err := t.ensureRecord(ctx, agent); err != nil {
		return never, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	e := t.entryFor(agent, now)
	if e == nil {
		return never, t.errFull()
	}
	t.noteArrival(e, now)
	e.deregistered, e.signedOff = false, false
	e.heartbeatUntil = now.Add(t.options.Validity)
	switch says {
	case Online:
		e.stated, e.active = "", now
	case Idle:
		e.stated = Idle
	case Busy:
		e.stated, e.active = Busy, now
	}
	t.refreshEntry(e, now)
	return e.now, nil
}

// endHeartbeat ends what heartbeats and former connections said.
func (t *Tracker) endHeartbeat(agent kg.AgentID) Presence {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	if e == nil {
		return never
	}
	now := time.Now()
	t.refreshEntry(e, now)
	e.heartbeatUntil, e.lingerUntil, e.stated = earlierOf(e.heartbeatUntil, now), earlierOf(e.lingerUntil, now), ""
	e.signedOff = e.connections > 0
	t.refreshEntry(e, now)
	return e.now
}

// ensureRecord sees to it that the agent has a record.
func (t *Tracker) ensureRecord(ctx context.Context, agent kg.AgentID) error {
	t.mu.Lock()
	there, full, journal := t.known[agent], t.tracked[agent] == nil && len(t.tracked) >= t.options.MaxTracked || len(t.known) >= agents.MaxAgents, t.journal
	t.mu.Unlock()
	switch {
	case there:
		return nil
	case full:
		return t.errFull()
	case journal == nil:
		return kg.Errorf(kg.CodeClosed, "the server begins, or ends")
	}
	return journal.Register(ctx, agent)
}

func (t *Tracker) errFull() error {
	return kg.Errorf(kg.CodeLimitExceeded, "the presence of %d agents is known already, as many as may be", t.options.MaxTracked)
}

// NoteActivity says that the agent wrote something: whoever is there is not idle.
func (t *Tracker) NoteActivity(agent kg.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	if e == nil {
		return
	}
	now := time.Now()
	if e.now.Status == Idle { // else the next look is early enough
		t.refreshEntry(e, now)
		e.active = now
		t.refreshEntry(e, now)
		return
	}
	e.active = now
}

// SetRegistered says whether the agent has a record.
func (t *Tracker) SetRegistered(agent kg.AgentID, has bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !has {
		delete(t.known, agent)
		return
	}
	t.known[agent] = true
	if e := t.tracked[agent]; e != nil {
		t.refreshEntry(e, time.Now())
	}
}

// NoteDeregistered says that the agent deregistered: what was written down of it is there no
// more, and its heartbeats count no more. One that has a connection is there all the same,
// but that is not written down before something new is heard of it: that it connects,
// sends a heartbeat, or registers again (Returned).
func (t *Tracker) NoteDeregistered(agent kg.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	if e == nil {
		return
	}
	now := time.Now()
	t.refreshEntry(e, now)
	e.heartbeatUntil, e.lingerUntil, e.stated = earlierOf(e.heartbeatUntil, now), earlierOf(e.lingerUntil, now), ""
	e.stored, e.dropped, e.deregistered = never, e.writing, true
	t.refreshEntry(e, now)
}

// NoteRegistered says that the agent registered: connections that it has are written down, also
// where it deregistered before.
func (t *Tracker) NoteRegistered(agent kg.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.tracked[agent]; e != nil {
		now := time.Now()
		t.refreshEntry(e, now)
		e.deregistered = false
		t.refreshEntry(e, now)
	}
}

// isDropped tells whether what is being told of the agent is not to be written.
func (t *Tracker) isDropped(agent kg.AgentID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	return e != nil && e.dropped
}

// entryFor is what is known of the agent as of now, nil for one too many.
func (t *Tracker) entryFor(agent kg.AgentID, now time.Time) *entry {
	e := t.tracked[agent]
	switch {
	case e != nil:
		t.refreshEntry(e, now)
		t.tracked[agent] = e // look may have forgotten it
		return e
	case len(t.tracked) >= t.options.MaxTracked:
		return nil
	}
	e = &entry{agent: agent, now: never, stored: never}
	t.tracked[agent] = e
	return e
}

// noteArrival notes that something begins of an agent that was not there.
func (t *Tracker) noteArrival(e *entry, now time.Time) {
	if !e.isPresent(now) {
		e.active = now
	}
}

// refreshEntry finds out what the agent is now, and plans when to look again. It is called
// before something is said of the agent, so that what happened by itself is dated
// when it did, and after it.
func (t *Tracker) refreshEntry(e *entry, now time.Time) {
	if found := e.activity.presenceAt(now, t.options.IdleAfter); found.Status != e.now.Status {
		if e.now = found; found.Status == e.stored.Status && !e.writing { // what is being written will have been told
			e.now = e.stored // what was in between did not last
		}
	}
	if !now.Before(e.heartbeatUntil) {
		e.stated = ""
	}
	switch {
	case e.now.Status == e.stored.Status:
		e.pendingSince = time.Time{}
	case e.pendingSince.IsZero():
		e.pendingSince = now
	}
	t.scheduleCheck(e, now)
}

// scheduleCheck says when to look at the agent again, and forgets one of which nothing is
// known any more.
func (t *Tracker) scheduleCheck(e *entry, now time.Time) {
	var at time.Time
	switch {
	case e.writing: // planned when that is over
	case !e.pendingSince.IsZero() && t.mustStore(e):
		at = laterOf(e.pendingSince.Add(t.options.Settle), e.written.Add(t.options.AgentWriteInterval))
	default:
		at = e.activity.nextChange(now, t.options.IdleAfter)
	}
	if !e.checkAt.Equal(at) {
		if !e.checkAt.IsZero() {
			t.upcoming.Delete(e)
		}
		if e.checkAt = at; !at.IsZero() {
			t.upcoming.Set(e)
			if first, _ := t.upcoming.Min(); first == e {
				t.writer.wakeUp()
			}
		}
	}
	if e.connections == 0 && !e.writing && e.checkAt.IsZero() && e.stored.Since.IsZero() {
		delete(t.tracked, e.agent)
	}
}

// mustStore tells whether what the agent is gets written.
func (t *Tracker) mustStore(e *entry) bool {
	return t.known[e.agent] && !e.deregistered || !e.stored.Since.IsZero()
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
