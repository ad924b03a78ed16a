package shapes

import "koine/kg"

// key identifies a finding across an update.
type key struct {
	focus   kg.Term
	path    string
	value   kg.Term
	shape   *shape
	ordinal int
	aspect  string
}

func (f *finding) key() key {
	return key{f.focus, f.path, f.value, f.shape, f.ordinal, f.aspect}
}

// priorFindings has the findings before an update.
type priorFindings struct {
	degree map[key]int // largest degree per key
	before *dataView
	after  *dataView
}

func newPriorFindings(found []finding, before, after *dataView) *priorFindings {
	o := &priorFindings{make(map[key]int, len(found)), before, after}
	for i := range found {
		k := found[i].key()
		o.degree[k] = max(o.degree[k], found[i].degree)
	}
	return o
}

// covers reports whether a finding after the update existed before it to the same degree.
func (o *priorFindings) covers(f *finding) (bool, error) {
	degree, found := o.degree[f.key()]
	if !found || f.degree > degree {
		return false, nil
	}
	c, ok := f.shape.constraints[f.ordinal].(logicalConstraint)
	if !ok {
		return true, nil
	}
	worse, err := c.hasWorsened(f, o.before, o.after)
	return !worse, err
}

// hasWorsened reports whether a value that conforms neither before nor after an update is
// further from conforming after it: if all shapes must conform, with respect to any of
// them; if one shape must conform, with respect to all.
func (c logicalConstraint) hasWorsened(f *finding, before, after *dataView) (bool, error) {
	if c.grade == ungraded || f.aspect == tooManyConform {
		return false, nil // compared by their number only
	}
	for _, s := range c.shapes {
		worse, err := s.hasWorsened(f.value, before, after)
		if err != nil {
			return false, err
		}
		if worse == (c.grade == gradedByEach) {
			return worse, nil
		}
	}
	return c.grade == gradedByAll, nil
}

// hasWorsened reports whether the update introduces a violation of the shape by the node or
// makes one worse. For a node that is already being compared by a recursive shape, it
// reports false.
func (s *shape) hasWorsened(node kg.Term, before, after *dataView) (bool, error) {
	if !s.recursive {
		return s.computeWorsened(node, before, after)
	}
	return after.worsened.decidePair(pair{s, node}, true, func() (bool, error) { return s.computeWorsened(node, before, after) })
}

func (s *shape) computeWorsened(node kg.Term, before, after *dataView) (bool, error) {
	now, err := s.violationsOf(after, node)
	if err != nil || len(now) == 0 {
		return false, err
	}
	then, err := s.violationsOf(before, node)
	if err != nil {
		return false, err
	}
	old := newPriorFindings(then, before, after)
	for i := range now {
		if covered, err := old.covers(&now[i]); err != nil || !covered {
			return err == nil, err
		}
	}
	return false, nil
}

func (s *shape) violationsOf(v *dataView, node kg.Term) (list []finding, err error) {
	err = s.collectFindings(v, node, func(f finding) bool {
		list = append(list, f)
		return true
	})
	return list, err
}
