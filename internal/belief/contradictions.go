package belief

import (
	"koine/internal/shapes"
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
	// MaxCount: a target of a shape has more values than it allows (shapes.Limit).
	MaxCount
	// SameAndDifferent: two things are owl:sameAs and owl:differentFrom each other.
	SameAndDifferent
	// Disjoint: a thing is of two classes that are owl:disjointWith each other.
	Disjoint
)

// The vocabulary that declares what contradicts.
const (
	owl               = "http://www.w3.org/2002/07/owl#"
	functional        = owl + "FunctionalProperty"
	inverseFunctional = owl + "InverseFunctionalProperty"
	sameAs            = owl + "sameAs"
	differentFrom     = owl + "differentFrom"
	disjointWith      = owl + "disjointWith"
)

var (
	rdfType    = kg.IRI(kg.RDFType)
	subClassOf = kg.IRI("http://www.w3.org/2000/01/rdf-schema#subClassOf")
)

// Bounds on what is looked at and told.
const (
	DefaultContradictions = 25
	MaxContradictions     = 100
	// MaxCompared bounds the statements that are looked at for one page.
	MaxCompared = 1_000_000
	// MaxSides bounds the statements that are told of one contradiction, and
	// MaxCountedSides those that are read.
	MaxSides        = 20
	MaxCountedSides = 10_000
	// MaxDeclarations bounds the properties, pairs of classes, and targets of shapes
	// with what is below them, of each kind that are gone by.
	MaxDeclarations = 10_000
)

// Contradiction is a set of statements that cannot all hold.
type Contradiction struct {
	Kind   Kind
	Reason string
	// About is what has too many values or classes, or is the same and another.
	About kg.Term
	// Property that it is about; zero for SameAndDifferent.
	Property kg.Term
	// Statements are its sides with who backs them, MaxSides at the most; Total is
	// how many there are, counted up to MaxCountedSides.
	Statements []kg.Statement
	Total      int
}

// Search says which contradictions are wanted.
type Search struct {
	Most  int   // MaxContradictions at the most
	After Place // Found.End of the page before
	// Compare bounds the statements that are looked at: MaxCompared if 0.
	Compare int
}

// Found is a page of contradictions.
type Found struct {
	List []Contradiction
	// More tells that there are more behind these, or that there may be where the
	// search ended early. They are behind End.
	More bool
	End  Place
	// Complete is false when the search ended early: after Search.Compare
	// statements, or past MaxDeclarations.
	Complete bool
}

// Contradictions finds those of what the snapshot shows, in an order that is the
// same for each reading of a revision: by kind, and then as the index has them.
// Each page goes on where the one before stopped, so that all pages together look
// at everything once. Where all sides have assertions that are valid at different
// times only, nothing contradicts.
func Contradictions(s *kg.Snapshot, limits []shapes.Limit, o Search) (*Found, error) {
	if o.Compare == 0 {
		o.Compare = MaxCompared
	}
	f := &finder{s: s, sweep: s.Sweep(), most: min(o.Most, MaxContradictions), left: o.Compare, from: o.After, found: &Found{Complete: true}}
	defer f.sweep.Close()
	for kind, find := range [...]func() error{
		Functional:        func() error { return f.declaredCrowds(functional, false) },
		InverseFunctional: func() error { return f.declaredCrowds(inverseFunctional, true) },
		MaxCount:          func() error { return f.limited(limits) },
		SameAndDifferent:  f.sameAndDifferent,
		Disjoint:          f.disjoint,
	} {
		if find == nil || Kind(kind) < f.from.kind {
			continue
		}
		f.at = Place{kind: Kind(kind)}
		switch err := find(); {
		case err == errEnough || err == errTooMany:
			f.found.More, f.found.End = true, f.at
			f.found.Complete = f.found.Complete && err == errEnough
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

// finder is a search under way.
type finder struct {
	s     *kg.Snapshot
	sweep *kg.Sweep
	most  int
	left  int   // statements that may still be looked at
	moved bool  // something was looked at that need not be again
	from  Place // where the search begins
	at    Place // everything before was looked at
	found *Found
}

// begin goes to a declaration, and tells whether it was gone by already.
func (f *finder) begin(nth int) (done bool) {
	at := Place{kind: f.at.kind, nth: uint32(nth)}
	switch {
	case f.from.kind != at.kind || at.nth > f.from.nth:
	case at.nth < f.from.nth:
		return true
	default:
		at = f.from
	}
	f.at = at
	return false
}

// rows calls fn for the rows of a pattern, from where the search is on. It ends
// between two rows where enough was looked at, after one at the least.
func (f *finder) rows(p kg.IDPattern, fn func(row *kg.Row, before kg.IDQuad) error) error {
	var after *kg.IDQuad
	if f.at.row != (kg.IDQuad{}) {
		row := f.at.row
		after = &row
	}
	for row, err := range f.s.MatchIDs(p, after) {
		if err == nil {
			err = f.step()
		}
		if err == nil {
			err = fn(&row, f.at.row)
		}
		if err != nil {
			return err
		}
		f.at.row, f.moved = row.IDQuad, true
	}
	return nil
}

// step ends the page, if enough was looked at for it.
func (f *finder) step() error {
	if f.left <= 0 && f.moved {
		return errTooMany
	}
	f.left--
	return nil
}

// take takes a contradiction into the page.
func (f *finder) take(c Contradiction) error {
	if len(f.found.List) == f.most {
		return errEnough
	}
	c.Total = len(c.Statements)
	sortSides(c.Statements)
	c.Statements = c.Statements[:min(c.Total, MaxSides)]
	f.found.List = append(f.found.List, c)
	return nil
}
