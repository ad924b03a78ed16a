package belief

import (
	"context"
	"fmt"
	"slices"

	"koine/kg"
)

// Kind says what makes a contradiction one.
type Kind uint8

// The kinds, in the order in which they are found.
const (
	// Functional: a subject has several values of an owl:FunctionalProperty.
	Functional Kind = iota + 1
	// InverseFunctional: several subjects have one value of an
	// owl:InverseFunctionalProperty.
	InverseFunctional
	// MaxCount: an instance of a class has more values than a shape allows.
	MaxCount
	// SameAndDifferent: two things are owl:sameAs and owl:differentFrom each other.
	SameAndDifferent
	// Disjoint: a thing is of two classes that are owl:disjointWith each other.
	Disjoint
)

// The vocabulary that declares what contradicts.
const (
	owl               = "http://www.w3.org/2002/07/owl#"
	sh                = "http://www.w3.org/ns/shacl#"
	functional        = owl + "FunctionalProperty"
	inverseFunctional = owl + "InverseFunctionalProperty"
	sameAs            = owl + "sameAs"
	differentFrom     = owl + "differentFrom"
	disjointWith      = owl + "disjointWith"
)

// Bounds on what is looked at and told.
const (
	DefaultContradictions = 25
	MaxContradictions     = 100
	// MaxCompared bounds the statements that are looked at for one page.
	MaxCompared = 1_000_000
	// MaxSides bounds the statements that are told of one contradiction.
	MaxSides = 20
	// MaxDeclarations bounds the properties, pairs of classes and shapes of each
	// kind that are gone by.
	MaxDeclarations = 1000
)

// Contradiction is a set of statements that cannot all hold.
type Contradiction struct {
	Kind   Kind
	Reason string
	// About is what has too many values or classes, or is the same and another.
	About kg.Term
	// Property or class pair that it is about; zero for SameAndDifferent.
	Property kg.Term
	// Statements are its sides with who backs them, MaxSides at the most; Total is
	// how many there are.
	Statements []kg.Statement
	Total      int
}

// Found is a page of contradictions.
type Found struct {
	List []Contradiction
	// More tells that there are more behind these.
	More bool
	// Complete is false when the search ended at MaxCompared before it was through.
	Complete bool
}

// Contradictions finds those of what the snapshot shows, behind the first skip,
// most at the most, in an order that is the same for each reading of a revision.
// Where all sides have assertions that are valid at different times only, nothing
// contradicts. Shapes are those of the shapes graph as constraints shows it.
func Contradictions(ctx context.Context, s, constraints *kg.Snapshot, skip, most int) (*Found, error) {
	f := &finder{ctx: ctx, s: s, skip: skip, most: min(most, MaxContradictions), found: &Found{Complete: true}}
	for _, find := range [...]func() error{
		f.functional, f.inverseFunctional, func() error { return f.maxCounts(constraints) }, f.sameAndDifferent, f.disjoint,
	} {
		err := find()
		switch {
		case err == errEnough:
			f.found.More = true
			return f.found, nil
		case err == errTooMany:
			f.found.Complete = false
			return f.found, nil
		case err != nil:
			return nil, err
		}
	}
	return f.found, nil
}

var (
	errEnough  = kg.Errorf(kg.CodeInternal, "the page is full")
	errTooMany = kg.Errorf(kg.CodeInternal, "too many statements were looked at")
)

type finder struct {
	ctx      context.Context
	s        *kg.Snapshot
	skip     int
	most     int
	compared int
	found    *Found
}

// see counts a statement that is looked at.
func (f *finder) see() error {
	if f.compared++; f.compared > MaxCompared {
		return errTooMany
	}
	return nil
}

// declared lists the subjects of a class, or what stands about a property, in the
// order of Term.Compare.
func (f *finder) declared(p kg.Pattern) (list []kg.Quad, err error) {
	for st, err := range f.s.Match(p) {
		if err == nil {
			err = f.see()
		}
		if err != nil {
			return nil, err
		}
		if list = append(list, st.Quad); len(list) == MaxDeclarations {
			break
		}
	}
	slices.SortFunc(list, func(a, b kg.Quad) int {
		if c := a.Subject.Compare(b.Subject); c != 0 {
			return c
		}
		return a.Object.Compare(b.Object)
	})
	return slices.CompactFunc(list, func(a, b kg.Quad) bool { return a.Subject == b.Subject && a.Object == b.Object }), nil
}

func (f *finder) functional() error {
	return f.each(functional, func(property kg.Term, id kg.ID) error {
		return f.crowded(id, func(row *kg.Row) (of, value kg.ID) { return row.Subject, row.Object }, func(subject kg.ID) error {
			about, err := f.s.Term(subject)
			if err != nil {
				return err
			}
			return f.tell(Contradiction{Kind: Functional, About: about, Property: property,
				Reason: fmt.Sprintf("%s has one value at the most: it is an owl:FunctionalProperty", property.Name())},
				1, kg.Pattern{Subject: about, Predicate: property}, objectOf)
		})
	})
}

func (f *finder) inverseFunctional() error {
	return f.each(inverseFunctional, func(property kg.Term, id kg.ID) error {
		return f.crowded(id, func(row *kg.Row) (of, value kg.ID) { return row.Object, row.Subject }, func(object kg.ID) error {
			about, err := f.s.Term(object)
			if err != nil {
				return err
			}
			return f.tell(Contradiction{Kind: InverseFunctional, About: about, Property: property,
				Reason: fmt.Sprintf("%s is said of one thing at the most: it is an owl:InverseFunctionalProperty", property.Name())},
				1, kg.Pattern{Predicate: property, Object: about}, subjectOf)
		})
	})
}
