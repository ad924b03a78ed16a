package shapes

import "koine/kg"

// key is what makes a finding before and one after an update the same.
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

// older is what was found without an update.
type older struct {
	degree map[key]int // of the worst with the key
	before *view
	after  *view
}

func olderOf(found []finding, before, after *view) *older {
	o := &older{make(map[key]int, len(found)), before, after}
	for i := range found {
		k := found[i].key()
		o.degree[k] = max(o.degree[k], found[i].degree)
	}
	return o
}

// covers tells whether what is found with the update was there without it, and
// was as bad.
func (o *older) covers(f *finding) (bool, error) {
	degree, there := o.degree[f.key()]
	if !there || f.degree > degree {
		return false, nil
	}
	c, ok := f.shape.constraints[f.ordinal].(logicalConstraint)
	if !ok {
		return true, nil
	}
	worse, err := c.worse(f, o.before, o.after)
	return !worse, err
}

// worse tells whether a value that conforms neither before nor after an update is
// further from it after: by what it is to conform to each of, if it is further
// from any; by what it is to conform to one of, if it is further from all.
func (c logicalConstraint) worse(f *finding, before, after *view) (bool, error) {
	if c.grade == ungraded || f.aspect == tooManyConform {
		return false, nil // by their number alone
	}
	for _, s := range c.shapes {
		worse, err := s.worse(f.value, before, after)
		if err != nil {
			return false, err
		}
		if worse == (c.grade == gradedByEach) {
			return worse, nil
		}
	}
	return c.grade == gradedByAll, nil
}

// worse tells whether the update brings what violates the shape for the node, or
// makes it worse. A node that is compared already, by a recursive shape, is not worse
// by itself.
func (s *shape) worse(node kg.Term, before, after *view) (bool, error) {
	if !s.recursive {
		return s.worsened(node, before, after)
	}
	return after.worsened.decide(pair{s, node}, true, func() (bool, error) { return s.worsened(node, before, after) })
}

func (s *shape) worsened(node kg.Term, before, after *view) (bool, error) {
	now, err := s.validated(after, node)
	if err != nil || len(now) == 0 {
		return false, err
	}
	then, err := s.validated(before, node)
	if err != nil {
		return false, err
	}
	old := olderOf(then, before, after)
	for i := range now {
		if covered, err := old.covers(&now[i]); err != nil || !covered {
			return err == nil, err
		}
	}
	return false, nil
}

// validated lists what of the node violates the shape.
func (s *shape) validated(v *view, node kg.Term) (list []finding, err error) {
	err = s.collect(v, node, func(f finding) bool {
		list = append(list, f)
		return true
	})
	return list, err
}
