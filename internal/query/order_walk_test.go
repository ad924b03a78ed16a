package query

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// secretGraphs hides graphs under urn:secret: from everybody but root.
type secretGraphs struct{}

func (secretGraphs) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return p.ID == "agent://root" || !strings.HasPrefix(graph.Value(), "urn:secret:")
}

// mixedLiterals are values of all kinds, many equal to others in another form.
func mixedLiterals(random *rand.Rand) []kg.Term {
	list := []kg.Term{kg.Boolean(true), kg.Boolean(false), kg.Typed("1", kg.XSDBoolean), kg.Typed("yes", kg.XSDBoolean), kg.Typed("x", "urn:datatype")}
	for _, text := range []string{"", "a", "ab", "abc", "abcdefg", "abcdefgh", "abcdefz", "b", "ä", "a\x00", strings.Repeat("abcdefgh", 20), strings.Repeat("abcdefgh", 20) + "x", strings.Repeat("abcdefgh", 20) + "y"} {
		list = append(list, kg.String(text), kg.LangString(text, "en"), kg.LangString(text, "de"))
	}
	for _, text := range []string{"0", "-0", "1", "01", "-1", "5", "9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.5", "-1.5", "1e0", "1E300", "INF", "-INF", "NaN", "five"} {
		for _, datatype := range []string{kg.XSDInteger, kg.XSDDouble, kg.XSDDecimal, kg.XSD + "float", kg.XSD + "int"} {
			list = append(list, kg.Typed(text, datatype))
		}
	}
	for _, text := range []string{"2020-01-01", "2020-01-01Z", "2020-01-02", "-0001-01-01", "12020-01-01", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.0Z", "2020-01-01T00:00:00.001Z", "2020-01-01T00:00:00.0015Z", "2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00", "2019-12-31T24:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "never"} {
		list = append(list, kg.Typed(text, kg.XSDDate), kg.Typed(text, kg.XSDDateTime))
	}
	for range 40 {
		list = append(list, kg.Integer(random.Int64N(100)), kg.Double(random.Float64()*100), kg.Integer(int64(random.Uint64())))
	}
	return list
}

// mixedStore is a store in which the properties urn:p0 to urn:p3 have values: few in urn:p0,
// literals of all kinds in urn:p1, also resources in urn:p2, and in urn:p3 those with ids in order.
func mixedStore(t *testing.T, random *rand.Rand, statements int) *kg.Store {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{Governor: kg.Governor{Access: secretGraphs{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	literals := mixedLiterals(random)
	for range 3 {
		if _, err := store.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://root"}}, func(tx *kg.Tx) error {
			for range statements / 3 {
				q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", random.IntN(300))), Predicate: kg.IRI("urn:p1"), Object: literals[random.IntN(len(literals))], Graph: kg.DefaultGraph}
				switch random.IntN(8) {
				case 0:
					q.Predicate = kg.IRI("urn:p0")
				case 1:
					q.Predicate = kg.IRI("urn:p2")
				case 2, 3:
					q.Predicate, q.Object = kg.IRI("urn:p3"), kg.Integer(random.Int64N(20))
				case 4:
					q.Predicate, q.Object = kg.IRI("urn:p2"), kg.IRI(fmt.Sprint("urn:s", random.IntN(300)))
				case 5:
					q.Predicate, q.Object = RDFType, kg.IRI(fmt.Sprint("urn:c", random.IntN(2)))
				}
				if g := random.IntN(4); g < 2 {
					q.Graph = kg.IRI([]string{"urn:secret:g", "urn:g"}[g])
				}
				p := kg.Patch{Op: kg.Add, Quad: q}
				if random.IntN(6) == 0 {
					p.Op = kg.Remove
				}
				if err := tx.Apply(p); err != nil && kg.CodeOf(err) != kg.CodeNotFound {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// eachView calls fn for views of the newest revision and of an older one.
func eachView(t *testing.T, store *kg.Store, fn func(*kg.Snapshot)) {
	t.Helper()
	for _, v := range []kg.View{{Principal: kg.Principal{ID: "agent://root"}}, {Principal: kg.Principal{ID: "agent://ann"}}, {Principal: kg.Principal{ID: "agent://ann"}, At: 2}, {Graphs: []kg.Term{kg.IRI("urn:g")}}} {
		s, err := store.View(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer s.Close()
			fn(s)
		}()
	}
}

// A page that is found by a walk over the values is the one that ranking all entities finds.
func TestWalkedPages(t *testing.T) {
	slowtest.WithoutRace(t)
	random := rand.New(rand.NewPCG(1, 2))
	store := mixedStore(t, random, 1500)
	walked := map[string]int{}
	eachView(t, store, func(s *kg.Snapshot) {
		for range 80 {
			property := kg.IRI(fmt.Sprint("urn:p", random.IntN(4)))
			other := kg.IRI("urn:p1")
			class := kg.IRI("urn:c0")
			order := []EntityOrder{{Property: &property, Direction: []SortDirection{Ascending, Descending}[random.IntN(2)], Nulls: NullsLast}}
			if random.IntN(2) == 0 {
				order = append(order, EntityOrder{Property: &other, Direction: Descending, Nulls: NullsLast})
			}
			var where *EntityFilter
			switch random.IntN(3) {
			case 0:
				where = &EntityFilter{Type: &IRIFilter{Eq: &class}}
			case 1:
				where = &EntityFilter{Property: []PropertyFilter{{Predicate: kg.IRI("urn:p3"), ValueFilter: ValueFilter{Comparisons: Comparisons{Gte: json.RawMessage("9")}}}}}
			}
			c := Compiler{Ctx: t.Context()}
			m, err := c.Entities(where)
			if err != nil {
				t.Fatal(err)
			}
			l := &EntityList{Match: m, First: 1 + random.IntN(8), Total: !m.class.IsZero() && random.IntN(2) == 0}
			if l.Order, err = m.OrderBy(order); err != nil {
				t.Fatal(err)
			}
			var after *kg.ID
			for range 5 {
				want, err := l.rankPage(s, after, l.First)
				if err != nil {
					t.Fatal(err)
				}
				got, found, err := l.walkPage(s, after, l.First, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				if !found {
					break
				}
				walked[fmt.Sprint(property, order[0].Direction)]++
				if !slices.Equal(got.Keys, want.Keys) || got.More != want.More || l.Total && got.Total != want.Total {
					t.Fatalf("%v %+v after %v: a walk found %v, more %v, of %d; ranking %v, more %v, of %d", where, order, after, got.Keys, got.More, got.Total, want.Keys, want.More, want.Total)
				}
				if len(got.Keys) == 0 {
					break
				}
				after = &got.Keys[len(got.Keys)-1]
			}
		}
	})
	for _, p := range []string{"<urn:p0>", "<urn:p1>", "<urn:p3>"} {
		for _, d := range []SortDirection{Ascending, Descending} {
			if walked[p+string(d)] < 10 {
				t.Errorf("%s %s: %d pages were walked", p, d, walked[p+string(d)])
			}
		}
	}
}

// The ranges of a condition cover all values that meet it.
func TestRangesCover(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	store := mixedStore(t, random, 1500)
	raws := []string{`0`, `-0`, `1`, `1.5`, `-1.5`, `50`, `9007199254740992`, `9007199254740993`, `9223372036854775807`, `1e19`, `-1e19`, `1e300`, `true`, `false`, `""`, `"a"`, `"abcdefg"`, `"abcdefgh"`, `"abcdefgg"`, `"b"`, `"2020-01-01"`, `"2020-01-01Z"`, `"2020-01-01T00:00:00.001Z"`, `"2020-01-01T00:00:00.0012Z"`, `"12020-01-01"`, `"-0001-01-01"`, `"0001-01-01T00:00:00Z"`, `"yes"`}
	narrowed := 0
	eachView(t, store, func(s *kg.Snapshot) {
		for range 120 {
			raw := func() json.RawMessage { return json.RawMessage(raws[random.IntN(len(raws))]) }
			f := ValueFilter{}
			switch random.IntN(6) {
			case 0:
				f.Eq = raw()
			case 1:
				f.Gt, f.Lte = raw(), raw()
			case 2:
				f.Gte = raw()
			case 3:
				f.Lt = raw()
			case 4:
				f.In = []json.RawMessage{raw(), raw(), raw()}
			default:
				text := []string{"", "a", "ab", "abcdefg", "abcdefgh", "ä", "zz"}[random.IntN(7)]
				f.StartsWith = &text
			}
			fits, err := matchValue(t.Context(), &f)
			if err != nil {
				t.Fatal(err)
			}
			objects := f.objects()
			predicate := kg.IRI(fmt.Sprint("urn:p", random.IntN(4)))
			start := s.StatementsRead()
			d := accessPath{predicates: []kg.Term{predicate}, fits: fits}
			want, err := d.collectIDs(s)
			if err != nil {
				t.Fatal(err)
			}
			middle := s.StatementsRead()
			d.objects = objects
			got, err := d.collectIDs(s)
			if err != nil {
				t.Fatal(err)
			}
			if s.StatementsRead()-middle < middle-start {
				narrowed++
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s %+v: ranges give %v, all values %v", predicate, f, got, want)
			}
		}
	})
	if narrowed < 100 {
		t.Errorf("%d conditions read less than all values", narrowed)
	}
}

// A page of statements that are read by ranges of their objects is the one that all objects give, in
// either direction, in an order, with its count, and from any cursor.
func TestRangedStatements(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	store := mixedStore(t, random, 1500)
	raws := []string{`0`, `5`, `-1.5`, `true`, `""`, `"abcdefg"`, `"2020-01-01"`, `"2020-01-01T00:00:00.001Z"`}
	pages := 0
	eachView(t, store, func(s *kg.Snapshot) {
		for range 120 {
			predicate := kg.IRI(fmt.Sprint("urn:p", random.IntN(4)))
			f := &StatementFilter{Predicate: &IRIFilter{Eq: &predicate}, Object: &ValueFilter{}}
			from := json.RawMessage(raws[random.IntN(len(raws))])
			if f.Object.Gte = from; random.IntN(3) == 0 {
				f.Object.Gte, f.Object.Lte = nil, from
			}
			if random.IntN(3) == 0 {
				graph := kg.IRI("urn:g")
				f.Graph = &GraphFilter{Eq: &graph}
			}
			m, err := Compiler{Ctx: t.Context()}.Statements(f)
			if err != nil {
				t.Fatal(err)
			}
			ranged := StatementList{Match: m, First: 1 + random.IntN(20), Backward: random.IntN(3) == 0, Total: random.IntN(2) == 0}
			if random.IntN(3) == 0 {
				ranged.Order = OrderStatements([]StatementOrder{{By: ByObject, Direction: Descending}})
			}
			all := ranged
			all.Match.objects = nil
			p, known, err := m.Lookup(s)
			if err != nil || !known {
				t.Fatal(known, err)
			}
			var after *kg.IDQuad
			for range 4 {
				want, err := all.Page(s, p, after)
				if err != nil {
					t.Fatal(err)
				}
				got, err := ranged.Page(s, p, after)
				if err != nil {
					t.Fatal(err)
				}
				var scanned []kg.IDQuad
				for row, err := range ranged.Scan(s, p, after, func(kg.Row) bool { return true }) {
					if scanned = append(scanned, row.IDQuad); err != nil || len(scanned) == len(got.Keys) {
						break
					}
				}
				quads := func(rows []kg.Row) (out []kg.IDQuad) {
					for _, row := range rows {
						out = append(out, row.IDQuad)
					}
					return out
				}
				if !slices.Equal(quads(got.Keys), quads(want.Keys)) || got.More != want.More || all.Total && got.Total != want.Total {
					t.Fatalf("%s %s: ranges give %d of %d, all objects %d of %d", predicate, from, len(got.Keys), got.Total, len(want.Keys), want.Total)
				}
				if !ranged.Backward && !slices.Equal(scanned, quads(want.Keys)) {
					t.Fatalf("%s %s: a scan gives %d statements, a page %d", predicate, from, len(scanned), len(want.Keys))
				}
				if len(got.Keys) == 0 {
					break
				}
				pages++
				if after = &got.Keys[len(got.Keys)-1].IDQuad; ranged.Backward {
					after = &got.Keys[0].IDQuad
				}
			}
		}
	})
	if pages < 200 {
		t.Errorf("%d pages were compared", pages)
	}
}
