package path_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/internal/query/path"
	"koine/kg"
)

// edge is a statement followed from one entity to another.
type edge struct {
	q       kg.IDQuad
	inverse bool
}

func (e edge) to() kg.ID {
	if e.inverse {
		return e.q.Subject
	}
	return e.q.Object
}

// edgesOf returns the edges from an entity, each triple once.
func edgesOf(quads []kg.IDQuad, id kg.ID, predicates map[kg.ID]bool, d path.Direction) (out []edge) {
	seen := map[string]bool{}
	for _, q := range quads {
		for _, inverse := range []bool{false, true} {
			near := q.Subject
			if inverse {
				near = q.Object
			}
			e := edge{q, inverse}
			key := fmt.Sprint(q.Subject, q.Predicate, q.Object, inverse)
			if near != id || seen[key] || predicates != nil && !predicates[q.Predicate] ||
				inverse && d == path.Out || !inverse && d == path.In || !e.to().IsResource() {
				continue
			}
			seen[key] = true
			out = append(out, e)
		}
	}
	return out
}

// routes returns every route without a repeated entity, by length and then in the order
// that Shortest promises.
func routes(quads []kg.IDQuad, from, to kg.ID, predicates map[kg.ID]bool, d path.Direction, maxDepth int) (all [][]edge) {
	var go_ func(way []edge, on []kg.ID)
	go_ = func(way []edge, on []kg.ID) {
		at := on[len(on)-1]
		if at == to {
			all = append(all, slices.Clone(way))
			return
		}
		if len(way) == maxDepth {
			return
		}
		for _, e := range edgesOf(quads, at, predicates, d) {
			if !slices.Contains(on, e.to()) {
				go_(append(way, e), append(on, e.to()))
			}
		}
	}
	go_(nil, []kg.ID{from})
	slices.SortFunc(all, func(a, b []edge) int {
		return strings.Compare(routeKey(a), routeKey(b))
	})
	return all
}

// routeKey sorts by length, then step by step by entity, predicate, direction.
func routeKey(way []edge) string {
	b := []byte{byte(len(way))}
	for _, e := range way {
		to := e.to()
		b = append(append(b, to[:]...), e.q.Predicate[:]...)
		if e.inverse {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return string(b)
}

func rowsOf(t *testing.T, s *kg.Snapshot) (quads []kg.IDQuad) {
	t.Helper()
	for row, err := range s.MatchIDs(kg.IDPattern{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		quads = append(quads, row.IDQuad)
	}
	return quads
}

// randomEdges returns random predicates and a direction.
func randomEdges(t *testing.T, r *rand.Rand, s *kg.Snapshot) (path.Edges, map[kg.ID]bool) {
	e := path.Edges{Direction: []path.Direction{path.Both, path.Out, path.In}[r.IntN(3)]}
	if r.IntN(2) == 0 {
		return e, nil
	}
	predicates := map[kg.ID]bool{}
	for _, p := range []kg.Term{iri("p"), iri("q"), iri("unknown")} {
		if r.IntN(3) > 0 {
			e.Predicates = append(e.Predicates, p)
			predicates[idOf(t, s, p)] = true
		}
	}
	if e.Predicates == nil {
		e.Predicates = []kg.Term{}
	}
	return e, predicates
}

// TestShortestIsTheFirstOfAll proves that the shortest routes are the first of all
// routes, in the promised order.
func TestShortestIsTheFirstOfAll(t *testing.T) {
	r := random(t)
	predicates := []kg.Term{iri("p"), iri("q"), iri("r")}
	found := 0
	for range *runs {
		s := snapshotOf(t, randomQuads(r, 4+r.IntN(5), 6+r.IntN(12), predicates)...)
		quads := rowsOf(t, s)
		for range 30 {
			from, to := idOf(t, s, iri(fmt.Sprint("n", r.IntN(5)))), idOf(t, s, iri(fmt.Sprint("n", r.IntN(5))))
			e, chosen := randomEdges(t, r, s)
			depth, k := 1+r.IntN(6), 1+r.IntN(8)
			got, _, err := path.Shortest(s, from, to, e, depth, k)
			if err != nil {
				t.Fatal(err)
			}
			var want [][]edge
			if from != (kg.ID{}) && to != (kg.ID{}) {
				want = routes(quads, from, to, chosen, e.Direction, depth)
			}
			want = want[:min(k, len(want))]
			found += len(want)
			compareRoutes(t, got, want)
			if t.Failed() {
				t.Fatalf("from %v to %v by %+v, depth %d, k %d, in %v", from, to, e, depth, k, quads)
			}
		}
	}
	if found < 3**runs {
		t.Errorf("only %d ways were compared", found)
	}
}

func compareRoutes(t *testing.T, got []path.Route, want [][]edge) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d ways, want %d", len(got), len(want))
		return
	}
	for i := range got {
		var way []edge
		for _, step := range got[i] {
			way = append(way, edge{step.IDQuad, step.Inverse})
		}
		if !slices.Equal(way, want[i]) {
			t.Errorf("way %d: got %v, want %v", i, way, want[i])
		}
	}
}

// TestNeighborhoodLevelByLevel proves that a neighborhood equals repeated single steps,
// and that a cut one is a prefix of the whole.
func TestNeighborhoodLevelByLevel(t *testing.T) {
	r := random(t)
	predicates := []kg.Term{iri("p"), iri("q"), iri("r")}
	for range *runs {
		s := snapshotOf(t, randomQuads(r, 4+r.IntN(6), 6+r.IntN(16), predicates)...)
		quads := rowsOf(t, s)
		for range 30 {
			of := idOf(t, s, iri(fmt.Sprint("n", r.IntN(5))))
			e, chosen := randomEdges(t, r, s)
			depth := 1 + r.IntN(4)
			whole, err := path.Neighborhood(s, of, depth, e, path.Extent{})
			if err != nil || whole.Cut {
				t.Fatal(whole, err)
			}
			holdNeighborhood(t, quads, of, depth, chosen, e.Direction, whole)
			cut, err := path.Neighborhood(s, of, depth, e, path.Extent{Entities: 1 + r.IntN(4), Statements: 1 + r.IntN(8)})
			if err != nil {
				t.Fatal(err)
			}
			holdCut(t, of, cut, whole)
			if t.Failed() {
				t.Fatalf("of %v by %+v, depth %d, in %v: %+v", of, e, depth, quads, cut)
			}
		}
	}
}

// holdNeighborhood compares a complete neighborhood with the result of plain loops.
func holdNeighborhood(t *testing.T, quads []kg.IDQuad, of kg.ID, depth int, predicates map[kg.ID]bool, d path.Direction, got *path.Around) {
	t.Helper()
	distance := map[kg.ID]int{of: 0}
	near := map[kg.IDQuad]int{} // distance in statements
	for level := 1; level <= depth && of.IsResource(); level++ {
		for _, q := range quads {
			for _, ends := range [][2]kg.ID{{q.Subject, q.Object}, {q.Object, q.Subject}} {
				against := ends[0] != q.Subject
				if q.Subject == q.Object {
					against = d == path.In
				}
				at, ok := distance[ends[0]]
				if !ok || at != level-1 || !ends[0].IsResource() || predicates != nil && !predicates[q.Predicate] ||
					against && d == path.Out || !against && d == path.In {
					continue
				}
				if _, old := near[q]; !old {
					near[q] = level
				}
				if _, old := distance[ends[1]]; !old && ends[1].IsResource() {
					distance[ends[1]] = level
				}
			}
		}
	}
	furthest := 0
	for i, row := range got.Statements {
		if near[row.IDQuad] == 0 {
			t.Errorf("%v is not around, or comes twice", row.IDQuad)
		}
		if i > 0 && near[row.IDQuad] < near[got.Statements[i-1].IDQuad] {
			t.Errorf("statement %d is nearer than the one before", i)
		}
		furthest = max(furthest, near[row.IDQuad])
		if level := near[row.IDQuad]; level > len(got.Levels) || i >= got.Levels[level-1] || level > 1 && i < got.Levels[level-2] {
			t.Errorf("statement %d is not of level %d in %v", i, level, got.Levels)
		}
	}
	if len(got.Statements) != len(near) || len(got.Levels) != furthest {
		t.Errorf("got %d statements at depth %d, want %d at %d", len(got.Statements), len(got.Levels), len(near), furthest)
	}
	if len(got.Entities) != len(distance)-1 {
		t.Errorf("got %d entities, want %d", len(got.Entities), len(distance)-1)
	}
	for i, id := range got.Entities {
		if distance[id] == 0 {
			t.Errorf("%v is not around, or the middle", id)
		}
		if i == 0 {
			continue
		}
		before := got.Entities[i-1]
		if distance[id] < distance[before] || distance[id] == distance[before] && bytes.Compare(id[:], before[:]) <= 0 {
			t.Errorf("entity %d is out of order", i)
		}
	}
}

// holdCut proves that a cut neighborhood is a prefix of the whole, and closed.
func holdCut(t *testing.T, of kg.ID, cut, whole *path.Around) {
	t.Helper()
	n := len(cut.Statements)
	if n > len(whole.Statements) || cut.Cut != (n < len(whole.Statements)) {
		t.Errorf("got %d of %d statements, cut %v", n, len(whole.Statements), cut.Cut)
		return
	}
	reached := map[kg.ID]bool{}
	for i, row := range cut.Statements {
		if row.IDQuad != whole.Statements[i].IDQuad {
			t.Errorf("statement %d is another one", i)
		}
		for _, end := range []kg.ID{row.Subject, row.Object} {
			if end.IsResource() && end != of {
				reached[end] = true
			}
		}
	}
	for i, id := range cut.Entities {
		if row := cut.Statements[cut.By[i]]; row.Subject != id && row.Object != id {
			t.Errorf("%v is said to be reached by %v", id, row.IDQuad)
		}
		if !reached[id] {
			t.Errorf("no statement leads to %v", id)
		}
		delete(reached, id)
	}
	if len(reached) > 0 {
		t.Errorf("statements lead to %v, which are not among the entities", reached)
	}
}

// TestBoundsAround proves that the limits of both functions accept their maximum; beyond
// it, the result is an error or a cut.
func TestBoundsAround(t *testing.T) {
	s := snapshotOf(t, chain(20)...)
	at := func(i int) kg.ID { return idOf(t, s, iri(fmt.Sprint("n", i))) }
	along := path.Edges{Direction: path.Out}
	for _, row := range []struct {
		to, depth, k, statements, ways int
		code                           kg.Code
	}{
		{12, path.MaxRouteLength, path.MaxRoutes, 0, 1, ""},
		{13, path.MaxRouteLength, 1, 0, 0, ""},
		{1, path.MaxRouteLength + 1, 1, 0, 0, kg.CodeInvalid},
		{1, 1, path.MaxRoutes + 1, 0, 0, kg.CodeInvalid},
		{1, 0, 1, 0, 0, kg.CodeInvalid},
		{1, 1, 0, 0, 0, kg.CodeInvalid},
		{4, 4, 1, 4 + 4 + 4, 1, ""}, // read, looked up, tried
		{4, 4, 1, 4 + 4 + 3, 0, kg.CodeLimitExceeded},
		{0, 3, 5, 0, 1, ""}, // already there
	} {
		e := along
		e.Statements = row.statements
		ways, _, err := path.Shortest(s, at(0), at(row.to), e, row.depth, row.k)
		if kg.CodeOf(err) != row.code || len(ways) != row.ways {
			t.Errorf("%+v: got %v, %v", row, ways, err)
		}
	}
	for _, row := range []struct {
		depth, statements, entities, around int
		cut                                 bool
		code                                kg.Code
	}{
		{path.MaxRadius, 0, path.MaxRadius, path.MaxRadius, false, ""},
		{path.MaxRadius + 1, 0, 1, 1, false, kg.CodeInvalid},
		{0, 0, 1, 1, false, kg.CodeInvalid},
		{4, 0, 3, 4, true, ""},
		{4, 0, 4, 3, true, ""},
		{4, 8, 4, 4, false, ""},
		{4, 7, 4, 4, false, kg.CodeLimitExceeded},
	} {
		e := along
		e.Statements = row.statements
		got, err := path.Neighborhood(s, at(0), row.depth, e, path.Extent{Entities: row.entities, Statements: row.around})
		if kg.CodeOf(err) != row.code || err == nil && got.Cut != row.cut {
			t.Errorf("%+v: got %+v, %v", row, got, err)
		}
	}
}

// TestClassesAreNoWay proves that rdf:type is followed only if it is named: otherwise any
// two members of a class would be adjacent.
func TestClassesAreNoWay(t *testing.T) {
	typ := kg.IRI(kg.RDFType)
	s := snapshotOf(t, quad(iri("a"), typ, iri("C")), quad(iri("b"), typ, iri("C")), quad(iri("a"), iri("p"), iri("d")))
	a, b := idOf(t, s, iri("a")), idOf(t, s, iri("b"))
	for _, row := range []struct {
		edges        path.Edges
		ways, around int
	}{
		{path.Edges{}, 0, 1},
		{path.Edges{Predicates: []kg.Term{typ}}, 1, 2},
		{path.Edges{Predicates: []kg.Term{iri("p"), typ}}, 1, 3},
	} {
		ways, _, err := path.Shortest(s, a, b, row.edges, 2, 1)
		if err != nil || len(ways) != row.ways {
			t.Errorf("%v: got %v, %v", row.edges, ways, err)
		}
		around, err := path.Neighborhood(s, a, 2, row.edges, path.Extent{})
		if err != nil || len(around.Statements) != row.around {
			t.Errorf("%v: got %v, %v", row.edges, around, err)
		}
	}
}

// TestShortestTellsTheDepth proves that a missing route and a search that stopped at
// maxDepth are distinguished.
func TestShortestTellsTheDepth(t *testing.T) {
	s := snapshotOf(t, append(chain(8), quad(iri("far"), iri("p"), iri("away")))...)
	for _, row := range []struct {
		to     string
		depth  int
		deeper bool
	}{{"n5", 4, true}, {"n5", 5, false}, {"far", 12, false}, {"far", 1, true}, {"unknown", 1, false}} {
		_, deeper, err := path.Shortest(s, idOf(t, s, iri("n0")), idOf(t, s, iri(row.to)), path.Edges{}, row.depth, 1)
		if err != nil || deeper != row.deeper {
			t.Errorf("%+v: got %v, %v", row, deeper, err)
		}
	}
}
