package records

import (
	"context"
	"slices"
	"sync"

	"koine/kg"
)

// Fact is a statement of koine's own graphs that stands, or that stood.
type Fact struct {
	kg.Quad
	Stands bool
	// Since is the revision in which it was first backed, or went.
	Since kg.Revision
}

// Mirror keeps what is made in memory of statements in koine's own graphs as they
// stand: Load once, when the store is open, then Follow with every commit. What
// is made of them is the caller's, who publishes it for readers that take no
// lock; take is never called by two at a time, and must neither block nor call
// the mirror. The zero Mirror is ready. Safe for concurrent use.
type Mirror struct {
	mu       sync.Mutex  // held while facts are taken
	followed kg.Revision // the newest commit that was taken in; guarded by mu
}

// Reader is what a Mirror is loaded from (kg.Store).
type Reader interface {
	View(context.Context, kg.View) (*kg.Snapshot, error)
	WaitFor(context.Context, kg.Revision) error
}

// Load tells take, in one call, what stands in the store that fits one of the
// patterns, and in which revision. Commits that came before it was called are in it; later ones wait
// for it.
func (m *Mirror) Load(ctx context.Context, store Reader, take func(at kg.Revision, facts []Fact), patterns ...kg.Pattern) error {
	return m.load(ctx, store, take, func(s *kg.Snapshot) (facts []Fact, err error) {
		for _, p := range patterns {
			if facts, err = appendFacts(facts, s, p); err != nil {
				return nil, err
			}
		}
		return facts, nil
	})
}

// LoadClass is Load of some properties of the entities of a class, each in the graph in
// which it is said to be one. It reads these and nothing else, however many other
// entities have the same properties.
func (m *Mirror) LoadClass(ctx context.Context, store Reader, take func(at kg.Revision, facts []Fact), class kg.Term, properties ...kg.Term) error {
	return m.load(ctx, store, take, func(s *kg.Snapshot) (facts []Fact, err error) {
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

func (m *Mirror) load(ctx context.Context, store Reader, take func(at kg.Revision, facts []Fact), read func(*kg.Snapshot) ([]Fact, error)) error {
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
	take(m.followed, facts)
	return nil
}

// Follow tells take, in one call, what a commit changed that fits one of the
// patterns; nothing is no call. It is called in the order of the revisions
// (kg.Options.OnSystemChange).
func (m *Mirror) Follow(c *kg.Commit, take func(at kg.Revision, facts []Fact), patterns ...kg.Pattern) {
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
		take(c.Revision, facts)
	}
}
