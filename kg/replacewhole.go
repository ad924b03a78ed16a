package kg

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"koine/kg/internal/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

const (
	// wholeCommit is how many statements of a generation make a commit, wholeBytes how
	// many bytes of text at the most, but that one statement may have more: others wait
	// behind it.
	wholeCommit = 2_000
	wholeBytes  = 1 << 20
	// wholeAhead is how many commits of a replacement are on their way at one time:
	// they share an fsync.
	wholeAhead = 3
	// retryReplaced is after how long it is worth to ask again for a change of a graph
	// that is being replaced.
	retryReplaced = 2 * time.Second
	// giveUpTime bounds how long a replacement that failed takes to say so in the log.
	giveUpTime = 10 * time.Second
	// maxReplacedDetails is beyond how many bytes the details of a verdict grow no more.
	maxReplacedDetails = 64 << 10

	// MaxReplacedDepends is up to how many things a verdict on a replacement of a whole
	// graph may have been made from (Dependency). They are kept until the switch.
	MaxReplacedDepends = 1 << 20
	// LimitReplacedDepends is the Limit of the error of a replacement that would need
	// more.
	LimitReplacedDepends = "replacedDepends"
)

func (w *wholeReplacement) errDepends() error {
	e := Errorf(CodeLimitExceeded, "the rules and shapes that judge the replacement of the graph %s look at more than %d things (%s)", w.graph, w.s.options.replacedDepends, LimitReplacedDepends).At("graph")
	e.Limit = LimitReplacedDepends
	e.Hint = "Send it as updates, each of which is judged for itself, or have fewer rules and shapes that look beyond what changes."
	return e
}

func errBeingReplaced(graph Term) *Error {
	e := Errorf(CodeOverloaded, "the graph %s is being replaced as a whole, and takes no other changes until that is done", graph).At("graph")
	e.RetryAfter = retryReplaced
	e.Hint = "Try again later: other graphs take changes meanwhile."
	return e
}

// wholeReplacement writes a generation of a graph and makes it the one that counts.
type wholeReplacement struct {
	s     *Store
	ctx   context.Context
	meta  Meta // of the switch
	graph Term
	o     ReplaceOptions

	began   Revision
	old     ID // of what counts until then, in the index
	report  ReplaceReport
	shares  map[AgentID]int64
	held    uint64 // statements of the generation
	before  uint64 // statements of the graph as it was
	charged uint64
	// restated counts the statements that stay and that the caller backs anew.
	restated uint64
	// stood tells that the caller saw a statement of the graph as it was.
	stood bool

	ahead []*pendingBatch
}

// pendingBatch is a commit of the generation on its way.
type pendingBatch struct {
	u                    *update
	batch                []Patch // empty for one that carries statements over
	added, stays, backed uint64
	restated             uint64 // of the added
}

// replaceWhole replaces a graph with what was read of its content and what comes next.
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
		s.log.Warn("a replacement of a graph that failed could not be taken back: it is tried again later", "error", again)
	}
	s.purgeSoon()
	if err != nil {
		return ReplaceReport{}, err
	}
	return w.report, nil
}

// firstReceipt gives the answer to an idempotency key that was used before, so that the
// content is not written for nothing.
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

// setReport takes the receipt of the replacement's commit into the report, or that of the
// update that used its idempotency key first, which may have been an ordinary one.
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

// hiddenMeta is the Meta of the commits that nobody sees.
func (w *wholeReplacement) hiddenMeta() Meta {
	return Meta{Principal: w.meta.Principal, Actor: w.meta.Actor}
}

// newUpdate is an update that is not judged.
func (w *wholeReplacement) newUpdate(ctx context.Context, m Meta, fn func(*Tx) error) *update {
	return &update{ctx: ctx, meta: m, patient: true, done: make(chan struct{}), fn: fn}
}

// enqueueUpdate queues an update as soon as there is room.
func (w *wholeReplacement) enqueueUpdate(u *update) error {
	l := &load{s: w.s, ctx: u.ctx}
	return l.enqueueUpdate(u)
}

// submitUpdate hands an update in that is not judged.
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

// beginGeneration makes the generation, from which on the graph takes no other changes.
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
	w.report.Created = !w.stood
	if w.report.Added == 0 && w.report.Removed == 0 {
		return false, w.changeNothing()
	}
	w.report.Whole = true
	defer w.s.holdLog(w.s.Head().Revision)() // verdicts follow it from here on
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
			// The first answer to an idempotency key is not that this generation counts.
			return err == nil && !w.report.Replayed, err
		}
	}
	return false, errAlwaysOvertaken()
}

// changeNothing answers a replacement that leaves the graph as it is. As an update does, it
// makes a commit without changes for an idempotency key, which remembers the key.
func (w *wholeReplacement) changeNothing() error {
	if w.meta.IdempotencyKey == "" {
		head := w.s.Head()
		w.report.Revision, w.report.Position = head.Revision, head
		return nil
	}
	m := w.meta
	m.HasExpected = false // nothing has changed since it was looked at
	receipt, err := w.commitUpdate(w.ctx, m, func(tx *Tx) error { return tx.mayWrite(w.graph) })
	if err == nil {
		w.setReport(receipt)
	}
	return err
}

// updateVerdict brings a verdict up to the newest revision, by the commits since it was judged. A
// busy store makes more of them during a long judgement than the committer remembers. The
// error is errOvertaken if one of them changed something that the verdict depends on.
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

// checkExpected refuses the replacement when any subject of the graph changed after the
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
		return Errorf(CodeInvalid, "revision %d is not there yet: the newest is %d", w.meta.ExpectedRevision, p.head.revision).At("expectedRevision")
	}
	last := p.head.generations.Floor(w.old)
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
		if steps++; steps%index.CheckEvery == 0 && w.ctx.Err() != nil {
			return errGivenUp(w.ctx)
		}
	}
	if last > w.meta.ExpectedRevision {
		return Errorf(CodeRevisionConflict, "a statement of the graph changed in revision %d, after the expected %d", last, w.meta.ExpectedRevision).At("expectedRevision")
	}
	return nil
}

// writeAll writes the content into the generation.
func (w *wholeReplacement) writeAll(read *replacement, next func() (Quad, error, bool)) (err error) {
	defer func() {
		if rest := w.awaitAll(); err == nil { // else they mostly fail for the same reason
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
		if err := p.literalWithin(w.s.options.LiteralBytes); err != nil {
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
	read.order, read.wanted = nil, nil // let them go
	for i := range order {
		if err := add(order[i]); err != nil {
			return err
		}
	}
	w.report.Read = read.read // with those that came twice
	for {
		q, err, more := next()
		if !more {
			break
		}
		if err == nil {
			err = ofGraph(&q, w.graph)
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

// writeBatch hands a part of the content in.
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
	return w.withinShare()
}

// sendBatch puts a part of the content on its way.
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

// awaitBatch waits for the oldest part on its way.
func (w *wholeReplacement) awaitBatch() error {
	part := w.ahead[0]
	w.ahead = w.ahead[1:]
	<-part.u.done
	if n := len(part.batch); n > 1 && errors.Is(part.u.err, errTooLarge) {
		// What backs its statements already makes it too large for one commit.
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
	for w.s.options.Charge != nil && w.report.Read > (w.charged+1)*LoadUpdateQuads {
		w.charged++
		w.s.options.Charge(w.ctx, w.meta)
	}
	if w.o.Progress != nil {
		w.o.Progress(w.held)
	}
	return nil
}

// withinShare refuses the replacement once the caller would back more statements than it
// may, and more than it does, whatever else becomes of the graph: its source is one of each
// statement that was written. The switch would refuse it after all the work.
func (w *wholeReplacement) withinShare() error {
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

// awaitAll waits for all parts, and gives the first failure.
func (w *wholeReplacement) awaitAll() (err error) {
	for len(w.ahead) > 0 {
		if failed := w.awaitBatch(); err == nil {
			err = failed
		}
	}
	return err
}

// compareContent counts what goes. What the caller does not see is not its to take away: that
// is carried over.
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
			if !w.stood {
				if w.stood, err = d.wasSeen(); err != nil {
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
		carry = append(carry, base.WrittenStatement{q.Subject, q.Predicate, q.Object, d.before.Since, d.before.Assertions})
		bytes += q.TextBytes() + 32*len(d.before.Assertions)
		for i := range d.before.Assertions {
			bytes += len(d.before.Assertions[i].Provenance)
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

// wholeDifference is a statement of the graph as it was, or one that comes.
type wholeDifference struct {
	// gone tells that it is not in the generation, came that it was not in the graph.
	gone, came bool
	// seen tells of one that is gone that the caller saw it.
	seen   bool
	before base.State // of one that is gone

	ids     IDQuad
	name    ID // of the graph
	view    *Snapshot
	decoder *quadDecoder
}

// decodeQuad reads the terms of a statement that is gone or came. A graph of millions has more
// of them than the cache of terms: they are read for those only that need them.
func (d *wholeDifference) decodeQuad() (Quad, error) {
	ids := d.ids
	ids.Graph = d.name
	return d.decoder.decode(d.view, &ids)
}

// isVisible reports whether the caller sees the statement when these back it.
func (d *wholeDifference) isVisible(list []Assertion) (bool, error) {
	shown, err := d.view.admitsPlace(d.ids.Predicate, d.name)
	return shown && err == nil && len(d.view.visibleAssertions(d.name, list)) > 0, err
}

// wasSeen reports whether the caller saw the statement, which stood in the graph: that it
// writes it itself does not mean that.
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

// changeFor is what the statement is to the verifier, nil if it stays as it is. The caller
// backs what it restates from the revision on.
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
		if err != nil || after.Since != 0 { // it was carried over with its revision
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

// eachDifference compares the graph as it is with the generation, both in the order of
// their subjects. Statements that are in both come too, without their states.
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
		if steps%index.CheckEvery == 0 {
			if w.ctx.Err() != nil {
				return errGivenUp(w.ctx)
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
		diff := wholeDifference{gone: c < 0, came: c > 0, ids: ids, name: p.head.generations.Name(ids.Graph), view: view, decoder: &d}
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

// snapshotWith is what the caller sees under a table of generations.
func (w *wholeReplacement) snapshotWith(p pinned, t *index.Generations) *Snapshot {
	s := w.s
	return &Snapshot{
		ctx: w.ctx, kv: p.kv, dict: index.Dictionary{KV: p.kv, Cache: s.cache}, access: s.options.Access,
		hides: Hidden(s.options.Access, w.meta.Principal), catalogue: p.head.catalogue, generations: t,
		view:     View{Principal: w.meta.Principal, AllGraphs: true, WithoutPending: true, Now: s.options.Clock(), At: p.head.revision, Doubts: s.options.Distrust.Doubted()},
		position: Position{s.dir.Epoch, p.head.revision, EndOfCommit},
	}
}

// judgeDifference has the verifier judge what the replacement changes, a part after the other,
// each against the whole graph before and after. nil where nobody judges.
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
	j := &judgedUpdate{revision: p.head.revision, rulesVersion: s.rulesVersion()}
	name := p.head.generations.Name(w.generationID())
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
			return w.errDepends()
		}
		j.depends = append(j.depends, dependencyHashes(v.Depends)...)
		v.Depends, v.Own = nil, nil
		if v.Outcome == Accepted && len(j.verdict.Details) > maxReplacedDetails {
			v.Details = "" // what the first parts are told is enough to go by
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

// errHeldReplacement: what is written in many commits cannot wait for review.
func errHeldReplacement(v Verdict) error {
	e := Errorf(CodeConstraintViolation, "the replacement of a graph of more than %d statements or %d MiB of text cannot be held for review: %s", MaxPatches, maxReplaceBytes>>20, v.Details)
	e.Hint = "send what needs review as updates"
	return e
}

// switchGeneration makes the generation the one that counts.
func (w *wholeReplacement) switchGeneration(j *judgedUpdate) error {
	u := w.newUpdate(w.ctx, w.meta, func(tx *Tx) error {
		return tx.countGeneration(&GraphReplacement{
			Graph: w.graph, Before: w.before, Statements: w.held, Added: w.report.Added, Removed: w.report.Removed, Began: w.began, Sources: w.sourceShares(),
		})
	})
	u.meta.HasExpected = false // nothing has changed since it was looked at
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

// giveUp says in the log that the generation never counts. If it cannot, purgeLoop does so
// later.
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

// abandonedGenerations are the generations that are still to be given up. The zero value is empty.
type abandonedGenerations struct {
	mu   sync.Mutex
	list map[Revision]Term // the graphs, by the revisions in which they began
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

// giveUpAbandoned gives up what could not be given up before, up to the first that fails
// again.
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
	u.freesSpace = true // until then its content stays, and the graph takes no changes
	if err := w.enqueueUpdate(u); err != nil {
		return err
	}
	<-u.done
	return u.err
}

// giveUpInterrupted gives up what a replacement was writing when the store was closed
// or stopped. What cannot be given up yet, purgeLoop gives up later.
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
		s.log.Info("removing what an interrupted replacement of a graph wrote", "graph", g.Name.String(), "since revision", g.Began)
		ctx, cancel := context.WithTimeout(context.Background(), giveUpTime)
		err := s.giveUpGeneration(ctx, g.Name, g.Began)
		cancel()
		if err != nil && !lacksWriting(err) {
			return err
		}
		if err != nil {
			s.abandoned.add(g.Name, g.Began)
		}
	}
	return nil
}

// Dropped is what DropGraph did.
type Dropped struct {
	Removed  uint64 // statements that stood
	Revision Revision
	Position Position
}

// DropGraph empties a graph of any size and lets its name begin anew: what stood under
// it before is found by nobody, at no revision, in no difference and in no part of the
// log that is read. It is for the package that decides who may read the graph, which
// lets nobody do so before; it asks for no right. A graph that nothing was written to
// since it was dropped is left as it is.
func (s *Store) DropGraph(ctx context.Context, m Meta, graph Term) (Dropped, error) {
	return s.dropGraph(ctx, m, graph, nil, false, nil)
}

// DropGraphIf is DropGraph of a graph that may be in use again. still is asked by the
// committer before the first commit: if the graph may not be dropped by then, nothing is
// done.
func (s *Store) DropGraphIf(ctx context.Context, m Meta, graph Term, still func() bool) (Dropped, error) {
	return s.dropGraph(ctx, m, graph, still, false, nil)
}

// DropUnchangedGraph is DropGraph of a graph that is in use, if no statement of it changed
// after Meta.ExpectedRevision; else the error is a CodeRevisionConflict. The graph takes
// no changes while that is looked at and bury is called, which has it that nobody reads
// the graph. An error of bury leaves the graph as it is.
func (s *Store) DropUnchangedGraph(ctx context.Context, m Meta, graph Term, bury func() error) (Dropped, error) {
	return s.dropGraph(ctx, m, graph, nil, false, bury)
}

// BeginGraphAnew is DropGraph for a name that is about to be used again. Among the graphs
// that hold a statement, the graph is then in the place of a name that was never used
// before: behind those that were there, and before those that come. It does so each time,
// and counts as an update (Options.Admit). still is asked by the committer before the
// first commit: if the name is in use by then, nothing is done.
func (s *Store) BeginGraphAnew(ctx context.Context, m Meta, graph Term, still func() bool) (Dropped, error) {
	return s.dropGraph(ctx, m, graph, still, true, nil)
}

// dropGraph is BeginGraphAnew where anew is set, and else DropGraph, with the conditions
// that are not nil.
func (s *Store) dropGraph(ctx context.Context, m Meta, graph Term, still func() bool, anew bool, bury func() error) (Dropped, error) {
	if err := m.normalise(); err != nil {
		return Dropped{}, err
	}
	if anew {
		if err := s.checkAdmission(ctx, m); err != nil {
			return Dropped{}, err
		}
	}
	if IsOwnGraph(graph) || graph == DefaultGraph {
		return Dropped{}, Errorf(CodeReserved, "this graph cannot be dropped").At("graph")
	}
	w := &wholeReplacement{s: s, ctx: ctx, meta: m, graph: graph, shares: make(map[AgentID]int64)}
	nothing := errors.New("nothing was written to it")
	receipt, err := w.commitUpdate(ctx, w.hiddenMeta(), func(tx *Tx) error {
		name, known, err := tx.w.Dict.ID(graph)
		if err != nil {
			return err
		}
		if !known && bury != nil { // nobody writes to it meanwhile
			name, known = tx.w.Create(graph), true
		}
		w.old = tx.w.Generations.Current(name)
		unwritten := !tx.catalog.Counted(w.old) && tx.w.Generations.BeginsWith(name, w.old)
		if !known || still != nil && !still() || unwritten && !anew && bury == nil {
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
	if bury != nil {
		if err = w.checkExpected(); err == nil {
			err = bury()
		}
	}
	var removed uint64
	if err == nil {
		removed, err = w.countOld()
	}
	if err == nil {
		receipt, err = w.commitUpdate(ctx, w.hiddenMeta(), func(tx *Tx) error {
			return tx.countGeneration(&GraphReplacement{Graph: graph, Before: removed, Removed: removed, Deleted: true, Anew: anew, Began: w.began, Sources: w.sourceShares()})
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

// countOld counts, by source, what stands in the graph.
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
