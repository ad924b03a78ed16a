package shapes

import (
	"slices"

	"koine/kg"
)

// dependency is a property that is read for the focus nodes of a shape with targets or of
// a recursive shape.
type dependency struct {
	root *shape
	link // a zero predicate stands for any
	// back leads from the node that has the property to the focus nodes; empty if
	// they are the same.
	back sequence
	// below narrows a link to rdf:type or rdfs:subClassOf: only objects that are
	// this class or a subclass matter. Zero narrows nothing.
	below kg.Term
	// target reports that the property only decides whether the node is a target.
	target bool
}

// use records that the focus nodes of a shape, or their values, are validated by a nested
// recursive shape.
type use struct {
	outer *shape
	inner *shape
	back  sequence // from the validated node to the focus nodes
}

// dependencies collects the dependencies of a shape, up to nested recursive shapes.
type dependencies struct {
	root     *shape
	list     []*dependency
	uses     []use
	exceeded bool // MaxReads was exceeded
}

func (r *dependencies) addLink(before []propertyPath, l link) { r.add(before, l, kg.Term{}) }

func (r *dependencies) add(before []propertyPath, l link, below kg.Term) {
	if r.exceeded = r.exceeded || len(r.list)+len(r.uses) >= MaxReads; r.exceeded {
		return
	}
	r.list = append(r.list, &dependency{root: r.root, link: l, back: sequence(before).reverse().(sequence), below: below})
}

// addInstanceTest records a test for an instance of the class.
func (r *dependencies) addInstanceTest(before []propertyPath, class kg.Term) {
	typed := link{predicate: rdfType}
	r.add(before, typed, class)
	r.add(appendPath(before, typed, upward), link{predicate: subClassOf}, class)
}

// addShape records the dependencies of validating a node by the shape.
func (r *dependencies) addShape(s *shape, focus []propertyPath) {
	if s.deactivated || r.exceeded {
		return
	}
	if s.recursive {
		if r.exceeded = len(r.list)+len(r.uses) >= MaxReads; !r.exceeded {
			r.uses = append(r.uses, use{r.root, s, sequence(focus).reverse().(sequence)})
		}
		return
	}
	r.addBody(s, focus)
}

func (r *dependencies) addBody(s *shape, focus []propertyPath) {
	values := focus
	if s.path != nil {
		s.path.recordLinks(focus, r.addLink)
		values = appendPath(focus, s.path)
	}
	for _, c := range s.constraints {
		c.recordReads(r, focus, values)
	}
}

// addTargets records the dependencies of being a target.
func (r *dependencies) addTargets() {
	t := &r.root.targets
	for _, class := range t.classes {
		r.addInstanceTest(nil, class)
	}
	for _, p := range t.subjectsOf {
		r.addLink(nil, link{p, false})
	}
	for _, p := range t.objectsOf {
		r.addLink(nil, link{p, true})
	}
	for _, d := range r.list {
		d.target = true
	}
}

// readsOf returns the dependencies of validating a shape's targets, or any node by a
// recursive shape.
func readsOf(s *shape, root bool) (*dependencies, error) {
	r := &dependencies{root: s}
	if root {
		r.addTargets()
	}
	if !s.deactivated {
		r.addBody(s, nil)
	}
	if r.exceeded {
		return nil, tooMuch("%s has more than %d dependencies", s.id, MaxReads)
	}
	return r, nil
}

// index finds dependencies by predicate, and the uses of recursive shapes.
type index struct {
	by       map[kg.Term][]*dependency
	wildcard []*dependency
	uses     map[*shape][]use
}

func (x *index) add(r *dependencies) {
	for _, d := range r.list {
		if d.predicate.IsZero() {
			x.wildcard = append(x.wildcard, d)
		} else {
			x.by[d.predicate] = append(x.by[d.predicate], d)
		}
	}
	for _, u := range r.uses {
		x.uses[u.inner] = append(x.uses[u.inner], u)
	}
}

// affectedNodes has, for each shape, the focus nodes with a result that a set of changes may
// have changed, in order of discovery.
type affectedNodes struct {
	shapes        []*shape
	foci          map[*shape]*nodeSet
	todo          []pair // by recursive shapes with uses to follow
	before, after *dataView
}

func (a *affectedNodes) add(s *shape, list []kg.Term) (fresh []kg.Term) {
	set := a.foci[s]
	if set == nil {
		set = &nodeSet{}
		a.foci[s] = set
		a.shapes = append(a.shapes, s)
	}
	return set.add(list)
}

// affectedBy follows the dependencies from the changes back to the focus nodes.
func (x *index) affectedBy(changes []kg.Change, before, after *dataView) (*affectedNodes, error) {
	a := &affectedNodes{foci: map[*shape]*nodeSet{}, before: before, after: after}
	judged := &affectedNodes{foci: map[*shape]*nodeSet{}} // by recursive shapes
	for i := range changes {
		q := changes[i].Quad
		if kg.IsOwnGraph(q.Graph) {
			continue
		}
		for _, d := range slices.Concat(x.by[q.Predicate], x.wildcard) {
			if ok, err := d.isAffectedBy(q, before, after); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
			at := q.Subject
			if d.inverse {
				at = q.Object
			}
			foci, err := d.back.endNodes(after, []kg.Term{at})
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

func appendPairs(list []pair, s *shape, nodes []kg.Term) []pair {
	for _, n := range nodes {
		list = append(list, pair{s, n})
	}
	return list
}

// goBack continues from nodes validated by recursive shapes to the focus nodes of the
// shapes that use them.
func (x *index) goBack(a, judged *affectedNodes) error {
	for len(a.todo) > 0 {
		p := a.todo[len(a.todo)-1]
		a.todo = a.todo[:len(a.todo)-1]
		if same, err := a.stillConforms(p); err != nil || same {
			if err != nil {
				return err
			}
			continue
		}
		for _, u := range x.uses[p.shape] {
			foci, err := u.back.endNodes(a.after, []kg.Term{p.node})
			if err != nil {
				return err
			}
			a.add(u.outer, foci)
			if u.outer.recursive {
				a.todo = appendPairs(a.todo, u.outer, judged.add(u.outer, foci))
			}
		}
	}
	return nil
}

// stillConforms reports whether a node conforms to a recursive shape both before and after
// the update, so that the shapes around it are not affected.
func (a *affectedNodes) stillConforms(p pair) (bool, error) {
	if !p.shape.monotone {
		return false, nil // depends on the outer validation
	}
	for _, v := range []*dataView{a.after, a.before} {
		if ok, err := p.shape.isConforming(v, p.node); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// isAffectedBy reports whether a change of the statement can change the result of the read.
func (d *dependency) isAffectedBy(q kg.Quad, before, after *dataView) (bool, error) {
	if err := after.meter.spendSteps(1); err != nil {
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
