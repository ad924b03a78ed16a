package shapes

import (
	"context"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Limit is an upper bound on the values of a property of the targets: a sh:maxCount on a
// path of one step, forward or inverse. It may come from a shape for the same node
// (sh:property, sh:node, sh:and), not from an alternative, a negation or a shape for the
// values.
type Limit struct {
	Shape    kg.Term // the shape with the targets
	Property kg.Term
	Inverse  bool // the target is the value, and subjects are counted
	Most     int
	// The target declarations: a node that meets any of these is a target.
	Nodes, Classes, SubjectsOf, ObjectsOf []kg.Term
}

// Limits returns the limits of the shapes in force at the snapshot's revision, in the
// order of the shapes. The snapshot's view must include the shapes graph.
func (s *Set) Limits(ctx context.Context, snapshot *kg.Snapshot) ([]Limit, error) {
	now := s.currentSet()
	if snapshot.Revision() < now.since {
		quads, err := systemgraph.Quads(snapshot.Match, graph)
		if err != nil {
			return nil, err
		}
		if now, err = compileShapes(documentOf(inOrder(setOf(quads)))); err != nil {
			return nil, err
		}
	}
	var list []Limit
	for _, root := range now.roots {
		t := &root.targets
		root.collectLimits(map[*shape]bool{}, func(l link, limit int) {
			list = append(list, Limit{root.id, l.predicate, l.inverse, limit, t.nodes, t.classes, t.subjectsOf, t.objectsOf})
		})
	}
	return list, ctx.Err()
}

// collectLimits reports the shape's bounds for its focus node to note. inside are the shapes
// already visited.
func (s *shape) collectLimits(inside map[*shape]bool, note func(l link, limit int)) {
	if s.deactivated || inside[s] {
		return
	}
	inside[s] = true
	defer delete(inside, s)
	for _, c := range s.constraints {
		switch c := c.(type) {
		case countConstraint:
			if l, single := s.path.(link); single && !c.least {
				note(l, c.n)
			}
		case propertyConstraint:
			s.limitsInside(c.parts, inside, note)
		case logicalConstraint:
			if c.grade == gradedByEach {
				s.limitsInside(c.parts, inside, note)
			}
		}
	}
}

func (s *shape) limitsInside(p parts, asked map[*shape]bool, note func(l link, limit int)) {
	if s.path != nil {
		return // a shape for the values
	}
	for _, inside := range p.shapes {
		inside.collectLimits(asked, note)
	}
}
