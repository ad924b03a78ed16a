package shapes

import (
	"slices"
	"strconv"

	"koine/kg"
)

// named is the component of a constraint that reads more than the value nodes.
type named string

func (n named) componentName() string { return string(n) + "ConstraintComponent" }

type (
	classConstraint struct {
		named
		class kg.Term
	}
	// comparison is the base of constraints that compare the value nodes with the values
	// of another property of the focus node.
	comparison struct {
		named
		with link
	}
	equalsConstraint   struct{ comparison }
	disjointConstraint struct{ comparison }
	lessThanConstraint struct {
		comparison
		orEqual bool
	}
	closedConstraint struct {
		named
		allowed map[kg.Term]bool
	}
)

func (c classConstraint) checkValues(v *dataView, f *checkContext) error {
	return f.eachValue(func(value kg.Term) (string, error) {
		if ok, err := v.isA(value, c.class); ok || err != nil {
			return "", err
		}
		return "is not an instance of " + c.class.Value(), nil
	})
}

func (c classConstraint) recordReads(r *dependencies, _, values []propertyPath) {
	r.addInstanceTest(values, c.class)
}

func (c equalsConstraint) checkValues(v *dataView, f *checkContext) error {
	others, err := v.readLink(f.focus, c.with)
	if err != nil {
		return err
	}
	in, have := setOf(others), setOf(f.values)
	for _, value := range f.values {
		if !in[value] && !f.addViolation(value, "is not a value of "+c.with.predicate.Value()) {
			return nil
		}
	}
	for _, other := range others {
		if !have[other] && !f.addViolation(other, "is a value of "+c.with.predicate.Value()+" only") {
			return nil
		}
	}
	return nil
}

func (c comparison) recordReads(r *dependencies, focus, _ []propertyPath) { r.addLink(focus, c.with) }

func (c disjointConstraint) checkValues(v *dataView, f *checkContext) error {
	others, err := v.readLink(f.focus, c.with)
	if err != nil {
		return err
	}
	in := setOf(others)
	return f.eachValue(func(value kg.Term) (string, error) {
		if in[value] {
			return "is a value of " + c.with.predicate.Value() + " too", nil
		}
		return "", nil
	})
}

func (c lessThanConstraint) checkValues(v *dataView, f *checkContext) error {
	others, err := v.readLink(f.focus, c.with)
	if err != nil {
		return err
	}
	message := "is not less than the value of "
	if c.orEqual {
		message = "is greater than the value of "
	}
	each := costOf(others)
	for _, value := range f.values {
		if err := v.meter.spendSteps(each); err != nil {
			return err
		}
		f.degree = 0
		for _, other := range others {
			if order, ok := compareLiterals(value, other); !ok || order > 0 || !c.orEqual && order == 0 {
				f.degree++
			}
		}
		for range f.degree { // once for each of the others
			if !f.addViolation(value, message+c.with.predicate.Value()) {
				return nil
			}
		}
	}
	return nil
}

func (c closedConstraint) checkValues(v *dataView, f *checkContext) error {
	for _, value := range f.values {
		list, err := v.readProperties(value)
		if err != nil {
			return err
		}
		for _, p := range list {
			if !c.allowed[p.predicate] && !f.addViolationAt(p.predicate.Value(), p.object, "is not among the properties of a closed shape") {
				return nil
			}
		}
	}
	return nil
}

func (c closedConstraint) recordReads(r *dependencies, _, values []propertyPath) {
	r.addLink(values, link{})
}

func setOf[T comparable](list []T) map[T]bool {
	set := make(map[T]bool, len(list))
	for _, t := range list {
		set[t] = true
	}
	return set
}

// parts is the base of constraints that contain shapes for the value nodes.
type parts struct {
	named
	shapes []*shape
}

func (p parts) recordReads(r *dependencies, _, values []propertyPath) {
	for _, s := range p.shapes {
		r.addShape(s, values)
	}
}

func (p parts) countConforming(v *dataView, value kg.Term) (n int, err error) {
	for _, s := range p.shapes {
		ok, err := s.isConforming(v, value)
		if err != nil {
			return 0, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

type (
	propertyConstraint struct{ parts }
	// logicalConstraint is sh:node, sh:not, sh:and, sh:or or sh:xone: each requires
	// a number of conforming shapes.
	logicalConstraint struct {
		parts
		holds func(conforming, of int) bool
		grade grading
		words string
	}
	qualifiedConstraint struct {
		parts    // the qualified value shape
		siblings []*shape
		least    bool
		n        int
	}
)

func (c propertyConstraint) checkValues(v *dataView, f *checkContext) error {
	for _, value := range f.values {
		for _, s := range c.shapes {
			if more, err := s.validate(v, value, f.out); err != nil || !more {
				f.ended = true
				return err
			}
		}
	}
	return nil
}

// grading is how two states of a non-conforming value are compared.
type grading uint8

const (
	ungraded     grading = iota
	gradedByEach         // all shapes must conform
	gradedByAll          // one shape must conform
)

// tooManyConform is the aspect of a sh:xone with several conforming shapes: a different
// violation than none.
const tooManyConform = "several"

func (c logicalConstraint) checkValues(v *dataView, f *checkContext) error {
	return f.eachValue(func(value kg.Term) (string, error) {
		n, err := c.countConforming(v, value)
		if err != nil || c.holds(n, len(c.shapes)) {
			return "", err
		}
		f.aspect, f.degree = "", 0
		if c.grade == gradedByAll && n > 0 {
			f.aspect, f.degree = tooManyConform, n
		}
		return c.words, nil
	})
}

func (c qualifiedConstraint) checkValues(v *dataView, f *checkContext) error {
	n := 0
	for _, value := range f.values {
		ok, err := c.isQualified(v, value)
		if err != nil {
			return err
		}
		if ok {
			n++
		}
	}
	switch {
	case c.least && n < c.n:
		f.degree = c.n - n
		f.addViolation(kg.Term{}, "has "+strconv.Itoa(n)+" of at least "+strconv.Itoa(c.n)+" values that conform to "+shapeName(c.shapes[0]))
	case !c.least && n > c.n:
		f.degree = n - c.n
		f.addViolation(kg.Term{}, "has "+strconv.Itoa(n)+" values that conform to "+shapeName(c.shapes[0])+", at most "+strconv.Itoa(c.n)+" are allowed")
	}
	return nil
}

func (c qualifiedConstraint) isQualified(v *dataView, value kg.Term) (bool, error) {
	ok, err := c.shapes[0].isConforming(v, value)
	if !ok || err != nil {
		return false, err
	}
	for _, s := range c.siblings {
		if ok, err := s.isConforming(v, value); ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (c qualifiedConstraint) recordReads(r *dependencies, focus, values []propertyPath) {
	c.parts.recordReads(r, focus, values)
	for _, s := range c.siblings {
		if !slices.Contains(c.shapes, s) {
			r.addShape(s, values)
		}
	}
}
