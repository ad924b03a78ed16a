package provenance

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"koine/internal/systemgraph"
	"koine/kg"
)

// A quarantine is stored in the system graph, with the agent as its subject:
//
//	<agent> koine:quarantinedSince "…"^^xsd:dateTime   while it lasts
//	<agent> koine:quarantineLifted "…"^^xsd:dateTime   when the last one ended
//
// koine itself asserts both, so a quarantine never hides its own record.
var (
	propSince  = systemgraph.Property("quarantinedSince")
	propLifted = systemgraph.Property("quarantineLifted")
)

// MaxQuarantined bounds the number of agents in quarantine.
const MaxQuarantined = 10_000

// Quarantines holds the agents whose assertions do not count. It follows the system
// graph: every read uses the newest state. Safe for concurrent use; the zero value is
// empty.
type Quarantines struct {
	doubts  atomic.Pointer[kg.Doubts]
	changed atomic.Uint64 // the revision of the last change
	mirror  systemgraph.Mirror
}

// Doubted implements kg.Distrust.
func (q *Quarantines) Doubted() kg.Doubts {
	if d := q.doubts.Load(); d != nil {
		return *d
	}
	return nil
}

func (q *Quarantines) copyDoubts() kg.Doubts {
	copied := kg.Doubts{}
	maps.Copy(copied, q.Doubted())
	return copied
}

// DoubtsChanged implements kg.Distrust.
func (q *Quarantines) DoubtsChanged(after kg.Revision) (changed bool, upTo kg.Revision) {
	newest := kg.Revision(q.changed.Load())
	return newest > after, max(newest, after)
}

// quarantined are the patterns of the statements that record quarantines.
var quarantined = []kg.Pattern{{Predicate: propSince, Graph: kg.SystemGraph}, {Predicate: propLifted, Graph: kg.SystemGraph}}

// Load reads the quarantines of the store. Call it after opening the store and before
// serving requests.
func (q *Quarantines) Load(ctx context.Context, store *kg.Store) error {
	return q.mirror.Load(ctx, store, q.applyFacts, quarantined...)
}

// Follow applies a commit; for kg.Governor.OnSystemChange.
func (q *Quarantines) Follow(c *kg.Commit) { q.mirror.Follow(c, q.applyFacts, quarantined...) }

func (q *Quarantines) applyFacts(_ kg.Revision, facts []systemgraph.Fact) {
	doubts := q.copyDoubts()
	var changed kg.Revision
	for _, f := range facts {
		changed = max(changed, f.Since)
		agent := kg.AgentID(f.Subject.Value())
		since, ok := f.Object.DateTimeValue()
		switch {
		case !ok || f.Predicate != propSince:
		case f.Exists:
			doubts[agent] = since
		case doubts[agent].Equal(since): // unless a newer quarantine replaced it
			delete(doubts, agent)
		}
	}
	q.publishDoubts(doubts, changed)
}

// publishDoubts publishes the doubts to all readers. An empty set is stored as nil, which costs
// readers nothing.
func (q *Quarantines) publishDoubts(doubts kg.Doubts, changed kg.Revision) {
	if len(doubts) == 0 {
		doubts = nil
	}
	q.doubts.Store(&doubts)
	q.changed.Store(uint64(changed))
}

// Quarantine is the quarantine of one agent.
type Quarantine struct {
	Agent kg.AgentID
	// Since is the time from which the agent's assertions do not count; zero for all of
	// them.
	Since time.Time
	// Commit is the commit that started it; nil if the log no longer has it.
	Commit *kg.Commit
}

// List lists the quarantines in the order of the agents' names. Only administrators may
// call it.
func (q *Quarantines) List(ctx context.Context, store *kg.Store, by kg.Principal) ([]Quarantine, error) {
	if err := requireAdmin(&by); err != nil {
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
	slices.SortFunc(list, func(a, b Quarantine) int { return cmp.Compare(a.Agent, b.Agent) })
	return list, nil
}

func requireAdmin(by *kg.Principal) error {
	if by.IsAdmin() {
		return nil
	}
	return kg.Errorf(kg.CodePermissionDenied, "only administrators may manage quarantines")
}

// Set puts an agent in quarantine: its assertions recorded at or after since, or all of
// them if since is zero, stop counting for every reader. Nothing is removed. Lift ends
// the quarantine. Both return the effect as administrators see it; with Meta.DryRun
// they only compute it.
//
// Errors: CodePermissionDenied unless the caller is an administrator, CodeInvalid for
// koine itself and for an invalid name, CodeNotFound from Lift if the agent is not in
// quarantine, CodeLimitExceeded past MaxQuarantined, and those of Store.Update.
func (q *Quarantines) Set(ctx context.Context, store *kg.Store, m kg.Meta, agent kg.AgentID, since time.Time) (*Effect, error) {
	agent, err := q.checkAgent(&m, agent)
	if err != nil {
		return nil, err
	}
	since = since.UTC().Truncate(time.Millisecond)
	now := q.Doubted()
	if _, found := now[agent]; !found && len(now) >= MaxQuarantined {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "%d agents are in quarantine, the limit", MaxQuarantined)
	}
	then := q.copyDoubts()
	then[agent] = since
	return applyDoubts(ctx, store, m, agent, now, then, func(tx *kg.Tx) error {
		return tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: quarantineQuad(agent, propSince, since), Source: kg.System})
	})
}

// Lift ends a quarantine. See Set.
func (q *Quarantines) Lift(ctx context.Context, store *kg.Store, m kg.Meta, agent kg.AgentID) (*Effect, error) {
	agent, err := q.checkAgent(&m, agent)
	if err != nil {
		return nil, err
	}
	now := q.Doubted()
	since, found := now[agent]
	if !found {
		return nil, kg.Errorf(kg.CodeNotFound, "%s is not in quarantine", agent).At("agent")
	}
	then := maps.Clone(now)
	delete(then, agent)
	return applyDoubts(ctx, store, m, agent, now, then, func(tx *kg.Tx) error {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: quarantineQuad(agent, propSince, since)}); err != nil {
			return err
		}
		return tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: quarantineQuad(agent, propLifted, tx.Time()), Source: kg.System})
	})
}

// checkAgent checks the caller's rights and normalizes the agent's name.
func (q *Quarantines) checkAgent(m *kg.Meta, agent kg.AgentID) (kg.AgentID, error) {
	if err := requireAdmin(&m.Principal); err != nil {
		return "", err
	}
	agent = kg.CanonicalAgent(string(agent))
	if agent == "" {
		return "", kg.Errorf(kg.CodeInvalid, "the name of the agent is required").At("agent")
	}
	if err := agent.Valid(); err != nil {
		return "", kg.AsError(err).At("agent")
	}
	if agent == kg.System {
		return "", kg.Errorf(kg.CodeInvalid, "koine itself cannot be put in quarantine").At("agent")
	}
	return agent, nil
}

func quarantineQuad(agent kg.AgentID, property kg.Term, at time.Time) kg.Quad {
	return kg.Quad{Subject: kg.IRI(string(agent)), Predicate: property, Object: kg.DateTime(at), Graph: kg.SystemGraph}
}
