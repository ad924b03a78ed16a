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

// valuedStore has properties with values that are mostly in the dictionary: decimals in urn:price,
// times with an offset in urn:at, both with other values and texts in urn:mixed. hidden adds so many
// more decimals and times, in statements that the callers do not see.
func valuedStore(t *testing.T, hidden int) *kg.Store {
	t.Helper()
	store, err := kg.Open(t.TempDir(), kg.Options{Governor: kg.Governor{Access: secretGraphs{}}, ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	random := rand.New(rand.NewPCG(7, 8))
	decimal := func(n int) kg.Term { return kg.Typed(fmt.Sprintf("%d.%02d", n/100, n%100), kg.XSDDecimal) }
	moment := func(n int) kg.Term {
		return kg.Typed(fmt.Sprintf("2020-01-%02dT%02d:%02d:%02d+01:00", 1+n/86400, n/3600%24, n/60%60, n%60), kg.XSDDateTime)
	}
	add := func(fill func(add func(property string, o, graph kg.Term))) {
		t.Helper()
		if _, err := store.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://root"}}, func(tx *kg.Tx) (err error) {
			fill(func(property string, o, graph kg.Term) {
				if err == nil {
					err = tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", random.IntN(2000))), Predicate: kg.IRI("urn:" + property), Object: o, Graph: graph}})
				}
			})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		add(func(add func(property string, o, graph kg.Term)) {
			for range 2500 {
				add("price", decimal(random.IntN(100_000)), kg.DefaultGraph)
				add("at", moment(random.IntN(400_000)), []kg.Term{kg.DefaultGraph, kg.IRI("urn:g")}[random.IntN(2)])
				add("mixed", []kg.Term{decimal(random.IntN(100_000)), moment(random.IntN(100_000)), kg.Integer(random.Int64N(1000)), kg.String(fmt.Sprint("2020-01-02 as a text ", random.IntN(100))), kg.Typed("0500.0", kg.XSDDecimal)}[random.IntN(5)], kg.DefaultGraph)
			}
		})
	}
	for from := 0; from < hidden; from += 4096 {
		add(func(add func(property string, o, graph kg.Term)) {
			for i := from; i < min(hidden, from+4096); i++ {
				add([]string{"price", "at", "other"}[i%3], kg.Typed(fmt.Sprintf("%d.%06d", i%1000, i), kg.XSDDecimal), kg.IRI("urn:secret:many"))
			}
		})
	}
	return store
}

// valueConditions are conditions that few and many of the values meet.
func valueConditions() (list []ValueFilter) {
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	for _, c := range []Comparisons{
		{Eq: raw(`500`)}, {Eq: raw(`500.00`)}, {Eq: raw(`12.25`)}, {Eq: raw(`5e2`)}, {Gte: raw(`500`), Lt: raw(`501`)}, {Gt: raw(`-1`), Lt: raw(`1e3`)}, {Lte: raw(`0`)}, {Gt: raw(`99999`)},
		{Gte: raw(`"2020-01-02T00:00:00+01:00"`), Lt: raw(`"2020-01-02T00:10:00+01:00"`)}, {Gte: raw(`"2020-01-01"`)}, {Eq: raw(`"2020-01-01T23:00:00Z"`)}, {Lt: raw(`"2020-01-01T00:00:00+01:00"`)},
		{In: []json.RawMessage{raw(`500`), raw(`"2020-01-02T00:00:00Z"`), raw(`1.5`), raw(`"2020-01-02 as a text 7"`)}}, {Eq: raw(`true`)},
	} {
		list = append(list, ValueFilter{Comparisons: c})
	}
	return list
}

// A list with a condition on values of the dictionary is the one that reading everything finds, with
// all of these values looked up, and with more of them than are looked up.
func TestValueLists(t *testing.T) {
	slowtest.WithoutRace(t)
	for _, more := range []int{0, kg.MaxPrefixed} {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			store := valuedStore(t, more)
			found := 0
			eachView(t, store, func(s *kg.Snapshot) {
				for _, f := range valueConditions() {
					for _, property := range []string{"price", "at", "mixed"} {
						list := PropertyFilter{Predicate: kg.IRI("urn:" + property), ValueFilter: f}
						found += comparePrefixed(t, s, &EntityFilter{Property: []PropertyFilter{list}}, fmt.Sprintf("%s %s", property, f.Comparisons))
					}
				}
			})
			if found < 300 {
				t.Errorf("%d entities were found", found)
			}
		})
	}
}

// What a caller gets for a condition on values or an order of them, and how many statements are read
// for it, does not depend on values in statements that it may not read.
func TestValuesTellNothingHidden(t *testing.T) {
	answersOf := func(store *kg.Store) (list []string) {
		s, err := store.View(t.Context(), kg.View{Principal: kg.Principal{ID: "agent://ann"}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, property := range []string{"price", "at", "mixed"} {
			for _, f := range valueConditions() {
				m, err := Compiler{Ctx: t.Context()}.Entities(&EntityFilter{Property: []PropertyFilter{{Predicate: kg.IRI("urn:" + property), ValueFilter: f}}})
				if err != nil {
					t.Fatal(err)
				}
				read, scans := s.StatementsRead(), s.Scans()
				g, err := (&EntityList{Match: m, First: 20, Total: true}).Page(s, nil)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, fmt.Sprint(property, f.Comparisons, namesOf(t, s, g.Keys), g.Total, s.StatementsRead()-read, s.Scans()-scans))
			}
		}
		return list
	}
	want := answersOf(valuedStore(t, 0))
	for _, more := range []int{1, 100, kg.MaxPrefixed} {
		for i, got := range answersOf(valuedStore(t, more)) {
			if got != want[i] {
				t.Errorf("beside %d hidden values:\n%s\nwithout:\n%s", more, got, want[i])
			}
		}
	}
}

func namesOf(t *testing.T, s *kg.Snapshot, ids []kg.ID) string {
	t.Helper()
	var names []string
	for _, id := range ids {
		term, err := s.Term(id)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, term.String())
	}
	return strings.Join(names, " ")
}

// A page in the order of values of the dictionary is the one that ranking all entities finds, in both
// directions and from each cursor. Texts are before numbers in a descending order, which is ranked.
func TestWalkedValues(t *testing.T) {
	slowtest.WithoutRace(t)
	store := valuedStore(t, 100)
	walked := map[string]int{}
	eachView(t, store, func(s *kg.Snapshot) {
		for _, property := range []string{"price", "at", "mixed"} {
			for _, direction := range []SortDirection{Ascending, Descending} {
				predicate := kg.IRI("urn:" + property)
				m, err := Compiler{Ctx: t.Context()}.Entities(&EntityFilter{Property: []PropertyFilter{{Predicate: predicate}}})
				if err != nil {
					t.Fatal(err)
				}
				l := &EntityList{Match: m, First: 7}
				if l.Order, err = m.OrderBy([]EntityOrder{{Property: &predicate, Direction: direction, Nulls: NullsLast}}); err != nil {
					t.Fatal(err)
				}
				var after *kg.ID
				for range 8 {
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
					walked[property+string(direction)]++
					if !slices.Equal(got.Keys, want.Keys) || got.More != want.More {
						t.Fatalf("%s %s after %v: a walk found %v, ranking %v", property, direction, after, got.Keys, want.Keys)
					}
					if len(got.Keys) == 0 {
						break
					}
					after = &got.Keys[len(got.Keys)-1]
				}
			}
		}
	})
	for _, name := range []string{"priceASC", "priceDESC", "atASC", "atDESC", "mixedASC"} {
		if walked[name] < 16 {
			t.Errorf("%s: %d pages were walked", name, walked[name])
		}
	}
}
