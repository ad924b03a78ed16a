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

// validate hands out what of the node violates the shape. It ends early where
// emit wants no more, and tells whether it does.
func (s *shape) validate(v *view, focus kg.Term, out emit) (more bool, err error) {
	if s.deactivated {
		return true, nil
	}
	values := []kg.Term{focus}
	path := ""
	if s.way != nil {
		if values, err = s.way.from(v, values); err != nil {
			return false, err
		}
		path = s.way.String()
	}
	each := 1 + costOf(values)
	for i, c := range s.constraints {
		if err := v.meter.spend(each); err != nil {
			return false, err
		}
		more := true
		f := found{focus: focus, values: values, path: path, shape: s, component: c.component(), ordinal: i, emit: func(x finding) bool {
			more = out(x)
			return more
		}}
		if err := c.check(v, &f); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// conforms tells whether nothing of the node violates the shape.
func (s *shape) conforms(v *view, node kg.Term) (bool, error) {
	ok := true
	_, err := s.validate(v, node, func(finding) bool {
		ok = false
		return false
	})
	return ok, err
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
	emit      emit
}

// violates notes a finding, and tells whether more are wanted.
func (f *found) violates(value kg.Term, message string) bool {
	return f.violatesAt(f.path, value, message)
}

func (f *found) violatesAt(path string, value kg.Term, message string) bool {
	if f.shape.message != "" {
		message = f.shape.message
	}
	return f.emit(finding{focus: f.focus, path: path, value: value, shape: f.shape, component: f.component, ordinal: f.ordinal, aspect: f.aspect, degree: f.degree, message: message})
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
