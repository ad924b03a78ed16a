package belief

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// A quarantine is kept in the system graph, about the agent:
//
//	<agent> koine:quarantinedSince "…"^^xsd:dateTime   while it lasts
//	<agent> koine:quarantineLifted "…"^^xsd:dateTime   when the last one ended
//
// koine itself asserts both, so that no quarantine is about its own record.
var (
	propSince  = kg.IRI(kg.OwnVocabulary + "quarantinedSince")
	propLifted = kg.IRI(kg.OwnVocabulary + "quarantineLifted")
)

// MaxQuarantined bounds the agents under quarantine at a time.
const MaxQuarantined = 10_000

// Quarantines are the agents whose assertions do not count. They follow the
// system graph: every read is under the newest. Safe for concurrent use; the zero
// value is one of nobody.
type Quarantines struct {
	doubts  atomic.Pointer[kg.Doubts]
	changed atomic.Uint64 // the revision of the last change
	mirror  records.Mirror
}

// Doubted is that of kg.Distrust.
func (q *Quarantines) Doubted() kg.Doubts {
	if d := q.doubts.Load(); d != nil {
		return *d
	}
	return nil
}

// DoubtsChanged is that of kg.Distrust.
func (q *Quarantines) DoubtsChanged(after kg.Revision) (changed bool, upTo kg.Revision) {
	newest := kg.Revision(q.changed.Load())
	return newest > after, max(newest, after)
}

// quarantined are the statements that the quarantines are made of.
var quarantined = []kg.Pattern{{Predicate: propSince, Graph: kg.SystemGraph}, {Predicate: propLifted, Graph: kg.SystemGraph}}

// Load reads what the store holds already: after it was opened, before anybody is
// served.
func (q *Quarantines) Load(ctx context.Context, store *kg.Store) error {
	return q.mirror.Load(ctx, store, q.take, quarantined...)
}

// Follow takes a commit in; for kg.Options.OnSystemChange.
func (q *Quarantines) Follow(c *kg.Commit) { q.mirror.Follow(c, q.take, quarantined...) }

func (q *Quarantines) take(_ kg.Revision, facts []records.Fact) {
	doubts := maps.Clone(q.Doubted())
	if doubts == nil {
		doubts = kg.Doubts{}
	}
	var changed kg.Revision
	for _, f := range facts {
		changed = max(changed, f.Since)
		agent := kg.AgentID(f.Subject.Value())
		since, ok := f.Object.DateTimeValue()
		switch {
		case !ok || f.Predicate != propSince:
		case f.Stands:
			doubts[agent] = since
		case doubts[agent].Equal(since): // and not one that took its place
			delete(doubts, agent)
		}
	}
	q.show(doubts, changed)
}

// show makes the doubts those of every read; nobody is nil, which costs nothing.
func (q *Quarantines) show(doubts kg.Doubts, changed kg.Revision) {
	if len(doubts) == 0 {
		doubts = nil
	}
	q.doubts.Store(&doubts)
	q.changed.Store(uint64(changed))
}

// Quarantine is that of one agent.
type Quarantine struct {
	Agent kg.AgentID
	// Since is from when on what it recorded does not count; the zero time: all
	// that it ever did.
	Since time.Time
	// Commit is the one that began it; nil where the log no longer has it.
	Commit *kg.Commit
}

// List lists the quarantines in the order of the agents' names. Only
// administrators may.
func (q *Quarantines) List(ctx context.Context, store *kg.Store, by kg.Principal) ([]Quarantine, error) {
	if err := administrators(&by); err != nil {
		return nil, err
	}
	s, err := store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var list []Quarantine
	for st, err := range s.Match(kg.Pattern{Predicate: propSince, Graph: kg.SystemGraph}) {
		if err != nil {
			return nil, err
		}
		since, ok := st.Object.DateTimeValue()
		if !ok {
			continue
		}
		c, err := store.Commit(ctx, kg.SystemPrincipal(), st.Revision())
		if code := kg.CodeOf(err); err != nil && code != kg.CodeRevisionGone && code != kg.CodeNotFound {
			return nil, err
		}
		list = append(list, Quarantine{Agent: kg.AgentID(st.Subject.Value()), Since: since, Commit: c})
	}
	sortBy(list, func(q Quarantine) string { return string(q.Agent) })
	return list, nil
}

func administrators(by *kg.Principal) error {
	if by.IsAdmin() {
		return nil
	}
	return kg.Errorf(kg.CodePermissionDenied, "only administrators may do this")
}

// Set puts an agent under quarantine: what it recorded at or after since, or at
// any time for the zero one, counts for nobody any more. Nothing is removed. Lift
// ends the quarantine. Both tell what disappears or comes back, as administrators
// see it, and with Meta.DryRun do nothing else.
//
// Errors: CodePermissionDenied for all but administrators, CodeInvalid for koine
// itself and a name that is none, CodeNotFound for Lift of an agent that is not
// under quarantine, CodeLimitExceeded past MaxQuarantined, those of Store.Update.
func (q *Quarantines) Set(ctx context.Context, store *kg.Store, m kg.Meta, agent kg.AgentID, since time.Time) (*Effect, error) {
	agent, err := q.about(&m, agent)
	if err != nil {
		return nil, err
	}
	since = since.UTC().Truncate(time.Millisecond)
	now := q.Doubted()
	if _, there := now[agent]; !there && len(now) >= MaxQuarantined {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "%d agents are under quarantine, and no more can be", MaxQuarantined)
	}
	then := maps.Clone(now)
	if then == nil {
		then = kg.Doubts{}
	}
	then[agent] = since
	return change(ctx, store, m, agent, now, then, func(tx *kg.Tx) error {
		return tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: about(agent, propSince, since), Source: kg.System})
	})
}

// Lift: see Set.
func (q *Quarantines) Lift(ctx context.Context, store *kg.Store, m kg.Meta, agent kg.AgentID) (*Effect, error) {
	agent, err := q.about(&m, agent)
	if err != nil {
		return nil, err
	}
	now := q.Doubted()
	since, there := now[agent]
	if !there {
		return nil, kg.Errorf(kg.CodeNotFound, "%s is not under quarantine", agent).At("agent")
	}
	then := maps.Clone(now)
	delete(then, agent)
	return change(ctx, store, m, agent, now, then, func(tx *kg.Tx) error {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: about(agent, propSince, since)}); err != nil {
			return err
		}
		return tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: about(agent, propLifted, tx.Time()), Source: kg.System})
	})
}

// about checks who asks, and whom it is about.
func (q *Quarantines) about(m *kg.Meta, agent kg.AgentID) (kg.AgentID, error) {
	if err := administrators(&m.Principal); err != nil {
		return "", err
	}
	agent = kg.CanonicalAgent(string(agent))
	if agent == "" {
		return "", kg.Errorf(kg.CodeInvalid, "an agent has a name").At("agent")
	}
	if err := agent.Valid(); err != nil {
		return "", kg.AsError(err).At("agent")
	}
	if agent == kg.System {
		return "", kg.Errorf(kg.CodeInvalid, "koine itself is not put under quarantine").At("agent")
	}
	return agent, nil
}

func about(agent kg.AgentID, property kg.Term, at time.Time) kg.Quad {
	return kg.Quad{Subject: kg.IRI(string(agent)), Predicate: property, Object: kg.DateTime(at), Graph: kg.SystemGraph}
}
