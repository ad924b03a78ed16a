package path_test

import (
	"fmt"
	"testing"

	"koine/internal/query/path"
	"koine/kg"
)

// chain returns a chain of nodes: n0 p n1 p n2 …
func chain(n int) (quads []kg.Quad) {
	for i := range n {
		quads = append(quads, quad(iri(fmt.Sprint("n", i)), iri("p"), iri(fmt.Sprint("n", i+1))))
	}
	return quads
}

// last returns the error that ends a walk.
func last(b *path.Bound, from kg.ID) (ends int, err error) {
	for _, err := range b.Forward(from) {
		if err != nil {
			return ends, err
		}
		ends++
	}
	return ends, nil
}

// TestBoundsOfAWalk proves that the limits of nodes and statements accept their maximum,
// and that the error beyond it has a hint.
func TestBoundsOfAWalk(t *testing.T) {
	s := snapshotOf(t, chain(10)...)
	from := idOf(t, s, iri("n0"))
	for _, row := range []struct {
		text     string
		at, past path.Options
	}{
		{"ex:p*", path.Options{Nodes: 11}, path.Options{Nodes: 10}},
		{"ex:p*", path.Options{Statements: 10 + 11}, path.Options{Statements: 10 + 10}}, // 10 read, looked up at 11 nodes
		{"ex:p{2,3}", path.Options{Nodes: 3}, path.Options{Nodes: 2}},
	} {
		if _, err := last(bind(t, s, row.text, row.at), from); err != nil {
			t.Errorf("%s at the bound: %v", row.text, err)
		}
		_, err := last(bind(t, s, row.text, row.past), from)
		if kg.CodeOf(err) != kg.CodeLimitExceeded || kg.AsError(err).Hint == "" {
			t.Errorf("%s past the bound: got %v", row.text, err)
		}
	}
	for _, o := range []path.Options{{Nodes: 9}, {Statements: 5}} {
		if _, err := countPairs(bind(t, s, "ex:p+", o)); kg.CodeOf(err) != kg.CodeLimitExceeded {
			t.Errorf("pairs with %+v: got %v", o, err)
		}
	}
}

func countPairs(b *path.Bound) (n int, err error) {
	for _, err := range b.Pairs() {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// TestPairsHoldOneStart proves that the pairs of a path are found if the nodes of one
// start fit in memory, although those of all starts do not.
func TestPairsHoldOneStart(t *testing.T) {
	s := snapshotOf(t, chain(100)...)
	for text, want := range map[string]int{
		"ex:p": 100, "ex:p/ex:p": 99, "^ex:p": 100, "ex:p|ex:q": 100, "ex:p+": 5050, "ex:p*": 5151, "!ex:q": 100,
	} {
		if n, err := countPairs(bind(t, s, text, path.Options{Nodes: 101})); n != want || err != nil {
			t.Errorf("%s: got %d pairs, %v; want %d", text, n, err, want)
		}
	}
}

// TestStatementsAreCountedTogether proves that all calls on a Bound share the limit of statements.
func TestStatementsAreCountedTogether(t *testing.T) {
	s := snapshotOf(t, chain(3)...)
	b := bind(t, s, "ex:p", path.Options{Statements: 5})
	from := idOf(t, s, iri("n0"))
	for range 2 {
		if n, err := last(b, from); n != 1 || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
	}
	if _, err := last(b, from); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("the third time: got %v after %d", err, b.StatementsRead())
	}
}

// TestNearestFirst proves that the nearest ends come first, and that iteration can stop early.
func TestNearestFirst(t *testing.T) {
	s := snapshotOf(t, chain(5)...)
	b := bind(t, s, "ex:p*", path.Options{})
	i := 0
	for id, err := range b.Forward(idOf(t, s, iri("n0"))) {
		if err != nil {
			t.Fatal(err)
		}
		if got := termOf(t, s, id); got != iri(fmt.Sprint("n", i)) {
			t.Errorf("end %d is %v", i, got)
		}
		if i++; i == 3 {
			break
		}
	}
	if n := b.StatementsRead(); n > 5 {
		t.Errorf("%d statements were read for three ends", n)
	}
}

// TestPassesDoNotGrowWithTheStarts proves that a sequence takes one pass per step for any
// number of starts.
func TestPassesDoNotGrowWithTheStarts(t *testing.T) {
	var quads []kg.Quad
	for i := range 200 {
		quads = append(quads,
			quad(iri(fmt.Sprint("film", i)), iri("p"), iri(fmt.Sprint("part", i))), quad(iri(fmt.Sprint("part", i)), iri("q"), iri(fmt.Sprint("actor", i%7))))
	}
	s := snapshotOf(t, quads...)
	b := bind(t, s, "ex:p/ex:q", path.Options{})
	for _, n := range []int{1, 10, 200} {
		var starts []kg.ID
		for i := range n {
			starts = append(starts, idOf(t, s, iri(fmt.Sprint("film", i))))
		}
		before, ends := s.Scans(), 0
		for _, err := range b.ForwardAll(starts) {
			if err != nil {
				t.Fatal(err)
			}
			ends++
		}
		if got := s.Scans() - before; got != 2 || ends != n {
			t.Errorf("%d starts: %d passes and %d ends, want 2 and %d", n, got, ends, n)
		}
	}
}

// TestZeroLengthFromANodeWithoutStatements proves that a path of length zero relates a
// node without statements to itself, and that the zero id is not a node.
func TestZeroLengthFromANodeWithoutStatements(t *testing.T) {
	s := snapshotOf(t, chain(1)...)
	b := bind(t, s, "ex:unknown*", path.Options{})
	seven := idOf(t, s, kg.Integer(7))
	for id, err := range b.Forward(seven) {
		if err != nil || id != seven {
			t.Errorf("got %v, %v", id, err)
		}
	}
	if n, err := last(b, seven); n != 1 || err != nil {
		t.Errorf("from a literal: %d ends, %v", n, err)
	}
	if n, err := last(b, kg.ID{}); n != 0 || err != nil {
		t.Errorf("from nowhere: %d ends, %v", n, err)
	}
}

// TestGraph proves that a walk can be restricted to one graph.
func TestGraph(t *testing.T) {
	quads := chain(2)
	quads[1].Graph = iri("g")
	s := snapshotOf(t, append(quads, kg.Quad{Subject: iri("n0"), Predicate: iri("p"), Object: iri("x"), Graph: iri("g")})...)
	for graph, want := range map[kg.Term]int{{}: 3, iri("g"): 1, kg.DefaultGraph: 1} {
		o := path.Options{}
		if !graph.IsZero() {
			o.Graph = idOf(t, s, graph)
		}
		if n, err := last(bind(t, s, "ex:p+", o), idOf(t, s, iri("n0"))); n != want || err != nil {
			t.Errorf("%v: %d ends, %v; want %d", graph, n, err, want)
		}
	}
}

// TestEstimate proves that estimates are monotonic: more statements, more pairs; a known
// end, fewer.
func TestEstimate(t *testing.T) {
	var quads []kg.Quad
	for i := range 50 {
		quads = append(quads, quad(iri(fmt.Sprint("s", i)), iri("p"), iri("o")))
	}
	s := snapshotOf(t, append(quads, quad(iri("s1"), iri("q"), iri("o")))...)
	estimate := func(text string, from, to bool) uint64 {
		n, err := bind(t, s, text, path.Options{}).Estimate(from, to)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, row := range []struct {
		text     string
		from, to bool
		want     uint64
	}{
		{"ex:p", false, false, 50}, {"^ex:p", false, false, 50}, {"ex:q", false, false, 1}, {"ex:unknown", false, false, 0},
		{"!()", false, false, 51}, {"ex:p|ex:q", false, false, 51}, {"ex:p", true, false, 4}, {"ex:p", true, true, 1}, {"ex:unknown*/ex:unknown", true, true, 0},
	} {
		if got := estimate(row.text, row.from, row.to); got != row.want {
			t.Errorf("%s with %v, %v: got %d, want %d", row.text, row.from, row.to, got, row.want)
		}
	}
	if few, most := estimate("ex:q/ex:p", false, false), estimate("ex:p/ex:p*", false, false); few >= most {
		t.Errorf("got %d and %d", few, most)
	}
	if n := estimate("((!()){100}){2}/(!()*){50}", false, false); n == 0 {
		t.Errorf("more than can be counted is estimated at %d", n)
	}
}
