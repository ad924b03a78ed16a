package presence

import (
	"context"
	"fmt"
	"time"

	"koine/internal/agents"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Graph holds the state of each agent that was ever present, and its start. The subject
// is the agent's id.
var Graph = kg.IRI(kg.JournalGraphPrefix + "presence")

var (
	propStatus = systemgraph.Property("presence")
	propSince  = systemgraph.Property("presenceSince")
)

// Load reads the stored states and starts writing changes, until Close. It must be
// called once.
func (t *Tracker) Load(ctx context.Context, store *kg.Store) error {
	if err := t.mirror.Load(ctx, store, t.applyFacts, watchedPatterns...); err != nil {
		return err
	}
	stored, err := readStored(ctx, store)
	if err != nil {
		return err
	}
	t.Start(stored, journal{store, t})
	return nil
}

// watchedPatterns match the creation of agent records, registrations and
// deregistrations.
var watchedPatterns = []kg.Pattern{
	{Predicate: kg.IRI(kg.RDFType), Object: agents.Class, Graph: agents.Graph},
	{Predicate: agents.Registered, Graph: agents.Graph},
}

// Follow applies a commit (kg.Governor.OnSystemChange).
func (t *Tracker) Follow(c *kg.Commit) { t.mirror.Follow(c, t.applyFacts, watchedPatterns...) }

// applyFacts passes changes of agent records to the tracker.
func (t *Tracker) applyFacts(_ kg.Revision, facts []systemgraph.Fact) {
	for _, f := range facts {
		agent := kg.AgentID(f.Subject.Value())
		switch {
		case f.Predicate != agents.Registered:
			t.SetRegistered(agent, f.Exists)
		case f.Exists:
			t.NoteRegistered(agent)
		default:
			t.NoteDeregistered(agent)
		}
	}
}

// Forget removes the stored state of an agent in the update that deregisters it. The
// tracker learns of the deregistration from the commit (agents.Registered).
func Forget(tx *kg.Tx, agent kg.AgentID) error {
	return systemgraph.Write(tx, Graph, kg.IRI(string(agent)), systemgraph.Record{"presence": nil, "presenceSince": nil})
}

func readStored(ctx context.Context, store systemgraph.Store) (map[kg.AgentID]Presence, error) {
	snapshot, err := store.View(ctx, kg.View{Principal: kg.SystemPrincipal(), Graphs: []kg.Term{Graph}})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	out := map[kg.AgentID]Presence{}
	for st, err := range snapshot.Match(kg.Pattern{Graph: Graph}) {
		if err != nil {
			return nil, err
		}
		agent := kg.AgentID(st.Subject.Value())
		p := out[agent]
		switch st.Predicate {
		case propStatus:
			p.Status = Status(st.Object.Value())
		case propSince:
			p.Since, _ = st.Object.DateTimeValue()
		}
		out[agent] = p
	}
	return out, nil
}

type journal struct {
	store   systemgraph.Store
	tracker *Tracker
}

// Write implements Journal.
func (j journal) Write(ctx context.Context, list []Transition) error {
	last := list[0].Since
	for _, tr := range list {
		last = laterOf(last, tr.Since)
	}
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "presence",
		Justification: fmt.Sprintf("presence of agents as of %s", last.Format(time.RFC3339Nano))}
	return systemgraph.Update(ctx, j.store, meta, func(tx *kg.Tx) error {
		for _, tr := range list {
			// A deregistration is applied to the tracker before later commits are
			// written.
			if j.tracker.isDropped(tr.Agent) {
				continue
			}
			q := kg.Quad{Subject: kg.IRI(string(tr.Agent)), Predicate: propStatus, Object: kg.String(string(tr.Status)), Graph: Graph}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: q}); err != nil {
				return err
			}
			q.Predicate, q.Object = propSince, kg.DateTime(tr.Since)
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Replace, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Register implements Journal. The tracker learns of the record from the commit.
func (j journal) Register(ctx context.Context, agent kg.AgentID) error {
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Method: "presence", Justification: "first heartbeat of an agent"}
	return systemgraph.Update(ctx, j.store, meta, func(tx *kg.Tx) error {
		return agents.Ensure(tx, agents.Record{ID: agent})
	})
}
