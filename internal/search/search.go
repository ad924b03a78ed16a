package search

import (
	"cmp"
	"context"
	"slices"
	"time"

	"koine/internal/textindex"
	"koine/kg"
)

// MaxFirst bounds the hits of one page.
const MaxFirst = 1000

// Place is the place of a hit in the order of a search.
type Place = textindex.Place

// Request is a search.
type Request struct {
	// Query has words, "phrases", beginnings* and -unwanted words: see textindex.ParseQuery.
	Query string
	// First is how many hits are wanted, 1 to MaxFirst.
	First int
	// After is the place of the last hit of the page before, nil for the first page.
	After *Place
	// Filter chooses among the hits.
	Filter Filter
}

// Page is a part of the hits of a search.
type Page struct {
	Hits []Hit
	// Revision is the newest that the index knows. Later texts may be missing.
	Revision kg.Revision
	// Building means that the index is being built, and that hits may be missing.
	Building bool
}

// Hit is an entity or a message with words of the query.
type Hit struct {
	Place
	Subject kg.Term
	Matches []Match // the best first, at most MaxMatches
}

// MaxMatches bounds the matches of a hit.
const MaxMatches = 10

// Match is a statement with words of the query in its text.
type Match struct {
	Graph, Predicate kg.Term
	// Text is the part of the text with the first words of the query, at most
	// MaxExcerptBytes.
	Text string
}

// MaxCatchUp bounds the time that Search waits for an index that is behind the snapshot.
const MaxCatchUp = time.Second

// Search returns hits that the snapshot shows. Messages are among them if its view has
// AllGraphs. It waits a short time for the index, so that a caller finds its own
// writes; Page.Revision tells if that was not enough.
func (s *Service) Search(ctx context.Context, snapshot *kg.Snapshot, r Request) (Page, error) {
	if r.First < 1 || r.First > MaxFirst {
		return Page{}, kg.Errorf(kg.CodeInvalid, "first is %d; it must be from 1 to %d", r.First, MaxFirst)
	}
	query, err := textindex.ParseQuery(r.Query)
	if err != nil {
		return Page{}, err
	}
	filter, err := r.Filter.compile(ctx, snapshot)
	if err != nil {
		return Page{}, kg.AsError(err).At("filter")
	}
	if _, building := s.Revision(); !building {
		wait, cancel := context.WithTimeout(ctx, MaxCatchUp)
		err := s.WaitFor(wait, snapshot.Revision())
		cancel()
		if err != nil && ctx.Err() != nil {
			return Page{}, ctx.Err()
		}
	}
	var page Page
	page.Revision, page.Building = s.Revision()
	admitted := kg.Admitted(snapshot)
	var failed error
	found, err := s.index.Search(ctx, &textindex.Request{
		Query: query, First: r.First, After: r.After,
		Readable: func(graph, predicate kg.ID) bool {
			may, err := admitted(predicate, graph)
			if err != nil {
				failed = err
			}
			return may
		},
		Shown: func(subject kg.ID, text textindex.Ref) (bool, error) {
			for _, err := range snapshot.MatchIDs(kg.IDPattern(rowOf(subject, text)), nil) {
				return err == nil, err
			}
			return false, nil
		},
		Filter: filter.ofTexts(&failed),
	})
	if err != nil || failed != nil {
		return Page{}, cmp.Or(err, failed)
	}
	for _, f := range found {
		hit, err := readHit(snapshot, query, &f)
		if err != nil {
			return Page{}, err
		}
		page.Hits = append(page.Hits, hit)
	}
	return page, nil
}

// readHit reads the terms of a hit.
func readHit(snapshot *kg.Snapshot, query *textindex.Query, f *textindex.Hit) (hit Hit, err error) {
	hit.Place = f.Place
	if hit.Subject, err = snapshot.Term(f.Place.Subject.ID); err != nil {
		return hit, err
	}
	quads, err := bestTexts(snapshot, f)
	if err != nil {
		return hit, err
	}
	for i := range quads {
		q := &quads[i]
		text, language, _ := textOf(q)
		hit.Matches = append(hit.Matches, Match{Graph: q.Graph, Predicate: q.Predicate, Text: excerptOf(text, language, query)})
	}
	return hit, nil
}

// bestTexts returns the statements of the best texts of a hit, at most MaxMatches. Those with
// the same score are in the order of their terms: that of ids would tell of other statements,
// which had terms first.
func bestTexts(snapshot *kg.Snapshot, f *textindex.Hit) ([]kg.Quad, error) {
	n := len(f.Texts)
	if n > MaxMatches {
		for n = MaxMatches; n < len(f.Texts) && f.Texts[n].Score == f.Texts[n-1].Score; {
			n++
		}
	}
	type scored struct {
		kg.Quad
		score float64
	}
	list := make([]scored, n)
	for i, m := range f.Texts[:n] {
		q, err := snapshot.Quad(kg.Row{IDQuad: rowOf(f.Place.Subject.ID, m.Ref)})
		if err != nil {
			return nil, err
		}
		list[i] = scored{q, m.Score}
	}
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), a.Predicate.Compare(b.Predicate), a.Object.Compare(b.Object), a.Graph.Compare(b.Graph))
	})
	out := make([]kg.Quad, min(n, MaxMatches))
	for i := range out {
		out[i] = list[i].Quad
	}
	return out, nil
}

func rowOf(subject kg.ID, text textindex.Ref) kg.IDQuad {
	return kg.IDQuad{Subject: subject, Predicate: text.Predicate, Object: text.Object, Graph: text.Graph}
}
