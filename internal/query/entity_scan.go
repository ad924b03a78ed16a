package query

import (
	"koine/internal/query/path"
	"koine/kg"
)

// entityScan is the state that the tests and the order of one scan over
// entities share. It belongs to one goroutine and must be closed before its
// snapshot.
type entityScan struct {
	fact testedStatement // the statement under test
	Degrees
	trails []*trailScan
	// decided are the cached results of the tests of values, by their number; nil:
	// results are not cached.
	decided []map[kg.ID]bool
}

func newEntityScan(s *kg.Snapshot) *entityScan {
	return &entityScan{fact: testedStatement{snapshot: s}, Degrees: Degrees{snapshot: s}}
}

func (s *entityScan) close() {
	s.Degrees.Close()
	for _, t := range s.trails {
		t.close()
	}
}

// Degrees counts the statements of entities, which is cheap if the entities
// come in id order.
type Degrees struct {
	snapshot *kg.Snapshot
	sweeps   [2]*kg.Sweep
}

// NewDegrees begins to count.
func NewDegrees(s *kg.Snapshot) *Degrees { return &Degrees{snapshot: s} }

// Close ends the walks.
func (s *Degrees) Close() {
	for _, sweep := range s.sweeps {
		if sweep != nil {
			sweep.Close()
		}
	}
}

// Count counts the statements with the entity. One from the entity to itself
// counts twice in both directions.
func (s *Degrees) Count(id kg.ID, d path.Direction) (n uint64, err error) {
	count := func(side int, p kg.IDPattern) {
		if s.sweeps[side] == nil {
			s.sweeps[side] = s.snapshot.Sweep()
		}
		sweep := s.sweeps[side]
		for sweep.Seek(p, nil); sweep.Next(); {
			n++
		}
		if err == nil {
			err = sweep.Err()
		}
	}
	if d != path.In {
		count(0, kg.IDPattern{Subject: id})
	}
	if d != path.Out {
		count(1, kg.IDPattern{Object: id})
	}
	return n, err
}
