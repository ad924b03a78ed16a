package graph

import (
	"context"
	"time"

	"koine/graph/internal/knowledge"
	"koine/graph/internal/views"
	"koine/graph/limit"
	"koine/internal/provenance"
	"koine/kg"
)

var contradictionKinds = map[provenance.Kind]ContradictionKind{
	provenance.Functional: ContradictionKindFunctional, provenance.InverseFunctional: ContradictionKindInverseFunctional,
	provenance.MaxCount: ContradictionKindMaxCount, provenance.SameAndDifferent: ContradictionKindSameAndDifferent, provenance.Disjoint: ContradictionKindDisjoint,
}

// ContradictionConnection is a page of contradictions.
type ContradictionConnection struct {
	listPage[Contradiction]
	complete bool
}

// Complete reports whether the search reached the end of the data.
func (c *ContradictionConnection) Complete() bool { return c.complete }

// Contradictions answers Query.contradictions.
func (*queryRoot) Contradictions(ctx context.Context, view *views.ViewInput, first *int, after *Cursor) (*ContradictionConnection, error) {
	r := runOf(ctx)
	n, err := countUpTo(first, provenance.DefaultContradictions, provenance.MaxContradictions)
	if err != nil {
		return nil, err
	}
	v, err := r.fieldView(view)
	if err != nil {
		return nil, err
	}
	s, begin, bound, err := r.openContradictions(ctx, v, after)
	if err != nil {
		return nil, err
	}
	constraints, err := r.openSnapshot(ctx, kg.View{Principal: v.Principal, Graphs: []kg.Term{kg.ShapesGraph}, At: s.Revision()})
	if err != nil {
		return nil, err
	}
	limits, err := r.engine.shapeSet().Limits(ctx, constraints)
	if err != nil {
		return nil, err
	}
	found, err := provenance.Contradictions(s, limits, provenance.Search{Most: n, After: begin})
	if err != nil {
		return nil, err
	}
	seal := func(at provenance.Cursor) Cursor { return Cursor(r.Reader.SealCursor(s, bound, at.Bytes())) }
	page := &ContradictionConnection{complete: found.Complete}
	page.listPage = listPage[Contradiction]{
		nodes: make([]Contradiction, len(found.List)), begun: after != nil, more: found.More, list: "contradictions",
		seal: func(k int) Cursor { return seal(found.Behind(k)) },
	}
	for i, c := range found.List {
		page.nodes[i] = contradictionOf(c)
	}
	if found.More {
		page.end = func() Cursor { return seal(found.End) }
	}
	page.count = func(context.Context) (n int64, exact bool, err error) {
		search := provenance.Search{Most: provenance.MaxContradictions}
		for range limit.MaxCountedPages {
			all, err := provenance.Contradictions(s, limits, search)
			if err != nil {
				return 0, false, err
			}
			if n += int64(len(all.List)); !all.Complete || !all.More {
				return n, all.Complete, nil
			}
			search.After = all.End
		}
		return n, false, nil
	}
	return page, nil
}

// openContradictions opens the snapshot of the page that a cursor continues, and returns
// the place where the page begins.
func (r *run) openContradictions(ctx context.Context, v kg.View, after *Cursor) (s *kg.Snapshot, begin provenance.Cursor, bound knowledge.CursorBound, err error) {
	// The evaluation time is left out: all pages of a walk read at that of the
	// first page.
	named := v
	named.At, named.Now = 0, time.Time{}
	epoch := r.engine.deps.Store.Head().Epoch
	bound = knowledge.CursorBound{}.ForEntity(kg.String("contradictions " + epoch.String() + " " + knowledge.ViewKey(named)))
	if after == nil {
		s, err = r.openSnapshot(ctx, v)
		return s, begin, bound, err
	}
	at, err := r.Reader.UnsealAnyCursor(*after, bound)
	if err != nil {
		return nil, begin, bound, err
	}
	begin, ok := provenance.ParseCursor(at.Key)
	if !ok {
		return nil, begin, bound, knowledge.ForeignCursor()
	}
	s, err = r.OpenAt(ctx, v, at)
	return s, begin, bound, err
}

func contradictionOf(c provenance.Contradiction) Contradiction {
	out := Contradiction{
		Kind: contradictionKinds[c.Kind], Reason: c.Reason, Subject: objectRecordOf(c.About), StatementCount: c.Total,
		Statements: make([]AssertedStatement, len(c.Statements)),
	}
	if !c.Property.IsZero() {
		out.Property = &c.Property
	}
	for i, st := range c.Statements {
		out.Statements[i] = *backedOf(st)
	}
	return out
}
