package kgtest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"koine/kg"
)

// Version is the result of Snapshot.Versions for one statement between two revisions.
type Version struct {
	kg.Statement
	From, To kg.Revision
}

// Versions returns the versions of the pattern's statements up to the view's revision, by
// scanning every revision.
func (m *Model) Versions(v kg.View, p kg.Pattern) []Version {
	last := orElse(v.At, m.Head())
	var out []Version
	for q := range m.past {
		if !p.Matches(q) || !m.isVisible(v, q.Graph) {
			continue
		}
		stood := "[]"
		for r := kg.Revision(1); r <= last; r++ {
			all, _ := m.stateAt(q, r)
			shown := m.admittedAssertions(v, q.Graph, all)
			if m.isForgotten(v.Principal, q, r) {
				shown = nil
			}
			text := assertionsText(shown)
			if text == stood {
				continue
			}
			if stood != "[]" {
				out[len(out)-1].To = r
			}
			if stood = text; len(shown) > 0 {
				out = append(out, Version{Statement: kg.Statement{Quad: q, Assertions: shown}, From: r})
			}
		}
	}
	return out
}

func versionLines(versions []Version) []string {
	slices.SortFunc(versions, func(a, b Version) int {
		return cmp.Or(compareQuads(a.Quad, b.Quad), cmp.Compare(a.From, b.From))
	})
	lines := make([]string, len(versions))
	for i, v := range versions {
		lines[i] = fmt.Sprintf("[%d %d) %s", v.From, v.To, statementText(v.Statement))
	}
	return lines
}

// sameVersions compares the past and present of a pattern with the model, read at once and from a
// statement in the middle.
func sameVersions(t testing.TB, m *Model, snap *kg.Snapshot, p kg.Pattern) {
	t.Helper()
	ids, known := patternIDs(t, snap, p)
	want := m.Versions(snap.View(), p)
	if !known {
		if len(want) != 0 {
			t.Fatalf("%v: a term that stood in %d statements has no id", p, len(want))
		}
		return
	}
	got, rows := readVersions(t, snap, ids, nil)
	last := map[kg.Quad]kg.Revision{}
	for _, v := range got {
		if v.From <= last[v.Quad] || v.To != 0 && v.To <= v.From {
			t.Errorf("Versions(%v): %s has one from %d to %d after one from %d", p, quadText(v.Quad), v.From, v.To, last[v.Quad])
		}
		last[v.Quad] = v.From
	}
	if len(rows) > 1 {
		i := len(rows) / 2
		for i > 0 && rows[i-1] == rows[i] {
			i--
		}
		if i > 0 {
			rest, _ := readVersions(t, snap, ids, &rows[i-1])
			got = append(got[:i:i], rest...)
		}
	}
	if diff := gocmp.Diff(versionLines(want), versionLines(got)); diff != "" {
		t.Fatalf("Versions(%v) under %+v (-want +got):\n%s", p, snap.View(), diff)
	}
}

func readVersions(t testing.TB, snap *kg.Snapshot, p kg.IDPattern, after *kg.IDQuad) (out []Version, rows []kg.IDQuad) {
	t.Helper()
	for v, err := range snap.Versions(p, after) {
		if err != nil {
			t.Fatalf("Versions: %v", err)
		}
		out, rows = append(out, versionOf(t, snap, v)), append(rows, v.IDQuad)
	}
	return out, rows
}

func versionOf(t testing.TB, snap *kg.Snapshot, v kg.Version) Version {
	t.Helper()
	s, err := snap.Statement(v.Row)
	if err != nil {
		t.Fatalf("Statement: %v", err)
	}
	return Version{s, v.From, v.To}
}

// sameDifferences compares the differences from an older revision with those of the model.
func sameDifferences(t testing.TB, m *Model, snap *kg.Snapshot, p kg.Pattern, from kg.Revision) {
	t.Helper()
	ids, known := patternIDs(t, snap, p)
	if !known {
		return // covered by sameVersions
	}
	var got []string
	var rows []kg.IDQuad
	for d, err := range snap.Diff(from, ids, nil) {
		if err != nil {
			t.Fatalf("Diff: %v", err)
		}
		line := ""
		for name, v := range map[string]kg.Version{"-": d.Before, "+": d.After} {
			if v.From != 0 {
				text := name + statementText(versionOf(t, snap, v).Statement) + " "
				line = max(line+text, text+line) // in a fixed order
			}
		}
		got, rows = append(got, line), append(rows, d.IDQuad)
	}
	if n := len(rows) / 2; n > 0 {
		i := n
		for d, err := range snap.Diff(from, ids, &rows[n-1]) {
			if err != nil || i >= len(rows) || d.IDQuad != rows[i] {
				t.Fatalf("Diff behind the first %d of %d: number %d is %v, %v", n, len(rows), i, d.IDQuad, err)
			}
			i++
		}
		if i != len(rows) {
			t.Fatalf("Diff behind the first %d of %d ends after %d", n, len(rows), i)
		}
	}
	slices.Sort(got)
	if diff := gocmp.Diff(m.differencesSince(snap.View(), p, from), got); diff != "" {
		t.Fatalf("Diff(%d, %v) under %+v (-want +got):\n%s", from, p, snap.View(), diff)
	}
}

func (m *Model) differencesSince(v kg.View, p kg.Pattern, from kg.Revision) []string {
	then := map[kg.Quad]string{}
	v.At = orElse(v.At, m.Head())
	now := m.Match(v, p)
	if v.At = from; from > 0 {
		for _, s := range m.Match(v, p) {
			then[s.Quad] = "-" + statementText(s) + " "
		}
	}
	var out []string
	for _, s := range now {
		text := "+" + statementText(s) + " "
		if then[s.Quad] == "" {
			out = append(out, text)
		} else if before := then[s.Quad]; before[1:] != text[1:] {
			out = append(out, max(before+text, text+before))
		}
		delete(then, s.Quad)
	}
	for _, before := range then {
		out = append(out, before)
	}
	slices.Sort(out)
	return out
}

// testVersions proves that the past of statements is returned unchanged, in any view and from any
// revision, and without the log.
func testVersions(t *testing.T, f Factory) {
	clock := NewClock()
	b := newBoth(t, f, kg.Options{Clock: clock.Now})
	d := newDice(8)
	for range 80 {
		clock.Move(seconds(d.IntN(2)))
		b.update(kg.Meta{}, d.patches()...)
	}
	compare := func(t *testing.T) {
		for i := range 60 {
			v := d.view()
			if i%2 == 0 {
				v = kg.View{Principal: tester, AllGraphs: true}
			}
			if i%3 == 0 {
				v.At = d.revision(b.model)
			}
			snap := open(t, b.Store, v)
			p := d.pattern()
			if i < 4 {
				p = kg.Pattern{}
			}
			sameVersions(t, b.model, snap, p)
			sameDifferences(t, b.model, snap, p, min(d.revision(b.model), snap.Revision()))
			sameDifferences(t, b.model, snap, p, 0)
			snap.Close()
		}
	}
	t.Run("as they were", compare)
	t.Run("what is undone in the same commit is no version", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		q := quad("s", "p", "o")
		b.update(kg.Meta{}, add(q, "agent://a"))
		b.update(kg.Meta{}, add(q, "agent://b"), remove(q, "agent://b"))
		b.update(kg.Meta{}, remove(q, "agent://a"), add(q, "agent://a"))
		for _, v := range []kg.View{{Principal: tester}, {Principal: tester, MinCertainty: 0.5}, {Principal: tester, At: 2}} {
			snap := open(t, b.Store, v)
			sameVersions(t, b.model, snap, kg.Pattern{Subject: q.Subject})
			sameDifferences(t, b.model, snap, kg.Pattern{}, 1)
			snap.Close()
		}
	})
	t.Run("what is hidden has no past", func(t *testing.T) { testHiddenPast(t, f) })
	t.Run("a difference that the log tells", func(t *testing.T) { testDifferencesByLog(t, f) })
	t.Run("a newer revision than the snapshot's", func(t *testing.T) {
		snap := open(t, b.Store, kg.View{Principal: tester, At: 2})
		for _, err := range snap.Diff(3, kg.IDPattern{}, nil) {
			if kg.CodeOf(err) != kg.CodeInvalid {
				t.Errorf("got %v, want %s", err, kg.CodeInvalid)
			}
		}
	})
	t.Run("without the log", func(t *testing.T) {
		if err := b.Maintenance().CutLog(within(t), b.Head().Revision); err != nil {
			t.Fatal(err)
		}
		compare(t)
	})
}

// testHiddenPast closes a graph: its past becomes invisible, too.
func testHiddenPast(t *testing.T, f Factory) {
	access := newPolicies()
	b := newBoth(t, f, kg.Options{Governor: kg.Governor{Access: access}})
	b.update(kg.Meta{}, add(quadIn(hidden, "s", "p", "o"), ""), add(quad("s", "p", "o"), ""))
	b.update(kg.Meta{}, replace(quadIn(hidden, "s", "p", "o2"), ""), remove(quad("s", "p", "o"), ""))
	for _, who := range []kg.Principal{tester, reader} {
		snap := open(t, b.Store, kg.View{Principal: who})
		sameVersions(t, b.model, snap, kg.Pattern{Subject: kg.IRI("urn:s")})
		sameDifferences(t, b.model, snap, kg.Pattern{}, 1)
		snap.Close()
	}
}

// testDifferencesByLog has so many unchanged statements that reading the log is cheaper;
// and then so many changes that it is not.
func testDifferencesByLog(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	d := newDice(9)
	many := func(n int, p string) (patches []kg.Patch) {
		for i := range n {
			patches = append(patches, add(quad(fmt.Sprint("many", i), p, "o"), ""))
		}
		return patches
	}
	b.update(kg.Meta{}, many(1500, "p1")...)
	for range 8 {
		b.update(kg.Meta{}, d.patches()...)
	}
	for _, more := range []int{0, 300} {
		if more > 0 {
			b.update(kg.Meta{}, many(more, "p2")...)
		}
		for i := range 12 {
			p := d.pattern()
			if i < 6 {
				p = pick(d, []kg.Pattern{{}, {Predicate: kg.IRI("urn:p1")}, {Graph: kg.DefaultGraph}})
			}
			snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: i%2 == 0})
			sameDifferences(t, b.model, snap, p, d.revision(b.model))
			snap.Close()
		}
	}
}

// testChangedBack proves that a change that was reverted is not a difference between the
// revisions before and after.
func testChangedBack(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	q := quad("s", "p", "o")
	b.update(kg.Meta{}, add(q, "agent://a"))
	b.update(kg.Meta{}, add(q, "agent://b"))
	b.update(kg.Meta{}, kg.Patch{Op: kg.Remove, Quad: q, Source: "agent://b"})
	snap := open(t, b.Store, kg.View{Principal: tester})
	defer snap.Close()
	for from := kg.Revision(0); from <= 3; from++ {
		sameDifferences(t, b.model, snap, kg.Pattern{}, from)
	}
}
