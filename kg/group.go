package kg

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/logentry"
	"koine/kg/internal/wal"
)

// maxGroupBytes is the size in the log from which a group takes no further update. With one
// more entry of wal.MaxEntryBytes it is far below wal.MaxBatchBytes, beyond which an append
// fails and makes the store read-only.
const maxGroupBytes = 32 << 20

// group is a set of updates that are executed together, share one fsync and become visible at
// once.
type group struct {
	s         *Store
	updates   []*update
	snapshot  *index.BadgerKV // closed after the execution
	w         *index.IndexWriter
	catalogue *index.Catalogue
	revision  Revision // of its last commit
	time      time.Time
	commits   []*Commit
	entries   []wal.Prepared // of the commits; one without bytes is still to be encoded
	bytes     int            // upper bound of the entries' size
	scratch   *scratch       // belongs to the committer
	hash      [32]byte       // of the last log entry
	// before holds the commits of the group ahead, which may not be in the log yet.
	before []*Commit
	// system means that the last commit changes a graph that decisions depend on. It ends the
	// group: the next update is executed under the new decisions.
	system bool
	// trial means that the group is one update that is judged and never appended.
	trial bool
	// refusal is the error that updates get, nil for none. With freesOnly, updates that free
	// space are taken.
	refusal   error
	freesOnly bool

	began, executed, appended, applied time.Time
	appendTime                         time.Duration // duration of the append
}

// newGroup begins a group on top of all commits and of the group ahead. Only the committer
// calls it: it alone changes the layers that the group reads.
func (s *Store) newGroup() *group {
	began := time.Now()
	snapshot := s.newKV(s.layers.flushed)
	committed := s.layers.newKV(snapshot, s.layers.mem)
	var g *group
	if ahead := s.ahead; ahead != nil {
		ahead.w.Overlay.Base = committed
		g = s.startGroup(ahead.newHead(), ahead.w.Overlay)
		g.before = ahead.commits
		g.w.Dictionary.KV = committed
		g.w.Dictionary.Fresh.ContinueAfter(ahead.w.Dictionary.Fresh)
	} else {
		g = s.startGroup(s.head.Load(), committed)
	}
	g.snapshot, g.began = snapshot, began
	if s.ahead != nil {
		g.w.Generations = s.ahead.w.Generations
	}
	g.w.Dictionary.Flushed = s.flushedKV.Load()
	g.scratch, g.w.RecentTerms = &s.scratch, &s.met
	g.w.Overlay.Undo = s.scratch.undo[:0]
	g.w.Overlay.Pending = s.scratch.keyList()
	g.w.Dictionary.Fresh.Grow(s.scratch.terms)
	return g
}

// scratch is reusable memory in which the committer builds commits.
type scratch struct {
	// room is the free end of an array of changes that successive commits share.
	room []Change
	last int // number of changes of the last commit
	// undo is memory for undo steps; terms is the number of new terms in the last group.
	undo  []index.UndoStep
	terms int
	// lists is memory for the keys of groups: of the one ahead and of the next.
	lists [][]index.KeyWrite
}

// Bounds of scratch. roomAtOnce is the size of an array of changes, and maxShared the size in
// the log up to which a commit's changes share an array: retaining one commit retains all
// commits in its array. maxUndoKept and maxKeysKept bound the memory for undo steps and for keys
// that is reused, and must be cleared, with each group; maxLists bounds the lists of keys.
const (
	roomAtOnce  = 64
	maxShared   = 16 << 10
	maxUndoKept = 1 << 10
	maxKeysKept = 1 << 13
	maxLists    = 2
)

// keyList returns memory for keys.
func (s *scratch) keyList() []index.KeyWrite {
	n := len(s.lists)
	if n == 0 {
		return nil
	}
	list := s.lists[n-1]
	s.lists = s.lists[:n-1]
	return list
}

// reclaimKeyList keeps the memory of a group's keys for the next group, once they are in the layer
// below.
func (s *scratch) reclaimKeyList(o *index.Overlay) {
	list := o.Pending
	o.Pending, o.Marked = nil, 0
	if cap(list) > maxKeysKept || len(s.lists) == maxLists {
		return
	}
	clear(list)
	s.lists = append(s.lists, list[:0])
}

// changeList returns an empty list for the changes of the next update.
func (s *scratch) changeList() []Change {
	if cap(s.room) < max(min(s.last, roomAtOnce), 1) {
		s.room = make([]Change, 0, roomAtOnce)
	}
	return s.room
}

// retainChanges returns the changes of a commit as they are kept. bytes bounds their size in
// the log.
func (s *scratch) retainChanges(changes []Change, bytes int) []Change {
	s.last = len(changes)
	switch {
	case s.last > cap(s.room): // they did not fit
		s.reset()
		return slices.Clip(changes)
	case bytes > maxShared:
		alone := slices.Clone(changes)
		s.reset()
		return alone
	}
	s.room = s.room[s.last:s.last]
	return slices.Clip(changes)
}

// reset clears the memory for the next changes.
func (s *scratch) reset() { clear(s.room[:cap(s.room)]) }

func (s *Store) startGroup(h *head, base index.KV) *group {
	w := index.NewIndexWriter(index.NewOverlay(base), base, s.cache, h.nextNumber)
	w.Dictionary.HashedTerms = s.hashedTerms
	w.Generations = h.generations
	return &group{
		s:         s,
		w:         w,
		catalogue: h.catalogue.Copy(),
		revision:  h.revision,
		time:      h.time,
	}
}

// newHead returns the newest revision with the group. It lacks the hash, which the append may
// still be computing.
func (g *group) newHead() *head {
	return &head{revision: g.revision, time: g.time, catalogue: g.catalogue, generations: g.w.Generations, nextNumber: g.w.Dictionary.Fresh.Next}
}

// executeAll executes updates until the group is full.
func (g *group) executeAll(updates []*update) {
	s := g.s
	for i, u := range updates {
		if g.bytes >= s.options.groupBytes || g.system {
			break
		}
		g.updates = updates[:i+1]
		u.group = g
		switch {
		case !u.taken.CompareAndSwap(false, true): // its caller gave up
		case u.ctx.Err() != nil:
			u.err = errUpdateCancelled(u.ctx)
		case g.refusal != nil && !(u.freesSpace && g.freesOnly):
			u.err = g.refusal
		case !u.patient && time.Since(u.queuedAt) > s.options.QueueTime:
			u.err = errOverloaded()
		default:
			u.receipt, u.err = g.executeUpdate(u)
		}
	}
	g.w.Overlay.Mark() // final: from here on nothing of it is undone
	if s.scratch.undo = g.w.Overlay.Undo; cap(s.scratch.undo) > maxUndoKept {
		s.scratch.undo = nil
	}
	clear(s.scratch.undo[:cap(s.scratch.undo)])
	g.w.Overlay.Undo, s.scratch.terms = nil, len(g.w.Dictionary.Fresh.Order)
	g.executed = time.Now()
	s.pacing.noteExecuted(len(g.updates), g.executed.Sub(g.began))
}

// laterBytes is the size up to which an entry is encoded just before the append, perhaps
// beside the execution of the next group. A larger one is encoded at once: it may exceed the
// bound of the log.
const laterBytes = 1 << 20

// appendToLog appends an executed group to the log and returns when it is durable. One append
// runs at a time.
func (g *group) appendToLog() error {
	if len(g.commits) == 0 {
		return nil
	}
	s := g.s
	s.frames.Clear()
	for i := range g.entries {
		if g.entries[i].Bytes() > 0 {
			continue
		}
		var err error
		if g.entries[i], err = s.frames.Prepare(s.entry.Write(g.commits[i])); err != nil {
			return err
		}
	}
	began := time.Now()
	err := s.wal.AppendPrepared(uint64(g.commits[0].Revision), g.entries)
	if err == nil && s.options.afterAppend != nil {
		err = s.options.afterAppend()
	}
	g.appended = time.Now()
	g.appendTime = g.appended.Sub(began)
	s.measures.append.observeDuration(g.appendTime)
	if err != nil {
		return err
	}
	g.hash = s.wal.LastHash()
	fresh := g.w.Dictionary.Fresh
	for i, t := range fresh.Order { // their numbers are final now
		s.cache.Add(t, fresh.First()+uint64(i))
	}
	return nil
}

// executeUpdate executes one update. A failed or refused one leaves nothing behind. It never
// judges: an update without a valid verdict gets errOvertaken.
func (g *group) executeUpdate(u *update) (Receipt, error) {
	if r, found, err := g.firstReceipt(&u.meta); found || err != nil {
		return r, err
	}
	if u.held != nil && u.held.rules != g.s.options.RulesVersion() {
		return Receipt{}, errOvertaken // the rules have changed
	}
	if u.meta.HasExpected && u.meta.ExpectedRevision > g.revision {
		return Receipt{}, Errorf(CodeInvalid, "revision %d does not exist yet: the newest is %d", u.meta.ExpectedRevision, g.revision).At("expectedRevision")
	}
	tx, err := g.runUpdate(u)
	if err != nil {
		return Receipt{}, err
	}
	var verdict Verdict
	if u.judged != nil {
		verdict = u.judged.verdict
	}
	if by, overtaken := g.isOvertaken(u, tx); overtaken {
		tx.undo()
		u.overtakenBy = by
		return Receipt{}, errOvertaken
	}
	r, err := g.addCommit(u, tx)
	if err == nil && u.held == nil {
		r.Verdict = verdict
	}
	return r, err
}

// runUpdate calls the update's function, and undoes its changes after an error.
func (g *group) runUpdate(u *update) (*Tx, error) {
	g.w.Overlay.Mark()
	tx := &Tx{
		meta: u.meta, revision: g.revision + 1, time: g.commitTime(),
		access: g.s.options.Access, doubts: g.s.options.Distrust.Doubted(), w: g.w, catalog: g.catalogue,
		literalBytes: g.s.options.LiteralBytes,
	}
	judges := g.s.needsJudgement()
	tx.judged = judges
	if u.meta.HasExpected || judges {
		tx.touched = make(map[base.SubjectInGraph]touched)
	}
	tx.keep = judges && g.trial && g.s.options.Holder != nil && u.held == nil && u.meta.ProposalID == ""
	switch {
	case u.judged != nil:
		tx.changes = make([]Change, 0, len(u.judged.changes))
	case !judges && g.scratch != nil:
		tx.changes, tx.shares = g.scratch.changeList(), true
	}
	if judges && g.trial {
		tx.before = &index.Overlay{Base: g.w.Overlay.Base, Written: g.w.Overlay.Tree().Copy()}
	}
	terms := len(g.w.Dictionary.Fresh.Order)
	tx.undo = func() {
		if tx.shares {
			g.scratch.reset()
		}
		g.w.Overlay.Rollback()
		g.w.Dictionary.Fresh.Truncate(terms)
		g.w.DiscardCommit()
	}
	err := callUpdate(u.fn, tx)
	if err == nil {
		err = tx.failed
	}
	if err == nil && u.meta.HasExpected {
		err = tx.checkExpected(u.meta.ExpectedRevision)
	}
	if err == nil {
		err = g.checkQuotas(tx)
	}
	if err != nil {
		tx.undo()
		return nil, err
	}
	return tx, nil
}

// commitTime returns the time of the group's next commit, never before that of the last, so
// that times and revisions are in the same order.
func (g *group) commitTime() time.Time {
	now := g.s.options.Clock().UTC().Truncate(time.Millisecond)
	if now.Before(g.time) {
		return g.time
	}
	return now
}

// callUpdate calls an update's function and turns a panic into an error.
func callUpdate(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errPanic("an update", p)
		}
	}()
	return fn(tx)
}

// errPanic returns the error for a panic in a caller's function.
func errPanic(where string, p any) *Error {
	return &Error{Code: CodeInternal, Message: "internal error", Err: fmt.Errorf("panic in %s: %v\n%s", where, p, debug.Stack())}
}

// addCommit adds an executed update to the group as a commit.
func (g *group) addCommit(u *update, tx *Tx) (Receipt, error) {
	m := &tx.meta
	if len(tx.changes) == 0 && tx.replaced == nil && tx.written == nil && m.IdempotencyKey == "" {
		tx.undo()
		r := Receipt{Revision: g.revision, Position: g.endPosition()}
		if u.held != nil { // it is stored as a proposal
			r.Verdict, r.ProposalID = u.held.Verdict, u.held.id
		}
		return r, nil
	}
	c := &Commit{
		Revision: tx.revision, Time: tx.time, Principal: m.Principal.ID, Actor: m.Actor,
		Justification: m.Justification, TaskID: m.TaskID, SessionID: m.SessionID, MessageID: m.MessageID,
		IdempotencyKey: m.IdempotencyKey, ContentHash: m.ContentHash, Changes: tx.changes,
		ProposalID: m.ProposalID, Replaced: tx.replaced, Written: tx.written,
	}
	if u.held != nil {
		c.ProposalID, c.Held, c.HeldFor = u.held.id, true, u.held.Verdict.Details
	}
	var entry wal.Prepared
	changeBytes := logentry.ChangesSizeBound(c.Changes)
	bytes := changeBytes + logentry.MetaSizeBound(c) + logentry.GenerationSizeBound(c)
	if bytes > laterBytes {
		payload := logentry.AppendEntry(nil, c)
		if len(payload) > MaxCommitBytes {
			tx.undo()
			return Receipt{}, errCommitTooLarge()
		}
		var err error
		if entry, err = wal.Prepare(payload); err != nil {
			tx.undo()
			return Receipt{}, err
		}
		bytes = entry.Bytes()
	}
	if tx.shares {
		c.Changes = g.scratch.retainChanges(tx.changes, changeBytes)
	}
	g.w.FinishCommit(c, g.catalogue)
	g.revision, g.time = c.Revision, c.Time
	g.commits = append(g.commits, c)
	switch {
	case tx.judged:
		g.s.recentChanges.addCommit(c)
	case g.s.options.Verifier != nil:
		g.s.recentChanges.forgetUpTo(c.Revision) // nobody judges: a verdict from before it is made again
	}
	g.system = slices.ContainsFunc(c.Changes, func(ch Change) bool { return base.IsControlGraph(ch.Quad.Graph) })
	g.entries = append(g.entries, entry)
	g.bytes += bytes
	return receiptOf(c, g.s.dir.Epoch), nil
}

// firstReceipt returns the first answer to an idempotency key that was used before. It lacks
// the changes if the log was cut.
func (g *group) firstReceipt(m *Meta) (Receipt, bool, error) {
	if m.IdempotencyKey == "" {
		return Receipt{}, false, nil
	}
	var row index.IdempotencyRow
	found, err := g.w.Overlay.Get(index.IdempotencyKey(m.Principal.ID, m.IdempotencyKey), func(v []byte) (err error) {
		row, err = index.ParseIdempotencyRow(v)
		return err
	})
	if !found || err != nil {
		return Receipt{}, false, err
	}
	if row.Millis < g.s.oldestKey(g.commitTime()) {
		return Receipt{}, false, nil // the key has expired
	}
	if row.ContentHash != m.ContentHash {
		return Receipt{}, false, Errorf(CodeIdempotencyConflict, "the idempotency key was used for another update").At("idempotencyKey")
	}
	c, err := g.commitAt(row.Revision)
	if CodeOf(err) == CodeRevisionGone {
		// The log was cut: only the revision and the time are left.
		c = &Commit{Revision: row.Revision, Time: time.UnixMilli(row.Millis).UTC(), ProposalID: row.Proposal, Held: row.Proposal != ""}
	} else if err != nil {
		return Receipt{}, false, err
	}
	r := receiptOf(c, g.s.dir.Epoch)
	r.Replayed = true
	return r, true, nil
}

// commitAt returns the commit of a revision as the group's updates see it.
func (g *group) commitAt(r Revision) (*Commit, error) {
	for _, list := range [...][]*Commit{g.commits, g.before} {
		if len(list) > 0 && r >= list[0].Revision {
			return list[r-list[0].Revision], nil
		}
	}
	return g.s.readCommit(r)
}

func (g *group) endPosition() Position {
	return Position{Epoch: g.s.dir.Epoch, Revision: g.revision, Index: EndOfCommit}
}

func receiptOf(c *Commit, e Epoch) Receipt {
	if c.Held {
		return Receipt{
			Revision: c.Revision, Position: Position{Epoch: e, Revision: c.Revision, Index: EndOfCommit}, Time: c.Time,
			Verdict: Verdict{Outcome: Held, Reason: ReasonHeld, Details: c.HeldFor}, ProposalID: c.ProposalID,
		}
	}
	return Receipt{
		Revision: c.Revision, Position: Position{Epoch: e, Revision: c.Revision, Index: EndOfCommit}, Time: c.Time,
		Committed: true, Affected: len(c.Changes), Subjects: changedSubjects(c.Changes), Replaced: c.Replaced,
	}
}
