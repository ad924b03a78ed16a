package provenance

import (
	"encoding/binary"
	"slices"

	"koine/internal/shapes"
	"koine/kg"
)

// Kind is the kind of a contradiction.
type Kind uint8

// The kinds, in the order in which Contradictions finds them.
const (
	// Functional: a subject has several values of an owl:FunctionalProperty.
	Functional Kind = iota + 1
	// InverseFunctional: several subjects share a value of an
	// owl:InverseFunctionalProperty.
	InverseFunctional
	// MaxCount: a target of a shape has more values than the shape allows
	// (shapes.Limit).
	MaxCount
	// SameAndDifferent: two nodes are both owl:sameAs and owl:differentFrom each other.
	SameAndDifferent
	// Disjoint: a node has two classes that are owl:disjointWith each other.
	Disjoint
)

// The vocabulary that declares constraints.
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

// Limits of a search and of its results.
const (
	DefaultContradictions = 25
	MaxContradictions     = 100
	// MaxCompared bounds the statements that are read for one page.
	MaxCompared = 1_000_000
	// MaxSides bounds the statements that a contradiction lists, and MaxCountedSides
	// those that it counts.
	MaxSides        = 20
	MaxCountedSides = 10_000
	// MaxDeclarations bounds, for each kind, the declarations that a search checks:
	// properties, pairs of classes, and targets of shapes with their subclasses.
	MaxDeclarations = 10_000
)

// Contradiction is a set of statements that cannot all be true.
type Contradiction struct {
	Kind   Kind
	Reason string
	// About is the node that has too many values or classes, or is the same as and
	// different from another.
	About kg.Term
	// Property is the property concerned; zero for SameAndDifferent.
	Property kg.Term
	// Statements are the contradicting statements with their assertions, at most
	// MaxSides. Total is their number, counted up to MaxCountedSides.
	Statements []kg.Statement
	Total      int
}

// Search selects a page of contradictions.
type Search struct {
	Most  int    // MaxContradictions at the most
	After Cursor // Page.End of the page before
	// Compare bounds the statements that are read: MaxCompared if 0.
	Compare int
}

// Page is a page of contradictions.
type Page struct {
	List []Contradiction
	// More reports that the search did not reach its end. The next page starts at End.
	More bool
	End  Cursor
	// starts are the positions at which the contradictions were found.
	starts []Cursor
	// Complete is false when the search ended early: after Search.Compare statements,
	// or past MaxDeclarations.
	Complete bool
}

// Behind returns the cursor for what follows the k-th contradiction of the page.
func (p *Page) Behind(k int) Cursor {
	switch {
	case k+1 < len(p.starts):
		return p.starts[k+1]
	case p.More:
		return p.End
	}
	return Cursor{kind: Disjoint + 1} // behind the last kind
}

// Contradictions finds the contradictions among the statements of a snapshot. The order
// is the same for every search at a revision: by kind, then in index order. Each page
// continues at the end of the one before, so the pages together check everything once.
// Statements whose assertions are valid at disjoint times do not contradict each other.
func Contradictions(s *kg.Snapshot, limits []shapes.Limit, o Search) (*Page, error) {
	if o.Compare == 0 {
		o.Compare = MaxCompared
	}
	f := &finder{s: s, sweep: s.Sweep(), limit: min(o.Most, MaxContradictions), unread: o.Compare, from: o.After, found: &Page{Complete: true}}
	defer f.sweep.Close()
	for kind, find := range [...]func() error{
		Functional:        func() error { return f.checkPropertyClass(functional, false) },
		InverseFunctional: func() error { return f.checkPropertyClass(inverseFunctional, true) },
		MaxCount:          func() error { return f.checkShapeLimits(limits) },
		SameAndDifferent:  f.checkSameAndDifferent,
		Disjoint:          f.checkDisjoint,
	} {
		if find == nil || Kind(kind) < f.from.kind {
			continue
		}
		f.at = Cursor{kind: Kind(kind)}
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

// finder is a search in progress.
type finder struct {
	s      *kg.Snapshot
	sweep  *kg.Sweep
	limit  int
	unread int    // statements that may still be read
	moved  bool   // the search has made progress that the next page need not repeat
	from   Cursor // start of the search
	at     Cursor // everything before it is checked
	found  *Page
}

// startDeclaration moves to a declaration. It reports true if an earlier page has finished that
// declaration.
func (f *finder) startDeclaration(nth int) (done bool) {
	at := Cursor{kind: f.at.kind, nth: uint32(nth)}
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

// scanRows calls fn for the rows of a pattern, starting at the position of the search. It
// stops between two rows when the budget is used up, after one row at the least.
func (f *finder) scanRows(p kg.IDPattern, fn func(row *kg.Row, before kg.IDQuad) error) error {
	var after *kg.IDQuad
	if f.at.row != (kg.IDQuad{}) {
		row := f.at.row
		after = &row
	}
	for row, err := range f.s.MatchIDs(p, after) {
		if err == nil {
			err = f.countRead()
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

// countRead counts a statement against the budget. It ends the page when the budget is used
// up.
func (f *finder) countRead() error {
	if f.unread <= 0 && f.moved {
		return errTooMany
	}
	f.unread--
	return nil
}

func (f *finder) addResult(c Contradiction) error {
	if len(f.found.List) == f.limit {
		return errEnough
	}
	c.Total = len(c.Statements)
	slices.SortFunc(c.Statements, func(a, b kg.Statement) int { return compareQuads(a.Quad, b.Quad) })
	c.Statements = c.Statements[:min(c.Total, MaxSides)]
	f.found.List, f.found.starts = append(f.found.List, c), append(f.found.starts, f.at)
	return nil
}

// Cursor is the position at which a search for contradictions stopped. It is valid in
// one store at one revision only. The zero Cursor is the beginning.
type Cursor struct {
	kind Kind
	nth  uint32    // number of the declaration within the kind
	row  kg.IDQuad // last row checked for it; zero for none
}

// CursorBytes is the length of Cursor.Bytes.
const CursorBytes = 1 + 4 + 4*len(kg.ID{})

// Bytes encodes the cursor.
func (p Cursor) Bytes() []byte {
	b := binary.BigEndian.AppendUint32([]byte{byte(p.kind)}, p.nth)
	for _, id := range [...]kg.ID{p.row.Subject, p.row.Predicate, p.row.Object, p.row.Graph} {
		b = append(b, id[:]...)
	}
	return b
}

// ParseCursor decodes Cursor.Bytes. It reports false for any other input.
func ParseCursor(b []byte) (p Cursor, ok bool) {
	if len(b) != CursorBytes || b[0] > byte(Disjoint) {
		return p, false
	}
	p.kind, p.nth = Kind(b[0]), binary.BigEndian.Uint32(b[1:])
	b = b[5:]
	for _, id := range [...]*kg.ID{&p.row.Subject, &p.row.Predicate, &p.row.Object, &p.row.Graph} {
		b = b[copy(id[:], b):]
	}
	return p, true
}
