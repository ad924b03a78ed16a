package shapes

import (
	"slices"

	"koine/kg"
)

// dependency is something that is read for the focus nodes of a shape.
type dependency struct {
	root *shape
	link // an absent predicate stands for every one
	// back leads from the node where it is read to the focus nodes; empty when
	// they are the same.
	back sequence
	// below narrows a link to the type of a node, or to a class above one: only
	// what is this class or below it counts. Zero narrows nothing.
	below kg.Term
}

// reads collects the dependencies of a root shape.
type reads struct {
	root *shape
	list []*dependency
	over bool // there were more than MaxReads
}

func (r *reads) note(before []way, l link) { r.add(before, l, kg.Term{}) }

func (r *reads) add(before []way, l link, below kg.Term) {
	if r.over = r.over || len(r.list) >= MaxReads; r.over {
		return
	}
	r.list = append(r.list, &dependency{root: r.root, link: l, back: sequence(before).back().(sequence), below: below})
}

// class notes that it is asked whether a node is an instance of the class.
func (r *reads) class(before []way, class kg.Term) {
	typed := link{predicate: rdfType}
	r.add(before, typed, class)
	r.add(then(before, typed, upward), link{predicate: subClassOf}, class)
}

// shape notes what judging a node by the shape reads.
func (r *reads) shape(s *shape, focus []way) {
	if s.deactivated || r.over {
		return
	}
	values := focus
	if s.way != nil {
		s.way.reads(focus, r.note)
		values = then(focus, s.way)
	}
	for _, c := range s.constraints {
		c.reads(r, focus, values)
	}
}

// readsOf lists what the judgement of a root shape's targets depends on.
func readsOf(root *shape) ([]*dependency, error) {
	r := &reads{root: root}
	for _, class := range root.targets.classes {
		r.class(nil, class)
	}
	for _, p := range root.targets.subjectsOf {
		r.note(nil, link{p, false})
	}
	for _, p := range root.targets.objectsOf {
		r.note(nil, link{p, true})
	}
	r.shape(root, nil)
	if r.over {
		return nil, tooMuch("%s reads more than %d things", root.id, MaxReads)
	}
	return r.list, nil
}

// index finds dependencies by the predicate of a change.
type index struct {
	by  map[kg.Term][]*dependency
	any []*dependency
}

func (x *index) add(list []*dependency) {
	for _, d := range list {
		if d.predicate.IsZero() {
			x.any = append(x.any, d)
		} else {
			x.by[d.predicate] = append(x.by[d.predicate], d)
		}
	}
}

// affected is the focus nodes of each root shape whose result a set of changes
// may have changed, in the order in which they were found.
type affected struct {
	roots []*shape
	foci  map[*shape]*nodes
}

func (a *affected) add(root *shape, list []kg.Term) {
	set := a.foci[root]
	if set == nil {
		set = &nodes{}
		a.foci[root] = set
		a.roots = append(a.roots, root)
	}
	set.add(list)
}

// affectedBy goes back from the changes to the focus nodes.
func (x *index) affectedBy(changes []kg.Change, before, after *view) (*affected, error) {
	a := &affected{foci: map[*shape]*nodes{}}
	for i := range changes {
		q := changes[i].Quad
		if kg.IsOwnGraph(q.Graph) {
			continue
		}
		for _, d := range slices.Concat(x.by[q.Predicate], x.any) {
			if ok, err := d.counts(q, before, after); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
			at := q.Subject
			if d.inverse {
				at = q.Object
			}
			foci, err := d.back.from(after, []kg.Term{at})
			if err != nil {
				return nil, err
			}
			a.add(d.root, foci)
		}
	}
	return a, nil
}

// counts tells whether a change of the statement can change what is read.
func (d *dependency) counts(q kg.Quad, before, after *view) (bool, error) {
	if err := after.meter.spend(1); err != nil {
		return false, err
	}
	if d.below.IsZero() {
		return true, nil
	}
	ok, err := after.isBelow(q.Object, d.below)
	if ok || err != nil {
		return ok, err
	}
	return before.isBelow(q.Object, d.below)
}
