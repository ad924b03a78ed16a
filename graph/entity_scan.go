package graph

import "koine/kg"

// entityScan is the state that the tests and the order of one scan over
// entities share. It belongs to one goroutine and must be closed before its
// snapshot.
type entityScan struct {
	fact    testedStatement // the statement under test
	degrees [2]*kg.Sweep
	trails  []*trailScan
}

func newEntityScan(s *kg.Snapshot) *entityScan {
	return &entityScan{fact: testedStatement{snapshot: s}}
}

func (s *entityScan) close() {
	for _, sweep := range s.degrees {
		if sweep != nil {
			sweep.Close()
		}
	}
	for _, t := range s.trails {
		t.close()
	}
}

// countDegree counts the statements with the entity, which is cheap if the entities
// come in id order.
func (s *entityScan) countDegree(id kg.ID, d Direction) (n uint64, err error) {
	count := func(side int, p kg.IDPattern) {
		if s.degrees[side] == nil {
			s.degrees[side] = s.fact.snapshot.Sweep()
		}
		sweep := s.degrees[side]
		for sweep.Seek(p, nil); sweep.Next(); {
			n++
		}
		if err == nil {
			err = sweep.Err()
		}
	}
	if d != DirectionIn {
		count(0, kg.IDPattern{Subject: id})
	}
	if d != DirectionOut {
		count(1, kg.IDPattern{Object: id})
	}
	return n, err
}
