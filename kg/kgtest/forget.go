package kgtest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// forgetfulAccess is an Access that shows the past of one graph to one principal only.
type forgetfulAccess struct {
	*policies
	graph kg.Term
	to    kg.AgentID
}

func (f forgetfulAccess) Forgets(p kg.Principal) func(kg.Term) bool {
	if p.ID == f.to {
		return nil
	}
	return func(graph kg.Term) bool { return graph == f.graph }
}

// isForgotten reports whether the statement as of the revision is hidden from the
// principal, because it has changed since.
func (m *Model) isForgotten(p kg.Principal, q kg.Quad, r kg.Revision) bool {
	f, ok := m.access.(kg.Forgetter)
	if !ok || f.Forgets(p) == nil || !f.Forgets(p)(q.Graph) {
		return false
	}
	_, then := m.stateAt(q, r)
	_, now := m.stateAt(q, m.Head())
	return then != now
}

// rememberedEvents returns the past events that the principal of the filter may see.
func (m *Model) rememberedEvents(f kg.Filter, from kg.Position) (out []kg.Event) {
	ops := f.Ops
	f.Ops = nil
	forgets := func(kg.Term) bool { return false }
	if a, ok := m.access.(kg.Forgetter); ok && a.Forgets(f.View.Principal) != nil {
		forgets = a.Forgets(f.View.Principal)
	}
	for _, e := range m.Events(f, from) {
		if forgets(e.Statement.Graph) {
			now, _ := m.stateAt(e.Statement.Quad, m.Head())
			a := e.Statement.Assertions[0]
			stands := slices.ContainsFunc(now, func(b kg.Assertion) bool { return b.Source == a.Source && b.Revision == a.Revision })
			if e.Op == kg.Remove || !stands {
				continue
			}
			e.Op, e.Previous = kg.Add, nil
		}
		if ops == nil || slices.Contains(ops, e.Op) {
			out = append(out, e)
		}
	}
	return out
}

// testForgetting proves that removed statements of a graph with a hidden past are invisible to
// the principals concerned through every operation on the past, and that nothing else changes.
func testForgetting(t *testing.T, f Factory) {
	d := newDice(11)
	access := forgetfulAccess{newPolicies(), graphs[1], tester.ID}
	b := newBoth(t, f, kg.Options{Governor: kg.Governor{Access: access}, RingCommits: 8})
	for range 80 {
		b.update(kg.Meta{}, d.patches()...)
	}
	for _, who := range []kg.Principal{tester, reader} {
		t.Run(string(who.ID), func(t *testing.T) {
			for i := range 60 {
				v := kg.View{AllGraphs: true}
				if i%2 == 0 {
					v = d.view()
				}
				v.Principal = who
				if i%3 > 0 {
					v.At = d.revision(b.model)
				}
				snap := open(t, b.Store, v)
				for _, p := range []kg.Pattern{{}, {Graph: graphs[1]}, d.pattern()} {
					sameStatements(t, b.model, snap, p)
					samePages(t, b.model, snap, p, 3)
					sameVersions(t, b.model, snap, p)
					sameDifferences(t, b.model, snap, p, min(d.revision(b.model), snap.Revision()))
				}
				sameCounts(t, b.model, snap)
				snap.Close()
			}
			for range 60 {
				filter := d.filter()
				filter.View.Principal = who
				b.sameRemembered(t, filter)
			}
			for r := kg.Revision(1); r <= b.model.Head(); r++ {
				b.sameRememberedCommit(t, who, r)
			}
		})
	}
	t.Run("by its access alone", func(t *testing.T) { // otherwise the test would prove nothing
		filter := kg.Filter{View: kg.View{Principal: reader, Graphs: []kg.Term{graphs[1]}}}
		all, left := b.model.Events(filter, b.Oldest()), b.model.rememberedEvents(filter, b.Oldest())
		if len(left) == 0 || len(left) >= len(all) {
			t.Errorf("of %d events %d are remembered", len(all), len(left))
		}
	})
	t.Run("following", func(t *testing.T) { testFollowForgetful(t, f) })
}

// sameRemembered reads the whole log, in both directions and as a watcher.
func (b *both) sameRemembered(t *testing.T, f kg.Filter) {
	t.Helper()
	want := eventLines(b.model.rememberedEvents(f, b.Oldest()))
	got, err := Watched(within(t), b.Store, f, b.Oldest(), len(want))
	if diff := cmp.Diff(want, eventLines(got)); err != nil || diff != "" {
		t.Fatalf("watching under %+v: %v (-want +got):\n%s", f, err, diff)
	}
	for _, backward := range []bool{false, true} {
		part := kg.LogRange{After: b.Oldest(), Until: b.Head(), Backward: backward}
		got, _, done, err := readLog(within(t), b.Store, f, part, len(want)+1)
		if backward {
			slices.Reverse(got)
		}
		if diff := cmp.Diff(want, eventLines(got)); err != nil || !done || diff != "" {
			t.Fatalf("the log under %+v, backward %v: %v (-want +got):\n%s", f, backward, err, diff)
		}
	}
}

// sameRememberedCommit reads one commit.
func (b *both) sameRememberedCommit(t *testing.T, who kg.Principal, r kg.Revision) {
	t.Helper()
	whole := b.model.Commits[r-1]
	forgets := b.model.access.(kg.Forgetter).Forgets(who)
	var want, got []string
	for _, ch := range whole.Changes {
		if forgets != nil && forgets(ch.Quad.Graph) {
			now, _ := b.model.stateAt(ch.Quad, b.model.Head())
			if ch.Op == kg.Remove || !slices.ContainsFunc(now, func(a kg.Assertion) bool { return a.Source == ch.Assertion.Source && a.Revision == r }) {
				continue
			}
		}
		want = append(want, quadText(ch.Quad))
	}
	c, err := b.Commit(within(t), who, r)
	if kg.CodeOf(err) == kg.CodeNotFound && len(want) == 0 && len(whole.Changes) > 0 {
		return
	}
	if err != nil {
		t.Fatalf("Commit(%d): %v", r, err)
	}
	for _, ch := range c.Changes {
		got = append(got, quadText(ch.Quad))
		if forgets != nil && forgets(ch.Quad.Graph) && len(ch.Before) > 0 {
			t.Errorf("Commit(%d) tells what stood before %s", r, quadText(ch.Quad))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Commit(%d) for %s (-want +got):\n%s", r, who.ID, diff)
	}
}

// testFollowForgetful follows a graph with a hidden past during a removal, resumes afterwards, and
// reads it from the beginning.
func testFollowForgetful(t *testing.T, f Factory) {
	access := forgetfulAccess{newPolicies(), readable, tester.ID}
	b := newBoth(t, f, kg.Options{Governor: kg.Governor{Access: access}})
	kept, gone := quadIn(readable, "s", "p", "kept"), quadIn(readable, "s", "p", "gone")
	b.update(kg.Meta{}, add(kept, ""), add(gone, ""))
	filter := kg.Filter{View: kg.View{Principal: reader, Graphs: []kg.Term{readable}}}
	w, err := b.Watch(within(t), filter, b.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	before := b.Head()
	late := quadIn(readable, "s", "p", "late")
	b.update(kg.Meta{}, add(late, ""))
	b.update(kg.Meta{}, remove(gone, ""), remove(late, ""))

	t.Run("live", func(t *testing.T) {
		want := eventLines(b.model.Events(filter, before))
		var got []kg.Event
		for e, err := range w.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, e); len(got) == len(want) {
				break
			}
		}
		if diff := cmp.Diff(want, eventLines(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		snap, err := w.View(within(t), kg.View{At: before.Revision, Principal: tester})
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		if snap.View().Principal.ID != reader.ID {
			t.Errorf("a watcher reads as %s", snap.View().Principal.ID)
		}
		if n := statementsIn(t, snap); n != 2 {
			t.Errorf("a watcher sees %d statements as of its start, want 2", n)
		}
		log, err := w.ReadLog(within(t), filter, kg.LogRange{After: before, Until: b.Head()})
		if err != nil {
			t.Fatal(err)
		}
		got = got[:0]
		for e, err := range log.Events() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		if diff := cmp.Diff(want, eventLines(got)); diff != "" {
			t.Errorf("the log (-want +got):\n%s", diff)
		}
	})
	t.Run("a snapshot of before", func(t *testing.T) {
		snap := open(t, b.Store, kg.View{Principal: reader, At: before.Revision})
		if n := statementsIn(t, snap); n != 1 {
			t.Errorf("%d statements, want the one that stands", n)
		}
	})
	for name, row := range map[string]struct {
		ops  []kg.Op
		who  kg.Principal
		code kg.Code
	}{
		"who was told of it":       {nil, reader, kg.CodeAccessChanged},
		"who is told of adds only": {[]kg.Op{kg.Add}, reader, ""},
		"who remembers":            {nil, tester, ""},
	} {
		t.Run("coming back, "+name, func(t *testing.T) {
			filter := filter
			filter.Ops, filter.View.Principal = row.ops, row.who
			for _, events := range []bool{true, false} {
				if code := resumeWatch(t, b, filter, before, events); code != row.code {
					t.Errorf("got %q, want %q", code, row.code)
				}
			}
		})
	}
	t.Run("coming back to where it did not stand", func(t *testing.T) {
		if code := resumeWatch(t, b, kg.Filter{Patterns: []kg.Pattern{{Object: late.Object}}, View: filter.View}, before, true); code != "" {
			t.Errorf("got %s", code)
		}
	})
	t.Run("from the beginning", func(t *testing.T) {
		got, err := Watched(within(t), b.Store, filter, b.Oldest(), 1)
		if err != nil || len(got) != 1 || got[0].Statement.Quad != kept {
			t.Errorf("got %v, %v", eventLines(got), err)
		}
	})
}

// resumeWatch watches from a position until an update that it makes itself, and returns the code of
// an earlier end.
func resumeWatch(t *testing.T, b *both, f kg.Filter, from kg.Position, events bool) kg.Code {
	t.Helper()
	w, err := b.Watch(within(t), f, from)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mark := quadIn(readable, "s", "p", "mark")
	if len(f.Patterns) > 0 {
		mark.Object = f.Patterns[0].Object
	}
	b.update(kg.Meta{}, add(mark, ""))
	head := b.model.Head()
	defer b.update(kg.Meta{}, remove(mark, ""))
	if !events {
		for list, err := range w.Commits() {
			if err != nil || list[0].Commit.Revision == head {
				return kg.CodeOf(err)
			}
		}
	}
	for e, err := range w.Events() {
		if err != nil || e.Commit.Revision == head {
			return kg.CodeOf(err)
		}
	}
	return "ended"
}

func statementsIn(t *testing.T, snap *kg.Snapshot) (n int) {
	t.Helper()
	for _, err := range snap.Match(kg.Pattern{Graph: readable}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
