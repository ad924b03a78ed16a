package graph

import (
	"cmp"
	"context"
	"slices"

	"koine/kg"
)

// loader reads what plans ask for from one snapshot.
type loader struct {
	ctx      context.Context // that of the operation; a loader lives no longer
	run      *run
	snapshot *kg.Snapshot
	engine   *Engine
}

func newLoader(ctx context.Context, r *run, s *kg.Snapshot) *loader {
	return &loader{ctx: ctx, run: r, snapshot: s, engine: r.engine}
}

// entityRef names an entity to load: by its id, with its name where that is
// known. An entity that the store has no term for has no id.
type entityRef struct {
	id   kg.ID
	name kg.Term
}

func (l *loader) ref(t kg.Term) (entityRef, error) {
	id, _, err := l.snapshot.ID(t)
	return entityRef{id, t}, err
}

// entities loads what the plan asks of each, and gives the nodes in the same
// order. Those that occur more than once are read once; all are read in the
// order of the index.
func (l *loader) entities(plan *entityPlan, refs []entityRef) ([]*entityNode, error) {
	out := make([]*entityNode, len(refs))
	nodes := make([]entityNode, 0, len(refs))
	batch := &entityBatch{}
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if c := compareIDs(refs[a].id, refs[b].id); c != 0 {
			return c
		}
		return refs[a].name.Compare(refs[b].name)
	})
	for k, i := range order {
		if ref := refs[i]; k > 0 && ref.id == refs[order[k-1]].id && (ref.id != kg.ID{} || ref.name == refs[order[k-1]].name) {
			out[i] = out[order[k-1]]
			continue
		}
		nodes = append(nodes, entityNode{plan: plan, batch: batch, subject: subject{snapshot: l.snapshot, id: refs[i].id, name: refs[i].name}})
		out[i] = &nodes[len(nodes)-1]
	}
	return out, l.fill(plan, nodes, batch)
}

func (l *loader) fill(plan *entityPlan, nodes []entityNode, batch *entityBatch) error {
	w, err := resolve(plan.wanted, l.predicate)
	if err != nil {
		return err
	}
	slots := make([]slot, len(nodes)*len(plan.fields))
	gathered := newGathered(plan)
	for i := range nodes {
		n := &nodes[i]
		n.slots, slots = slots[:len(plan.fields):len(plan.fields)], slots[len(plan.fields):]
		if plan.named || plan.reads {
			if _, err := n.subject.term(); err != nil {
				return err
			}
		}
		before := len(batch.arena)
		if plan.reads {
			if err := l.read(n, &w, gathered); err != nil {
				return err
			}
		}
		if err := l.run.charge(len(batch.arena) - before + len(n.subject.name.Value())); err != nil {
			return err
		}
	}
	for i := range plan.fields {
		if plan.fields[i].kind == entityStatements {
			if err := l.pages(plan, i, nodes); err != nil {
				return err
			}
		}
	}
	return nil
}

// gathered are the statements that the fields of one entity get; the next
// entity uses the memory again.
type gathered struct {
	of [][]candidate // of each field
}

// candidate is a statement whose object may be shown.
type candidate struct {
	row  kg.Row
	rank int
}

func newGathered(plan *entityPlan) *gathered {
	return &gathered{of: make([][]candidate, len(plan.fields))}
}

// read loads everything of an entity but its pages.
func (l *loader) read(n *entityNode, w *wants, g *gathered) error {
	for i := range g.of {
		g.of[i] = g.of[i][:0]
	}
	if n.subject.id != (kg.ID{}) {
		err := gather(l.snapshot, n.subject.id, w, func(i int, row kg.Row) error {
			n.found = true
			for _, u := range n.plan.uses[i] {
				// The same value in another graph comes right behind.
				if c := g.of[u.field]; len(c) > 0 && sameTriple(c[len(c)-1].row, row) && n.plan.fields[u.field].kind != entityValue {
					continue
				}
				g.of[u.field] = append(g.of[u.field], candidate{row, u.rank})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i := range n.plan.fields {
		f := &n.plan.fields[i]
		from := len(n.batch.arena)
		b, err := l.leaf(n, f, g.of[i], n.batch.arena)
		if err != nil {
			return err
		}
		n.batch.arena = b
		n.slots[i].from, n.slots[i].to = from, len(b)
	}
	return nil
}

func sameTriple(a, b kg.Row) bool {
	return a.Subject == b.Subject && a.Predicate == b.Predicate && a.Object == b.Object
}

// leaf writes the value of a field that is no page.
func (l *loader) leaf(n *entityNode, f *entityField, found []candidate, b []byte) ([]byte, error) {
	switch f.kind {
	case entityTypes:
		return l.types(found, b)
	case entityLabel:
		return l.label(found, f.langs, b)
	case entityValue:
		return l.value(found, b)
	case entityValues:
		return l.values(found, f.first, b)
	case entityDegree:
		return l.degree(n.subject.id, f.direction, b)
	case entityPredicates:
		return l.predicates(n.subject.id, f.counts, b)
	}
	return b, nil
}

func (l *loader) terms(found []candidate) ([]kg.Term, error) {
	terms := make([]kg.Term, len(found))
	for i, c := range found {
		t, err := l.snapshot.Term(c.row.Object)
		if err != nil {
			return nil, err
		}
		terms[i] = t
	}
	return terms, nil
}

func (l *loader) types(found []candidate, b []byte) ([]byte, error) {
	terms, err := l.terms(found)
	if err != nil {
		return b, err
	}
	terms = slices.DeleteFunc(terms, kg.Term.IsLiteral)
	slices.SortFunc(terms, kg.Term.Compare)
	b = append(b, '[')
	for i, t := range slices.Compact(terms) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendName(b, t)
	}
	return append(b, ']'), nil
}

// value chooses the value with the greatest certainty, then the newest, then
// the smallest.
func (l *loader) value(found []candidate, b []byte) ([]byte, error) {
	if len(found) == 0 {
		return append(b, "null"...), nil
	}
	if len(found) == 1 {
		t, err := l.snapshot.Term(found[0].row.Object)
		return appendValue(b, t), err
	}
	statements := make([]kg.Statement, len(found))
	for i, c := range found {
		s, err := l.snapshot.Statement(c.row)
		if err != nil {
			return b, err
		}
		statements[i] = s
	}
	best := slices.MinFunc(statements, func(s, t kg.Statement) int {
		cs, _ := s.Certainty()
		ct, _ := t.Certainty()
		return cmp.Or(cmp.Compare(ct, cs), t.RecordedAt().Compare(s.RecordedAt()), cmp.Compare(t.Revision(), s.Revision()), compareTerms(s.Object, t.Object))
	})
	return appendValue(b, best.Object), nil
}

// compareTerms orders terms by value, and those of equal value by their text.
func compareTerms(a, b kg.Term) int {
	return cmp.Or(valueOf(a).compare(valueOf(b)), a.Compare(b))
}

func (l *loader) values(found []candidate, first int, b []byte) ([]byte, error) {
	terms, err := l.terms(found)
	if err != nil {
		return b, err
	}
	slices.SortFunc(terms, compareTerms)
	b = append(b, '[')
	shown := map[string]bool{} // "chat"@en and "chat"@fr are one value here
	for _, t := range terms {
		from := len(b)
		if from > 0 && b[from-1] != '[' {
			b = append(b, ',')
		}
		at := len(b)
		b = appendValue(b, t)
		if shown[string(b[at:])] || len(shown) == first {
			b = b[:from]
			continue
		}
		shown[string(b[at:])] = true
	}
	return append(b, ']'), nil
}

func (l *loader) degree(id kg.ID, d Direction, b []byte) ([]byte, error) {
	n, err := degreeOf(l.snapshot, id, d)
	return appendUint(b, n), err
}

// degreeOf counts the statements with the entity.
func degreeOf(s *kg.Snapshot, id kg.ID, d Direction) (n uint64, err error) {
	if id == (kg.ID{}) {
		return 0, nil
	}
	if d != DirectionIn {
		if n, err = s.CountIDs(kg.IDPattern{Subject: id}); err != nil {
			return 0, err
		}
	}
	if d != DirectionOut {
		m, err := s.CountIDs(kg.IDPattern{Object: id})
		return n + m, err
	}
	return n, nil
}
