package shapes

import (
	"slices"

	"koine/kg"
)

// shape is a compiled shape. It is immutable.
type shape struct {
	id          kg.Term
	path        propertyPath // from the focus node to the value nodes; nil for a node shape
	severity    kg.Term
	message     string // "" for that of the constraint
	deactivated bool
	constraints []constraint
	targets     targets
	root        bool // has targets and is active
	recursive   bool // contains itself
	monotone    bool // has only constraints that stay satisfied when more nodes conform to nested shapes
	invalid     bool // invalid; constrains nothing
	weak        bool // part of it, or of a nested shape, is omitted
}

// targets are the target declarations of a shape.
type targets struct {
	nodes      []kg.Term
	classes    []kg.Term
	subjectsOf []kg.Term // properties
	objectsOf  []kg.Term
}

func (t *targets) isEmpty() bool {
	return len(t.nodes)+len(t.classes)+len(t.subjectsOf)+len(t.objectsOf) == 0
}

func (t *targets) isTarget(v *dataView, node kg.Term) (bool, error) {
	if slices.Contains(t.nodes, node) {
		return true, nil
	}
	for _, class := range t.classes {
		if ok, err := v.isA(node, class); ok || err != nil {
			return ok, err
		}
	}
	for i, list := range [...][]kg.Term{t.subjectsOf, t.objectsOf} {
		for _, p := range list {
			ends, err := v.readLink(node, link{p, i == 1})
			if len(ends) > 0 || err != nil {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// finding is a violation of a constraint.
type finding struct {
	focus     kg.Term
	path      string
	value     kg.Term // zero for a violation by all values together
	shape     *shape
	component string
	ordinal   int    // index of the constraint in the shape
	aspect    string // separates findings without a value or of different causes
	degree    int    // size of the violation, if it can be counted
	message   string
}

// emitFunc receives a finding and reports whether to continue.
type emitFunc func(finding) bool

// validate passes the violations of the shape by the node to out until out returns false,
// and reports whether to continue. With a nil out, it ends at the first violation.
//
// A node that is being validated by a recursive shape counts as conforming to it.
func (s *shape) validate(v *dataView, focus kg.Term, out emitFunc) (more bool, err error) {
	switch {
	case s.deactivated:
		return true, nil
	case !s.recursive:
		return s.runConstraints(v, focus, out)
	}
	if err := v.meter.spendSteps(1); err != nil {
		return false, err
	}
	p := pair{s, focus}
	if out == nil || s.monotone {
		ok, err := v.conforming.decidePair(p, s.monotone, func() (bool, error) { return s.runConstraints(v, focus, nil) })
		if out == nil || ok || err != nil {
			return ok, err
		}
	} else if _, known := v.conforming.lookUp(p); known {
		return true, nil
	}
	if v.reported[p] {
		return true, nil
	}
	v.reported[p] = true
	err = v.conforming.withOpen(p, func() (err error) {
		more, err = s.runConstraints(v, focus, out)
		return err
	})
	return more, err
}

func (s *shape) runConstraints(v *dataView, focus kg.Term, out emitFunc) (more bool, err error) {
	values := []kg.Term{focus}
	path := ""
	if s.path != nil {
		if values, err = s.path.endNodes(v, values); err != nil {
			return false, err
		}
		if out != nil {
			path = s.path.String()
		}
	}
	each := 1 + costOf(values)
	for i, c := range s.constraints {
		if err := v.meter.spendSteps(each); err != nil {
			return false, err
		}
		f := checkContext{focus: focus, values: values, path: path, shape: s, component: c.componentName(), ordinal: i, out: out}
		if err := c.checkValues(v, &f); err != nil || f.ended {
			return false, err
		}
	}
	return true, nil
}

// collectFindings is validate at top level: each finding is reported once.
func (s *shape) collectFindings(v *dataView, node kg.Term, out emitFunc) error {
	clear(v.reported)
	_, err := s.validate(v, node, out)
	return err
}

// isConforming reports whether the node has no violations of the shape.
func (s *shape) isConforming(v *dataView, node kg.Term) (bool, error) {
	return s.validate(v, node, nil)
}

// checkContext is the input of a constraint and the receiver of its findings.
type checkContext struct {
	focus     kg.Term
	values    []kg.Term
	path      string
	shape     *shape
	component string
	ordinal   int
	aspect    string
	degree    int
	out       emitFunc // nil to stop at the first finding
	ended     bool     // out returned false
}

// addViolation adds a finding and reports whether to continue.
func (f *checkContext) addViolation(value kg.Term, message string) bool {
	return f.addViolationAt(f.path, value, message)
}

func (f *checkContext) addViolationAt(path string, value kg.Term, message string) bool {
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

// eachValue runs a test on each value. test returns the message for a violation, "" for none.
func (f *checkContext) eachValue(test func(value kg.Term) (string, error)) error {
	for _, value := range f.values {
		wrong, err := test(value)
		if err != nil {
			return err
		}
		if wrong != "" && !f.addViolation(value, wrong) {
			return nil
		}
	}
	return nil
}

// constraint is one constraint of a shape.
type constraint interface {
	// componentName returns the name of the constraint component, without sh:.
	componentName() string
	checkValues(v *dataView, f *checkContext) error
	// recordReads records the dependencies beyond the path of the shape itself; focus is the
	// path to the focus node, values the path to the value nodes.
	recordReads(r *dependencies, focus, values []propertyPath)
}
