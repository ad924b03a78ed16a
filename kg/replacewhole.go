package kg

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

const (
	// wholeCommit is the number of statements of a generation in one commit, and wholeBytes
	// bounds their text, except that one statement may have more. Other updates wait behind
	// such a commit.
	wholeCommit = 2_000
	wholeBytes  = 1 << 20
	// wholeAhead is the number of commits of a replacement in progress at one time: they share
	// an fsync.
	wholeAhead = 3
	// retryReplaced is the RetryAfter for a change of a graph that is being replaced.
	retryReplaced = 2 * time.Second
	// giveUpTime bounds the time for recording in the log that a replacement failed.
	giveUpTime = 10 * time.Second
	// maxReplacedDetails is the size beyond which the details of a verdict no longer grow.
	maxReplacedDetails = 64 << 10

	// MaxReplacedDepends bounds the dependencies of a verdict on the replacement of a whole
	// graph. They are kept until the switch.
	MaxReplacedDepends = 1 << 20
	// LimitReplacedDepends is the Limit of the error for a replacement with more dependencies.
	LimitReplacedDepends = "replacedDepends"
)

func (w *wholeReplacement) errTooManyDependencies() error {
	e := Errorf(CodeLimitExceeded, "the rules and shapes for the replacement of the graph %s depend on more than %d inputs (%s)", w.graph, w.s.options.replacedDepends, LimitReplacedDepends).At("graph")
	e.Limit = LimitReplacedDepends
	e.Hint = "Send it as updates, which are judged one by one, or reduce the rules and shapes that depend on unchanged statements."
	return e
}

func errBeingReplaced(graph Term) *Error {
	e := Errorf(CodeOverloaded, "the graph %s is being replaced as a whole and accepts no other changes until then", graph).At("graph")
	e.RetryAfter = retryReplaced
	e.Hint = "Retry later; other graphs accept changes."
	return e
}

// wholeReplacement writes a generation of a graph and makes it current.
type wholeReplacement struct {
	s     *Store
	ctx   context.Context
	meta  Meta // of the switch
	graph Term
	o     ReplaceOptions

	began   Revision
	old     ID // generation current until the switch
	report  ReplaceReport
	shares  map[AgentID]int64
	held    uint64 // statements in the new generation
	before  uint64 // statements in the old one
	charged uint64
	// restated is the number of unchanged statements that get an assertion of the caller.
	restated uint64
	// sawStatement means that the caller saw a statement of the old content.
	sawStatement bool

	ahead []*pendingBatch
}

// pendingBatch is a commit of the generation in progress.
type pendingBatch struct {
	u                    *update
	batch                []Patch // empty if it carries statements over
	added, stays, backed uint64
	restated             uint64 // part of added
}

// replaceWhole replaces a graph by the quads in read followed by those from next.
func (s *Store) replaceWhole(ctx context.Context, m Meta, graph Term, read *replacement, next func() (Quad, error, bool), o ReplaceOptions) (ReplaceReport, error) {
	if m.DryRun {
		return ReplaceReport{}, Errorf(CodeInvalid, "a graph of more than %d statements or %d MiB of text cannot be replaced in a dry run", MaxPatches, maxReplaceBytes>>20).At("dryRun")
	}
	if err := m.normalise(); err != nil {
		return ReplaceReport{}, err
	}
	if err := s.checkAdmission(ctx, m); err != nil {
		return ReplaceReport{}, err
	}
	w := &wholeReplacement{s: s, ctx: ctx, meta: m, graph: graph, o: o, shares: make(map[AgentID]int64)}
	if done, err := w.firstReceipt(); done || err != nil {
		return w.report, err
	}
	if err := w.beginGeneration(); err != nil {
		return ReplaceReport{}, err
	}
	switched, err := w.replaceContent(read, next)
	if err == nil && switched {
		s.purgeSoon()
		return w.report, nil
	}
	if CodeOf(err) == CodeOutcomeUnknown {
		return ReplaceReport{}, err
	}
	if again := w.giveUp(); again != nil {
		s.log.Warn("a failed replacement of a graph could not be removed: retrying later", "error", again)
	}
	s.purgeSoon()
	if err != nil {
		return ReplaceReport{}, err
	}
	return w.report, nil
}

// firstReceipt returns the answer to an idempotency key that was used before, so that the
// content is not written in vain.
func (w *wholeReplacement) firstReceipt() (bool, error) {
	if w.meta.IdempotencyKey == "" {
		return false, nil
	}
	p, err := w.s.pin(w.ctx)
	if err != nil {
		return false, err
	}
	defer w.s.unpin(p)
	receipt, found, err := w.s.newTrial(p.head, p.kv).firstReceipt(&w.meta)
	if found && err == nil {
		w.setReport(receipt)
	}
	return found, err
}

// setReport fills the report from the receipt of the switch, or of the update, perhaps an
// ordinary one, that used the idempotency key first.
func (w *wholeReplacement) setReport(r Receipt) {
	w.report.Revision, w.report.Position, w.report.Replayed = r.Revision, r.Position, r.Replayed
	w.report.Verdict, w.report.ProposalID = r.Verdict, r.ProposalID
	if !r.Replayed {
		w.report.Commits = 1
		return
	}
	w.report.Added, w.report.Removed = uint64(r.Affected), 0
	if w.report.Whole = r.Replaced != nil; w.report.Whole {
		w.report.Added, w.report.Removed = r.Replaced.Added, r.Replaced.Removed
	}
}

// hiddenMeta returns the Meta of the commits without visible effect.
func (w *wholeReplacement) hiddenMeta() Meta {
	return Meta{Principal: w.meta.Principal, Actor: w.meta.Actor}
}

// newUpdate returns an update that is not judged.
func (w *wholeReplacement) newUpdate(ctx context.Context, m Meta, fn func(*Tx) error) *update {
	return &update{ctx: ctx, meta: m, patient: true, done: make(chan struct{}), fn: fn}
}

// enqueueUpdate queues an update and waits while the queue is full.
func (w *wholeReplacement) enqueueUpdate(u *update) error {
	l := &load{s: w.s, ctx: u.ctx}
	return l.enqueueUpdate(u)
}

// submitUpdate queues an update that is not judged.
func (w *wholeReplacement) submitUpdate(ctx context.Context, m Meta, fn func(*Tx) error) (*update, error) {
	u := w.newUpdate(ctx, m, fn)
	return u, w.enqueueUpdate(u)
}

func (w *wholeReplacement) commitUpdate(ctx context.Context, m Meta, fn func(*Tx) error) (Receipt, error) {
	u, err := w.submitUpdate(ctx, m, fn)
	if err != nil {
		return Receipt{}, err
	}
	<-u.done
	return u.receipt, u.err
}

// beginGeneration creates the generation. From then on the graph accepts no other changes.
func (w *wholeReplacement) beginGeneration() error {
	receipt, err := w.commitUpdate(w.ctx, w.hiddenMeta(), func(tx *Tx) error {
		old, err := tx.beginGeneration(w.graph)
		w.old = old
		return err
	})
	if err != nil {
		return err
	}
	w.began = receipt.Revision
	return nil
}

func (w *wholeReplacement) generationID() ID { return keys.Generation(uint64(w.began)) }

func (w *wholeReplacement) replaceContent(read *replacement, next func() (Quad, error, bool)) (switched bool, err error) {
	if err := w.checkExpected(); err != nil {
		return false, err
	}
	if err := w.writeAll(read, next); err != nil {
		return false, err
	}
	if err := w.compareContent(); err != nil {
		return false, err
	}
	w.report.Created = !w.sawStatement
	if w.report.Added == 0 && w.report.Removed == 0 {
		return false, w.changeNothing()
	}
	w.report.Whole = true
	defer w.s.holdLog(w.s.Head().Revision)() // verdicts are updated from the log from here on
	for range MaxJudgements {
		j, err := w.judgeDifference()
		if err != nil {
			return false, err
		}
		err = w.updateVerdict(j)
		if err == nil {
			err = w.switchGeneration(j)
		}
		if err != errOvertaken {
			// With the first answer to an idempotency key, this generation did not become
			// current.
			return err == nil && !w.report.Replayed, err
		}
	}
	return false, errTooManyJudgements()
}

// changeNothing answers a replacement without effect. Like an update, it makes an empty commit
// for an idempotency key, which records the key.
func (w *wholeReplacement) changeNothing() error {
	if w.meta.IdempotencyKey == "" {
		head := w.s.Head()
		w.report.Revision, w.report.Position = head.Revision, head
		return nil
	}
	m := w.meta
	m.HasExpected = false // checked already
	receipt, err := w.commitUpdate(w.ctx, m, func(tx *Tx) error { return tx.mayWrite(w.graph) })
	if err == nil {
		w.setReport(receipt)
	}
	return err
}

// updateVerdict brings a verdict up to the newest revision by reading the commits since the
// judgement. A busy store makes more of them than the committer remembers. It returns
// errOvertaken if one of them changed a dependency.
func (w *wholeReplacement) updateVerdict(j *judgedUpdate) error {
	if j == nil {
		return nil
	}
	newest := w.s.Head().Revision
	_, changed, err := changedIn(w.ctx, j.depends, j.revision, newest, w.s.readCommit)
	if err == nil && changed {
		err = errOvertaken
	}
	j.revision = newest
	return err
}

// checkExpected returns CodeRevisionConflict if a subject of the graph changed after the
// expected revision.
func (w *wholeReplacement) checkExpected() error {
	if !w.meta.HasExpected {
		return nil
	}
	p, err := w.s.pin(w.ctx)
	if err != nil {
		return err
	}
	defer w.s.unpin(p)
	if w.meta.ExpectedRevision > p.head.revision {
		return Errorf(CodeInvalid, "revision %d does not exist yet: the newest is %d", w.meta.ExpectedRevision, p.head.revision).At("expectedRevision")
	}
	last := p.head.generations.LastChangeFloor(w.old)
	prefix := append(keys.LastPrefix(), w.old[:]...)
	c := p.kv.Scan(prefix)
	defer c.Close()
	for steps := 1; c.Valid() && last <= w.meta.ExpectedRevision; c.Next() {
		err := c.Value(func(v []byte) error {
			changed, err := parseLastChange(v)
			last = max(last, changed)
			return err
		})
		if err != nil {
			return err
		}
		if steps++; steps%index.PaceInterval == 0 && w.ctx.Err() != nil {
			return errUpdateCancelled(w.ctx)
		}
	}
	if last > w.meta.ExpectedRevision {
		return Errorf(CodeRevisionConflict, "a statement of the graph changed in revision %d, after the expected %d", last, w.meta.ExpectedRevision).At("expectedRevision")
	}
	return nil
}

// writeAll writes the content to the generation.
func (w *wholeReplacement) writeAll(read *replacement, next func() (Quad, error, bool)) (err error) {
	defer func() {
		if rest := w.awaitAll(); err == nil { // otherwise they mostly fail for the same reason
			err = rest
		}
	}()
	var batch []Patch
	bytes := 0
	send := func() error {
		err := w.writeBatch(batch)
		batch, bytes = make([]Patch, 0, w.s.options.wholeCommit), 0
		return err
	}
	add := func(q Quad) error {
		p := Patch{Op: Add, Quad: q}
		if err := p.Normalise(w.meta.actingAgent()); err != nil {
			return err
		}
		if err := p.checkLiteralSize(w.s.options.LiteralBytes); err != nil {
			return err
		}
		w.report.Read++
		n := q.Subject.TextBytes() + q.Predicate.TextBytes() + q.Object.TextBytes()
		if len(batch) > 0 && bytes+n > wholeBytes {
			if err := send(); err != nil {
				return err
			}
		}
		batch = append(batch, p)
		if bytes += n; len(batch) < w.s.options.wholeCommit && bytes < wholeBytes {
			return nil
		}
		return send()
	}
	order := read.order
	read.order, read.wanted = nil, nil // free the memory
	for i := range order {
		if err := add(order[i]); err != nil {
			return err
		}
	}
	w.report.Read = read.read // including duplicates
	for {
		q, err, more := next()
		if !more {
			break
		}
		if err == nil {
			err = checkQuadGraph(&q, w.graph)
		}
		if err == nil {
			err = add(q)
		}
		if err != nil {
			return err
		}
	}
	if len(batch) > 0 {
		return send()
	}
	return nil
}

// writeBatch writes a part of the content.
func (w *wholeReplacement) writeBatch(batch []Patch) error {
	if err := w.sendBatch(batch); err != nil {
		return err
	}
	if len(w.ahead) <= wholeAhead {
		return nil
	}
	if err := w.awaitBatch(); err != nil {
		return err
	}
	return w.checkQuota()
}

// sendBatch queues a part of the content.
func (w *wholeReplacement) sendBatch(batch []Patch) (err error) {
	part := &pendingBatch{batch: batch}
	part.u, err = w.submitUpdate(w.ctx, w.hiddenMeta(), func(tx *Tx) error {
		part.added, part.stays, part.backed, part.restated = 0, 0, 0, 0
		tx.continueGeneration(w.graph, w.began)
		for i := range batch {
			as, err := tx.writeGeneration(&batch[i], w.old)
			if err != nil {
				return err
			}
			switch {
			case as.changed:
				part.added++
			case as.new:
				part.stays++
			}
			if as.backs {
				part.backed++
			}
			if as.restates {
				part.restated++
			}
		}
		return nil
	})
	if err == nil {
		w.ahead = append(w.ahead, part)
	}
	return err
}

// awaitBatch waits for the oldest part in progress.
func (w *wholeReplacement) awaitBatch() error {
	part := w.ahead[0]
	w.ahead = w.ahead[1:]
	<-part.u.done
	if n := len(part.batch); n > 1 && errors.Is(part.u.err, errTooLarge) {
		// The existing assertions of its statements make it too large for one commit.
		for _, half := range [...][]Patch{part.batch[:n/2], part.batch[n/2:]} {
			if err := w.sendBatch(half); err != nil {
				return err
			}
		}
		return nil
	}
	if part.u.err != nil {
		return part.u.err
	}
	w.report.Added += part.added
	w.restated += part.restated
	w.shares[w.meta.actingAgent()] += int64(part.backed)
	w.held += part.added + part.stays
	for w.report.Read > (w.charged+1)*LoadUpdateQuads {
		w.charged++
		w.s.options.Charge(w.ctx, w.meta)
	}
	if w.o.Progress != nil {
		w.o.Progress(w.held)
	}
	return nil
}

// checkQuota refuses the replacement early if it will exceed the caller's statement quota,
// because the caller becomes a source of every statement written. Otherwise the switch would
// refuse it after all the work.
func (w *wholeReplacement) checkQuota() error {
	most := w.s.options.MaxSourceStatements
	if most == 0 || w.held <= most || w.meta.Principal.Trusted() {
		return nil
	}
	backed, err := w.s.SourceStatements(w.meta.actingAgent())
	if err != nil || w.held <= backed {
		return err
	}
	w.s.overQuota.Add(1)
	return errOverQuota("%s backs %d statements and may back %d: what the graph %s is to hold has more", w.meta.actingAgent(), backed, most, w.graph)
}

// awaitAll waits for all parts and returns the first error.
func (w *wholeReplacement) awaitAll() (err error) {
	for len(w.ahead) > 0 {
		if failed := w.awaitBatch(); err == nil {
			err = failed
		}
	}
	return err
}

// compareContent counts the statements to be removed. Statements hidden from the caller are
// not its to remove: they are carried over.
func (w *wholeReplacement) compareContent() (err error) {
	var carry []base.WrittenStatement
	bytes := 0
	send := func() error {
		part := &pendingBatch{stays: uint64(len(carry))}
		list := carry
		carry, bytes = nil, 0
		part.u, err = w.submitUpdate(w.ctx, w.hiddenMeta(), func(tx *Tx) error {
			tx.continueGeneration(w.graph, w.began)
			return tx.carryOver(list)
		})
		if err != nil {
			return err
		}
		w.ahead = append(w.ahead, part)
		return w.awaitBatch()
	}
	err = w.eachDifference(func(d *wholeDifference) error {
		if !d.came {
			w.before++
			if !w.sawStatement {
				if w.sawStatement, err = d.wasSeen(); err != nil {
					return err
				}
			}
		}
		switch {
		case !d.gone:
			return nil
		case d.seen:
			w.report.Removed++
			for _, a := range d.before.Assertions {
				w.shares[a.Source]--
			}
			return nil
		}
		q, err := d.decodeQuad()
		if err != nil {
			return err
		}
		carry = append(carry, base.WrittenStatement{Subject: q.Subject, Predicate: q.Predicate, Object: q.Object, Since: d.before.Since, Assertions: d.before.Assertions})
		bytes += q.TextBytes() + 32*len(d.before.Assertions)
		for i := range d.before.Assertions {
			bytes += d.before.Assertions[i].ContentBytes()
		}
		if len(carry) < w.s.options.wholeCommit && bytes < wholeBytes {
			return nil
		}
		return send()
	})
	if err == nil && len(carry) > 0 {
		err = send()
	}
	return err
}

// wholeDifference is a statement of the old or the new content.
type wholeDifference struct {
	// gone means that the new content lacks it, came that the old one does.
	gone, came bool
	// seen means that the caller saw a statement that is gone.
	seen   bool
	before base.State // if gone

	ids     IDQuad
	name    ID // of the graph
	view    *Snapshot
	decoder *quadDecoder
}

// decodeQuad reads the terms of a statement that is gone or came. It does so on demand: a
// large graph has more terms than the cache.
func (d *wholeDifference) decodeQuad() (Quad, error) {
	ids := d.ids
	ids.Graph = d.name
	return d.decoder.decode(d.view, &ids)
}

// isVisible reports whether the caller sees the statement with these assertions.
func (d *wholeDifference) isVisible(list []Assertion) (bool, error) {
	shown, err := d.view.admitsPredicate(d.ids.Predicate, d.name)
	return shown && err == nil && len(d.view.visibleAssertions(d.name, list)) > 0, err
}

// wasSeen reports whether the caller saw the old statement. Writing it does not imply that.
func (d *wholeDifference) wasSeen() (bool, error) {
	if d.gone {
		return d.seen, nil
	}
	before, err := d.view.loadIndexed(Row{IDQuad: d.ids})
	if err != nil {
		return false, err
	}
	return d.isVisible(before.Assertions)
}

// changeFor returns the statement's change for the verifier, nil if it is unchanged. From the
// revision on, the caller is a source of the statements that it restates.
func (w *wholeReplacement) changeFor(d *wholeDifference, revision Revision, at time.Time) (*Change, error) {
	c := &Change{Op: Remove, ReplacedBy: -1, Before: d.before.Assertions, Since: d.before.Since}
	switch {
	case d.gone && !d.seen, !d.gone && !d.came && w.restated == 0:
		return nil, nil
	case d.gone:
		c.Assertion = d.before.Assertions[0]
	default:
		row := Row{IDQuad: d.ids}
		if !d.came {
			before, err := d.view.loadIndexed(row)
			if err != nil {
				return nil, err
			}
			c.Before, c.Since = before.Assertions, before.Since
			row.Graph = w.generationID()
		}
		after, err := d.view.loadIndexed(row)
		if err != nil || after.Since != 0 { // carried over with its revision
			return nil, err
		}
		index.SettleState(&after, revision, at)
		c.Op, c.After = Add, after.Assertions
		c.Assertion, _ = base.FindSource(after.Assertions, w.meta.actingAgent())
	}
	var err error
	c.Quad, err = d.decodeQuad()
	return c, err
}

// eachDifference merges the old and the new content in the order of subjects. Statements in
// both come without their states.
func (w *wholeReplacement) eachDifference(fn func(*wholeDifference) error) error {
	p, err := w.s.pin(w.ctx)
	if err != nil {
		return err
	}
	defer w.s.unpin(p)
	return w.eachDifferenceOf(p, fn)
}

func (w *wholeReplacement) eachDifferenceOf(p pinned, fn func(*wholeDifference) error) error {
	view := w.snapshotWith(p, p.head.generations)
	was, is := p.kv.Scan(graphPrefix(w.old)), p.kv.Scan(graphPrefix(w.generationID()))
	defer was.Close()
	defer is.Close()
	const graphSize = 1 + keys.IDSize
	var d quadDecoder
	for steps := 1; was.Valid() || is.Valid(); steps++ {
		if steps%index.PaceInterval == 0 {
			if w.ctx.Err() != nil {
				return errUpdateCancelled(w.ctx)
			}
			if w.s.isStopping() {
				return base.ErrClosed()
			}
		}
		c := 0
		switch {
		case !was.Valid():
			c = 1
		case !is.Valid():
			c = -1
		default:
			c = bytes.Compare(was.Key()[graphSize:], is.Key()[graphSize:])
		}
		from := was
		if c > 0 {
			from = is
		}
		ids, ok := keys.GSPO.Parse(from.Key())
		if !ok {
			return Errorf(CodeInternal, "a key of the index cannot be read: %x", from.Key())
		}
		diff := wholeDifference{gone: c < 0, came: c > 0, ids: ids, name: p.head.generations.NameID(ids.Graph), view: view, decoder: &d}
		if diff.gone {
			var err error
			if diff.before, err = view.loadIndexed(Row{IDQuad: ids}); err != nil {
				return err
			}
			if diff.seen, err = diff.isVisible(diff.before.Assertions); err != nil {
				return err
			}
		}
		if err := fn(&diff); err != nil {
			return err
		}
		if c <= 0 {
			was.Next()
		}
		if c >= 0 {
			is.Next()
		}
	}
	return nil
}

func graphPrefix(graph ID) []byte { return append([]byte{byte(keys.GSPO)}, graph[:]...) }

// snapshotWith returns a snapshot under the caller's view and a table of generations.
func (w *wholeReplacement) snapshotWith(p pinned, t *index.Generations) *Snapshot {
	s := w.s
	return &Snapshot{
		ctx: w.ctx, kv: p.kv, dict: s.dictionary(p.kv), access: s.options.Access,
		hides: Hidden(s.options.Access, w.meta.Principal), catalogue: p.head.catalogue, generations: t,
		view:     View{Principal: w.meta.Principal, AllGraphs: true, WithoutPending: true, Now: s.options.Clock(), At: p.head.revision, Doubts: s.options.Distrust.Doubted()},
		position: Position{Epoch: s.dir.Epoch, Revision: p.head.revision, Index: EndOfCommit},
	}
}

// judgeDifference judges the changes of the replacement in parts, each against the whole graph
// before and after. It returns nil without a verifier.
func (w *wholeReplacement) judgeDifference() (*judgedUpdate, error) {
	s := w.s
	if !s.needsJudgement() {
		return nil, nil
	}
	p, err := s.pin(w.ctx)
	if err != nil {
		return nil, err
	}
	defer s.unpin(p)
	j := &judgedUpdate{revision: p.head.revision, rulesVersion: s.options.RulesVersion()}
	name := p.head.generations.NameID(w.generationID())
	at := s.options.Clock().UTC().Truncate(time.Millisecond)
	after := p.head.generations.WithEntries(&index.Generation{Began: w.began, Graph: name, Name: w.graph, From: p.head.revision + 1, Time: at})
	var changes []Change
	bytes := 0
	verify := func() error {
		list := changes
		changes, bytes = nil, 0
		v, err := s.callVerifier(w.ctx, func(context.Context) Judgement {
			return Judgement{Meta: w.meta, Changes: list, Before: w.snapshotWith(p, p.head.generations), After: w.snapshotWith(p, after)}
		})
		if err != nil {
			return err
		}
		if len(j.depends)+len(v.Depends) > s.options.replacedDepends {
			return w.errTooManyDependencies()
		}
		j.depends = append(j.depends, dependencyHashes(v.Depends)...)
		v.Depends, v.Own = nil, nil
		if v.Outcome == Accepted && len(j.verdict.Details) > maxReplacedDetails {
			v.Details = "" // the details of the first parts suffice
		}
		j.verdict = j.verdict.And(v)
		switch v.Outcome {
		case Accepted:
			return nil
		case Held:
			return errHeldReplacement(v)
		}
		return errRejected(v)
	}
	err = w.eachDifferenceOf(p, func(d *wholeDifference) error {
		c, err := w.changeFor(d, p.head.revision+1, at)
		if err != nil || c == nil {
			return err
		}
		changes = append(changes, *c)
		if bytes += c.Quad.TextBytes(); len(changes) < MaxPatches && bytes < MaxCommitBytes {
			return nil
		}
		return verify()
	})
	if err == nil && len(changes) > 0 {
		err = verify()
	}
	slices.Sort(j.depends)
	j.depends = slices.Compact(j.depends)
	return j, err
}

// errHeldReplacement refuses a replacement that a rule would hold: its commits cannot wait for
// review.
func errHeldReplacement(v Verdict) error {
	e := Errorf(CodeConstraintViolation, "the replacement of a graph of more than %d statements or %d MiB of text cannot be held for review: %s", MaxPatches, maxReplaceBytes>>20, v.Details)
	e.Hint = "send statements that need review as updates"
	return e
}

// switchGeneration makes the generation current.
func (w *wholeReplacement) switchGeneration(j *judgedUpdate) error {
	u := w.newUpdate(w.ctx, w.meta, func(tx *Tx) error {
		return tx.switchGeneration(&GraphReplacement{
			Graph: w.graph, Before: w.before, Statements: w.held, Added: w.report.Added, Removed: w.report.Removed, Began: w.began, Sources: w.sourceShares(),
		})
	})
	u.meta.HasExpected = false // checked already
	u.judged = j
	if err := w.enqueueUpdate(u); err != nil {
		return err
	}
	<-u.done
	if u.err != nil {
		return u.err
	}
	w.setReport(u.receipt)
	return nil
}

func (w *wholeReplacement) sourceShares() []base.SourceShare { return base.SortedShares(w.shares) }

// giveUp records in the log that the generation never becomes current. If that fails,
// purgeLoop repeats it later.
func (w *wholeReplacement) giveUp() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), giveUpTime)
	defer cancel()
	err := w.s.giveUpGeneration(ctx, w.graph, w.began)
	if err != nil {
		w.s.abandoned.add(w.graph, w.began)
		w.s.purgeSoon()
	}
	return err
}

// abandonedGenerations are failed generations that the log does not record as such yet. The
// zero value is empty.
type abandonedGenerations struct {
	mu   sync.Mutex
	list map[Revision]Term // the graphs, by the revisions in which the generations began
}

func (a *abandonedGenerations) add(graph Term, began Revision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.list == nil {
		a.list = make(map[Revision]Term)
	}
	a.list[began] = graph
}

func (a *abandonedGenerations) remove(began Revision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.list, began)
}

func (a *abandonedGenerations) all() map[Revision]Term {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.list)
}

// giveUpAbandoned records failed generations, up to the first error.
func (s *Store) giveUpAbandoned(ctx context.Context) error {
	for began, graph := range s.abandoned.all() {
		ctx, cancel := context.WithTimeout(ctx, giveUpTime)
		err := s.giveUpGeneration(ctx, graph, began)
		cancel()
		if err != nil {
			return err
		}
		s.abandoned.remove(began)
	}
	return nil
}

func (s *Store) giveUpGeneration(ctx context.Context, graph Term, began Revision) error {
	w := &wholeReplacement{s: s, ctx: ctx}
	u := w.newUpdate(ctx, Meta{Principal: SystemPrincipal(), Actor: System}, func(tx *Tx) error {
		tx.written = &base.WrittenGeneration{Graph: graph, Began: began, GivenUp: true}
		return nil
	})
	u.freesSpace = true // the content stays until then, and the graph accepts no changes
	if err := w.enqueueUpdate(u); err != nil {
		return err
	}
	<-u.done
	return u.err
}

// giveUpInterrupted records as failed the generations that were being written when the store
// last ended. purgeLoop repeats it for those that fail.
func (s *Store) giveUpInterrupted() error {
	t := s.head.Load().generations
	if t == nil {
		return nil
	}
	for _, g := range t.Writing {
		if s.Ready() != nil {
			s.abandoned.add(g.Name, g.Began)
			continue
		}
		s.log.Info("removing the content of an interrupted replacement of a graph", "graph", g.Name.String(), "since revision", g.Began)
		ctx, cancel := context.WithTimeout(context.Background(), giveUpTime)
		err := s.giveUpGeneration(ctx, g.Name, g.Began)
		cancel()
		if err != nil && !isUnwritable(err) {
			return err
		}
		if err != nil {
			s.abandoned.add(g.Name, g.Began)
		}
	}
	return nil
}

// Dropped is the result of DropGraph.
type Dropped struct {
	Removed  uint64 // statements that were current
	Revision Revision
	Position Position
}

// DropOptions are the conditions and variants of DropGraph.
type DropOptions struct {
	// Still is called by the committer before the first commit: if it returns false, because
	// the name is in use, nothing is done.
	Still func() bool
	// Bury, which denies all reads of the graph, drops a graph in use, if none of its statements
	// changed after Meta.ExpectedRevision; otherwise DropGraph fails with CodeRevisionConflict.
	// The graph accepts no changes from the check until Bury has returned. An error of Bury
	// leaves the graph unchanged.
	Bury func() error
	// Anew is for a name about to be used again. In the order of graphs, the graph then has the
	// place of a new name, behind all existing graphs. It does so each time, and counts as an
	// update (Governor.Admit).
	Anew bool
}

// DropGraph empties a graph of any size and ends its history: its earlier content is
// unreachable at any revision, in any difference and in the log. It checks no rights: the
// package that owns the policies calls it after it has denied everybody access. A graph
// without writes since it was last dropped is left alone.
func (s *Store) DropGraph(ctx context.Context, m Meta, graph Term, o DropOptions) (Dropped, error) {
	if err := m.normalise(); err != nil {
		return Dropped{}, err
	}
	if o.Anew {
		if err := s.checkAdmission(ctx, m); err != nil {
			return Dropped{}, err
		}
	}
	switch {
	case IsOwnGraph(graph):
		return Dropped{}, Errorf(CodeReserved, "graph %s is koine's own and cannot be deleted", graph).At("graph")
	case graph == DefaultGraph:
		return Dropped{}, Errorf(CodeReserved, "the default graph cannot be deleted").At("graph")
	}
	w := &wholeReplacement{s: s, ctx: ctx, meta: m, graph: graph, shares: make(map[AgentID]int64)}
	nothing := errors.New("nothing was written to it")
	receipt, err := w.commitUpdate(ctx, w.hiddenMeta(), func(tx *Tx) error {
		name, known, err := tx.w.Dictionary.ID(graph)
		if err != nil {
			return err
		}
		if !known && o.Bury != nil { // no other update writes to it meanwhile
			name, known = tx.w.CreateTerm(graph), true
		}
		w.old = tx.w.Generations.CurrentID(name)
		unwritten := !tx.catalog.EverCounted(w.old) && tx.w.Generations.IsFirstContent(name, w.old)
		if !known || o.Still != nil && !o.Still() || unwritten && !o.Anew && o.Bury == nil {
			return nothing
		}
		if t := tx.w.Generations; t != nil && t.Writing[name] != nil {
			return errBeingReplaced(graph)
		}
		tx.continueGeneration(graph, tx.revision)
		return nil
	})
	if errors.Is(err, nothing) {
		head := s.Head()
		return Dropped{Revision: head.Revision, Position: head}, nil
	}
	if err != nil {
		return Dropped{}, err
	}
	w.began = receipt.Revision
	if o.Bury != nil {
		if err = w.checkExpected(); err == nil {
			err = o.Bury()
		}
	}
	var removed uint64
	if err == nil {
		removed, err = w.countOld()
	}
	if err == nil {
		receipt, err = w.commitUpdate(ctx, w.hiddenMeta(), func(tx *Tx) error {
			return tx.switchGeneration(&GraphReplacement{Graph: graph, Before: removed, Removed: removed, Deleted: true, Anew: o.Anew, Began: w.began, Sources: w.sourceShares()})
		})
	}
	if err != nil && CodeOf(err) != CodeOutcomeUnknown {
		err = errors.Join(err, w.giveUp())
	}
	if err != nil {
		return Dropped{}, err
	}
	s.purgeSoon()
	return Dropped{Removed: removed, Revision: receipt.Revision, Position: receipt.Position}, nil
}

// countOld counts the statements of the graph by source.
func (w *wholeReplacement) countOld() (n uint64, err error) {
	err = w.eachDifference(func(d *wholeDifference) error {
		n++
		for _, a := range d.before.Assertions {
			w.shares[a.Source]--
		}
		return nil
	})
	return n, err
}
