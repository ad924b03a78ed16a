package pattern_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/internal/query/path"
	"koine/internal/query/pattern"
	"koine/kg"
	"koine/kg/kgtest"
)

// library returns a store of films and their actors.
func library(t *testing.T, films int) *kg.Snapshot {
	t.Helper()
	s := kgtest.Disk(t, kg.Options{})
	_, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		for i := range films {
			film := iri("film", i)
			for _, q := range []kg.Quad{
				{Subject: film, Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("urn:Film")},
				{Subject: film, Predicate: kg.IRI("urn:director"), Object: iri("person", i%7)},
				{Subject: film, Predicate: kg.IRI("urn:actor"), Object: iri("person", i%5)},
				{Subject: film, Predicate: kg.IRI("urn:actor"), Object: iri("person", 5+i%3)},
				{Subject: film, Predicate: kg.IRI("urn:year"), Object: kg.Integer(int64(1900 + i%20))},
			} {
				q.Graph = kg.DefaultGraph
				if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := s.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(snap.Close)
	return snap
}

func iri(kind string, n int) kg.Term { return kg.IRI(fmt.Sprintf("urn:%s:%d", kind, n)) }

func triple(s, p, o any) pattern.Triple {
	return pattern.Triple{Subject: node(s), Predicate: node(p), Object: node(o)}
}

// node returns a variable for "?x", else a term.
func node(v any) pattern.Node {
	switch v := v.(type) {
	case kg.Term:
		return pattern.Term(v)
	case string:
		if name, ok := strings.CutPrefix(v, "?"); ok {
			return pattern.Var(name)
		}
		return pattern.Term(kg.IRI("urn:" + v))
	}
	panic(v)
}

func compile(t *testing.T, g pattern.Group, l pattern.Limits) *pattern.Pattern {
	t.Helper()
	p, err := pattern.Compile(g, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func count(e *pattern.Evaluation) (n int, err error) {
	for _, err := range e.Rows() {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// TestPlan proves that joins begin with the rarest triples, that triples around one
// variable are merged, and that the statements read are counted.
func TestPlan(t *testing.T) {
	snap := library(t, 400)
	for _, row := range []struct {
		name   string
		g      pattern.Group
		rows   int
		kinds  string
		read   int64 // at most
		merged int
	}{
		{"director's actors", pattern.Group{Triples: []pattern.Triple{
			triple("?f", "actor", "?a"), triple("?f", "director", iri("person", 1)),
		}}, 114, "scan join", 400, 0},
		{"films that two share", pattern.Group{Triples: []pattern.Triple{
			triple("?f", "actor", iri("person", 1)), triple("?f", "actor", iri("person", 6)),
		}}, 27, "merge", 500, 1},
		{"of a class", pattern.Group{Triples: []pattern.Triple{
			triple("?f", kg.IRI(kg.RDFType), "Film"), triple("?f", "director", iri("person", 3)), triple("?f", "year", kg.Integer(1903)),
		}}, 3, "merge", 700, 2},
		{"a filter as soon as it can be", pattern.Group{
			Triples: []pattern.Triple{triple("?f", "director", iri("person", 1)), triple("?f", "year", "?y"), triple("?f", "actor", "?a")},
			Filters: []pattern.Filter{{Vars: []string{"y"}, Holds: func(t []kg.Term) bool { return t[0] == kg.Integer(1901) }}},
		}, 6, "scan join filter join", 400, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			e, err := compile(t, row.g, pattern.Limits{}).Evaluate(t.Context(), snap, pattern.Query{})
			if err != nil {
				t.Fatal(err)
			}
			n, err := count(e)
			var kinds []string
			merged := 0
			for _, s := range e.Explain() {
				kinds, merged = append(kinds, s.Kind), merged+len(s.Merged)
			}
			if err != nil || n != row.rows || strings.Join(kinds, " ") != row.kinds || merged != row.merged || e.StatementsRead() > row.read {
				t.Errorf("got %d rows by %v, %d statements, %v; want %d by %s, %d\n%s", n, kinds, e.StatementsRead(), err, row.rows, row.kinds, row.read, explained(e.Explain(), ""))
			}
		})
	}
}

// TestLimits proves that each limit accepts its maximum and that the error beyond it
// names the limit.
func TestLimits(t *testing.T) {
	snap := library(t, 20)
	nested := func(depth int) (g pattern.Group) {
		for range depth - 1 {
			g = pattern.Group{Optional: []pattern.Group{g}}
		}
		return g
	}
	of := func(n int) (g pattern.Group) {
		for i := range n {
			g.Triples = append(g.Triples, triple(fmt.Sprintf("?v%d", i), "director", "person:1"))
		}
		return g
	}
	way := func(n int) pattern.Group {
		p, err := path.Parse(strings.Repeat("<urn:none>/", n-1)+"<urn:none>", nil)
		if err != nil {
			t.Fatal(err)
		}
		return pattern.Group{Triples: []pattern.Triple{{Subject: pattern.Var("s"), Path: p, Object: pattern.Var("o")}}}
	}
	wide := func(n int) pattern.Group { return pattern.Group{Optional: make([]pattern.Group, n-1)} }
	terms := func(n int) pattern.Group {
		return pattern.Group{Triples: []pattern.Triple{{Subject: pattern.Var("s"), Predicate: pattern.Var("p"), Object: pattern.OneOf(make([]kg.Term, n)...)}}}
	}
	all := pattern.Group{Triples: []pattern.Triple{triple("?s", "?p", "?o")}} // 100 statements
	for _, row := range []struct {
		name       string
		limits     pattern.Limits
		query      pattern.Query
		at, beyond pattern.Group
	}{
		{"triples", pattern.Limits{Triples: 3}, pattern.Query{}, of(3), of(4)},
		{"steps", pattern.Limits{Steps: 3}, pattern.Query{}, way(3), way(4)},
		{"steps of a group", pattern.Limits{Statements: 1000}, pattern.Query{}, way(255), pattern.Group{Triples: append(way(255).Triples, triple("?s", "year", "?y"))}},
		{"variables", pattern.Limits{Variables: 3}, pattern.Query{}, of(3), of(4)},
		{"groups", pattern.Limits{Groups: 4}, pattern.Query{}, wide(4), wide(5)},
		{"depth", pattern.Limits{Depth: 3}, pattern.Query{}, nested(3), nested(4)},
		{"terms", pattern.Limits{Terms: 3}, pattern.Query{}, terms(3), terms(4)},
		{"statements", pattern.Limits{Statements: 100}, pattern.Query{}, all, pattern.Group{Triples: []pattern.Triple{triple("?s", "?p", "?o")}, Optional: []pattern.Group{{Triples: []pattern.Triple{triple("?s", "year", "?y")}}}}},
		{"rows", pattern.Limits{Rows: 100}, pattern.Query{}, all, pattern.Group{Triples: []pattern.Triple{triple("?s", "?p", "?o"), triple("?t", "director", "?d")}}},
		{"kept, distinct", pattern.Limits{BufferedRows: 100}, pattern.Query{Distinct: true}, all, pattern.Group{Triples: []pattern.Triple{triple("?s", "?p", "?o"), triple("?s", "actor", "?a")}}},
		{"kept, ordered", pattern.Limits{BufferedRows: 100}, pattern.Query{Order: []pattern.Order{{Var: "s", Compare: kg.Term.Compare}}}, all, pattern.Group{Triples: []pattern.Triple{triple("?s", "?p", "?o"), triple("?s", "actor", "?a")}}},
	} {
		run := func(g pattern.Group) error {
			p, err := pattern.Compile(g, row.limits)
			if err != nil {
				return err
			}
			e, err := p.Evaluate(t.Context(), snap, row.query)
			if err != nil {
				return err
			}
			_, err = count(e)
			return err
		}
		if err := run(row.at); err != nil {
			t.Errorf("%s: at the bound: %v", row.name, err)
		}
		if err := run(row.beyond); kg.CodeOf(err) != kg.CodeLimitExceeded || kg.AsError(err).Hint == "" {
			t.Errorf("%s: past the bound: got %v, want %s with a hint", row.name, err, kg.CodeLimitExceeded)
		}
	}
}

// TestCancelled proves that an evaluation ends with its context.
func TestCancelled(t *testing.T) {
	snap := library(t, 200)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := compile(t, pattern.Group{Triples: []pattern.Triple{triple("?a", "director", "?d"), triple("?b", "actor", "?e"), triple("?c", "year", "?y")}}, pattern.Limits{})
	e, err := p.Evaluate(ctx, snap, pattern.Query{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = range e.Rows() {
		if n++; n == 10 {
			cancel()
		}
		if err != nil {
			break
		}
	}
	if err != context.Canceled || n > 200*400*2 {
		t.Errorf("after %d rows: got %v, want %v", n, err, context.Canceled)
	}
}

// TestMistakes proves that an invalid pattern is rejected with the name of the field.
func TestMistakes(t *testing.T) {
	snap := library(t, 1)
	steps, err := path.Parse("<urn:actor>+", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		g     pattern.Group
		field string
	}{
		{pattern.Group{Triples: []pattern.Triple{{Subject: node("?s"), Object: node("?o")}}}, "triples[0].predicate"},
		{pattern.Group{Optional: []pattern.Group{{Triples: []pattern.Triple{{Subject: pattern.OneOf(), Predicate: node("p"), Object: node("?o")}}}}}, "optional[0].triples[0].subject"},
		{pattern.Group{Unions: [][]pattern.Group{{{}, {Triples: []pattern.Triple{{Subject: node("?s"), Path: steps, Object: node("?o"), Graph: node("?g")}}}}}}, "unions[0][1].triples[0]"},
	} {
		if _, err := pattern.Compile(row.g, pattern.Limits{}); kg.CodeOf(err) != kg.CodeInvalid || kg.AsError(err).Field != row.field {
			t.Errorf("got %v, want an error at %s", err, row.field)
		}
	}
	p := compile(t, pattern.Group{Triples: []pattern.Triple{triple("?s", "actor", "?a")}}, pattern.Limits{})
	for _, q := range []pattern.Query{
		{Bound: map[string]kg.ID{"x": kg.DefaultGraphID}}, {Bound: map[string]kg.ID{"s": {}}}, {Distinct: true, Select: []string{"x"}},
		{Order: []pattern.Order{{Var: "x"}}}, {Distinct: true, Select: []string{"s"}, Order: []pattern.Order{{Var: "a"}}},
	} {
		if _, err := p.Evaluate(t.Context(), snap, q); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%+v: got %v, want %s", q, err, kg.CodeInvalid)
		}
	}
}

// TestForeignPlaces proves that a cursor of another pattern, or invalid bytes, are rejected.
func TestForeignPlaces(t *testing.T) {
	snap := library(t, 3)
	place := func(g pattern.Group, q pattern.Query) []byte {
		e, err := compile(t, g, pattern.Limits{}).Evaluate(t.Context(), snap, q)
		if err != nil {
			t.Fatal(err)
		}
		for range e.Rows() {
			break
		}
		return e.Cursor()
	}
	one := pattern.Group{Triples: []pattern.Triple{triple("?s", "actor", "?a")}}
	two := pattern.Group{Triples: []pattern.Triple{triple("?s", "actor", "?a"), triple("?s", "year", "?y")}}
	p := compile(t, one, pattern.Limits{})
	good := place(one, pattern.Query{})
	for _, b := range [][]byte{{}, {9}, place(two, pattern.Query{}), good[:len(good)-1], append(slices.Clone(good), 0)} {
		if _, err := p.Evaluate(t.Context(), snap, pattern.Query{After: b}); kg.CodeOf(err) != kg.CodeCursorForeign {
			t.Errorf("place %x: got %v, want %s", b, err, kg.CodeCursorForeign)
		}
	}
	if _, err := p.Evaluate(t.Context(), snap, pattern.Query{After: good, Distinct: true}); kg.CodeOf(err) != kg.CodeCursorForeign {
		t.Errorf("a place of plain rows for distinct ones: got %v", err)
	}
}

// FuzzPlace proves that any bytes are either a cursor in its only encoding or rejected.
func FuzzPlace(f *testing.F) {
	f.Add([]byte{1, 0, 0})
	f.Add([]byte{1, 2, 1, 0, 0x85, 0x01})
	f.Add(append([]byte{2, 1, 0, 3}, []byte(strings.Repeat("\x02\x00\x00\x00\x00\x00\x00\x00\x01", 4))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		again, err := pattern.ParsePlace(b)
		if err == nil && !slices.Equal(again, b) {
			t.Errorf("%x is accepted, and would be written as %x", b, again)
		}
	})
}

// TestFirstOfAnOrder proves that ordered rows are the same whether all rows are held or
// only those that are read, even if all rows would exceed the limit.
func TestFirstOfAnOrder(t *testing.T) {
	s := library(t, 60)
	g := pattern.Group{Triples: []pattern.Triple{triple("?f", "actor", "?a"), triple("?g", "actor", "?b")}}
	order := []pattern.Order{{Var: "b", Compare: kg.Term.Compare}, {Var: "f", Compare: func(a, b kg.Term) int { return b.Compare(a) }}}
	read := func(p *pattern.Pattern, q pattern.Query, n int) (rows []string, place []byte) {
		t.Helper()
		e, err := p.Evaluate(t.Context(), s, q)
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range e.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			rows, place = append(rows, fmt.Sprint(row)), e.Cursor()
			if len(rows) == n {
				break
			}
		}
		return rows, place
	}
	whole := compile(t, g, pattern.Limits{})
	for _, distinct := range []bool{false, true} {
		q := pattern.Query{Order: order, Distinct: distinct}
		all, _ := read(whole, q, 1<<30)
		if len(all) < 3000 {
			t.Fatalf("only %d rows", len(all))
		}
		small := whole
		if !distinct { // which holds all rows to find duplicates
			small = compile(t, g, pattern.Limits{BufferedRows: 100})
		}
		var paged []string
		for range 4 {
			q.First = 21
			page, place := read(small, q, 20)
			paged, q.After = append(paged, page...), place
			if len(page) != 20 {
				t.Fatalf("a page of %d rows", len(page))
			}
			if len(paged) == 60 {
				break // one more page would need more than 100 rows
			}
		}
		if !slices.Equal(paged, all[:len(paged)]) {
			t.Errorf("distinct %t: got\n%v\nwant\n%v", distinct, paged, all[:len(paged)])
		}
	}
}

// The terms of OneOf are a set, also where an inverse path makes them subjects.
func TestRepeatedTermsAtAnInversePath(t *testing.T) {
	s := library(t, 10)
	inverse, err := path.Parse("^<urn:actor>", nil)
	if err != nil {
		t.Fatal(err)
	}
	film := iri("film", 3)
	for _, among := range []pattern.Node{pattern.Term(film), pattern.OneOf(film, film, kg.String("none")), pattern.OneOf(film, film)} {
		p := compile(t, pattern.Group{Triples: []pattern.Triple{{Subject: pattern.Var("a"), Path: inverse, Object: among}}}, pattern.Limits{})
		e, err := p.Evaluate(t.Context(), s, pattern.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := count(e); n != 2 || err != nil {
			t.Errorf("got %d rows and %v, want 2", n, err)
		}
	}
}
