package graph

import (
	"cmp"
	"context"
	"slices"

	"koine/graph/internal/views"
	"koine/graph/limit"
	"koine/kg"
	"koine/kg/base"
)

// Vocabulary is the vocabulary of the statements in a view.
type Vocabulary struct {
	snapshot *kg.Snapshot
	view     kg.View
}

func readVocabulary(ctx context.Context, view *views.ViewInput) (*Vocabulary, error) {
	v, err := runOf(ctx).fieldView(view)
	if err != nil {
		return nil, err
	}
	s, err := runOf(ctx).openSnapshot(ctx, v)
	if err != nil {
		return nil, err
	}
	return &Vocabulary{s, v}, nil
}

// Prefixes lists the registered prefixes.
func (v *Vocabulary) Prefixes(ctx context.Context) []base.Prefix {
	return runOf(ctx).engine.deps.Prefixes.All()
}

// Schemes lists the URI schemes that are allowed in addition to the built-in
// ones.
func (v *Vocabulary) Schemes(ctx context.Context) []string {
	return runOf(ctx).engine.deps.Store.KeptSchemes()
}

// Classes lists the classes in use, the most frequent first.
func (v *Vocabulary) Classes(ctx context.Context, first *int) ([]TermCount, error) {
	return v.termCounts(ctx, v.snapshot.Classes, first)
}

// Predicates lists the predicates in use, the most frequent first.
func (v *Vocabulary) Predicates(ctx context.Context, first *int) ([]TermCount, error) {
	return v.termCounts(ctx, v.snapshot.Predicates, first)
}

// Graphs lists the graphs that hold statements, the greatest first.
func (v *Vocabulary) Graphs(ctx context.Context, first *int) ([]GraphCount, error) {
	list, err := greatestCounts(ctx, v.snapshot.Graphs, first)
	out := make([]GraphCount, len(list))
	for i, c := range list {
		out[i].Count = int64(c.Count)
		if c.Term != kg.DefaultGraph {
			out[i].Graph = &list[i].Term
		}
	}
	return out, err
}

func (v *Vocabulary) termCounts(ctx context.Context, count func() ([]kg.TermCount, error), first *int) ([]TermCount, error) {
	list, err := greatestCounts(ctx, count, first)
	out := make([]TermCount, len(list))
	of := &termList{list, v.snapshot, v.view}
	for i, c := range list {
		out[i] = TermCount{Iri: c.Term, Count: int64(c.Count), list: of, index: i}
	}
	return out, err
}

// greatestCounts returns the first counts of a list, the greatest first.
func greatestCounts(ctx context.Context, count func() ([]kg.TermCount, error), first *int) ([]kg.TermCount, error) {
	n, err := runOf(ctx).engine.limits.CheckFirst(first, limit.DefaultVocabularySize)
	if err != nil {
		return nil, err
	}
	list, err := count()
	slices.SortFunc(list, func(a, b kg.TermCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.Term.Compare(b.Term))
	})
	return list[:min(n, len(list))], err
}

// Stats has the counts of a view.
type Stats struct{ snapshot *kg.Snapshot }

func readStats(ctx context.Context, view *views.ViewInput) (*Stats, error) {
	s, err := openView(ctx, view)
	if err != nil {
		return nil, err
	}
	return &Stats{s}, nil
}

// Revision is the counted revision.
func (s *Stats) Revision() kg.Revision { return s.snapshot.Revision() }

// Position is the position after that revision.
func (s *Stats) Position(ctx context.Context) Position {
	return Position(runOf(ctx).engine.deps.Store.FormatPosition(s.snapshot.Position()))
}

// Statements counts statements, once for each graph that holds them.
func (s *Stats) Statements() (int64, error) {
	n, err := s.snapshot.Count(kg.Pattern{})
	return int64(n), err
}

// Graphs counts the graphs that hold statements.
func (s *Stats) Graphs() (int64, error) { return countOf(s.snapshot.Graphs) }

// Predicates counts the predicates in use.
func (s *Stats) Predicates() (int64, error) { return countOf(s.snapshot.Predicates) }

// Classes counts the classes in use.
func (s *Stats) Classes() (int64, error) { return countOf(s.snapshot.Classes) }

func countOf(list func() ([]kg.TermCount, error)) (int64, error) {
	l, err := list()
	return int64(len(l)), err
}

// readRevision answers Query.revision.
func readRevision(ctx context.Context) (*kg.Revision, error) {
	s, err := openView(ctx, nil)
	if err != nil {
		return nil, err
	}
	r := s.Revision()
	return &r, nil
}
