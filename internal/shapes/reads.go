package shapes

import (
	"slices"

	"koine/kg"
)

// dependency is something that is read for the focus nodes of a shape: one with
// targets, or a recursive one.
type dependency struct {
	root *shape
	link // an absent predicate stands for every one
	// back leads from the node where it is read to the focus nodes; empty when
	// they are the same.
	back sequence
	// below narrows a link to the type of a node, or to a class above one: only
	// what is this class or below it counts. Zero narrows nothing.
	below kg.Term
	// target: it decides only whether the node is a target.
	target bool
}

// use is that the focus nodes of a shape are judged by a recursive shape inside of
// it, or its values are.
type use struct {
	by   *shape
	of   *shape
	back sequence // from the node that is judged to the focus nodes
}

// reads collects the dependencies of a shape, up to the recursive shapes inside.
type reads struct {
	root *shape
	list []*dependency
	uses []use
	over bool // there were more than MaxReads
}

func (r *reads) note(before []way, l link) { r.add(before, l, kg.Term{}) }

func (r *reads) add(before []way, l link, below kg.Term) {
	if r.over = r.over || len(r.list)+len(r.uses) >= MaxReads; r.over {
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
	if s.recursive {
		if r.over = len(r.list)+len(r.uses) >= MaxReads; !r.over {
			r.uses = append(r.uses, use{r.root, s, sequence(focus).back().(sequence)})
		}
		return
	}
	r.body(s, focus)
}

func (r *reads) body(s *shape, focus []way) {
	values := focus
	if s.way != nil {
		s.way.reads(focus, r.note)
		values = then(focus, s.way)
	}
	for _, c := range s.constraints {
		c.reads(r, focus, values)
	}
}

// targets notes what decides whether a node is a target.
func (r *reads) targets() {
	t := &r.root.targets
	for _, class := range t.classes {
		r.class(nil, class)
	}
	for _, p := range t.subjectsOf {
		r.note(nil, link{p, false})
	}
	for _, p := range t.objectsOf {
		r.note(nil, link{p, true})
	}
	for _, d := range r.list {
		d.target = true
	}
}

// readsOf lists what the judgement of a shape's targets, or of any node by a
// recursive shape, depends on.
func readsOf(s *shape, root bool) (*reads, error) {
	r := &reads{root: s}
	if root {
		r.targets()
	}
	if !s.deactivated {
		r.body(s, nil)
	}
	if r.over {
		return nil, tooMuch("%s reads more than %d things", s.id, MaxReads)
	}
	return r, nil
}

// index finds dependencies by the predicate of a change, and where recursive shapes
// are used.
type index struct {
	by   map[kg.Term][]*dependency
	any  []*dependency
	uses map[*shape][]use
}

func (x *index) add(r *reads) {
	for _, d := range r.list {
		if d.predicate.IsZero() {
			x.any = append(x.any, d)
		} else {
			x.by[d.predicate] = append(x.by[d.predicate], d)
		}
	}
	for _, u := range r.uses {
		x.uses[u.of] = append(x.uses[u.of], u)
	}
}

// affected is the focus nodes of each shape whose result a set of changes may have
// changed, in the order in which they were found.
type affected struct {
	shapes        []*shape
	foci          map[*shape]*nodes
	todo          []pair // of recursive shapes, whose users are to be looked at
	before, after *view
}

func (a *affected) add(s *shape, list []kg.Term) (fresh []kg.Term) {
	set := a.foci[s]
	if set == nil {
		set = &nodes{}
		a.foci[s] = set
		a.shapes = append(a.shapes, s)
	}
	return set.add(list)
}

// affectedBy goes back from the changes to the focus nodes.
func (x *index) affectedBy(changes []kg.Change, before, after *view) (*affected, error) {
	a := &affected{foci: map[*shape]*nodes{}, before: before, after: after}
	judged := &affected{foci: map[*shape]*nodes{}} // by recursive shapes
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
			if d.root.recursive && !d.target {
				a.todo = appendPairs(a.todo, d.root, judged.add(d.root, foci))
			}
		}
	}
	return a, x.goBack(a, judged)
}

func appendPairs(list []pair, s *shape, of []kg.Term) []pair {
	for _, n := range of {
		list = append(list, pair{s, n})
	}
	return list
}

// goBack goes on from nodes that are judged by recursive shapes to the focus nodes of
// the shapes that these are inside of.
func (x *index) goBack(a, judged *affected) error {
	for len(a.todo) > 0 {
		p := a.todo[len(a.todo)-1]
		a.todo = a.todo[:len(a.todo)-1]
		if same, err := a.conformsStill(p); err != nil || same {
			if err != nil {
				return err
			}
			continue
		}
		for _, u := range x.uses[p.shape] {
			foci, err := u.back.from(a.after, []kg.Term{p.node})
			if err != nil {
				return err
			}
			a.add(u.by, foci)
			if u.by.recursive {
				a.todo = appendPairs(a.todo, u.by, judged.add(u.by, foci))
			}
		}
	}
	return nil
}

// conformsStill tells whether a node conforms to a recursive shape with the update
// and without it, so that nothing around notices.
func (a *affected) conformsStill(p pair) (bool, error) {
	if !p.shape.settles {
		return false, nil // it depends on what is around
	}
	for _, v := range []*view{a.after, a.before} {
		if ok, err := p.shape.conforms(v, p.node); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
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
