package kg

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"koine/kg/base"
	"koine/kg/internal/keys"
)

// LoadOptions configures Store.Load. The zero value works.
type LoadOptions struct {
	// Progress is called after each batch with the number of quads loaded. The load waits for
	// it, and so do all updates during a bulk load: it must be fast and must not call the
	// store. May be nil.
	Progress func(loaded uint64)
	// Indexing is called from time to time while a bulk load writes its index, with the number
	// of rows written. It follows the rules of Progress.
	Indexing func(done, of uint64)
	// Place, if set, returns the Meta.MessageID of a commit, given the number of quads loaded
	// with it. An interrupted load continues from there: see LoadedUpTo. It may be called
	// concurrently with the source.
	Place func(loaded uint64) string
	// CommitQuads bounds the quads of one commit, at most DefaultLoadCommit; 0 is
	// DefaultLoadCommit.
	CommitQuads int
	// Online loads by ordinary updates, so that a large load does not make other updates wait.
	Online bool
}

// LoadReport is the result of a load, also of one that failed on the way.
type LoadReport struct {
	Read       uint64 // quads loaded
	Statements uint64 // quads among them that changed a statement
	Commits    uint64
	Bulk       bool // at least a part was loaded in bulk
	Revision   Revision
}

// LoadUpdateQuads is the number of quads that count as one update for Governor.Admit and
// Governor.Charge: the most patches that an update has.
const LoadUpdateQuads = MaxPatches

// DefaultLoadCommit is the number of quads in a commit of a bulk load, and loadCommitBytes
// bounds their text, except that one quad may have more. Commits of an online load are
// smaller, because other updates wait behind them.
const (
	DefaultLoadCommit = 10_000
	loadCommitBytes   = 4 << 20
	onlineCommitQuads = 1_000
)

// Load adds many statements with the Meta's actor as their source, in as many commits as they
// need. After an error the commits made so far stay, and the report tells how far the load
// came.
//
// A large load, and any load into an empty store, is done in bulk: other updates wait, reads
// go on, and the index is written in one piece. Loads with Online or a Verifier, and loads of
// principals from outside this process, are ordinary updates. Loads have no idempotency keys,
// expected revisions or dry runs.
func (s *Store) Load(ctx context.Context, m Meta, quads iter.Seq2[Quad, error], o LoadOptions) (report LoadReport, err error) {
	if s.options.Span != nil {
		var end func(error)
		ctx, end = s.options.Span(ctx, "kg load")
		defer func() { end(err) }()
	}
	return s.loadQuads(ctx, m, quads, o)
}

func (s *Store) loadQuads(ctx context.Context, m Meta, quads iter.Seq2[Quad, error], o LoadOptions) (LoadReport, error) {
	if m.IdempotencyKey != "" || m.HasExpected || m.DryRun {
		return LoadReport{}, Errorf(CodeInvalid, "a load takes no idempotency key, expected revision or dry run")
	}
	if err := m.normalise(); err != nil {
		return LoadReport{}, err
	}
	if ctx.Err() != nil {
		return LoadReport{}, errUpdateCancelled(ctx)
	}
	if s.options.ReadOnly {
		return LoadReport{}, errOpenedReadOnly()
	}
	if err := s.checkAdmission(ctx, m); err != nil {
		return LoadReport{}, err
	}
	if o.CommitQuads <= 0 || o.CommitQuads > DefaultLoadCommit {
		o.CommitQuads = DefaultLoadCommit
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &load{s: s, ctx: ctx, meta: m, options: o, batches: make(chan batch, 2), done: make(chan struct{})}
	go l.readSource(quads)
	err := l.run()
	cancel()
	<-l.done // the source is no longer called
	l.report.Revision = s.head.Load().revision
	return l.report, err
}

// load is a load in progress.
type load struct {
	s       *Store
	ctx     context.Context
	meta    Meta
	options LoadOptions
	report  LoadReport
	charged uint64 // updates reported to Governor.Charge
	batches chan batch
	done    chan struct{}

	before      *update // queued and not awaited yet; nil for none
	beforeQuads int     // its quads

	ahead []batch // received and not loaded yet
	left  *batch  // refused by the bulk load; nil for none
}

// batch is the content of one commit; err is the error that ended the source, in the last
// batch.
type batch struct {
	quads []Quad
	bytes int // of their text
	err   error
}

// readSource reads the source into batches, concurrently with the loader.
func (l *load) readSource(quads iter.Seq2[Quad, error]) {
	defer close(l.done)
	defer close(l.batches)
	defer func() { // a panic in this goroutine would end the process
		if p := recover(); p != nil {
			l.sendBatch(batch{err: errPanic("the source of a load", p)})
		}
	}()
	var b batch
	for q, err := range quads {
		if err != nil {
			b.err = err
			break
		}
		if q.Graph.IsZero() {
			q.Graph = DefaultGraph
		}
		n := q.TextBytes()
		if len(b.quads) > 0 && b.bytes+n > l.s.options.loadCommitBytes {
			if !l.sendBatch(b) {
				return
			}
			b = batch{}
		}
		if b.quads == nil {
			b.quads = make([]Quad, 0, l.options.CommitQuads)
		}
		b.quads = append(b.quads, q)
		if b.bytes += n; len(b.quads) == l.options.CommitQuads || b.bytes >= l.s.options.loadCommitBytes {
			if !l.sendBatch(b) {
				return
			}
			b = batch{}
		}
	}
	l.sendBatch(b)
}

func (l *load) sendBatch(b batch) bool {
	select {
	case l.batches <- b:
		return true
	case <-l.ctx.Done():
		return false
	}
}

func (l *load) run() error {
	var err error
	if !l.options.Online && !l.s.needsJudgement() && l.meta.Principal.Trusted() {
		var large bool
		if large, err = l.isLarge(); large && err == nil {
			err = l.loadBulk()
		}
	}
	if err == nil && l.left != nil {
		err = l.loadOnline(*l.left)
	}
	// One commit is made while the index gets the one before it.
	for err == nil {
		var b batch
		var more bool
		if b, more, err = l.nextBatch(); !more {
			break
		}
		err = l.loadOnline(b)
	}
	return errors.Join(err, l.awaitUpdate())
}

// isLarge reports whether a bulk load pays: if the load is larger than the store, or has at
// least Options.bulkFrom quads. It receives that many.
func (l *load) isLarge() (bool, error) {
	var statements uint64
	l.s.head.Load().catalogue.Each(keys.PrefixPredicate, ID{}, func(_, _ ID, n uint64) { statements += n })
	if statements == 0 {
		return true, nil
	}
	for quads, bytes := 0, 0; quads < l.s.options.bulkFrom && bytes < l.s.options.bulkFromBytes; {
		b, more, err := l.receiveBatch()
		if err != nil || !more {
			return uint64(quads) >= statements, err
		}
		l.ahead = append(l.ahead, b)
		bytes += b.bytes
		if quads += len(b.quads); b.err != nil {
			return false, nil
		}
	}
	return true, nil
}

// nextBatch returns the next batch, and false at the end and after an error.
func (l *load) nextBatch() (b batch, more bool, err error) {
	if len(l.ahead) > 0 {
		b, l.ahead = l.ahead[0], l.ahead[1:]
		return b, true, nil
	}
	return l.receiveBatch()
}

// receiveBatch waits for a batch of the source.
func (l *load) receiveBatch() (b batch, more bool, err error) {
	select {
	case b, more = <-l.batches:
		if !more && l.ctx.Err() != nil {
			err = l.errCancelled()
		}
		return b, more, err
	case <-l.ctx.Done():
		return b, false, l.errCancelled()
	case <-l.s.stop:
		return b, false, base.ErrClosed()
	}
}

func (l *load) errCancelled() *Error {
	return Errorf(CodeTimeout, "the load was cancelled: %w", l.ctx.Err())
}

// loadOnline loads a batch by ordinary updates that are small enough not to delay others.
func (l *load) loadOnline(b batch) error {
	for piece := range slices.Chunk(b.quads, onlineCommitQuads) {
		if err := l.submitQuads(piece); err != nil {
			return err
		}
	}
	return b.err
}

// submitQuads queues quads as one update after waiting for the one before.
func (l *load) submitQuads(quads []Quad) error {
	meta := l.meta
	if l.options.Place != nil {
		// No commit may follow one that fails: Place would be wrong.
		if err := l.awaitUpdate(); err != nil {
			return err
		}
		meta.MessageID = l.options.Place(l.report.Read + uint64(len(quads)))
	}
	u, err := l.beginUpdate(meta, func(tx *Tx) error {
		for _, q := range quads {
			if err := tx.Apply(Patch{Op: Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = l.awaitUpdate()
	l.before, l.beforeQuads = u, len(quads)
	return err
}

// beginUpdate judges one update if needed, and queues it.
func (l *load) beginUpdate(meta Meta, fn func(*Tx) error) (*update, error) {
	u := &update{ctx: l.ctx, meta: meta, patient: true, done: make(chan struct{}), fn: fn}
	if l.s.needsJudgement() {
		if err := l.judgeUpdate(u); err != nil {
			return nil, err
		}
	}
	return u, l.enqueueUpdate(u)
}

// retryQueue is how long a load waits for space in a full queue, unless a commit wakes it.
const retryQueue = 100 * time.Millisecond

// enqueueUpdate queues an update and waits while the queue is full: a load does not fail
// because others are busy.
func (l *load) enqueueUpdate(u *update) error {
	for {
		l.s.mu.Lock()
		moved := l.s.moved
		l.s.mu.Unlock()
		err := l.s.enqueueUpdate(u)
		if CodeOf(err) != CodeOverloaded {
			return err
		}
		retry := time.NewTimer(retryQueue)
		select {
		case <-moved:
		case <-retry.C:
		case <-l.ctx.Done():
			return l.errCancelled()
		}
		retry.Stop()
	}
}

// judgeUpdate judges an update before it is queued.
func (l *load) judgeUpdate(u *update) error {
	_, j, err := l.s.judgeUpdate(u)
	if err != nil {
		return err
	}
	if j.verdict.Outcome == Held {
		return errHeldLoad(j.verdict)
	}
	if j.verdict.Outcome != Accepted {
		return errRejected(j.verdict)
	}
	u.judged = j
	return nil
}

// errHeldLoad refuses a load that a rule would hold: its commits cannot wait for review as
// one.
func errHeldLoad(v Verdict) error {
	e := Errorf(CodeConstraintViolation, "a load cannot be held for review: %s", v.Details)
	e.Hint = "send statements that need review as an update"
	return e
}

func errRejected(v Verdict) error {
	return Errorf(CodeConstraintViolation, "%s: %s", v.Reason, v.Details)
}

// awaitUpdate waits for the update that was queued last.
func (l *load) awaitUpdate() error {
	u := l.before
	if u == nil {
		return nil
	}
	l.before = nil
	<-u.done
	again := l.s.newRejudging()
	defer again.endTurn()
	for u.err == errOvertaken {
		err := again.waitTurn(l.ctx, u.overtakenBy)
		if err == nil {
			u, err = l.beginUpdate(u.meta, u.fn)
		}
		if err != nil {
			return err
		}
		<-u.done
	}
	if u.err != nil {
		return u.err
	}
	if v := u.receipt.Verdict; v.Outcome == Held {
		return errHeldLoad(v)
	} else if v.Outcome != Accepted {
		return errRejected(v)
	}
	l.noteLoaded(l.beforeQuads)
	l.report.Statements += uint64(u.receipt.Affected)
	if u.receipt.Committed {
		l.report.Commits++
	}
	return nil
}

func (l *load) noteLoaded(quads int) {
	l.report.Read += uint64(quads)
	for l.report.Read > (l.charged+1)*LoadUpdateQuads {
		l.charged++
		l.s.options.Charge(l.ctx, l.meta)
	}
	if l.options.Progress != nil {
		l.options.Progress(l.report.Read)
	}
}

// loadBulk loads the batches in bulk, up to the first that must be an ordinary update, if the
// store permits it. It runs between two groups of the committer, so that nothing else is
// written.
func (l *load) loadBulk() (err error) {
	ended := make(chan struct{})
	select {
	case l.s.exclusive <- func() { defer close(ended); err = l.bulkExclusive() }:
		<-ended
		return err
	case <-l.s.stop:
		return base.ErrClosed()
	case <-l.ctx.Done():
		return l.errCancelled()
	}
}

func (l *load) bulkExclusive() error {
	if err := l.s.checkWritable(); err != nil || l.s.needsJudgement() {
		return err
	}
	b := newBulk(l.s, l.meta, l.options)
	for {
		batch, more, err := l.nextBatch()
		if err != nil || !more {
			return b.finishLoad(l, err)
		}
		_, err = b.addQuads(batch.quads)
		if err == errNotInBulk {
			l.left = &batch // loaded later: here the committer would wait for itself
			return b.finishLoad(l, nil)
		}
		if err == nil {
			l.noteLoaded(len(batch.quads))
			if err = batch.err; err == nil && b.isFull() {
				err = b.nextRound()
			}
		}
		if err != nil {
			return b.finishLoad(l, err)
		}
	}
}

// maxPlaceCommits bounds the commits that LoadedUpTo reads.
const maxPlaceCommits = 1 << 20

// LoadedUpTo finds the newest commit of a load by this principal in a session (Meta.SessionID)
// and returns its LoadOptions.Place: the load is in the store up to there, whatever ended it.
// place is "" if the log, of which it reads the newest million commits, has none.
func (s *Store) LoadedUpTo(ctx context.Context, principal AgentID, session string) (place string, at Revision, err error) {
	newest, oldest := s.head.Load().revision, Revision(s.wal.First())
	if oldest == 0 {
		return "", 0, nil
	}
	if newest-oldest >= maxPlaceCommits {
		oldest = newest - maxPlaceCommits + 1
	}
	principal = CanonicalAgent(string(principal))
	progress := s.newProgress("looking for the load in the log", uint64(newest-oldest+1))
	for r := newest; r >= oldest && r > 0; r-- {
		if ctx.Err() != nil {
			return "", 0, errUpdateCancelled(ctx)
		}
		c, err := s.readEntryHead(r)
		if err != nil {
			return "", 0, err
		}
		if c.sessionID == session && c.principal == principal {
			return c.messageID, r, nil
		}
		progress.report(uint64(newest - r + 1))
	}
	return "", 0, nil
}
