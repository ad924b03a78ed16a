package systemgraph

import (
	"context"
	"slices"
	"sync"

	"koine/kg"
)

// Fact is a statement of koine's own graphs that exists or was removed.
type Fact struct {
	kg.Quad
	Exists bool
	// Since is the revision in which the statement was added or removed.
	Since kg.Revision
}

// Mirror follows statements in koine's own graphs: call Load once when the store is
// open, then Follow for every commit. The caller builds its state from the facts and
// publishes it to readers that take no lock. The callback is never called concurrently;
// it must not block and must not call the mirror. The zero Mirror is ready. Safe for
// concurrent use.
type Mirror struct {
	mu       sync.Mutex  // held during the callback
	followed kg.Revision // newest applied commit; guarded by mu
}

// Reader is the part of kg.Store that a Mirror loads from.
type Reader interface {
	View(context.Context, kg.View) (*kg.Snapshot, error)
	WaitFor(context.Context, kg.Revision) error
}

// Load passes to apply, in one call, all statements that match one of the patterns, and
// the revision of the snapshot. It includes the commits from before the call; later
// commits wait for it.
func (m *Mirror) Load(ctx context.Context, store Reader, apply func(at kg.Revision, facts []Fact), patterns ...kg.Pattern) error {
	return m.loadFacts(ctx, store, apply, func(s *kg.Snapshot) (facts []Fact, err error) {
		for _, p := range patterns {
			if facts, err = appendFacts(facts, s, p); err != nil {
				return nil, err
			}
		}
		return facts, nil
	})
}

// LoadClass is Load for some properties of the instances of a class, each read in the
// graph that declares the class. It reads nothing else, however many other entities
// have the same properties.
func (m *Mirror) LoadClass(ctx context.Context, store Reader, apply func(at kg.Revision, facts []Fact), class kg.Term, properties ...kg.Term) error {
	return m.loadFacts(ctx, store, apply, func(s *kg.Snapshot) (facts []Fact, err error) {
		entities, err := appendFacts(nil, s, kg.Pattern{Predicate: kg.IRI(kg.RDFType), Object: class})
		if err != nil {
			return nil, err
		}
		for _, e := range entities {
			for _, p := range properties {
				if facts, err = appendFacts(facts, s, kg.Pattern{Subject: e.Subject, Predicate: p, Graph: e.Graph}); err != nil {
					return nil, err
				}
			}
		}
		return facts, nil
	})
}

func appendFacts(facts []Fact, s *kg.Snapshot, p kg.Pattern) ([]Fact, error) {
	for st, err := range s.Match(p) {
		if err != nil {
			return nil, err
		}
		facts = append(facts, Fact{st.Quad, true, st.Assertions[0].Revision})
	}
	return facts, nil
}

func (m *Mirror) loadFacts(ctx context.Context, store Reader, apply func(at kg.Revision, facts []Fact), read func(*kg.Snapshot) ([]Fact, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := store.WaitFor(ctx, m.followed); err != nil {
		return err
	}
	s, err := store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		return err
	}
	defer s.Close()
	facts, err := read(s)
	if err != nil {
		return err
	}
	m.followed = s.Revision()
	apply(m.followed, facts)
	return nil
}

// Follow passes to apply, in one call, the changes of a commit that match one of the
// patterns. It makes no call if nothing matches. Call it in the order of the revisions
// (kg.Governor.OnSystemChange).
func (m *Mirror) Follow(c *kg.Commit, apply func(at kg.Revision, facts []Fact), patterns ...kg.Pattern) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Revision <= m.followed {
		return
	}
	m.followed = c.Revision
	var facts []Fact
	for i := range c.Changes {
		ch := &c.Changes[i]
		if slices.ContainsFunc(patterns, func(p kg.Pattern) bool { return p.Matches(ch.Quad) }) {
			facts = append(facts, Fact{ch.Quad, len(ch.After) > 0, c.Revision})
		}
	}
	if len(facts) > 0 {
		apply(c.Revision, facts)
	}
}
