package search_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/search"
	"koine/kg"
)

func orderOf(hits []search.Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, strings.TrimPrefix(h.Subject.Value(), "urn:"))
	}
	return strings.Join(out, " ")
}

// The newest hits come first, by the newest text that the filter admits.
func TestOrderByTime(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	later := func() { time.Sleep(2 * time.Millisecond) } // times of commits are in milliseconds
	f.apply(text("", "a", "label", "water water"), text("", "b", "label", "water"))
	later()
	f.apply(text("", "c", "label", "water"))
	later()
	f.applyOwn(message("one", "m", "water"))
	later()
	f.apply(asserted(text("", "a", "comment", "water"), "agent://cid", 0.3))
	for _, tt := range []struct {
		filter search.Filter
		want   string
	}{
		{search.Filter{}, "a m c b"},
		{search.Filter{AssertionFilter: search.AssertionFilter{MinCertainty: 0.5}}, "m c"},
		{search.Filter{Predicates: terms("label")}, "c"},
	} {
		page := f.mustSearch("agent://bob", search.Request{Query: "water", Filter: tt.filter, Order: search.ByTime})
		if got := orderOf(page.Hits); !strings.HasPrefix(got, tt.want) {
			t.Errorf("found %q, want %q first", got, tt.want)
		}
		for i := range page.Hits {
			if i > 0 && page.Hits[i].Time.After(page.Hits[i-1].Time) {
				t.Errorf("hit %d is newer than the one before", i)
			}
		}
	}
}

// The order of time has a bound, which the hits that a caller may not read do not reach.
func TestOrderBound(t *testing.T) {
	f := openWith(t, search.Options{Dir: filepath.Join(t.TempDir(), "search"), MaxOrdered: 20})
	defer f.close()
	for i := range 20 {
		f.apply(text("", fmt.Sprint(i), "label", "water"), text("private:ann", fmt.Sprint("own", i), "label", "water"))
	}
	r := search.Request{Query: "water", Order: search.ByTime}
	if page := f.mustSearch("agent://bob", r); len(page.Hits) != 20 {
		t.Errorf("found %d", len(page.Hits))
	}
	if _, err := f.search("agent://ann", r); kg.CodeOf(err) != kg.CodeLimitExceeded || kg.AsError(err).Hint == "" {
		t.Errorf("40 hits are ordered: %v", err)
	}
	f.apply(text("", "more", "label", "water"))
	if _, err := f.search("agent://bob", r); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("21 hits are ordered: %v", err)
	}
}

// Pages of one view have all hits once in either order, while texts with the words come.
func TestPagesOfOneView(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	random := rand.New(rand.NewPCG(3, 3))
	newText := func(i int) kg.Patch {
		return text("", fmt.Sprint("e", i), fmt.Sprint("p", random.IntN(3)), strings.Repeat("water ", 1+random.IntN(4))+strings.Repeat("stone ", random.IntN(9)))
	}
	for i := range 60 {
		f.apply(newText(i % 40))
	}
	if err := f.WaitFor(t.Context(), f.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
	s, err := f.store.View(t.Context(), kg.View{Principal: kg.Principal{ID: "agent://bob"}, At: f.store.Head().Revision})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, order := range []search.Order{search.ByScore, search.ByTime} {
		r := search.Request{Query: "water watr stone", First: 1000, Order: order}
		want, err := f.Search(t.Context(), s, r)
		if err != nil {
			t.Fatal(err)
		}
		var got []search.Hit
		for r.First = 7; ; {
			page, err := f.Search(t.Context(), s, r)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page.Hits...)
			if len(page.Hits) < r.First {
				break
			}
			r.After = &page.Hits[r.First-1].Place
			for range 3 {
				f.apply(newText(1000 + random.IntN(1000)))
			}
			if err := f.WaitFor(t.Context(), f.store.Head().Revision); err != nil {
				t.Fatal(err)
			}
		}
		if orderOf(got) != orderOf(want.Hits) || len(got) < 30 {
			t.Errorf("order %d: pages have\n%s\nand the whole\n%s", order, orderOf(got), orderOf(want.Hits))
		}
	}
}

func TestCount(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	f.apply(text("", "a", "label", "water"), isA("a", "Lake"), isA("a", "Border"), text("g", "b", "label", "water"), text("", "b", "comment", "water here"), isA("b", "Lake"),
		asserted(text("", "c", "label", "water"), "agent://cid", 0.4), text("private:ann", "d", "label", "water"), text("private:ann", "a", "note", "water"))
	f.applyOwn(message("one", "m1", "water"), message("one/0123", "m2", "water"), message("two", "m3", "water"))
	all := []search.FacetKey{search.FacetClass, search.FacetPredicate, search.FacetGraph, search.FacetChannel, search.FacetAuthor}
	for _, tt := range []struct {
		filter search.Filter
		first  int
		want   string
	}{
		{search.Filter{}, 10, "6 true [<urn:Lake>:2 <urn:Border>:1]2 [<urn:koine:vocab:parts>:3 <urn:label>:3 <urn:comment>:1]3 [DEFAULT:3 <urn:g>:1]2 [one:2 two:1]2 [agent://ann:5 agent://cid:1]2 "},
		{search.Filter{}, 1, "6 true [<urn:Lake>:2]2 [<urn:koine:vocab:parts>:3]3 [DEFAULT:3]2 [one:2]2 [agent://ann:5]2 "},
		{search.Filter{Predicates: terms("comment")}, 10, "1 true [<urn:Lake>:1]1 [<urn:comment>:1]1 [DEFAULT:1]1 []0 [agent://ann:1]1 "},
		{search.Filter{AssertionFilter: search.AssertionFilter{Authors: []kg.AgentID{"agent://cid"}}}, 10, "1 true []0 [<urn:label>:1]1 [DEFAULT:1]1 []0 [agent://cid:1]1 "},
	} {
		if got := formatCounts(f.mustCount("agent://bob", search.Request{Query: "water", Filter: tt.filter}, all, tt.first)); got != tt.want {
			t.Errorf("%+v counts\n%s, want\n%s", tt.filter, got, tt.want)
		}
	}
}

func formatCounts(c search.Counts) string {
	var b strings.Builder
	fmt.Fprint(&b, c.Hits, " ", c.Exact, " ")
	for _, facet := range c.Facets {
		var list []string
		for _, v := range facet.Values {
			name := v.Name
			if name == "" {
				name = v.Term.String()
			}
			list = append(list, fmt.Sprint(name, ":", v.Count))
		}
		fmt.Fprintf(&b, "%v%d ", list, facet.Distinct)
	}
	return b.String()
}

func (f *fixture) count(agent kg.AgentID, r search.Request, by []search.FacetKey, values int) (search.Counts, error) {
	f.t.Helper()
	if err := f.WaitFor(f.t.Context(), f.store.Head().Revision); err != nil {
		f.t.Fatal(err)
	}
	s, err := f.store.View(f.t.Context(), kg.View{Principal: kg.Principal{ID: agent}, AllGraphs: true})
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	return f.Count(f.t.Context(), s, r, by, values)
}

func (f *fixture) mustCount(agent kg.AgentID, r search.Request, by []search.FacetKey, values int) search.Counts {
	f.t.Helper()
	c, err := f.count(agent, r, by, values)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func TestCountBounds(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	var patches []kg.Patch
	for i := range search.MaxCounted {
		patches = append(patches, text("", fmt.Sprint(i), "label", "water"))
	}
	f.apply(patches...)
	by := []search.FacetKey{search.FacetPredicate}
	if c := f.mustCount("agent://bob", search.Request{Query: "water"}, by, 1); c.Hits != search.MaxCounted || !c.Exact || c.Facets[0].Values[0].Count != search.MaxCounted {
		t.Errorf("counted %+v", c)
	}
	f.apply(text("", "more", "label", "water"))
	if c := f.mustCount("agent://bob", search.Request{Query: "water"}, by, search.MaxFacetValues); c.Hits != search.MaxCounted || c.Exact || c.Facets[0].Values[0].Count != search.MaxCounted {
		t.Errorf("counted %+v", c)
	}
	for _, tt := range []struct {
		by     []search.FacetKey
		values int
		code   kg.Code
	}{
		{by, 0, kg.CodeInvalid}, {by, search.MaxFacetValues + 1, kg.CodeInvalid}, {slices.Repeat(by, 2), 1, kg.CodeInvalid}, {slices.Repeat(by, 10_000), 1, kg.CodeLimitExceeded},
	} {
		if _, err := f.count("agent://bob", search.Request{Query: "water"}, tt.by, tt.values); kg.CodeOf(err) != tt.code {
			t.Errorf("%d facets of %d values: %v, want %s", len(tt.by), tt.values, err, tt.code)
		}
	}
}

// A search waits for the revision that it must know, and says if it is not reached.
func TestMinRevision(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	f.apply(text("", "a", "label", "water"))
	head := f.store.Head().Revision
	if page := f.mustSearch("agent://bob", search.Request{Query: "water", MinRevision: head}); page.Revision < head {
		t.Errorf("the index knows %d of %d", page.Revision, head)
	}
	s, err := f.store.View(t.Context(), kg.View{Principal: kg.Principal{ID: "agent://bob"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Search(ctx, s, search.Request{Query: "water", First: 1, MinRevision: head + 1}); kg.CodeOf(err) != kg.CodeTimeout {
		t.Errorf("a search for revision %d: %v", head+1, err)
	}
}

func TestMarks(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	f.apply(text("", "a", "label", "Batteries dry in dry air; dryness & <b>driest</b>"), text("", "b", "label", "東京都の水"))
	for query, want := range map[string][]string{
		"dry":         {"Batteries ", "dry", " in ", "dry", " air; dryness & <b>driest</b>"},
		"dry*":        {"Batteries ", "dry", " in ", "dry", " air; ", "dryness", " & <b>driest</b>"},
		"battery air": {"", "Batteries", " dry in dry ", "air", "; dryness & <b>driest</b>"},
		"baterries":   {"", "Batteries", " dry in dry air; dryness & <b>driest</b>"},
		"東京都":         {"", "東京都", "の水"},
	} {
		page := f.mustSearch("agent://bob", search.Request{Query: query})
		if len(page.Hits) != 1 || !reflect.DeepEqual(page.Hits[0].Matches[0].Pieces, want) {
			t.Errorf("%s: %+v, want %q", query, page.Hits, want)
		}
	}
}
