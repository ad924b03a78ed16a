package path

import (
	"slices"

	"koine/kg"
)

// Direction is the direction of statements, seen from an entity.
type Direction string

// The directions. The zero Direction is Both.
const (
	Out  Direction = "OUT"
	In   Direction = "IN"
	Both Direction = "BOTH"
)

// Edges selects the statements that Shortest and Neighborhood follow, and bounds
// the search.
type Edges struct {
	// Predicates are the predicates to follow. nil follows all but rdf:type, which
	// would connect any two members of a class. An unknown predicate matches
	// nothing.
	Predicates []kg.Term
	Direction  Direction
	// Statements bounds the statements read or looked up; 0 is DefaultStatements.
	Statements int
}

// expander steps from entities to their neighbours.
type expander struct {
	snapshot   *kg.Snapshot
	predicates []kg.ID // sorted; nil for all but left
	excluded   kg.ID
	statements int
	read       int
}

func (e Edges) bindPredicates(s *kg.Snapshot) (*expander, error) {
	c := &expander{snapshot: s, statements: e.Statements}
	if c.statements <= 0 {
		c.statements = DefaultStatements
	}
	if e.Predicates == nil {
		var err error
		c.excluded, _, err = s.ID(kg.IRI(kg.RDFType))
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
	slices.SortFunc(c.predicates, kg.ID.Compare)
	c.predicates = slices.Compact(c.predicates)
	return c, nil
}

func (c *expander) countRead() error {
	if c.read++; c.read > c.statements {
		e := kg.Errorf(kg.CodeLimitExceeded, "the search reads more than %d statements", c.statements)
		e.Limit = "reads"
		e.Hint = "Select predicates, choose a direction, or reduce the depth."
		return e
	}
	return nil
}

// eachStatement calls do for the statements of the entities, which are sorted, in the given
// direction. It takes one pass over the index.
func (c *expander) eachStatement(of []kg.ID, against bool, do func(row *kg.Row) error) error {
	sweep := c.snapshot.Sweep()
	defer sweep.Close()
	for _, id := range of {
		pattern := kg.IDPattern{Subject: id}
		if against {
			pattern = kg.IDPattern{Object: id}
		}
		if c.predicates == nil {
			if err := c.scanPattern(sweep, pattern, do); err != nil {
				return err
			}
		}
		for _, pattern.Predicate = range c.predicates {
			if err := c.scanPattern(sweep, pattern, do); err != nil {
				return err
			}
		}
	}
	return sweep.Err()
}

func (c *expander) scanPattern(sweep *kg.Sweep, pattern kg.IDPattern, do func(row *kg.Row) error) error {
	if err := c.countRead(); err != nil {
		return err
	}
	for sweep.Seek(pattern, nil); sweep.Next(); {
		if err := c.countRead(); err != nil {
			return err
		}
		if c.predicates == nil && sweep.Row().Predicate == c.excluded {
			continue
		}
		if err := do(sweep.Row()); err != nil {
			return err
		}
	}
	return sweep.Err()
}
