package kg

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"koine/kg/internal/keys"
	"koine/kg/internal/wal"
)

const prefixPredicate = keys.PrefixPredicate

// update is one caller's update on its way through the committer.
type update struct {
	ctx   context.Context
	meta  Meta
	fn    func(*Tx) error
	since time.Time // when it was queued
	taken atomic.Bool

	// judged is the caller's own judgement, nil without a verifier.
	judged *judged

	receipt Receipt
	err     error
	done    chan struct{}
}

// judged is a verdict and what it holds for.
type judged struct {
	verdict  Verdict
	revision Revision
}

// Update runs fn and commits what it applied: all of it or, when fn fails or
// the update is refused, nothing. It returns when the commit is durable and
// readers see it. Errors of fn come back as they are.
//
// CodeOutcomeUnknown means that the store failed while it wrote: the commit may
// or may not be there when the store is opened again. Ask again with the same
// idempotency key.
func (s *Store) Update(ctx context.Context, m Meta, fn func(*Tx) error) (Receipt, error) {
	if err := m.normalise(); err != nil {
		return Receipt{}, err
	}
	if err := ctx.Err(); err != nil {
		return Receipt{}, Errorf(CodeTimeout, "the update was given up before it began: %w", err)
	}
	u := &update{ctx: ctx, meta: m, fn: fn, done: make(chan struct{})}
	if m.DryRun || s.options.Verifier != nil {
		receipt, j, err := s.trial(u)
		if err != nil || m.DryRun || receipt.Replayed || j.verdict.Outcome != Accepted {
			receipt.DryRun = m.DryRun
			return receipt, err
		}
		u.judged = j
	}
	if err := s.enqueue(u); err != nil {
		return Receipt{}, err
	}
	select {
	case <-u.done:
	case <-ctx.Done():
		if u.taken.CompareAndSwap(false, true) {
			return Receipt{}, Errorf(CodeTimeout, "the update was given up while it waited: %w", ctx.Err())
		}
		<-u.done // under way: its outcome is known soon
	}
	return u.receipt, u.err
}

// enqueue hands an update to the committer, or says why not.
func (s *Store) enqueue(u *update) error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	u.since = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock() // so that nothing is queued behind Close's last look
	if s.closed {
		return errClosed()
	}
	select {
	case s.queue <- u:
		return nil
	default:
		return errOverloaded()
	}
}

func errOverloaded() *Error {
	e := Errorf(CodeOverloaded, "too many updates are waiting")
	e.RetryAfter = time.Second
	e.Hint = "try again later; several statements in one update cost little more than one"
	return e
}

// commitLoop is the one writer of log and index.
func (s *Store) commitLoop() {
	defer s.stopped.Done()
	for {
		select {
		case u := <-s.queue:
			s.commit(s.collect(u))
		case fn := <-s.exclusive:
			fn()
		case <-s.stop:
			for len(s.queue) > 0 {
				u := <-s.queue
				u.err = errClosed()
				close(u.done)
			}
			return
		}
	}
}

// collect takes what is queued as one group.
func (s *Store) collect(u *update) []*update {
	group := []*update{u}
	for len(group) < s.options.GroupCommits {
		select {
		case u := <-s.queue:
			group = append(group, u)
		default:
			return group
		}
	}
	return group
}

// commit takes a group through the three steps: execute, append, apply.
func (s *Store) commit(updates []*update) {
	s.make(updates)
	for _, u := range updates {
		close(u.done)
	}
	s.tailer.tell()
}

// make makes a group's updates and sets the outcome of each.
func (s *Store) make(updates []*update) {
	if err := s.writable(); err != nil {
		failAll(updates, err)
		return
	}
	g := s.newGroup(newBadgerKV(s.db, s.head.Load().revision))
	defer g.base.(*badgerKV).close()
	for _, u := range updates {
		if !u.taken.CompareAndSwap(false, true) {
			continue // given up by its caller
		}
		if time.Since(u.since) > s.options.QueueTime {
			u.err = errOverloaded()
			continue
		}
		u.receipt, u.err = g.execute(u)
	}
	if len(g.commits) == 0 {
		return
	}
	if err := s.appendAndApply(g); err != nil {
		s.refuse(Errorf(CodeReadOnly, "the store failed while it wrote and takes no updates until it is reopened: %w", err))
		for _, u := range updates {
			if u.err == nil {
				u.receipt = Receipt{}
				u.err = &Error{Code: CodeOutcomeUnknown, Message: "the store failed while it wrote: the update may or may not be there afterwards",
					Hint: "ask again with the same idempotency key", Err: err}
			}
		}
	}
}

func failAll(updates []*update, err error) {
	for _, u := range updates {
		u.err = err
	}
}

// writable refuses a group before anything is done for it.
func (s *Store) writable() error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	free, err := s.options.FreeBytes(s.dir.path)
	if err != nil {
		return Errorf(CodeInternal, "free space: %w", err)
	}
	full := free < s.options.ReserveBytes
	if s.diskFull.Swap(full) != full {
		s.log.Warn("free space of the data directory", "refusing updates", full, "free bytes", free, "reserve bytes", s.options.ReserveBytes)
	}
	if full {
		return s.errDiskFull()
	}
	return nil
}

func (s *Store) errDiskFull() *Error {
	e := Errorf(CodeDiskFull, "the volume of the data directory has less than %d MiB free: no updates are taken, reads go on", s.options.ReserveBytes>>20)
	e.RetryAfter = time.Minute
	return e
}

// appendAndApply makes a group durable, then visible.
func (s *Store) appendAndApply(g *group) error {
	first := g.commits[0].Revision
	if err := s.wal.AppendPrepared(uint64(first), g.frames); err != nil {
		return err
	}
	if s.options.afterAppend != nil {
		if err := s.options.afterAppend(); err != nil {
			return err
		}
	}
	return s.apply(g)
}

// apply writes a group's keys to the index and shows it to readers.
func (s *Store) apply(g *group) error {
	last := g.commits[len(g.commits)-1]
	hash, err := s.wal.Hash(uint64(last.Revision))
	if err != nil {
		return err
	}
	m := marker{s.dir.epoch, last.Revision, g.w.dict.fresh.next, last.Time.UnixMilli(), hash}
	if s.options.beforeApply != nil {
		s.options.beforeApply(g.w.o)
	}
	if err := writeIndex(s.db, g.w.o, m); err != nil {
		return err
	}
	for _, t := range g.w.dict.fresh.order {
		s.cache.add(t, g.w.dict.fresh.byTerm[t])
	}
	s.nextNumber = m.nextNumber
	s.tailer.keep(g.commits)
	s.publish(&head{last.Revision, last.Time, g.catalogue})
	return nil
}

// writeIndex writes an overlay to Badger under the revision of the marker,
// which goes last.
func writeIndex(db *badger.DB, o *overlay, m marker) error {
	w := &indexTxn{db: db, at: uint64(m.revision)}
	o.written.Scan(func(key string, value []byte) bool {
		return w.set([]byte(key), value)
	})
	w.set(markerKey, m.encode())
	return w.commit()
}

// indexTxn splits what is written into as many transactions as Badger needs.
// The log is the truth, so they need not be one.
type indexTxn struct {
	db  *badger.DB
	at  uint64
	txn *badger.Txn
	err error
}

// set writes a key, or deletes it when value is nil; false after an error.
func (w *indexTxn) set(key, value []byte) bool {
	for w.err == nil {
		if w.txn == nil {
			w.txn = w.db.NewTransactionAt(math.MaxUint64, true)
		}
		var err error
		if value == nil {
			err = w.txn.Delete(key)
		} else {
			err = w.txn.SetEntry(badger.NewEntry(key, value))
		}
		if err == nil {
			return true
		}
		if err != badger.ErrTxnTooBig {
			w.txn.Discard()
			w.err = err
			return false
		}
		w.err = w.txn.CommitAt(w.at, nil)
		w.txn = nil
	}
	return false
}

func (w *indexTxn) commit() error {
	if w.err == nil && w.txn != nil {
		w.err = w.txn.CommitAt(w.at, nil)
	}
	return w.err
}

// group is the updates that are made together.
type group struct {
	s         *Store
	base      kv
	w         *indexWriter
	catalogue *catalogue
	revision  Revision // of the last commit in it
	time      time.Time
	commits   []*Commit
	frames    []wal.Prepared
}

// newGroup starts a group on top of base, which stands at the head.
func (s *Store) newGroup(base kv) *group {
	h := s.head.Load()
	return &group{
		s: s, base: base,
		w:         newIndexWriter(newOverlay(base), base, s.cache, s.nextNumber),
		catalogue: h.catalogue.copy(),
		revision:  h.revision,
		time:      h.time,
	}
}

// execute makes one update. What fails or is refused leaves nothing behind.
func (g *group) execute(u *update) (Receipt, error) {
	if r, found, err := g.remembered(&u.meta); found || err != nil {
		return r, err
	}
	if u.meta.HasExpected && u.meta.ExpectedRevision > g.revision {
		return Receipt{}, Errorf(CodeInvalid, "revision %d is not there yet: the newest is %d", u.meta.ExpectedRevision, g.revision).At("expectedRevision")
	}
	tx, err := g.run(u)
	if err != nil {
		return Receipt{}, err
	}
	if u.judged != nil && tx.changedSince(u.judged.revision) {
		verdict, err := g.judgeAgain(u, tx)
		if err == nil {
			err = verdict.err()
		}
		if err != nil || verdict.Outcome != Accepted {
			return Receipt{Revision: g.revision, Position: g.position(), Verdict: verdict}, err
		}
		if tx, err = g.run(u); err != nil {
			return Receipt{}, err
		}
	}
	return g.finish(tx)
}

// run calls the update's function. An error undoes what it wrote.
func (g *group) run(u *update) (*Tx, error) {
	g.w.o.mark()
	tx := &Tx{
		meta: u.meta, revision: g.revision + 1, time: g.now(),
		access: g.s.options.Access, w: g.w, catalog: g.catalogue,
	}
	if u.meta.HasExpected || g.s.options.Verifier != nil {
		tx.touched = make(map[subjectInGraph]Revision)
	}
	terms := len(g.w.dict.fresh.order)
	tx.undo = func() {
		g.w.o.rollback()
		g.w.dict.fresh.truncate(terms)
		clear(g.w.deltas)
	}
	err := call(u.fn, tx)
	if err == nil && u.meta.HasExpected {
		err = tx.expect(u.meta.ExpectedRevision)
	}
	if err != nil {
		tx.undo()
		return nil, err
	}
	return tx, nil
}

// now is the time of the group's next commit: never before that of the last,
// so that times and revisions are in the same order.
func (g *group) now() time.Time {
	now := g.s.options.Clock().UTC().Truncate(time.Millisecond)
	if now.Before(g.time) {
		return g.time
	}
	return now
}

// call turns a panic in an update's function into that update's error.
func call(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Code: CodeInternal, Message: "internal error", Err: fmt.Errorf("panic in an update: %v\n%s", p, debug.Stack())}
		}
	}()
	return fn(tx)
}

// finish takes an executed update into the group as a commit.
func (g *group) finish(tx *Tx) (Receipt, error) {
	m := &tx.meta
	if len(tx.changes) == 0 && m.IdempotencyKey == "" {
		tx.undo()
		return Receipt{Revision: g.revision, Position: g.position()}, nil
	}
	c := &Commit{
		Revision: tx.revision, Time: tx.time, Principal: m.Principal.ID, Actor: m.Actor,
		Justification: m.Justification, TaskID: m.TaskID, SessionID: m.SessionID, MessageID: m.MessageID,
		IdempotencyKey: m.IdempotencyKey, ContentHash: m.ContentHash, Changes: tx.changes,
	}
	payload := appendEntry(nil, c)
	if len(payload) > MaxCommitBytes {
		tx.undo()
		return Receipt{}, errCommitTooLarge()
	}
	frame, err := wal.Prepare(payload)
	if err != nil {
		tx.undo()
		return Receipt{}, err
	}
	g.w.finish(c, g.catalogue)
	g.revision, g.time = c.Revision, c.Time
	g.commits = append(g.commits, c)
	g.frames = append(g.frames, frame)
	return receiptOf(c, g.s.dir.epoch), nil
}

// remembered gives the first answer to an idempotency key that was used before.
func (g *group) remembered(m *Meta) (Receipt, bool, error) {
	if m.IdempotencyKey == "" {
		return Receipt{}, false, nil
	}
	var row idempotencyRow
	found, err := g.w.o.get(idempotencyKey(m.Principal.ID, m.IdempotencyKey), func(v []byte) (err error) {
		row, err = parseIdempotencyRow(v)
		return err
	})
	if !found || err != nil {
		return Receipt{}, false, err
	}
	if row.contentHash != m.ContentHash {
		return Receipt{}, false, Errorf(CodeIdempotencyConflict, "the idempotency key was used for another update").At("idempotencyKey")
	}
	var c *Commit
	if n := len(g.commits); n > 0 && row.revision >= g.commits[0].Revision {
		c = g.commits[row.revision-g.commits[0].Revision]
	} else if c, err = g.s.readCommit(row.revision); err != nil {
		return Receipt{}, false, err
	}
	r := receiptOf(c, g.s.dir.epoch)
	r.Replayed = true
	return r, true, nil
}

func (g *group) position() Position { return Position{g.s.dir.epoch, g.revision, EndOfCommit} }

func receiptOf(c *Commit, e Epoch) Receipt {
	return Receipt{
		Revision: c.Revision, Position: Position{e, c.Revision, EndOfCommit}, Time: c.Time,
		Committed: true, Affected: len(c.Changes), Subjects: subjects(c.Changes),
	}
}
