package shapes

import (
	"koine/kg"
)

// shape is one that was compiled. It never changes.
type shape struct {
	id          kg.Term
	way         way // from the focus node to the values; nil for a node shape
	severity    kg.Term
	message     string // "" for that of the constraint
	deactivated bool
	constraints []constraint
	targets     targets
	root        bool // it has targets, and is judged
	recursive   bool // it is inside of itself
	settles     bool // by constraints only that hold still when more nodes conform inside
	void        bool // it cannot be read, and constrains nothing
	weak        bool // something of it, or of a shape inside, is left out
}

// targets say which nodes a shape is judged for.
type targets struct {
	nodes      []kg.Term
	classes    []kg.Term
	subjectsOf []kg.Term // properties
	objectsOf  []kg.Term
}

func (t *targets) none() bool {
	return len(t.nodes)+len(t.classes)+len(t.subjectsOf)+len(t.objectsOf) == 0
}

// has tells whether the node is a target.
func (t *targets) has(v *view, node kg.Term) (bool, error) {
	for _, n := range t.nodes {
		if n == node {
			return true, nil
		}
	}
	for _, class := range t.classes {
		if ok, err := v.isA(node, class); ok || err != nil {
			return ok, err
		}
	}
	for i, list := range [...][]kg.Term{t.subjectsOf, t.objectsOf} {
		for _, p := range list {
			ends, err := v.read(node, link{p, i == 1})
			if len(ends) > 0 || err != nil {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// finding is a value that violates a constraint.
type finding struct {
	focus     kg.Term
	path      string
	value     kg.Term // zero where the constraint is on all values together
	shape     *shape
	component string
	ordinal   int    // of the constraint in the shape
	aspect    string // tells findings apart that have no value, or are wrong in another way
	degree    int    // how wrong it is, where that can be counted
	message   string
}

// emit takes a finding and tells whether more are wanted.
type emit func(finding) bool

// validate hands out what of the node violates the shape. It ends early where out
// wants no more, and tells whether it does. Without out it ends at the first finding.
//
// A node that is under judgement by a recursive shape counts as conforming to it
// meanwhile.
func (s *shape) validate(v *view, focus kg.Term, out emit) (more bool, err error) {
	switch {
	case s.deactivated:
		return true, nil
	case !s.recursive:
		return s.check(v, focus, out)
	}
	if err := v.meter.spend(1); err != nil {
		return false, err
	}
	p := pair{s, focus}
	if out == nil || s.settles {
		ok, err := v.conforming.decide(p, s.settles, func() (bool, error) { return s.check(v, focus, nil) })
		if out == nil || ok || err != nil {
			return ok, err
		}
	} else if _, known := v.conforming.known(p); known {
		return true, nil
	}
	if v.told[p] {
		return true, nil
	}
	v.told[p] = true
	err = v.conforming.during(p, func() (err error) {
		more, err = s.check(v, focus, out)
		return err
	})
	return more, err
}

// check asks the constraints.
func (s *shape) check(v *view, focus kg.Term, out emit) (more bool, err error) {
	values := []kg.Term{focus}
	path := ""
	if s.way != nil {
		if values, err = s.way.from(v, values); err != nil {
			return false, err
		}
		if out != nil {
			path = s.way.String()
		}
	}
	each := 1 + costOf(values)
	for i, c := range s.constraints {
		if err := v.meter.spend(each); err != nil {
			return false, err
		}
		f := found{focus: focus, values: values, path: path, shape: s, component: c.component(), ordinal: i, out: out}
		if err := c.check(v, &f); err != nil || f.ended {
			return false, err
		}
	}
	return true, nil
}

// collect is validate from the outside: what is told is told once.
func (s *shape) collect(v *view, node kg.Term, out emit) error {
	clear(v.told)
	_, err := s.validate(v, node, out)
	return err
}

// conforms tells whether nothing of the node violates the shape.
func (s *shape) conforms(v *view, node kg.Term) (bool, error) {
	return s.validate(v, node, nil)
}

// found is what a constraint is asked about, and where it says what it finds.
type found struct {
	focus     kg.Term
	values    []kg.Term
	path      string
	shape     *shape
	component string
	ordinal   int
	aspect    string
	degree    int
	out       emit // nil where only the first finding is wanted
	ended     bool // no more findings are wanted
}

// violates notes a finding, and tells whether more are wanted.
func (f *found) violates(value kg.Term, message string) bool {
	return f.violatesAt(f.path, value, message)
}

func (f *found) violatesAt(path string, value kg.Term, message string) bool {
	if f.out == nil {
		f.ended = true
		return false
	}
	if f.shape.message != "" {
		message = f.shape.message
	}
	more := f.out(finding{focus: f.focus, path: path, value: value, shape: f.shape, component: f.component, ordinal: f.ordinal, aspect: f.aspect, degree: f.degree, message: message})
	f.ended = f.ended || !more
	return more
}

// each is for constraints on single values: test says what is wrong with one, ""
// for nothing.
func (f *found) each(test func(value kg.Term) (string, error)) error {
	for _, value := range f.values {
		wrong, err := test(value)
		if err != nil {
			return err
		}
		if wrong != "" && !f.violates(value, wrong) {
			return nil
		}
	}
	return nil
}

// constraint is one of a shape's.
type constraint interface {
	// component is the name of the constraint component, without sh:.
	component() string
	check(v *view, f *found) error
	// reads notes what is looked up beyond the path of the shape itself; focus is
	// the way to the focus node, values that to the values.
	reads(r *reads, focus, values []way)
}
