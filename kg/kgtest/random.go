package kgtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

var (
	seedFlag  = flag.Uint64("kg.seed", 0, "seed of the random tests of the store (0: a new one for each run)")
	runsFlag  = flag.Int("kg.runs", 3, "how many random tests of the store to run")
	stepsFlag = flag.Int("kg.steps", 400, "steps of each random test of the store")
)

func testRandom(t *testing.T, f Factory) {
	runs := *runsFlag
	if testing.Short() && !isFlagSet("kg.runs") {
		runs = 1
	}
	if *seedFlag != 0 {
		runs = 1
	}
	for range runs {
		seed := *seedFlag
		if seed == 0 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("again with: go test -run '%s' -kg.steps=%d -kg.seed=%d", t.Name(), *stepsFlag, seed)
				}
			})
			newRun(t, f, seed).steps(*stepsFlag)
		})
	}
}

// isFlagSet reports whether a flag was given.
func isFlagSet(name string) bool {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// randomRun applies random operations to a store and its model. It proves that reads of
// every kind, watches, receipts and history agree with the model through updates,
// rejections, concurrency and reopening.
type randomRun struct {
	t         *testing.T
	dice      dice
	clock     *Clock
	store     *Store
	model     *Model
	judged    bool // a verifier is set
	recorders []*Recorder
}

// newRun creates the store with small limits, so that they take effect. With every other seed a
// verifier runs every update twice: for trial, and in earnest. In half of the runs one source is
// under quarantine from some time on.
func newRun(t *testing.T, f Factory, seed uint64) *randomRun {
	clock := NewClock()
	options := kg.Options{
		Clock: clock.Now, TermCache: 16, RingCommits: 8, RingBytes: 4 << 10, GroupCommits: 3, MemTableBytes: kg.MinMemTableBytes,
		Governor: kg.Governor{Access: &policies{rules: map[kg.Term]map[kg.AgentID]kg.Right{
			graphs[1]: {tester.ID: kg.Manage, reader.ID: kg.Read},
			graphs[2]: {tester.ID: kg.Manage},
		}}},
	}
	if seed%2 == 1 {
		options.Verifier = &recordingVerifier{answer: func(_ context.Context, j kg.Judgement) (v kg.Verdict, err error) {
			if j.Meta.TaskID == rejected {
				v.Outcome = kg.Rejected
			}
			return v, nil
		}}
	}
	d := newDice(seed)
	doubts := kg.Doubts(nil)
	if d.chance(50) {
		doubts = kg.Doubts{pick(d, sources): noon.Add(time.Duration(d.IntN(20_000)) * time.Millisecond)}
	}
	options.Distrust = NewDistrust(doubts)
	store := f(t, options)
	model := NewModel(store.Head().Epoch, options.Access)
	model.Doubts = doubts
	return &randomRun{t: t, dice: d, clock: clock, store: store, judged: options.Verifier != nil, model: model}
}

func (r *randomRun) steps(n int) {
	for i := range 12 {
		f := r.dice.filter()
		if i == 0 {
			f = matchAll()
		}
		r.recorders = append(r.recorders, Record(r.t, r.store, f, r.store.Oldest()))
	}
	for range n {
		r.step()
	}
	r.markEnd()
	r.checkPromises()
}

func (r *randomRun) step() {
	switch n := r.dice.IntN(1000); {
	case n < 450:
		r.update()
	case n < 492:
		r.replaceGraph()
	case n < 500:
		r.dropGraph()
	case n < 540:
		r.failingUpdate()
	case n < 580:
		r.concurrentUpdates()
	case n < 780:
		r.compareView(r.dice.view())
	case n < 880:
		v := r.dice.view()
		v.At = kg.Revision(1 + r.dice.IntN(int(r.model.Head())+1))
		if v.At <= r.model.Head() {
			r.compareView(v)
		}
	case n < 905:
		r.compareHistory()
	case n < 930:
		r.comparePages()
	case n < 955:
		r.growIndex()
	case n < 980:
		r.clock.Move(time.Duration(r.dice.IntN(3000)-500) * time.Millisecond)
	case n < 990:
		r.store.MustCheck(within(r.t))
	case n < 994:
		r.reopen()
	default:
		sameEverything(r.t, r.model, r.store)
	}
}

func (r *randomRun) meta() kg.Meta {
	m := kg.Meta{Principal: r.dice.caller(), Justification: "because", TaskID: "task", SessionID: "session", MessageID: "message"}
	if r.dice.chance(30) {
		m.Actor = pick(r.dice, sources)
	}
	switch {
	case r.dice.chance(10):
		m.DryRun = true
	case r.dice.chance(20):
		m.IdempotencyKey = fmt.Sprintf("key %d", r.dice.IntN(20))
		m.ContentHash[0] = byte(r.dice.IntN(2))
	}
	if r.dice.chance(15) {
		m.HasExpected = true
		m.ExpectedRevision = r.model.Head() - min(r.model.Head(), kg.Revision(r.dice.IntN(6)))
	}
	return m
}

// update makes one update that reads its own effects.
func (r *randomRun) update() {
	meta, patches, look := r.meta(), r.dice.patches(), r.dice.pattern()
	got, err := r.store.Update(within(r.t), meta, func(tx *kg.Tx) error {
		stage := r.model.Stage(meta, Stamp{tx.Revision(), tx.Time()})
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
			stage.Apply(p)
			found, err := collect(tx.Match(look))
			if err != nil {
				return err
			}
			if diff := cmp.Diff(statementLines(stage.Match(look)), statementLines(found)); diff != "" {
				return fmt.Errorf("Tx.Match(%v) after %v (-want +got):\n%s", look, p, diff)
			}
		}
		return nil
	})
	before := r.model.Head()
	want := r.model.Update(meta, patches, Stamp{before + 1, got.Time})
	sameAnswer(r.t, want, got, err)
	if r.model.Head() > before {
		sameCommit(within(r.t), r.t, r.model, r.store, r.model.Head())
	}
}

// rejected is the task of updates that the verifier, if any, rejects.
const rejected = "rejected"

var errOwn = errors.New("the caller thought better of it")

// failingUpdate makes an update with a function that fails after changes.
func (r *randomRun) failingUpdate() {
	patches := r.dice.patches()
	_, err := r.store.Update(within(r.t), kg.Meta{Principal: tester}, thenFail(applyPatches(patches)))
	if !errors.Is(err, errOwn) {
		r.t.Fatalf("Update: got %v, want the function's own error", err)
	}
	if got := r.store.Head().Revision; got != r.model.Head() {
		r.t.Fatalf("a function that fails made revision %d", got)
	}
}

// concurrentUpdates makes several updates concurrently, and then in the model in the order of their
// revisions. Some of them fail or are rejected.
func (r *randomRun) concurrentUpdates() {
	type done struct {
		meta    kg.Meta
		patches []kg.Patch
		receipt kg.Receipt
		err     error
	}
	updates := make([]done, 2+r.dice.IntN(10))
	ctx := within(r.t)
	var wg sync.WaitGroup
	for i := range updates {
		u := &updates[i]
		u.meta = kg.Meta{Principal: tester, TaskID: fmt.Sprint("task ", i)}
		u.patches = r.dice.patches()
		do := applyPatches(u.patches)
		switch {
		case r.dice.chance(20):
			do = thenFail(do)
		case r.dice.chance(20) && r.judged:
			u.meta.TaskID = rejected
		}
		wg.Go(func() { u.receipt, u.err = r.store.Update(ctx, u.meta, do) })
	}
	wg.Wait()
	slices.SortFunc(updates, func(a, b done) int { return int(a.receipt.Revision) - int(b.receipt.Revision) })
	for _, u := range updates {
		if u.err != nil && !errors.Is(u.err, errOwn) {
			r.t.Fatalf("Update: %v", u.err)
		}
		if u.meta.TaskID == rejected && u.receipt.Committed {
			r.t.Fatalf("a rejected update made revision %d", u.receipt.Revision)
		}
		if !u.receipt.Committed {
			continue
		}
		want := r.model.Update(u.meta, u.patches, Stamp{r.model.Head() + 1, u.receipt.Time})
		sameAnswer(r.t, want, u.receipt, nil)
		sameCommit(ctx, r.t, r.model, r.store, r.model.Head())
	}
	if got := r.store.Head().Revision; got != r.model.Head() {
		r.t.Fatalf("Head: got revision %d, want %d", got, r.model.Head())
	}
}

// growIndex grows the index now and then until data in memory is flushed to disk.
func (r *randomRun) growIndex() {
	q := r.dice.quad()
	q.Object = kg.String(strings.Repeat(fmt.Sprint(r.dice.Uint64(), " "), 20_000))
	meta, patches := kg.Meta{Principal: tester}, []kg.Patch{add(q, ""), remove(q, "")}
	got, err := r.store.Update(within(r.t), meta, applyPatches(patches))
	sameAnswer(r.t, r.model.Update(meta, patches, Stamp{r.model.Head() + 1, got.Time}), got, err)
	sameCommit(within(r.t), r.t, r.model, r.store, r.model.Head())
}

func (r *randomRun) compareView(v kg.View) {
	snap := open(r.t, r.store, v)
	defer snap.Close()
	if want := orElse(v.At, r.model.Head()); snap.Revision() != want {
		r.t.Fatalf("View(%+v): got revision %d, want %d", v, snap.Revision(), want)
	}
	for range 4 {
		sameStatements(r.t, r.model, snap, r.dice.pattern())
	}
	sameStatements(r.t, r.model, snap, kg.Pattern{})
}

// compareHistory compares the past with the model: the versions of a pattern's
// statements, the differences from an older revision, and the log.
func (r *randomRun) compareHistory() {
	if r.model.Head() == 0 {
		return
	}
	v := r.dice.view()
	if r.dice.chance(30) {
		v.At = r.dice.revision(r.model)
	}
	snap := open(r.t, r.store, v)
	defer snap.Close()
	for range 3 {
		p := r.dice.pattern()
		sameVersions(r.t, r.model, snap, p)
		sameDifferences(r.t, r.model, snap, p, min(r.dice.revision(r.model), snap.Revision()))
	}
	sameLog(r.t, r.model, r.store, r.dice.filter(), r.dice.logRange(r.model), 1+r.dice.IntN(9))
}

func (r *randomRun) comparePages() {
	v := r.dice.view()
	if r.dice.chance(30) && r.model.Head() > 0 {
		v.At = kg.Revision(1 + r.dice.IntN(int(r.model.Head())))
	}
	snap := open(r.t, r.store, v)
	defer snap.Close()
	samePages(r.t, r.model, snap, r.dice.pattern(), 1+r.dice.IntN(7))
}

// reopen closes the store and opens it again. Its watchers end and resume.
func (r *randomRun) reopen() {
	r.store.MustClose()
	for _, rec := range r.recorders {
		if err := rec.End(within(r.t)); kg.CodeOf(err) != kg.CodeClosed {
			r.t.Fatalf("a watcher of a store that is closed: got %v, want %s", err, kg.CodeClosed)
		}
	}
	r.store.Reopen()
	for _, rec := range r.recorders {
		if err := rec.Resume(r.store); err != nil {
			r.t.Fatalf("resuming: %v", err)
		}
	}
	sameEverything(r.t, r.model, r.store)
}

// markEnd ends the history of each filter with visible changes, if possible: a watcher
// that has received these has received all.
func (r *randomRun) markEnd() {
	for _, rec := range r.recorders {
		var p kg.Pattern
		if all := rec.filter.Patterns; len(all) > 0 {
			p = all[len(all)-1]
		}
		q := kg.Quad{
			Subject:   orElse(p.Subject, marker),
			Predicate: orElse(p.Predicate, predicates[0]),
			Object:    orElse(p.Object, marker),
			Graph:     orElse(p.Graph, graphs[1]),
		}
		if g := rec.filter.View.Graphs; len(g) > 0 && p.Graph.IsZero() {
			q.Graph = g[0]
		}
		source := sources[0]
		for r.model.Doubts[source] != (time.Time{}) {
			source = sources[1]
		}
		if b := rec.filter.View.Believed; len(b) > 0 {
			source = b[0]
		}
		for _, patch := range []kg.Patch{remove(q, ""), add(q, source), addWith(q, source, 1), remove(q, "")} {
			meta := kg.Meta{Principal: tester}
			got, err := r.store.Update(within(r.t), meta, applyPatches([]kg.Patch{patch}))
			sameAnswer(r.t, r.model.Update(meta, []kg.Patch{patch}, Stamp{r.model.Head() + 1, got.Time}), got, err)
		}
	}
}

// checkPromises checks the recordings, and new watches, against the model and every promise.
func (r *randomRun) checkPromises() {
	sameEverything(r.t, r.model, r.store)
	for _, rec := range r.recorders {
		r.checkRecorder(rec)
	}
	for range 6 {
		f, from := r.dice.filter(), kg.Position{Epoch: r.store.Head().Epoch, Index: kg.EndOfCommit}
		if head := int(r.model.Head()); r.dice.chance(70) {
			from.Revision = kg.Revision(1 + r.dice.IntN(head))
			from.Index = uint32(r.dice.IntN(4))
		}
		events, err := Watched(within(r.t), r.store, f, from, len(r.model.Events(f, from)))
		if err != nil {
			r.t.Fatalf("watching %+v from %s: %v", f, positionText(from), err)
		}
		if err := Filtered(History{from, events}, r.model, f); err != nil {
			r.t.Fatalf("watching %+v from %s: %v", f, positionText(from), err)
		}
	}
}

func (r *randomRun) checkRecorder(rec *Recorder) {
	ctx := within(r.t)
	h, err := rec.Wait(ctx, len(r.model.Events(rec.filter, rec.from)))
	if err != nil {
		r.t.Fatalf("watching %+v: %v", rec.filter, err)
	}
	checks := []error{Ordered(h), Unique(h), Filtered(h, r.model, rec.filter), rec.sentBack(r.model)}
	if rec == r.recorders[0] {
		checks = append(checks, Gapless(h, r.model.Commits), Atomic(h, r.model.Commits))
	}
	checks = append(checks, Resumable(h, 8, func(from kg.Position, n int) ([]kg.Event, error) {
		return Watched(ctx, r.store, rec.filter, from, n)
	}))
	for _, err := range checks {
		if err != nil {
			r.t.Errorf("watching %+v: %v", rec.filter, err)
		}
	}
}

// matchAll returns the filter that excludes nothing.
func matchAll() kg.Filter {
	return kg.Filter{View: kg.View{Principal: tester, AllGraphs: true, Doubted: true}}
}
