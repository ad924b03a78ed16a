package query

import (
	"iter"

	"koine/internal/query/path"
	"koine/kg"
)

// trail is a path from the entities of a match. A single predicate becomes one
// of the match's wanted predicates, so that its statements are gathered with
// the others.
type trail struct {
	path *path.Path
	slot int // index of its state in a scan
	// wanted is the index of the single predicate, -1 for other paths. against
	// is the predicate of a path of one inverted predicate.
	wanted  int
	against kg.Term
}

// maxFollowed bounds the statements that one scan reads for one path. In
// practice the operation's time bounds it.
const maxFollowed = 50_000_000

// compileTrail compiles a path.
func (m *EntityMatch) compileTrail(text string) (*trail, error) {
	p, err := path.Parse(text, m.Prefixes)
	if err != nil {
		return nil, err
	}
	t := &trail{path: p, slot: m.trails, wanted: -1}
	m.trails++
	switch predicate, inverted, single := p.Single(); {
	case single && inverted:
		t.against = predicate
	case single:
		t.wanted = m.wantPredicate(predicate)
	}
	return t, nil
}

// pathEnds yields the ids that a path reaches from an entity, or the values of a
// property, each once.
type pathEnds func(*subject) iter.Seq2[kg.ID, error]

// compileEnds compiles a property or a path; one of them is given.
func (m *EntityMatch) compileEnds(property *kg.Term, text *string) (pathEnds, error) {
	if property != nil {
		return wantedEnds(m.wantPredicate(*property)), nil
	}
	t, err := m.compileTrail(*text)
	if err != nil {
		return nil, err
	}
	return t.endsFunc(), nil
}

func (t *trail) endsFunc() pathEnds {
	if t.wanted >= 0 {
		return wantedEnds(t.wanted)
	}
	return func(s *subject) iter.Seq2[kg.ID, error] {
		if !t.against.IsZero() {
			return s.scan.followInverse(t, s.id)
		}
		return s.scan.followPath(t, s.id)
	}
}

// wantedEnds yields the objects of the statements with a wanted predicate.
func wantedEnds(wanted int) pathEnds {
	return func(s *subject) iter.Seq2[kg.ID, error] {
		return func(yield func(kg.ID, error) bool) {
			var last kg.ID
			for _, row := range s.rows[wanted] {
				if row.Object == last {
					continue // in another graph too
				}
				last = row.Object
				if !yield(row.Object, nil) {
					return
				}
			}
		}
	}
}

// trailScan is the state of a trail in a scan over entities.
type trailScan struct {
	bound *path.Bound
	sweep *kg.Sweep // for an inverted predicate
	id    kg.ID     // the predicate; zero if it has none
	ends  *endScan  // cached results for the ends
}

func (t *trailScan) close() {
	if t.sweep != nil {
		t.sweep.Close()
	}
	if t.ends != nil {
		t.ends.close()
	}
}

func (s *entityScan) trailScanAt(slot int) *trailScan {
	for slot >= len(s.trails) {
		s.trails = append(s.trails, &trailScan{})
	}
	return s.trails[slot]
}

// followPath yields the nodes that a path reaches from an entity, the nearest
// first.
func (s *entityScan) followPath(t *trail, from kg.ID) iter.Seq2[kg.ID, error] {
	on := s.trailScanAt(t.slot)
	if on.bound == nil {
		b, err := t.path.Bind(s.fact.snapshot, path.Options{Statements: maxFollowed})
		if err != nil {
			return func(yield func(kg.ID, error) bool) { yield(kg.ID{}, err) }
		}
		on.bound = b
	}
	return on.bound.Forward(from)
}

// followInverse yields the subjects of the statements with one predicate and this
// object.
func (s *entityScan) followInverse(t *trail, object kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		on := s.trailScanAt(t.slot)
		if on.sweep == nil {
			id, _, err := s.fact.snapshot.ID(t.against)
			if err != nil {
				yield(id, err)
				return
			}
			on.id, on.sweep = id, s.fact.snapshot.Sweep()
		}
		if on.id == (kg.ID{}) {
			return
		}
		var last kg.ID
		for on.sweep.Seek(kg.IDPattern{Predicate: on.id, Object: object}, nil); on.sweep.Next(); {
			subject := on.sweep.Row().Subject
			if subject == last {
				continue // in another graph too
			}
			last = subject
			if !yield(subject, nil) {
				return
			}
		}
		if err := on.sweep.Err(); err != nil {
			yield(kg.ID{}, err)
		}
	}
}
