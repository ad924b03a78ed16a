package shapes

import (
	"context"

	"koine/kg"
)

// Limit is that the targets of a shape have so many values of a property at the
// most: a sh:maxCount on a path of one step, forwards or backwards. Those of
// shapes for the same node are among them (sh:property, sh:node, sh:and), those
// of an alternative, of a negation, and of shapes for the values are not.
type Limit struct {
	Shape    kg.Term // the one with the targets
	Property kg.Term
	Inverse  bool // subjects that have the target as the value
	Most     int
	// What it holds for: a node that is any of these.
	Nodes, Classes, SubjectsOf, ObjectsOf []kg.Term
}

// Limits lists those of the shapes that stood at the revision of the snapshot,
// which has to show the shapes graph, in the order of the shapes.
func (s *Set) Limits(ctx context.Context, snapshot *kg.Snapshot) ([]Limit, error) {
	now := s.current()
	if snapshot.Revision() < now.since {
		quads, err := shapesOf(snapshot)
		if err != nil {
			return nil, err
		}
		if now, err = compile(documentOf(inOrder(quads))); err != nil {
			return nil, err
		}
	}
	var list []Limit
	for _, root := range now.roots {
		t := &root.targets
		root.limits(map[*shape]bool{}, func(l link, most int) {
			list = append(list, Limit{root.id, l.predicate, l.inverse, most, t.nodes, t.classes, t.subjectsOf, t.objectsOf})
		})
	}
	return list, ctx.Err()
}

// limits notes what the shape allows its focus node. Inside are the shapes that are
// asked already.
func (s *shape) limits(inside map[*shape]bool, note func(l link, most int)) {
	if s.deactivated || inside[s] {
		return
	}
	inside[s] = true
	defer delete(inside, s)
	for _, c := range s.constraints {
		switch c := c.(type) {
		case countConstraint:
			if l, single := s.way.(link); single && !c.least {
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

func (s *shape) limitsInside(p parts, asked map[*shape]bool, note func(l link, most int)) {
	if s.way != nil {
		return // of the values
	}
	for _, inside := range p.shapes {
		inside.limits(asked, note)
	}
}
