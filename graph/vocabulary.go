package graph

import (
	"context"
	"fmt"
	"math"
	"strings"

	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/graph/limit"
	kgnames "koine/internal/names"
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
func (v *Vocabulary) Classes(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*TermCountConnection, error) {
	return v.pageOfTerms(ctx, "vocabulary.classes", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, v.snapshot.Classes)
}

// Predicates lists the predicates in use, the most frequent first.
func (v *Vocabulary) Predicates(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*TermCountConnection, error) {
	return v.pageOfTerms(ctx, "vocabulary.predicates", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, v.snapshot.Predicates)
}

// Graphs lists the graphs that hold statements, the greatest first.
func (v *Vocabulary) Graphs(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*GraphCountConnection, error) {
	return pageOfCounts(ctx, "vocabulary.graphs", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, v.snapshot.Graphs, func(c *kg.TermCount) GraphCount {
		if c.Term == kg.DefaultGraph {
			return GraphCount{Count: int64(c.Count)}
		}
		return GraphCount{Graph: &c.Term, Count: int64(c.Count)}
	})
}

// pageOfTerms returns a page of counts of classes or predicates.
func (v *Vocabulary) pageOfTerms(ctx context.Context, list string, a knowledge.PageArgs, count func() ([]kg.TermCount, error)) (*TermCountConnection, error) {
	page, err := pageOfCounts(ctx, list, a, count, func(c *kg.TermCount) knowledge.TermCount {
		return knowledge.TermCount{Iri: c.Term, Count: int64(c.Count)}
	})
	if err != nil {
		return nil, err
	}
	of := &knowledge.TermList{Terms: make([]kg.TermCount, len(page.nodes)), Snapshot: v.snapshot, View: v.view}
	for i := range page.nodes {
		n := &page.nodes[i]
		of.Terms[i] = kg.TermCount{Term: n.Iri, Count: uint64(n.Count)}
		n.List, n.Index = of, i
	}
	return page, nil
}

// pageOfCounts returns a page of counts, the greatest first.
func pageOfCounts[N any](ctx context.Context, list string, a knowledge.PageArgs, count func() ([]kg.TermCount, error), node func(*kg.TermCount) N) (*listPage[N], error) {
	p, err := runOf(ctx).openRange(list, a, limit.DefaultListSize, math.MaxInt)
	if err != nil {
		return nil, err
	}
	counts, err := count()
	if err != nil {
		return nil, err
	}
	key := func(c *kg.TermCount) string { return fmt.Sprintf("%020d %s", math.MaxUint64-c.Count, c.Term) }
	return pageOfSlice(p, counts, key, node), nil
}

// Stats has the counts of a view.
type Stats struct{ snapshot *kg.Snapshot }

func readStats(ctx context.Context, view *views.ViewInput) (*Stats, error) {
	s, err := knowledge.OpenView(ctx, view)
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
	s, err := knowledge.OpenView(ctx, nil)
	if err != nil {
		return nil, err
	}
	r := s.Revision()
	return &r, nil
}

// MaxSchemesAtOnce bounds each list of URI schemes of one mutation.
const MaxSchemesAtOnce = 100

// RegisterPrefix answers Mutation.registerPrefix.
func (*mutationRoot) RegisterPrefix(ctx context.Context, input RegisterPrefixInput) (*NamespacesPayload, error) {
	r := runOf(ctx)
	receipt, err := kgnames.Register(ctx, r.engine.deps.Store, r.namesMeta(kgnames.Justification("Register the prefix", []string{input.Name})), map[string]string{input.Name: input.Namespace}, deref(input.Force))
	return r.namesPayload(receipt, err)
}

// RemovePrefix answers Mutation.removePrefix.
func (*mutationRoot) RemovePrefix(ctx context.Context, input RemovePrefixInput) (*NamespacesPayload, error) {
	r := runOf(ctx)
	receipt, err := kgnames.Remove(ctx, r.engine.deps.Store, r.namesMeta(kgnames.Justification("Remove the prefix", []string{input.Name})), input.Name)
	if err != nil {
		err = kg.AsError(err).At("name")
	}
	return r.namesPayload(receipt, err)
}

// ChangeSchemes answers Mutation.changeSchemes.
func (*mutationRoot) ChangeSchemes(ctx context.Context, input ChangeSchemesInput) (*NamespacesPayload, error) {
	r := runOf(ctx)
	var why []string
	for _, change := range []struct {
		member, does string
		schemes      []string
	}{{"allow", "Allow URI schemes", input.Allow}, {"forbid", "Forbid URI schemes", input.Forbid}} {
		if n := len(change.schemes); n > MaxSchemesAtOnce {
			return nil, inInput(kg.Errorf(kg.CodeLimitExceeded, "%s has %d schemes; at most %d are allowed", change.member, n, MaxSchemesAtOnce).At(change.member))
		} else if n > 0 {
			why = append(why, kgnames.Justification(change.does, change.schemes))
		}
	}
	receipt, err := kgnames.ChangeSchemes(ctx, r.engine.deps.Store, r.namesMeta(strings.Join(why, ". ")), input.Allow, input.Forbid)
	switch {
	case err == nil:
	case kg.CodeOf(err) == kg.CodeNotFound, len(input.Allow) == 0:
		err = kg.AsError(err).At("forbid")
	case len(input.Forbid) == 0:
		err = kg.AsError(err).At("allow")
	}
	return r.namesPayload(receipt, err)
}

// namesMeta returns the Meta of a change of names.
func (r *run) namesMeta(why string) kg.Meta {
	m := r.patchesMeta(&ApplyPatchesInput{})
	m.Method = "registerPrefix"
	m.Justification = why
	return m
}

func (r *run) namesPayload(receipt kg.Receipt, err error) (*NamespacesPayload, error) {
	if err != nil {
		return nil, kg.AsError(err).At("input")
	}
	r.notePosition(receipt.Position)
	store := r.engine.deps.Store
	return &NamespacesPayload{
		Prefixes: r.engine.deps.Prefixes.All(), Schemes: store.KeptSchemes(),
		Revision: receipt.Revision, Position: Position(store.FormatPosition(receipt.Position)),
	}, nil
}
