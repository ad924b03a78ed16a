package knowledge

import (
	"context"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"koine/graph/internal/scalar"
	"koine/graph/limit"
	"koine/internal/query/path"
	"koine/kg"
)

// aroundPlan is the plan of a neighborhood.
type aroundPlan struct {
	fields []partField
	listPlans
	depth  int
	edges  path.Edges
	extent path.Extent
	bytes  int // bound on the answer's text; 0 for none
}

// planNeighborhood plans Entity.neighborhood.
func (b entityFieldPlan) planNeighborhood(f graphql.CollectedField) error {
	p := b.planner
	args, err := coerceArgs(p, f, CoerceEntityNeighborhoodArgs)
	if err != nil {
		return err
	}
	a := &aroundPlan{depth: args.Depth, edges: p.run.Reader.Limits.PathEdges(args.Predicates, args.Direction)}
	budget, err := limit.BudgetOf(args.Budget)
	if err != nil {
		return err
	}
	n := limit.DefaultNeighborhood
	if budget.MaxStatements > 0 {
		n = min(budget.MaxStatements, limit.MaxNeighborhood)
	}
	a.extent = path.Extent{Entities: limit.MaxNeighborhood, Statements: n}
	if budget.MaxBytes > 0 || budget.MaxTokens > 0 {
		a.bytes = p.run.Reader.Limits.DefaultAllowance().NarrowBy(budget).Bytes
	}
	b.field.kind, b.field.around = entityAround, a
	a.fields, err = p.planParts(&a.listPlans, f.Selections, NeighborhoodImplementors, planNeighborhoodField)
	return err
}

// neighborhoodFieldPlan plans a field of a Neighborhood.
type neighborhoodFieldPlan struct{ partFieldPlan }

func planNeighborhoodField(b partFieldPlan, f graphql.CollectedField) error {
	return neighborhoodFieldPlan{b}.planNamed(f)
}

// neighborhoodLeaves appends the scalars of a Neighborhood.
type neighborhoodLeaves struct{ node *aroundNode }

func (v neighborhoodLeaves) appendDepth(b []byte) []byte {
	return scalar.AppendUint(b, uint64(v.node.depth))
}

func (v neighborhoodLeaves) appendTruncated(b []byte) []byte {
	return strconv.AppendBool(b, v.node.cut)
}

// aroundNode is a loaded neighborhood.
type aroundNode struct {
	plan   *aroundPlan
	around *path.Around
	*loadedLists
	run *Run
	// The part that is given.
	statements int
	entities   []int
	depth      int
	cut        bool
}

// loadNeighborhoods loads a field `neighborhood` of the entities, with the
// entities and statements of all neighborhoods loaded together.
func (l *loader) loadNeighborhoods(plan *entityPlan, field int, nodes []entityNode, batch *entityBatch) error {
	a := plan.fields[field].around
	var ids []kg.ID
	var rows []kg.Row
	arounds := make([]*path.Around, len(nodes))
	for i := range nodes {
		var err error
		if arounds[i], err = path.Neighborhood(l.snapshot, nodes[i].ref.id, a.depth, a.edges, a.extent); err != nil {
			return err
		}
		ids, rows = append(ids, arounds[i].Entities...), append(rows, arounds[i].Statements...)
	}
	all, err := l.loadLists(&a.listPlans, ids, rows)
	if err != nil {
		return err
	}
	if batch.arounds == nil {
		batch.arounds = map[slotKey]*aroundNode{}
	}
	for i, around := range arounds {
		part := &loadedLists{}
		for k := range all.entities {
			part.entities = append(part.entities, all.entities[k][:len(around.Entities)])
			all.entities[k] = all.entities[k][len(around.Entities):]
		}
		for k := range all.statements {
			part.statements = append(part.statements, all.statements[k][:len(around.Statements)])
			all.statements[k] = all.statements[k][len(around.Statements):]
		}
		n := &aroundNode{plan: a, around: around, loadedLists: part, run: l.run}
		n.limitTo(len(around.Statements))
		if a.bytes > 0 {
			n.fitBytes(l.ctx, a.bytes)
		}
		batch.arounds[slotKey{&nodes[i], field}] = n
	}
	return nil
}

// limitTo limits the answer to the first statements and the entities that they
// reach.
func (n *aroundNode) limitTo(statements int) {
	n.statements, n.entities, n.depth = statements, n.entities[:0], 0
	for i, by := range n.around.By {
		if by < statements {
			n.entities = append(n.entities, i)
		}
	}
	for n.depth < len(n.around.Levels) && (n.depth == 0 && statements > 0 || n.depth > 0 && statements > n.around.Levels[n.depth-1]) {
		n.depth++
	}
	n.cut = n.around.Cut || statements < len(n.around.Statements)
}

// fitBytes gives as many statements as fit into so many bytes. Lists inside of its
// elements count as empty: the operation's budget bounds them.
func (n *aroundNode) fitBytes(ctx context.Context, bytes int) {
	if c := n.run.cutter; c != nil {
		c.measuring = true
		defer func() { c.measuring = false }()
	}
	w := n.run.NewWriter(ctx)
	low, high := 0, n.statements // low fits, high may
	for low < high {
		middle := (low + high + 1) / 2
		n.limitTo(middle)
		w.B, w.Errors = w.B[:0], nil
		if n.write(w); len(w.B) <= bytes {
			low = middle
		} else {
			high = middle - 1
		}
	}
	n.limitTo(low)
}

func (n *aroundNode) write(w *writer) {
	writeParts(w, n.plan.fields, "Neighborhood", func(f *partField) {
		switch f.name {
		case "entities":
			n.writeList(w, f, len(n.entities), func(i int) int { return n.entities[i] })
		case "statements":
			n.writeList(w, f, n.statements, func(i int) int { return i })
		default:
			w.B = neighborhoodLeaves{n}.appendNamed(w.B, f.name)
		}
	})
}
