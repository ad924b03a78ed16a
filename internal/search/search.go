package search

import (
	"cmp"
	"context"

	"koine/internal/textindex"
	"koine/kg"
)

// MaxFirst bounds the hits of one page.
const MaxFirst = 1000

// Request is a search.
type Request struct {
	// Query has words, "phrases", beginnings* and -unwanted words: see textindex.ParseQuery.
	Query string
	// First is how many hits are wanted, 1 to MaxFirst.
	First int
	// After is the place of the last hit of the page before, nil for the first page.
	After *textindex.Place
}

// Page is a part of the hits of a search.
type Page struct {
	Hits []Hit
	// Revision is the newest that the index knows. What came later may be missing.
	Revision kg.Revision
	// Building means that the index is being built, and that hits may be missing.
	Building bool
}

// Hit is an entity or a message with words of the query.
type Hit struct {
	textindex.Place
	Matches []Match // the best first
}

// Match is a statement whose text has words of the query, with its part of the score.
type Match struct {
	Row   kg.IDQuad
	Score float64
}

// Search returns hits that the snapshot shows. Messages are among them if its view has
// AllGraphs.
func (s *Service) Search(ctx context.Context, snapshot *kg.Snapshot, r Request) (Page, error) {
	if r.First < 1 || r.First > MaxFirst {
		return Page{}, kg.Errorf(kg.CodeInvalid, "first is %d; it must be from 1 to %d", r.First, MaxFirst)
	}
	query, err := textindex.ParseQuery(r.Query)
	if err != nil {
		return Page{}, err
	}
	var page Page
	page.Revision, page.Building = s.Revision()
	var failed error
	found, err := s.index.Search(ctx, &textindex.Request{
		Query: query, First: r.First, After: r.After,
		Readable: func(graph, predicate kg.ID) bool {
			admitted, err := snapshot.Admits(predicate, graph)
			if err != nil {
				failed = err
			}
			return admitted
		},
		Shown: func(subject kg.ID, text textindex.Ref) (bool, error) {
			for _, err := range snapshot.MatchIDs(kg.IDPattern(rowOf(subject, text)), nil) {
				return err == nil, err
			}
			return false, nil
		},
	})
	if err != nil || failed != nil {
		return Page{}, cmp.Or(err, failed)
	}
	for _, f := range found {
		hit := Hit{Place: f.Place}
		for _, m := range f.Texts {
			hit.Matches = append(hit.Matches, Match{Row: rowOf(f.Subject.ID, m.Ref), Score: m.Score})
		}
		page.Hits = append(page.Hits, hit)
	}
	return page, nil
}

func rowOf(subject kg.ID, text textindex.Ref) kg.IDQuad {
	return kg.IDQuad{Subject: subject, Predicate: text.Predicate, Object: text.Object, Graph: text.Graph}
}
