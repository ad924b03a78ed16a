package knowledge

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/kg"
)

// countField is a field of a TermCount.
type countField struct {
	scalarField
	entity *entityPlan // of the field entity
}

func (p *Planner) planCounts(f graphql.CollectedField) (fields []countField, err error) {
	err = p.EachField(f.Selections, TermCountImplementors, func(f graphql.CollectedField, key []byte) error {
		fields = append(fields, countField{scalarField: scalarField{key, f.Name}})
		return countFieldPlan{p, &fields[len(fields)-1]}.planNamed(f)
	})
	return fields, err
}

// countFieldPlan plans a field of a TermCount.
type countFieldPlan struct {
	planner *Planner
	field   *countField
}

func (b countFieldPlan) planEntity(f graphql.CollectedField) (err error) {
	b.field.entity, err = b.planner.planEntity(f.Selections)
	return err
}

// countLeaves appends the scalars of a TermCount.
type countLeaves struct{ of *kg.TermCount }

func (v countLeaves) appendIri(b []byte) []byte   { return scalar.AppendName(b, v.of.Term) }
func (v countLeaves) appendCount(b []byte) []byte { return scalar.AppendUint(b, v.of.Count) }

// loadCounts loads the entities of counted terms, for each field that shows one.
func (l *loader) loadCounts(fields []countField, list []kg.TermCount) (nodes [][]*entityNode, err error) {
	nodes = make([][]*entityNode, len(fields))
	for i := range fields {
		if fields[i].entity == nil {
			continue
		}
		if nodes[i], err = l.loadSome(fields[i].entity, len(list), func(k int) (entityRef, bool, error) {
			ref, err := l.newEntityRef(list[k].Term)
			return ref, true, err
		}); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func writeCounts(w *writer, list []kg.TermCount, fields []countField, nodes [][]*entityNode) {
	scalar.WriteList(w, len(list), func(k int) {
		scalar.WriteFields(w, fields, func(i int, f *countField) {
			switch f.name {
			case "__typename":
				w.B = append(append(w.B, f.key...), `"TermCount"`...)
			case "entity":
				w.EnterField(f.key)
				nodes[i][k].write(w)
				w.LeaveField()
			default:
				w.B = countLeaves{&list[k]}.appendNamed(append(w.B, f.key...), f.name)
			}
		})
	})
}

// appendPredicates writes the outgoing predicates with their counts.
func (l *loader) appendPredicates(g *gathered, id kg.ID, fields []countField, b []byte) (text fragment, err error) {
	counts := map[kg.ID]uint64{}
	if id != (kg.ID{}) {
		for g.Sweep.Seek(kg.IDPattern{Subject: id}, nil); g.Sweep.Next(); {
			counts[g.Sweep.Row().Predicate]++
		}
		if err := g.Sweep.Err(); err != nil {
			return fragment{}, err
		}
	}
	list := make([]kg.TermCount, 0, len(counts))
	for p, n := range counts {
		t, err := l.snapshot.Term(p)
		if err != nil {
			return fragment{}, err
		}
		list = append(list, kg.TermCount{Term: t, Count: n})
	}
	slices.SortFunc(list, func(a, b kg.TermCount) int { return a.Term.Compare(b.Term) })
	if !slices.ContainsFunc(fields, func(f countField) bool { return f.entity != nil }) {
		w := writer{B: b}
		writeCounts(&w, list, fields, nil)
		return fragment{json: w.B}, nil
	}
	text, err = l.render(func(w *writer) error {
		nodes, err := l.loadCounts(fields, list)
		if err != nil {
			return err
		}
		writeCounts(w, list, fields, nodes)
		return nil
	})
	text.json = append(b, text.json...)
	return text, err
}

// TermCount is a class or predicate of the vocabulary with its number of
// statements.
type TermCount struct {
	Iri   kg.Term
	Count int64
	List  *TermList
	Index int
}

// TermList is the list that a TermCount is part of. The entities of all its terms
// are loaded together.
type TermList struct {
	Terms    []kg.TermCount
	Snapshot *kg.Snapshot
	View     kg.View
}

// Entity is the class or predicate as an entity in the view of the vocabulary.
func (c *TermCount) Entity(ctx context.Context, f *executor.Selected) (executor.Value, error) {
	loaded, ok := f.Plan.(*termEntities)
	if !ok || loaded.of != c.List {
		p := newPlanner(ctx, f, c.List.View)
		plan, err := p.planEntity(f.Selections)
		if err != nil {
			return nil, err
		}
		l := newLoader(ctx, p.run, c.List.Snapshot, c.List.View)
		nodes, err := l.loadCounts([]countField{{entity: plan}}, c.List.Terms)
		if err != nil {
			return nil, err
		}
		loaded = &termEntities{c.List, nodes[0]}
		f.Plan = loaded
	}
	return loaded.nodes[c.Index], nil
}

// termEntities are the entities of a list, loaded for one selection.
type termEntities struct {
	of    *TermList
	nodes []*entityNode
}
