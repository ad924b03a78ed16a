package presence

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"koine/internal/agents"
	"koine/internal/jobs"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Tracker tracks the presence of agents. It is safe for concurrent use. One goroutine
// stores changes (writer.go), from Start to Close.
type Tracker struct {
	options Options
	mirror  systemgraph.Mirror // follows the agents' records
	writer  writer

	mu       sync.Mutex            // guards the following; no callback runs under it
	known    map[kg.AgentID]bool   // agents with a record
	tracked  map[kg.AgentID]*entry // agents that are or were present, or have a connection
	upcoming *btree.BTreeG[*entry] // entries to check, by time
	journal  Journal               // nil before Start
	// listeners are told each change of a state.
	listeners map[*changeQueue]bool
}

// entry is the state of one agent.
type entry struct {
	agent kg.AgentID
	activity
	now          Presence  // as of the last refresh
	stored       Presence  // as stored in the journal
	pendingSince time.Time // since when now differs from stored; zero if it does not
	written      time.Time // time of the last write
	writing      bool      // a write is in progress
	dropped      bool      // the write in progress must be discarded
	deregistered bool      // deregistered and not seen since: not stored
	signedOff    bool      // sent Offline and not seen since: no linger
	checkAt      time.Time // time of the next check; zero if not in upcoming
}

func (e *entry) sortsBefore(other *entry) bool {
	return cmp.Or(e.checkAt.Compare(other.checkAt), cmp.Compare(e.agent, other.agent)) < 0
}

// New returns a tracker without agents.
func New(o Options) *Tracker {
	return &Tracker{
		options: o.withDefaults(), listeners: map[*changeQueue]bool{}, known: map[kg.AgentID]bool{}, tracked: map[kg.AgentID]*entry{},
		upcoming: btree.NewBTreeGOptions((*entry).sortsBefore, btree.Options{NoLocks: true}),
		writer:   writer{make(chan struct{}, 1), jobs.NewGroup(o.Logger)},
	}
}

// Get returns the current presence of an agent.
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

// Connect adds a connection of the agent until release is called. release may be called
// more than once. The connections of an agent without a record count once it gets one.
func (t *Tracker) Connect(agent kg.AgentID) (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	e := t.entryFor(agent, now)
	if e == nil {
		return func() {}
	}
	e.noteArrival(now)
	e.connections++
	t.refreshEntry(e, now)
	return sync.OnceFunc(func() { t.releaseConnection(e) })
}

// releaseConnection removes a connection. After the last one the agent lingers unless
// it has signed off.
func (t *Tracker) releaseConnection(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changeEntry(e, func(now time.Time) {
		if e.connections--; e.connections == 0 {
			e.lingerUntil = now
			if !e.signedOff { // it may reconnect
				e.lingerUntil = now.Add(t.options.Linger)
			}
		}
	})
}

// Heartbeat marks the agent as present for Options.Validity. Idle and Busy declare its
// state. Online revokes the declaration and counts as activity; "" keeps it. Offline
// ends the last heartbeat, so that only connections count. An agent without a record
// gets one.
//
// Errors: CodeInvalid for another status; CodeLimitExceeded for too many agents; those
// of kg.Store.Update.
func (t *Tracker) Heartbeat(ctx context.Context, agent kg.AgentID, says Status) (Presence, error) {
	return t.HeartbeatFor(ctx, agent, says, t.options.Validity)
}

// HeartbeatFor is Heartbeat with the validity that the caller asks for, from MinValidity
// to MaxValidity; 0 means Options.Validity. It does not end an earlier heartbeat that is
// valid for longer. A restart of the server ends it after Options.Validity.
//
// Errors: also CodeInvalid for another validity.
func (t *Tracker) HeartbeatFor(ctx context.Context, agent kg.AgentID, says Status, validity time.Duration) (Presence, error) {
	if validity == 0 {
		validity = t.options.Validity
	}
	if (validity < MinValidity || validity > MaxValidity) && validity != t.options.Validity {
		return never, kg.Errorf(kg.CodeInvalid, "validity must be between %s and %s", MinValidity, MaxValidity).At("validity")
	}
	switch says {
	case "", Online, Idle, Busy, Offline:
	default:
		return never, kg.Errorf(kg.CodeInvalid, "status must be ONLINE, IDLE, BUSY or OFFLINE, not %q", says).At("status")
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
	e.noteArrival(now)
	e.heartbeatUntil = laterOf(e.heartbeatUntil, now.Add(validity))
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

// endHeartbeat ends the validity of heartbeats and former connections.
func (t *Tracker) endHeartbeat(agent kg.AgentID) Presence {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	if e == nil {
		return never
	}
	t.changeEntry(e, func(now time.Time) {
		e.endHeartbeats(now)
		e.signedOff = e.connections > 0
	})
	return e.now
}

// ensureRecord creates the agent's record if there is none.
func (t *Tracker) ensureRecord(ctx context.Context, agent kg.AgentID) error {
	t.mu.Lock()
	exists, full, journal := t.known[agent], t.tracked[agent] == nil && len(t.tracked) >= t.options.MaxTracked || len(t.known) >= agents.MaxAgents, t.journal
	t.mu.Unlock()
	switch {
	case exists:
		return nil
	case full:
		return t.errFull()
	case journal == nil:
		return kg.Errorf(kg.CodeClosed, "server is starting or shutting down")
	}
	return journal.Register(ctx, agent)
}

func (t *Tracker) errFull() error {
	return kg.Errorf(kg.CodeLimitExceeded, "presence of %d agents is tracked, which is the limit", t.options.MaxTracked)
}

// NoteActivity records that the agent wrote something, which ends its idle state.
func (t *Tracker) NoteActivity(agent kg.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := t.tracked[agent]; {
	case e == nil:
	case e.now.Status == Idle:
		t.changeEntry(e, func(now time.Time) { e.active = now })
	default: // the next check is early enough
		e.active = time.Now()
	}
}

// SetRegistered records whether the agent has a record.
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

// NoteDeregistered records that the agent deregistered, which removed its stored state
// and ends its heartbeats. A connected agent is still present, but its presence is not
// stored until it connects again, sends a heartbeat or registers (NoteRegistered).
func (t *Tracker) NoteDeregistered(agent kg.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.tracked[agent]; e != nil {
		t.changeEntry(e, func(now time.Time) {
			e.endHeartbeats(now)
			e.stored, e.dropped, e.deregistered = never, e.writing, true
		})
	}
}

// NoteRegistered records that the agent registered. Its connections are stored even if
// it deregistered before.
func (t *Tracker) NoteRegistered(agent kg.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.tracked[agent]; e != nil {
		t.changeEntry(e, func(time.Time) { e.deregistered = false })
	}
}

// isDropped reports whether the write in progress for the agent must be discarded.
func (t *Tracker) isDropped(agent kg.AgentID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tracked[agent]
	return e != nil && e.dropped
}

// entryFor returns the refreshed entry of the agent, or nil if there are too many.
func (t *Tracker) entryFor(agent kg.AgentID, now time.Time) *entry {
	e := t.tracked[agent]
	switch {
	case e != nil:
		t.refreshEntry(e, now)
		t.tracked[agent] = e // refreshEntry may have removed it
		return e
	case len(t.tracked) >= t.options.MaxTracked:
		return nil
	}
	e = &entry{agent: agent, now: never, stored: never}
	t.tracked[agent] = e
	return e
}

// noteArrival records that the agent was seen.
func (e *entry) noteArrival(now time.Time) {
	if !e.isPresent(now) {
		e.active = now
	}
	e.deregistered, e.signedOff = false, false
}

// endHeartbeats ends the validity of heartbeats and former connections.
func (e *entry) endHeartbeats(now time.Time) {
	e.heartbeatUntil, e.lingerUntil, e.stated = earlierOf(e.heartbeatUntil, now), earlierOf(e.lingerUntil, now), ""
}

// changeEntry changes an entry now. It refreshes the entry before the change, so that
// changes by the passing of time get their correct date, and after it.
func (t *Tracker) changeEntry(e *entry, change func(now time.Time)) {
	now := time.Now()
	t.refreshEntry(e, now)
	change(now)
	t.refreshEntry(e, now)
}

// refreshEntry computes the current state and schedules the next check.
func (t *Tracker) refreshEntry(e *entry, now time.Time) {
	if found := e.activity.presenceAt(now, t.options.IdleAfter); found.Status != e.now.Status {
		defer t.tellChange(e)
		if e.now = found; found.Status == e.stored.Status && !e.writing { // the write in progress will be stored
			e.now = e.stored // the state in between did not last
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

// scheduleCheck schedules the next check of the entry and removes an entry without
// data.
func (t *Tracker) scheduleCheck(e *entry, now time.Time) {
	var at time.Time
	switch {
	case e.writing: // scheduled when the write ends
	case !e.pendingSince.IsZero() && t.mustStore(e):
		at = t.storeAt(e)
		if change := e.activity.nextChange(now, t.options.IdleAfter); !change.IsZero() && change.Before(at) {
			at = change // listeners learn of it at once
		}
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

// storeAt returns when the pending change of the entry may be stored.
func (t *Tracker) storeAt(e *entry) time.Time {
	return laterOf(e.pendingSince.Add(t.options.Settle), e.written.Add(t.options.AgentWriteInterval))
}

// mustStore reports whether the agent's state is stored.
func (t *Tracker) mustStore(e *entry) bool {
	return t.known[e.agent] && !e.deregistered || !e.stored.Since.IsZero()
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
