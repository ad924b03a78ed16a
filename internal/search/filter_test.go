package search_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels/channel"
	"koine/internal/query"
	"koine/internal/query/pattern"
	"koine/internal/search"
	"koine/kg"
)

// search returns the page of a request of an agent, at the head.
func (f *fixture) search(agent kg.AgentID, r search.Request) (search.Page, error) {
	f.t.Helper()
	if err := f.WaitFor(f.t.Context(), f.store.Head().Revision); err != nil {
		f.t.Fatal(err)
	}
	s, err := f.store.View(f.t.Context(), kg.View{Principal: kg.Principal{ID: agent}, AllGraphs: true})
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	if r.First == 0 {
		r.First = 100
	}
	return f.Search(f.t.Context(), s, r)
}

func (f *fixture) mustSearch(agent kg.AgentID, r search.Request) search.Page {
	f.t.Helper()
	page, err := f.search(agent, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return page
}

func namesOf(page search.Page) string {
	var out []string
	for _, h := range page.Hits {
		out = append(out, strings.TrimPrefix(h.Subject.Value(), "urn:"))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// applyOwn adds statements to graphs of koine's own.
func (f *fixture) applyOwn(quads ...kg.Quad) {
	f.t.Helper()
	if _, err := f.store.Update(f.t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, func(tx *kg.Tx) error {
		for _, q := range quads {
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q, Source: "agent://ann"}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

// asserted is a text with its source and certainty.
func asserted(p kg.Patch, by kg.AgentID, certainty float64) kg.Patch {
	p.Source, p.Certainty, p.HasCertainty = by, certainty, true
	return p
}

func isA(subject, class string) kg.Patch {
	return kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:" + subject), Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("urn:" + class), Graph: kg.DefaultGraph}}
}

func related(graph, subject, predicate, object string) kg.Patch {
	p := text(graph, subject, predicate, "")
	p.Quad.Object = kg.IRI("urn:" + object)
	return p
}

var builtin, _ = kg.NewPrefixes(nil)

// nextTo is the condition that an entity is the object of a statement with the predicate.
func nextTo(predicate string) *search.MatchFilter {
	object := "?hit"
	return &search.MatchFilter{Var: "hit", Compiler: query.Compiler{Prefixes: builtin}, Pattern: &query.PatternInput{Triples: []query.TriplePattern{{S: "?x", P: "<urn:" + predicate + ">", O: &object}}}}
}

func message(channel, id, parts string) kg.Quad {
	return kg.Quad{Subject: kg.IRI("urn:" + id), Predicate: kg.Parts, Object: kg.Typed(`[{"text":"`+parts+`"}]`, kg.RDF+"JSON"), Graph: kg.IRI(kg.JournalGraphPrefix + "messages:" + channel)}
}

func TestFilters(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	f.apply(text("", "a", "label", "water"), isA("a", "Lake"), related("", "x", "near", "a"))
	time.Sleep(2 * time.Millisecond) // times of commits are in milliseconds
	f.apply(text("", "b", "label", "water"), text("g", "b", "comment", "much water and more"), isA("b", "River"), isA("b", "Border"),
		asserted(text("", "c", "comment", "water"), "agent://cid", 0.4), asserted(text("", "c", "comment", "water"), "agent://dan", 0.9))
	times := f.mustSearch("agent://bob", search.Request{Query: "water"})
	f.applyOwn(message("one", "m1", "water"), message("one/0123", "m2", "water"), message("two", "m3", "water"))
	all := f.mustSearch("agent://bob", search.Request{Query: "water"})
	if got := namesOf(all); got != "a b c m1 m2 m3" || namesOf(times) != "a b c" {
		t.Fatalf("found %q", got)
	}
	second := f.recordedAt("c", "comment", "water")
	for name, tt := range map[string]struct {
		filter search.Filter
		want   string
	}{
		"no condition":           {search.Filter{}, "a b c m1 m2 m3"},
		"a class":                {search.Filter{Classes: terms("Lake")}, "a"},
		"one of two classes":     {search.Filter{Classes: terms("Border", "Lake")}, "a b"},
		"no class":               {search.Filter{Classes: []kg.Term{}}, ""},
		"unknown class":          {search.Filter{Classes: terms("Sea")}, ""},
		"a predicate":            {search.Filter{Predicates: terms("comment")}, "b c"},
		"a graph":                {search.Filter{Graphs: terms("g")}, "b"},
		"the default graph":      {search.Filter{Graphs: []kg.Term{kg.DefaultGraph}}, "a b c"},
		"another graph":          {search.Filter{Graphs: terms("h")}, ""},
		"graph and predicate":    {search.Filter{Graphs: terms("g"), Predicates: terms("label")}, ""},
		"a channel":              {search.Filter{Channels: []channel.ID{"one"}}, "m1 m2"},
		"two channels":           {search.Filter{Channels: []channel.ID{"one", "two"}}, "m1 m2 m3"},
		"another channel":        {search.Filter{Channels: []channel.ID{"on"}}, ""},
		"an author":              {search.Filter{AssertionFilter: search.AssertionFilter{Authors: []kg.AgentID{"agent://cid"}}}, "c"},
		"another author":         {search.Filter{AssertionFilter: search.AssertionFilter{Authors: []kg.AgentID{"agent://ann"}}}, "a b m1 m2 m3"},
		"certainty":              {search.Filter{AssertionFilter: search.AssertionFilter{MinCertainty: 0.95}}, "a b m1 m2 m3"},
		"certainty at the bound": {search.Filter{AssertionFilter: search.AssertionFilter{MinCertainty: 0.9}}, "a b c m1 m2 m3"},
		"certainty of an author": {search.Filter{AssertionFilter: search.AssertionFilter{MinCertainty: 0.5, Authors: []kg.AgentID{"agent://cid"}}}, ""},
		"since":                  {search.Filter{AssertionFilter: search.AssertionFilter{Recorded: kg.TimeSpan{From: second}}}, "b c m1 m2 m3"},
		"until":                  {search.Filter{AssertionFilter: search.AssertionFilter{Recorded: kg.TimeSpan{Until: second}}}, "a"},
		"match":                  {search.Filter{Match: nextTo("near")}, "a"},
		"match and class":        {search.Filter{Match: nextTo("near"), Classes: terms("River")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			page := f.mustSearch("agent://bob", search.Request{Query: "water", Filter: tt.filter})
			if got := namesOf(page); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
			wantScoresOf(t, all, page)
		})
	}
	// An unwanted word counts in texts that the filter leaves out.
	if got := namesOf(f.mustSearch("agent://bob", search.Request{Query: "water -much", Filter: search.Filter{Predicates: terms("label")}})); got != "a" {
		t.Errorf("found %q, want a", got)
	}
}

func terms(names ...string) (out []kg.Term) {
	for _, n := range names {
		out = append(out, kg.IRI("urn:"+n))
	}
	return out
}

// recordedAt returns when a text was first asserted.
func (f *fixture) recordedAt(subject, predicate, value string) time.Time {
	f.t.Helper()
	s, err := f.store.View(f.t.Context(), kg.View{Principal: kg.SystemPrincipal()})
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	for st, err := range s.Match(kg.Pattern(text("", subject, predicate, value).Quad)) {
		if err != nil {
			f.t.Fatal(err)
		}
		return st.Assertions[0].Time
	}
	f.t.Fatalf("%s has no %s %q", subject, predicate, value)
	return time.Time{}
}

// wantScoresOf checks that hits with all their texts have the scores that they have without a
// filter.
func wantScoresOf(t *testing.T, all, filtered search.Page) {
	t.Helper()
	without := map[kg.Term]search.Hit{}
	for _, h := range all.Hits {
		without[h.Subject] = h
	}
	for _, h := range filtered.Hits {
		if want := without[h.Subject]; len(h.Matches) == len(want.Matches) && h.Score != want.Score {
			t.Errorf("%s has score %v, without the filter %v", h.Subject, h.Score, want.Score)
		}
	}
}

func TestFilterBounds(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	f.apply(text("", "a", "label", "water"))
	many := func(n int) (out []kg.Term) {
		for i := range n {
			out = append(out, kg.IRI(fmt.Sprint("urn:", i)))
		}
		return out
	}
	when := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		filter search.Filter
		code   kg.Code
		field  string
	}{
		{search.Filter{Classes: many(search.MaxFilterValues)}, "", ""},
		{search.Filter{Classes: many(search.MaxFilterValues + 1)}, kg.CodeLimitExceeded, "filter.classes"},
		{search.Filter{Predicates: many(search.MaxFilterValues + 1)}, kg.CodeLimitExceeded, "filter.predicates"},
		{search.Filter{Graphs: many(search.MaxFilterValues + 1)}, kg.CodeLimitExceeded, "filter.graphs"},
		{search.Filter{Channels: make([]channel.ID, search.MaxFilterValues+1)}, kg.CodeLimitExceeded, "filter.channelIds"},
		{search.Filter{AssertionFilter: search.AssertionFilter{Authors: make([]kg.AgentID, search.MaxFilterValues+1)}}, kg.CodeLimitExceeded, "filter.authorIds"},
		{search.Filter{AssertionFilter: search.AssertionFilter{MinCertainty: 1}}, "", ""},
		{search.Filter{AssertionFilter: search.AssertionFilter{MinCertainty: 1.01}}, kg.CodeInvalid, "filter.minCertainty"},
		{search.Filter{AssertionFilter: search.AssertionFilter{MinCertainty: math.NaN()}}, kg.CodeInvalid, "filter.minCertainty"},
		{search.Filter{AssertionFilter: search.AssertionFilter{Recorded: kg.TimeSpan{From: when, Until: when}}}, "", ""},
		{search.Filter{AssertionFilter: search.AssertionFilter{Recorded: kg.TimeSpan{From: when, Until: when.Add(-1)}}}, kg.CodeInvalid, "filter.until"},
		{search.Filter{Match: &search.MatchFilter{Var: "hat", Compiler: nextTo("near").Compiler, Pattern: nextTo("near").Pattern}}, kg.CodeInvalid, "filter.match.var"},
		{search.Filter{Match: &search.MatchFilter{Var: "hit", Compiler: nextTo("near").Compiler, Pattern: &query.PatternInput{Triples: []query.TriplePattern{{S: "?hit", P: "not an iri"}}}}}, kg.CodeInvalid, "filter.match.pattern.triples[0]"},
	} {
		_, err := f.search("agent://bob", search.Request{Query: "water", Filter: tt.filter})
		if code := kg.CodeOf(err); code != tt.code {
			t.Errorf("%+v: error %v, want code %q", tt.filter, err, tt.code)
		} else if err != nil && !strings.HasPrefix(kg.AsError(err).Field, tt.field) {
			t.Errorf("error %v is at %q, want %q", err, kg.AsError(err).Field, tt.field)
		}
	}
}

// A pattern that is asked for many entities is solved once, with the same answer.
func TestMatchOfManyHits(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	var patches []kg.Patch
	for i := range 1200 {
		patches = append(patches, text("", fmt.Sprintf("e%04d", i), "label", "water"))
		if i%10 == 0 {
			patches = append(patches, related("", "x", "near", fmt.Sprintf("e%04d", i)))
		}
	}
	f.apply(patches...)
	page := f.mustSearch("agent://bob", search.Request{Query: "water", First: search.MaxFirst, Filter: search.Filter{Match: nextTo("near")}})
	if len(page.Hits) != 120 {
		t.Fatalf("found %d entities, want 120", len(page.Hits))
	}
	for _, h := range page.Hits {
		if !strings.HasSuffix(h.Subject.Value(), "0") {
			t.Errorf("found %s", h.Subject)
		}
	}
}

// Statements that an agent may not read change no byte of its answers: with filters, in either
// order, in facets and counts.
func TestOthersChangeNoAnswer(t *testing.T) {
	both, own := open(t, t.TempDir()), open(t, t.TempDir())
	defer both.close()
	defer own.close()
	random := rand.New(rand.NewPCG(2, 2))
	vocabulary := strings.Fields("client server http answer log request crystal water")
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	now := time.Now()
	for range 200 {
		now = now.Add(time.Duration(random.IntN(3)) * time.Second)
		at := now
		both.now.Store(&at)
		own.now.Store(&at)
		subject, graph := fmt.Sprint(random.IntN(12)), pick("", "private:ann", "g")
		p := text(graph, subject, pick("p0", "p1"), pick(vocabulary...)+" "+pick(vocabulary...))
		switch random.IntN(4) {
		case 0:
			p.Quad.Predicate, p.Quad.Object = kg.IRI(kg.RDFType), kg.IRI("urn:"+pick("A", "B", "C"))
		case 1:
			p = related(graph, fmt.Sprint(random.IntN(12)), "near", subject)
		}
		if channel := pick("lab", "urn:private:ann", "urn:private:bob", "", "", ""); channel != "" {
			m := message(channel, fmt.Sprintf("m%d-%d", now.Unix(), random.IntN(9)), p.Quad.Object.Value())
			for _, f := range []*fixture{both, own} {
				if f == both || channel != "urn:private:ann" {
					f.applyOwn(m)
				}
			}
		}
		p = asserted(p, kg.AgentID("agent://"+pick("ann", "cid", "dan")), float64(random.IntN(10))/10)
		both.apply(p)
		if graph != "private:ann" {
			own.apply(p)
		}
	}
	both.apply(text("private:ann", "x", "p0", strings.Repeat("client water requests ", 1000)))
	filters := map[string]search.Filter{
		"none": {}, "class": {Classes: terms("A")}, "predicate": {Predicates: terms("p0")}, "graph": {Graphs: terms("g", "private:ann")},
		"author": {AssertionFilter: search.AssertionFilter{Authors: []kg.AgentID{"agent://ann"}}}, "certainty": {AssertionFilter: search.AssertionFilter{MinCertainty: 0.5}},
		"channel": {Channels: []channel.ID{"lab", "urn:private:ann"}},
		"time":    {AssertionFilter: search.AssertionFilter{Recorded: kg.TimeSpan{From: now.Add(-60 * time.Second)}}}, "match": {Match: nextTo("near")},
	}
	answer := func(f *fixture, r search.Request) string {
		hits := f.mustSearch("agent://bob", r).Hits
		for i := range hits {
			hits[i].Place.Subject.ID = kg.ID{} // ids are given in the order of commits
		}
		counts := f.mustCount("agent://bob", r, []search.FacetKey{search.FacetClass, search.FacetPredicate, search.FacetGraph, search.FacetChannel, search.FacetAuthor}, 2)
		text, err := json.Marshal([]any{hits, counts})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, filter := range filters {
		for _, q := range []string{"client", "http answer", "wat*", "requst", "water -log"} {
			for _, order := range []search.Order{search.ByScore, search.ByTime} {
				r := search.Request{Query: q, Filter: filter, Order: order}
				got, want := answer(both, r), answer(own, r)
				if got != want {
					t.Errorf("%s, %s, order %d: the answer is\n%.2000s\nand without Ann's statements\n%.2000s", name, q, order, got, want)
				}
			}
		}
	}
}

// writingSource is a source that is found only after another commit is in the index.
type writingSource struct {
	pattern.TextSource
	write func()
}

func (s writingSource) Find(ctx context.Context, snapshot *kg.Snapshot, u pattern.TextUse) (pattern.TextHits, error) {
	s.write()
	return s.TextSource.Find(ctx, snapshot, u)
}

// The texts of a filter's pattern are searched before the search that it belongs to: within that
// search nothing can be added to the index, and a search that waits for it never ends.
func TestMatchWithText(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	f.apply(text("", "a", "label", "water"), text("", "b", "label", "water"), text("", "b", "comment", "deep"), text("", "c", "comment", "deep"))
	found := 0
	match := &search.MatchFilter{Var: "hit", Pattern: &query.PatternInput{Text: []query.TextPattern{{Var: "hit", Query: "deep"}}}, Compiler: query.Compiler{
		Prefixes: builtin,
		Texts: func(words string, predicates []kg.Term) (pattern.TextSource, error) {
			source, err := f.Source(words, search.Filter{Predicates: predicates}, false)
			return writingSource{source, func() {
				found++
				f.apply(text("", fmt.Sprint("x", found), "label", "lake"))
				wait, cancel := context.WithTimeout(t.Context(), search.MaxWait)
				defer cancel()
				if err := f.WaitFor(wait, f.store.Head().Revision); err != nil {
					t.Errorf("the index does not follow: %v", err)
				}
			}}, err
		},
	}}
	if got := namesOf(f.mustSearch("agent://bob", search.Request{Query: "water", Filter: search.Filter{Match: match}})); got != "b" || found != 1 {
		t.Errorf("found %q after %d searches of the filter, want b after one", got, found)
	}
}
