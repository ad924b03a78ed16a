package knowledge

import (
	"context"
	"iter"

	"koine/graph/executor"
	"koine/internal/query"
	"koine/kg"
)

var factConnections = connectionTypes{
	name: "FactConnection", implementors: FactConnectionImplementors,
	edgeName: "FactEdge", edges: FactEdgeImplementors,
}

// MaxCountedFacts bounds the facts that are looked at to count a list of them.
const MaxCountedFacts = 10_000

// ReadFacts answers a field that lists statements, inside of an object that its
// table writes. find yields them, each once. of names the object that has the list.
func ReadFacts(ctx context.Context, f *executor.Selected, of string, a PageArgs, find func(*kg.Snapshot) (iter.Seq2[kg.Row, error], error)) (executor.Value, error) {
	r, err := readInside(ctx, f)
	if err != nil {
		return nil, err
	}
	c := &connection{}
	if err := r.planPaging(c, r.field, a); err != nil {
		return nil, err
	}
	if err := r.bindPage(c, r.field); err != nil {
		return nil, err
	}
	c.bound = c.bound.ForEntity(kg.String(of))
	if err := r.planConnection(c, r.field.Selections, factConnections); err != nil {
		return nil, err
	}
	l, err := r.openLoader()
	if err != nil {
		return nil, err
	}
	var after *kg.IDQuad
	if c.after != nil {
		if l, after, err = l.resumeStatements(c, c.bound); err != nil {
			return nil, err
		}
	}
	rows, err := find(l.snapshot)
	if err != nil {
		return nil, err
	}
	g := &page{connection: c}
	var found query.Page[kg.Row]
	begun := after == nil
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if found.Total++; found.Total > MaxCountedFacts && c.total {
			l.leaveUncounted(g)
			break
		}
		if !begun {
			begun = row.IDQuad == *after
			continue
		}
		if len(found.Keys) <= c.first {
			found.Keys = append(found.Keys, row)
		} else if !c.total {
			break
		}
	}
	if len(found.Keys) > c.first {
		found.Keys, found.More = found.Keys[:c.first], true
	}
	fillPage(l, g, found, c.bound, rowKey)
	if err := l.shareStatements(c, found.Keys, []*page{g}, []int{0, len(found.Keys)}); err != nil {
		return nil, err
	}
	return r.answer(g), nil
}
