package valuewalk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"koine/internal/query/valuespace"
	"koine/internal/slowtest"
	"koine/kg"
)

// hidden hides the graph urn:secret from everybody but root.
type hidden struct{}

func (hidden) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return p.ID == "agent://root" || graph.Value() != "urn:secret"
}

// numbers and moments are values of all forms, many equal to others in another one.
func numbers(random *rand.Rand) (list []kg.Term) {
	for _, text := range []string{"0", "-0", "0.0", "-0.0", "5", "5.0", "05", "5.00", "-5.5", "3.14", "03.140", "9007199254740992", "9007199254740993", "9007199254740993.1", "9223372036854775808", "-9223372036854775809", "0.1", "0.10000000000000000001", "1e400", "-1e400", "1E300", "1e-320", "INF", "-INF", "+INF", "NaN", strings.Repeat("9", 400), "-" + strings.Repeat("9", 400), "." + strings.Repeat("3", 400)} {
		for _, datatype := range []string{"integer", "decimal", "double", "float", "int", "unsignedByte"} {
			if t := kg.Typed(text, kg.XSD+datatype); valuespace.Of(t).Kind == valuespace.KindNumber {
				list = append(list, t)
			}
		}
	}
	for range 60 {
		list = append(list, kg.Typed(fmt.Sprintf("%.2f", random.NormFloat64()*10), kg.XSDDecimal), kg.Typed(fmt.Sprintf("%.1f", random.NormFloat64()), kg.XSDDouble), kg.Integer(random.Int64N(20)))
	}
	return list
}

func moments(random *rand.Rand) (list []kg.Term) {
	for _, text := range []string{"2020-01-01", "2020-01-01Z", "2020-01-01+14:00", "-0044-03-15", "123456789-01-01", "-123456789-01-01", "12:00:00", "12:00:00Z", "24:00:00", "2020-01-01T00:00:00", "2020-01-01T00:00:00.0000005Z", "2020-01-01T00:00:00.00000050001Z", "2020-01-01T00:00:00.0000000Z", "2019-12-31T24:00:00Z", "999999999-12-31T23:59:59.999Z", "-999999999-01-01T00:00:00Z", "0001-01-01T00:00:00-14:00"} {
		for _, datatype := range []string{"date", "dateTime", "time", "dateTimeStamp"} {
			if t := kg.Typed(text, kg.XSD+datatype); valuespace.Of(t).Kind == valuespace.KindMoment {
				list = append(list, t)
			}
		}
	}
	for range 60 {
		list = append(list, kg.Typed(fmt.Sprintf("2020-01-%02dT%02d:00:00%+03d:00", 1+random.IntN(5), random.IntN(24), random.IntN(20)-10), kg.XSDDateTime), kg.Typed(fmt.Sprintf("2020-01-%02d", 1+random.IntN(28)), kg.XSDDate))
	}
	return list
}

// properties have numbers, moments, both, also texts and booleans, also resources; foreign has values
// of its own among them.
var properties = []string{"numbers", "moments", "both", "texts", "resources", "foreign"}

func walkedStore(t *testing.T, random *rand.Rand) *kg.Store {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{Governor: kg.Governor{Access: hidden{}}, ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	number, moment := numbers(random), moments(random)
	objects := map[string][]kg.Term{"numbers": number, "moments": moment, "both": slices.Concat(number, moment)}
	objects["texts"] = append(slices.Clone(objects["both"]), kg.String("short"), kg.String("a longer text"), kg.LangString("text", "en"), kg.Boolean(true), kg.Typed("1", kg.XSDBoolean), kg.Typed("five", kg.XSDDecimal), kg.Typed("x", "urn:datatype"))
	objects["resources"] = append(slices.Clone(number), kg.IRI("urn:o"), kg.Blank("b"), kg.Typed("x", "urn:datatype"), kg.Typed("Z", "urn:datatype"))
	for i := range 300 {
		objects["foreign"] = append(objects["foreign"], kg.Typed(fmt.Sprintf("%d.5", i-150), kg.XSDDecimal), kg.Typed(fmt.Sprintf("2020-01-01T00:%02d:%02d+01:00", i%60, i/60), kg.XSDDateTime))
	}
	for range 3 {
		if _, err := store.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://root"}}, func(tx *kg.Tx) error {
			for range 1500 {
				p := properties[random.IntN(len(properties))]
				q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", random.IntN(40))), Predicate: kg.IRI("urn:" + p), Object: objects[p][random.IntN(len(objects[p]))], Graph: []kg.Term{kg.DefaultGraph, kg.IRI("urn:secret"), kg.IRI("urn:g")}[random.IntN(3)]}
				patch := kg.Patch{Op: kg.Add, Quad: q}
				if random.IntN(5) == 0 {
					patch.Op = kg.Remove
				}
				if err := tx.Apply(patch); err != nil && kg.CodeOf(err) != kg.CodeNotFound {
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

// readSorted returns the rows of a predicate in the order of a walk, from a value on.
func readSorted(t *testing.T, s *kg.Snapshot, predicate kg.ID, descending bool, from *valuespace.Value) (rows []Row) {
	t.Helper()
	for row, err := range s.MatchIDs(kg.IDPattern{Predicate: predicate}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Term(row.Object)
		if err != nil {
			t.Fatal(err)
		}
		v := valuespace.Of(o)
		if from == nil || v.Order(*from) == 0 || (v.Order(*from) > 0) != descending {
			rows = append(rows, Row{v, row.IDQuad})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return compareRows(a, b, descending) })
	return rows
}

// A walk in the order of the dictionary returns the statements that sorting all of them returns, in the
// order of their values, however much is read at once.
func TestWalkOfDictionary(t *testing.T) {
	slowtest.WithoutRace(t)
	random := rand.New(rand.NewPCG(1, 2))
	store := walkedStore(t, random)
	const all = 1 << 20
	complete := map[string]int{}
	for _, v := range []kg.View{{Principal: kg.Principal{ID: "agent://root"}}, {Principal: kg.Principal{ID: "agent://ann"}}, {Principal: kg.Principal{ID: "agent://root"}, At: 2}, {Graphs: []kg.Term{kg.IRI("urn:g")}}} {
		s, err := store.View(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 120 {
			property, descending := properties[random.IntN(5)], random.IntN(2) == 0
			predicate, _, err := s.ID(kg.IRI("urn:" + property))
			if err != nil {
				t.Fatal(err)
			}
			var from *valuespace.Value
			if rows := readSorted(t, s, predicate, descending, nil); random.IntN(3) > 0 {
				from = &rows[random.IntN(len(rows))].Value
			}
			walk, err := newWalk(s, predicate, descending, from, bounds{sorted: []int{0, all}[random.IntN(2)], foreign: all, ties: all})
			if err != nil {
				t.Fatal(err)
			}
			if walk == nil {
				continue
			}
			want := readSorted(t, s, predicate, descending, from)
			got := drain(t, walk, from)
			if walk.Complete() {
				complete[fmt.Sprint(property, descending)]++
			}
			if len(got) > len(want) || walk.Complete() && len(got) < len(want) {
				t.Fatalf("%s from %v: %d statements of %d, complete %v", property, from, len(got), len(want), walk.Complete())
			}
			checkOrder(t, got, want[:len(got)])
		}
	}
	for _, p := range []string{"numbersfalse", "numberstrue", "momentsfalse", "momentstrue", "bothfalse", "bothtrue"} {
		if complete[p] < 10 {
			t.Errorf("%s: %d walks were complete", p, complete[p])
		}
	}
}

// drain returns the rows of a walk from a value on: it may begin with others that share its rank.
func drain(t *testing.T, walk *Walk, from *valuespace.Value) (rows []Row) {
	t.Helper()
	for {
		row, more, err := walk.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return rows
		}
		if from == nil || row.Value.Order(*from) == 0 || (row.Value.Order(*from) > 0) != walk.descending {
			rows = append(rows, row)
		}
	}
}

// checkOrder compares rows.
func checkOrder(t *testing.T, got, want []Row) {
	t.Helper()
	for i := range got {
		if got[i].IDQuad != want[i].IDQuad {
			t.Fatalf("statement %d has the value %v, want %v", i, got[i].Value, want[i].Value)
		}
	}
}

// A walk passes at most so many literals of other properties, and sorts at most so many of one rank. It
// is not complete then, and what it returned before is in order.
func TestWalkGivesUp(t *testing.T) {
	store := walkedStore(t, rand.New(rand.NewPCG(3, 4)))
	s, err := store.View(t.Context(), kg.View{Principal: kg.Principal{ID: "agent://root"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	predicate, _, err := s.ID(kg.IRI("urn:numbers"))
	if err != nil {
		t.Fatal(err)
	}
	const all = 1 << 20
	for _, descending := range []bool{false, true} {
		want := readSorted(t, s, predicate, descending, nil)
		run := func(most bounds) bool {
			walk, err := newWalk(s, predicate, descending, nil, most)
			if err != nil {
				t.Fatal(err)
			}
			got := drain(t, walk, nil)
			checkOrder(t, got, want[:len(got)])
			if _, more, err := walk.Next(); more || err != nil {
				t.Errorf("a walk that ended goes on: %v, %v", more, err)
			}
			return walk.Complete()
		}
		for name, with := range map[string]func(n int) bounds{
			"foreign": func(n int) bounds { return bounds{foreign: n, ties: all} },
			"ties":    func(n int) bounds { return bounds{foreign: all, ties: n} },
		} {
			least := sort.Search(all, func(n int) bool { return run(with(n)) })
			if least < 2 || run(with(least-1)) {
				t.Errorf("descending %v: the walk is complete from a bound of %d %s on", descending, least, name)
			}
		}
	}
}
