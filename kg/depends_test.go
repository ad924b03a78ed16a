package kg

import (
	"fmt"
	"testing"

	"koine/internal/slowtest"
)

func commitAdding(r Revision, quads ...Quad) *Commit {
	c := &Commit{Revision: r}
	for _, q := range quads {
		c.Changes = append(c.Changes, Change{Op: Add, Quad: q})
	}
	return c
}

func TestRecentlyKnowsWhatAVerdictMayDependOn(t *testing.T) {
	s, p, o, other := IRI("urn:s"), IRI("urn:p"), IRI("urn:o"), IRI("urn:other")
	var r recentChanges
	r.addCommit(commitAdding(7, Quad{Subject: s, Predicate: p, Object: o, Graph: DefaultGraph}, Quad{Subject: other, Predicate: other, Object: other, Graph: ShapesGraph}))
	for _, row := range []struct {
		name    string
		depends Dependency
		changed bool
	}{
		{"subject and predicate", Dependency{Node: s, Predicate: p}, true},
		{"any predicate of the subject", Dependency{Node: s}, true},
		{"object and predicate", Dependency{Node: o, Predicate: p, Inverse: true}, true},
		{"the graph", Dependency{Graph: ShapesGraph}, true},
		{"another predicate", Dependency{Node: s, Predicate: other}, false},
		{"the object as subject", Dependency{Node: o, Predicate: p}, false},
		{"the subject as object", Dependency{Node: s, Predicate: p, Inverse: true}, false},
		{"another graph", Dependency{Graph: SystemGraph}, false},
		{"a graph of the callers'", Dependency{Graph: DefaultGraph}, false},
	} {
		n := dependencyHashes([]Dependency{row.depends})
		if got := hasChanged(&r, n, 6); got != row.changed {
			t.Errorf("%s: %v", row.name, got)
		}
		if hasChanged(&r, n, 7) {
			t.Errorf("%s: changed after the commit itself", row.name)
		}
	}
	if hasChanged(&r, nil, 0) {
		t.Error("a verdict that depends on nothing")
	}
}

func TestRecentlyIsBounded(t *testing.T) {
	slowtest.Long(t)
	never := dependencyHashes([]Dependency{{Node: IRI("urn:never")}})
	quads := make([]Quad, maxRecent/4)
	for i := range quads {
		quads[i] = Quad{Subject: IRI(fmt.Sprint("urn:s", i)), Predicate: IRI("urn:p"), Object: IRI(fmt.Sprint("urn:o", i)), Graph: DefaultGraph}
	}
	var r recentChanges
	r.addCommit(commitAdding(1, quads...))
	if hasChanged(&r, never, 0) {
		t.Error("a commit at the bound was forgotten")
	}
	r.addCommit(commitAdding(2, append(quads, quads[0])...))
	if !hasChanged(&r, never, 1) || hasChanged(&r, never, 2) || len(r.last) > 0 {
		t.Error("a commit past the bound has to make everything before it unknown, and nothing after it")
	}
	for i := range 2 * maxRecent / 3 {
		r.addCommit(commitAdding(Revision(3+i), Quad{Subject: IRI(fmt.Sprint("urn:t", i)), Predicate: IRI("urn:p"), Object: IRI("urn:o"), Graph: DefaultGraph}))
		if len(r.last) > maxRecent+4 {
			t.Fatalf("%d are remembered", len(r.last))
		}
	}
	if !hasChanged(&r, never, 3) {
		t.Error("what was forgotten counts as unchanged")
	}
	if last := Revision(2 + 2*maxRecent/3); hasChanged(&r, never, last-1) {
		t.Error("the newest commits were forgotten")
	}
}

func hasChanged(r *recentChanges, depends []uint64, after Revision) bool {
	_, changed := r.changedAfter(depends, after)
	return changed
}
