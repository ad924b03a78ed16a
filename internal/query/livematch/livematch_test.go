package livematch_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/internal/query/livematch"
	"koine/internal/query/path"
	"koine/internal/query/pattern"
	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

var (
	seedFlag   = flag.Uint64("livematch.seed", 0, "seed of the random histories; 0 takes a new one")
	roundsFlag = flag.Int("livematch.rounds", 3, "random histories")
)

var (
	graphs = []kg.Term{kg.DefaultGraph, kg.IRI("urn:g1")}
	names  = []string{"a", "b", "c", "d"}
	ways   []*path.Path
	agents = []kg.AgentID{"agent://x", "agent://y"}
)

func init() {
	for _, text := range []string{"<urn:p0>/<urn:p1>", "<urn:p0>|<urn:p1>/<urn:p2>", "<urn:p2>?", "<urn:p0>+", "^<urn:p1>", "<urn:p0>*", "!<urn:p1>", "(<urn:p0>|<urn:p2>){1,2}"} {
		p, err := path.Parse(text, nil)
		if err != nil {
			panic(err)
		}
		ways = append(ways, p)
	}
}

// dice generates random commits and patterns.
type dice struct{ *rand.Rand }

func (d dice) resource() kg.Term  { return kg.IRI(fmt.Sprintf("urn:n%d", d.IntN(5))) }
func (d dice) predicate() kg.Term { return kg.IRI(fmt.Sprintf("urn:p%d", d.IntN(3))) }

func (d dice) object() kg.Term {
	if d.IntN(4) == 0 {
		return kg.Integer(int64(d.IntN(3)))
	}
	return d.resource()
}

func (d dice) patch() kg.Patch {
	p := kg.Patch{
		Op:     []kg.Op{kg.Add, kg.Add, kg.Remove, kg.Replace}[d.IntN(4)],
		Quad:   kg.Quad{Subject: d.resource(), Predicate: d.predicate(), Object: d.object(), Graph: graphs[d.IntN(2)]},
		Source: agents[d.IntN(2)],
	}
	if p.Op != kg.Remove {
		p.Certainty, p.HasCertainty = []float64{0.2, 0.9}[d.IntN(2)], true
	} else if d.IntN(2) == 0 {
		p.Source = ""
	}
	return p
}

func (d dice) commit(t *testing.T, s *kgtest.Store, patches int) {
	t.Helper()
	if _, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		for range 1 + d.IntN(patches) {
			if err := tx.Apply(d.patch()); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (d dice) variable() pattern.Node { return pattern.Var(names[d.IntN(len(names))]) }

func (d dice) triple() (t pattern.Triple) {
	t.Subject, t.Predicate, t.Object = d.variable(), pattern.Term(d.predicate()), d.variable()
	switch d.IntN(8) {
	case 0:
		t.Object = pattern.Term(d.object())
	case 1:
		t.Object = pattern.OneOf(d.object(), d.object())
	case 2:
		t.Subject = pattern.Term(d.resource())
	case 3:
		t.Predicate = d.variable()
	}
	switch d.IntN(8) {
	case 0:
		t.Graph = pattern.Term(graphs[d.IntN(2)])
	case 1:
		t.Graph = d.variable()
	case 2:
		t.Predicate, t.Path = pattern.Node{}, ways[d.IntN(len(ways))]
	}
	return t
}

func (d dice) group(depth int) (g pattern.Group) {
	for range 1 + d.IntN(2) {
		g.Triples = append(g.Triples, d.triple())
	}
	if depth > 0 {
		if d.IntN(3) == 0 {
			g.Unions = [][]pattern.Group{{d.group(depth - 1), d.group(depth - 1)}}
		}
		for range d.IntN(2) + d.IntN(2) {
			g.Optional = append(g.Optional, d.group(depth-1))
		}
		if d.IntN(3) == 0 {
			g.NotExists = append(g.NotExists, d.group(depth-1))
		}
	}
	if d.IntN(4) == 0 {
		g.Filters = append(g.Filters, pattern.Filter{Vars: []string{names[d.IntN(4)], names[d.IntN(4)]}, Holds: func(t []kg.Term) bool { return t[0] != t[1] }})
	}
	return g
}

func (d dice) view() (v kg.View) {
	switch d.IntN(4) {
	case 0:
		v.MinCertainty = 0.5
	case 1:
		v.Believed = agents[:1]
	case 2:
		v.Graphs = graphs[1:]
	}
	return v
}

// describe formats a group.
func describe(g *pattern.Group) string {
	var b strings.Builder
	for i := range g.Triples {
		b.WriteString(g.Triples[i].String() + " . ")
	}
	for _, f := range g.Filters {
		fmt.Fprintf(&b, "FILTER %v ", f.Vars)
	}
	for _, union := range g.Unions {
		for k := range union {
			b.WriteString("UNION { " + describe(&union[k]) + "} ")
		}
	}
	for i := range g.Optional {
		b.WriteString("OPTIONAL { " + describe(&g.Optional[i]) + "} ")
	}
	for i := range g.NotExists {
		b.WriteString("NOT EXISTS { " + describe(&g.NotExists[i]) + "} ")
	}
	return b.String()
}

// history is a store and the snapshots of a view at each revision.
type history struct {
	t     *testing.T
	store *kgtest.Store
	view  kg.View
	at    []*kg.Snapshot
}

func newHistory(t *testing.T, s *kgtest.Store, view kg.View) *history {
	h := &history{t: t, store: s, view: view}
	for r := kg.Revision(0); r <= s.Head().Revision; r++ {
		view.At, view.AtStart = r, r == 0
		snapshot, err := s.View(t.Context(), view)
		if err != nil {
			t.Fatal(err)
		}
		h.at = append(h.at, snapshot)
		t.Cleanup(snapshot.Close) // the store's cleanup waits for it
	}
	return h
}

func (h *history) commit(r int) *kg.Commit {
	h.t.Helper()
	c, err := h.store.Commit(h.t.Context(), kg.Principal{}, kg.Revision(r))
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// standing returns the rows at a revision, by a full evaluation.
func (h *history) standing(m *livematch.Match, r int) map[string]bool {
	h.t.Helper()
	set := map[string]bool{}
	for row, err := range m.Rows(h.t.Context(), h.at[r]) {
		if err != nil {
			h.t.Fatal(err)
		}
		set[h.text(r, row)] = true
	}
	return set
}

// text formats a row with terms: a term without statements has an id that is specific to
// the revision.
func (h *history) text(r int, row livematch.Row) string {
	h.t.Helper()
	terms := make([]kg.Term, len(row))
	for i, id := range row {
		if id.IsZero() {
			continue
		}
		var err error
		if terms[i], err = h.at[r].Term(id); err != nil {
			h.t.Fatal(err)
		}
	}
	return fmt.Sprint(terms)
}

// TestRowsFollowTheGraph proves that the rows of a revision and the differences of the
// following commits add up to the rows of each later revision; that no row is added
// twice, removed without being there, or both added and removed; and that no row changes
// if no matching statement changes.
func TestRowsFollowTheGraph(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -livematch.seed=%d", seed)
	d := dice{rand.New(rand.NewPCG(seed, 5))}
	var patterns, changed int
	for range *roundsFlag {
		s := kgtest.Disk(t, kg.Options{})
		for range 30 {
			d.commit(t, s, 4)
		}
		h := newHistory(t, s, d.view())
		for range 40 {
			n := h.follows(d)
			patterns, changed = patterns+1, changed+n
		}
	}
	t.Logf("%d patterns followed, %d commits changed rows", patterns, changed)
	if changed < patterns {
		t.Error("too little changed")
	}
}

// TestRowsOfTheStart proves that the rows of a path of length zero, which has a solution
// in an empty store, are not added by the first commit.
func TestRowsOfTheStart(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	n4 := kg.IRI("urn:n4")
	if _, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: n4, Predicate: kg.IRI("urn:p0"), Object: kg.IRI("urn:n1")}})
	}); err != nil {
		t.Fatal(err)
	}
	way, err := path.Parse("<urn:p0>*", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := livematch.New(pattern.Group{Triples: []pattern.Triple{{Subject: pattern.Term(n4), Path: way, Object: pattern.Var("d")}}}, nil, livematch.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory(t, s, kg.View{})
	if got := slices.Collect(maps.Keys(h.standing(m, 0))); !slices.Equal(got, []string{"[<urn:n4>]"}) {
		t.Errorf("rows at the start: got %v, want <urn:n4>", got)
	}
	diff, err := m.Difference(t.Context(), h.at[0], h.at[1], h.commit(1))
	if err != nil {
		t.Fatal(err)
	}
	if len(diff.Removed) != 0 || len(diff.Added) != 1 || h.text(1, diff.Added[0]) != "[<urn:n1>]" {
		t.Errorf("rows of the first commit: got %v added and %v removed, want <urn:n1> added", diff.Added, diff.Removed)
	}
}

// follows follows a random pattern through the history and returns the number of commits
// that changed its rows.
func (h *history) follows(d dice) (changed int) {
	h.t.Helper()
	group := d.group(2)
	var columns []string
	if d.IntN(2) == 0 {
		all := append(slices.Clone(group.Certain()), names...)
		columns = []string{all[d.IntN(len(all))]}
	}
	m, err := livematch.New(group, columns, livematch.Limits{Triples: 64})
	if err != nil {
		if kg.AsError(err).Field == "select" {
			return 0
		}
		h.t.Fatal(err)
	}
	what := fmt.Sprintf("%v of %s in %+v", m.Columns(), describe(&group), h.view)
	before := h.standing(m, 0)
	for r := 1; r < len(h.at); r++ {
		after := h.standing(m, r)
		diff, err := m.Difference(h.t.Context(), h.at[r-1], h.at[r], h.commit(r))
		if err != nil {
			h.t.Fatalf("%s at %d: %v", what, r, err)
		}
		state := maps.Clone(before)
		for _, row := range diff.Removed {
			if key := h.text(r-1, row); !state[key] {
				h.t.Fatalf("%s at %d: %s went and was not there", what, r, key)
			} else {
				delete(state, key)
			}
		}
		for _, row := range diff.Added {
			if key := h.text(r, row); before[key] || state[key] {
				h.t.Fatalf("%s at %d: %s came and was there", what, r, key)
			} else {
				state[key] = true
			}
		}
		if !maps.Equal(state, after) {
			h.t.Fatalf("%s at %d: got %v, want %v, from %v by %v", what, r, slices.Sorted(maps.Keys(state)), slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)), h.commit(r).Changes)
		}
		if !diff.Empty() {
			changed++
			if !h.wakes(m, r) {
				h.t.Fatalf("%s at %d: rows changed, and nobody would have been woken", what, r)
			}
		}
		before = after
	}
	return changed
}

// wakes reports whether a watcher with the pattern's filter receives an event of the commit.
func (h *history) wakes(m *livematch.Match, r int) bool {
	h.t.Helper()
	epoch := h.store.Epoch()
	log, err := h.store.ReadLog(h.t.Context(), kg.Filter{View: h.view, Patterns: m.Patterns()}, kg.LogRange{
		After: kg.Position{Epoch: epoch, Revision: kg.Revision(r - 1), Index: kg.EndOfCommit},
		Until: kg.Position{Epoch: epoch, Revision: kg.Revision(r), Index: kg.EndOfCommit},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	for range log.Events() {
		return true
	}
	return false
}
