package path

import (
	"slices"

	"koine/kg"
)

// Direction is how statements may be taken.
type Direction uint8

// The directions.
const (
	Either  Direction = iota
	Along             // from subject to object
	Against           // from object to subject
)

// Edges are the statements that Shortest and Neighbourhood go through, and the
// bounds of going.
type Edges struct {
	// Predicates that are gone through; nil goes through all but rdf:type, through
	// which any two things of a class would be beside each other. One that the
	// store does not know matches nothing.
	Predicates []kg.Term
	Direction  Direction
	// Statements bounds what is read or looked for; 0 is DefaultStatements.
	Statements int
}

// crossing goes from entities to those beside them.
type crossing struct {
	snapshot   *kg.Snapshot
	predicates []kg.ID // in order; nil for all but left
	left       kg.ID
	statements int
	read       int
}

func (e Edges) bind(s *kg.Snapshot) (*crossing, error) {
	c := &crossing{snapshot: s, statements: e.Statements}
	if c.statements <= 0 {
		c.statements = DefaultStatements
	}
	if e.Predicates == nil {
		var err error
		c.left, _, err = s.ID(kg.IRI(kg.RDFType))
		return c, err
	}
	c.predicates = []kg.ID{}
	for _, p := range e.Predicates {
		id, known, err := s.ID(p)
		if err != nil {
			return nil, err
		}
		if known {
			c.predicates = append(c.predicates, id)
		}
	}
	slices.SortFunc(c.predicates, compareIDs)
	c.predicates = slices.Compact(c.predicates)
	return c, nil
}

func (c *crossing) charge() error {
	if c.read++; c.read > c.statements {
		e := kg.Errorf(kg.CodeLimitExceeded, "more than %d statements are read on the way", c.statements)
		e.Limit = "reads"
		e.Hint = "Name the predicates to go through, choose a direction, or go less far."
		return e
	}
	return nil
}

// each calls do for the statements of these entities, which are in order: along
// the direction or against it, in one pass over the index.
func (c *crossing) each(of []kg.ID, against bool, do func(row *kg.Row) error) error {
	sweep := c.snapshot.Sweep()
	defer sweep.Close()
	for _, id := range of {
		pattern := kg.IDPattern{Subject: id}
		if against {
			pattern = kg.IDPattern{Object: id}
		}
		if c.predicates == nil {
			if err := c.scan(sweep, pattern, do); err != nil {
				return err
			}
		}
		for _, pattern.Predicate = range c.predicates {
			if err := c.scan(sweep, pattern, do); err != nil {
				return err
			}
		}
	}
	return sweep.Err()
}

func (c *crossing) scan(sweep *kg.Sweep, pattern kg.IDPattern, do func(row *kg.Row) error) error {
	if err := c.charge(); err != nil {
		return err
	}
	for sweep.Seek(pattern, nil); sweep.Next(); {
		if err := c.charge(); err != nil {
			return err
		}
		if c.predicates == nil && sweep.Row().Predicate == c.left {
			continue
		}
		if err := do(sweep.Row()); err != nil {
			return err
		}
	}
	return sweep.Err()
}
