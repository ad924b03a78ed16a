package kgtest

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"koine/kg"
)

// replaceGraph replaces a graph by some of its statements and some new ones. The store decides from
// which number of statements on it exchanges the graph as a whole.
func (r *randomRun) replaceGraph() {
	meta, graph := r.meta(), pick(r.dice, graphs[:3])
	meta.IdempotencyKey, meta.ContentHash = "", [32]byte{}
	if r.judged && r.dice.chance(15) {
		meta.TaskID = rejected
	}
	quads := r.newContent(graph)
	var fails error
	if r.dice.chance(10) {
		fails = errOwn
	}
	before := r.model.Head()
	got, err := r.store.ReplaceGraph(within(r.t), meta, graph, thenEnd(quads, fails), kg.ReplaceOptions{})
	made := r.store.Head().Revision - before
	switch {
	case err != nil && made > 0: // a part was written
		r.skipTo(r.store.Head().Revision)
		if errors.Is(err, errOwn) || meta.TaskID == rejected {
			return
		}
		if want := r.model.refusesExchange(meta, graph); want == "" || kg.CodeOf(err) != want {
			r.t.Fatalf("ReplaceGraph of the whole: got %v, want %q", err, want)
		}
	case errors.Is(err, errOwn), err != nil && meta.TaskID == rejected:
	case err != nil:
		want := r.model.ordinaryReplace(meta, graph, quads, Stamp{}, nil).Code
		if code := kg.CodeOf(err); code != want && !(meta.DryRun && code == kg.CodeInvalid) && code != r.model.refusesExchange(meta, graph) {
			r.t.Fatalf("ReplaceGraph: got %v, want %q", err, want)
		}
	case fails != nil:
		r.t.Fatalf("ReplaceGraph takes a source that fails: %+v", got)
	case got.Whole:
		r.applyExchange(meta, graph, quads, got)
	case made > 1: // written and rolled back, because nothing changes
		r.skipTo(r.store.Head().Revision)
		if c := r.model.countDifferences(meta, graph, quads); c != 0 || got.Added+got.Removed != 0 {
			r.t.Fatalf("ReplaceGraph says that nothing changes: %+v, want %d changes", got, c)
		}
	default:
		r.replacedInOne(meta, graph, quads, got)
	}
}

// newContent returns the new content of a graph: some of its statements, and some new ones.
func (r *randomRun) newContent(graph kg.Term) (quads []kg.Quad) {
	for _, st := range r.model.Match(kg.View{Principal: tester, AllGraphs: true, Doubted: true}, kg.Pattern{Graph: graph}) {
		if r.dice.chance(60) {
			quads = append(quads, st.Quad)
		}
	}
	for range r.dice.IntN(8) {
		q := r.dice.quad()
		q.Graph = graph
		quads = append(quads, q)
	}
	if r.dice.chance(10) {
		quads = nil
	}
	r.dice.Shuffle(len(quads), func(i, j int) { quads[i], quads[j] = quads[j], quads[i] })
	return quads
}

// thenEnd yields the quads, and then the error unless it is nil.
func thenEnd(quads []kg.Quad, err error) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		for _, q := range quads {
			if !yield(q, nil) {
				return
			}
		}
		if err != nil {
			yield(kg.Quad{}, err)
		}
	}
}

// applyExchange applies an exchange of a whole graph to the model.
func (r *randomRun) applyExchange(meta kg.Meta, graph kg.Term, quads []kg.Quad, got kg.ReplaceReport) {
	if code := r.model.refusesExchange(meta, graph); code != "" || meta.DryRun || meta.TaskID == rejected {
		r.t.Fatalf("ReplaceGraph of the whole: got %+v, want %q", got, code)
	}
	r.skipTo(got.Revision - 1)
	created, before := len(r.model.visibleStatements(meta.Principal, graph)) == 0, r.model.Head()
	c, err := r.store.Commit(within(r.t), tester, got.Revision)
	if err == nil {
		err = r.model.Exchange(c, graph, quads)
	}
	if err != nil {
		r.t.Fatalf("the exchange: %v", err)
	}
	want := meta
	if len(r.model.Doubts) > 0 && c.Principal != tester.ID && c.Actor != tester.ID { // may refer to hidden statements
		want.TaskID, want.Justification = "", ""
	}
	if c.Principal != meta.Principal.ID || c.Actor != actor(meta) || c.TaskID != want.TaskID || c.Justification != want.Justification {
		r.t.Fatalf("the exchange is told as %+v, and %+v asked", c, meta)
	}
	report := kg.ReplaceReport{Read: uint64(len(quads)), Created: created, Whole: true, Commits: 1, Revision: before + 1, Position: kg.Position{Epoch: r.model.epoch, Revision: before + 1, Index: kg.EndOfCommit}}
	report.Added, report.Removed = r.model.countAdded(graph, before)
	r.sameReport(report, got)
}

func (r *randomRun) sameReport(want, got kg.ReplaceReport) {
	r.t.Helper()
	if got.Read != want.Read || got.Added != want.Added || got.Removed != want.Removed || got.Created != want.Created ||
		got.Whole != want.Whole || got.Commits != want.Commits || got.Revision != want.Revision || got.Position != want.Position || got.Replayed != want.Replayed {
		r.t.Fatalf("ReplaceGraph: got %+v, want %+v", got, want)
	}
}

// replacedInOne applies a replacement in an ordinary commit to the model.
func (r *randomRun) replacedInOne(meta kg.Meta, graph kg.Term, quads []kg.Quad, got kg.ReplaceReport) {
	created, before := len(r.model.visibleStatements(meta.Principal, graph)) == 0, r.model.Head()
	stamp, made := Stamp{Revision: before + 1}, []kg.Change(nil)
	if got.Revision > before {
		c, err := r.store.Commit(within(r.t), tester, got.Revision)
		if err != nil {
			r.t.Fatal(err)
		}
		stamp.Time, made = c.Time, c.Changes
	}
	answer := r.model.ordinaryReplace(meta, graph, quads, stamp, made)
	if answer.Code != "" {
		r.t.Fatalf("ReplaceGraph: got %+v, want %q", got, answer.Code)
	}
	want := kg.ReplaceReport{Read: uint64(len(quads)), Created: created, Revision: answer.Receipt.Revision, Position: answer.Receipt.Position}
	for _, c := range answer.Changes {
		if c.Op == kg.Remove {
			want.Removed++
		} else {
			want.Added++
		}
	}
	if answer.Receipt.Committed {
		want.Commits = 1
		sameCommit(within(r.t), r.t, r.model, r.store, r.model.Head())
	}
	r.sameReport(want, got)
}

// skipTo applies commits without visible changes to the model.
func (r *randomRun) skipTo(last kg.Revision) {
	r.t.Helper()
	for n := r.model.Head() + 1; n <= last; n++ {
		c, err := r.store.Commit(within(r.t), tester, n)
		if err == nil {
			err = r.model.Skip(c)
		}
		if err != nil {
			r.t.Fatalf("a commit that nobody is shown: %v", err)
		}
	}
}

// dropGraph deletes a graph. Watchers start again behind the deletion: earlier events of
// the graph are not delivered any more.
func (r *randomRun) dropGraph() {
	graph := pick(r.dice, graphs[1:3])
	for _, rec := range r.recorders {
		r.awaitRecorder(rec)
		rec.Stop()
	}
	stood, wrote := r.model.countStatements(graph), r.model.hasWritten(graph)
	got, err := r.store.DropGraph(within(r.t), kg.Meta{Principal: tester}, graph, kg.DropOptions{})
	if err != nil || got.Removed != stood {
		r.t.Fatalf("DropGraph(%s): got %+v, %v, want %d statements", graph, got, err, stood)
	}
	head := r.store.Head()
	if head.Revision == r.model.Head() {
		if wrote {
			r.t.Fatalf("DropGraph(%s) leaves it as it is, and something was written to it", graph)
		}
	} else {
		r.skipTo(head.Revision - 1)
		c, err := r.store.Commit(within(r.t), tester, head.Revision)
		if err == nil {
			err = r.model.Drop(c, graph)
		}
		if err != nil || got.Revision != head.Revision {
			r.t.Fatalf("the commit that drops %s, %d of %d: %v", graph, got.Revision, head.Revision, err)
		}
	}
	for i, rec := range r.recorders {
		r.recorders[i] = Record(r.t, r.store, rec.filter, head)
	}
	sameEverything(r.t, r.model, r.store)
}

// awaitRecorder waits until a recorder has received all events, and compares them.
func (r *randomRun) awaitRecorder(rec *Recorder) {
	r.t.Helper()
	h, err := rec.Wait(within(r.t), len(r.model.Events(rec.filter, rec.from)))
	if err == nil {
		err = Filtered(h, r.model, rec.filter)
	}
	if err == nil {
		err = rec.sentBack(r.model)
	}
	if err != nil {
		r.t.Fatalf("watching %+v: %v", rec.filter, err)
	}
}

// visibleStatements returns the statements of a graph that the principal can see.
func (m *Model) visibleStatements(p kg.Principal, graph kg.Term) []kg.Statement {
	return m.Match(kg.View{Principal: p, AllGraphs: true}, kg.Pattern{Graph: graph})
}

// ordinaryReplace is the update that replaces a graph in one commit. Removals may come in
// any order; those in made, if any, determine it.
func (m *Model) ordinaryReplace(meta kg.Meta, graph kg.Term, quads []kg.Quad, st Stamp, made []kg.Change) Answer {
	var patches []kg.Patch
	for _, stands := range m.visibleStatements(meta.Principal, graph) {
		if !slices.Contains(quads, stands.Quad) {
			patches = append(patches, remove(stands.Quad, ""))
		}
	}
	place := func(p kg.Patch) int {
		return slices.IndexFunc(made, func(c kg.Change) bool { return c.Quad == p.Quad })
	}
	slices.SortStableFunc(patches, func(a, b kg.Patch) int { return place(a) - place(b) })
	done := map[kg.Quad]bool{}
	for _, q := range quads {
		if !done[q] {
			patches, done[q] = append(patches, add(q, "")), true
		}
	}
	return m.Update(meta, patches, st)
}

// refusesExchange returns the code with which an exchange of the graph is rejected, or "".
func (m *Model) refusesExchange(meta kg.Meta, graph kg.Term) kg.Code {
	if code := m.Stage(meta, Stamp{}).Apply(add(kg.Quad{Graph: graph}, "")); code != "" {
		return code
	}
	if !meta.HasExpected {
		return ""
	}
	last := m.floors[graph]
	for p, r := range m.changed {
		if p.graph == graph {
			last = max(last, r)
		}
	}
	if last > meta.ExpectedRevision {
		return kg.CodeRevisionConflict
	}
	return ""
}

// countDifferences counts the changes of an exchange of a graph for the quads.
func (m *Model) countDifferences(meta kg.Meta, graph kg.Term, quads []kg.Quad) int {
	meta.HasExpected, meta.DryRun, meta.IdempotencyKey = false, true, ""
	return len(m.ordinaryReplace(meta, graph, quads, Stamp{}, nil).Changes)
}

// countAdded counts the statements added to and removed from a graph since a revision.
func (m *Model) countAdded(graph kg.Term, before kg.Revision) (came, went uint64) {
	for q := range m.past {
		now, since := m.stateAt(q, m.Head())
		switch {
		case q.Graph != graph || since <= before:
		case len(now) == 0:
			went++
		default:
			came++
		}
	}
	return came, went
}

// sentBack compares the resyncs before the last event with the model's.
func (r *Recorder) sentBack(m *Model) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return nil
	}
	last := r.events[len(r.events)-1].Position
	before := func(all []kg.Position) (out []string) {
		for _, p := range all {
			if p.Compare(last) < 0 {
				out = append(out, positionText(p))
			}
		}
		return out
	}
	if want, got := before(m.Resyncs(r.filter, r.from)), before(r.resyncs); !slices.Equal(want, got) {
		return fmt.Errorf("it was sent to %v, want %v", got, want)
	}
	return nil
}
