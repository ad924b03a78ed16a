package agents

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"koine/internal/jobs"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Registry holds the status of agents in memory, and creates the records of agents with
// tokens asynchronously.
type Registry struct {
	table  *systemgraph.Table
	states sync.Map // kg.AgentID → agentState, of all agents with a record
	// OnSuspend is called when an agent is suspended. It must not block. Set it before
	// Load.
	OnSuspend func()

	log   *slog.Logger
	queue chan kg.Principal
	// queued holds the agents in the queue.
	queued sync.Map
	jobs   *jobs.Group
}

type agentState struct {
	status     Status
	registered bool
	limits     Limits
}

// queueLength is the maximum number of agents waiting for their record. Others get it
// at a later visit.
const queueLength = 256

// NewRegistry returns an empty registry.
func NewRegistry(log *slog.Logger) *Registry {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &Registry{OnSuspend: func() {}, log: log, queue: make(chan kg.Principal, queueLength), jobs: jobs.NewGroup(log)}
	g.table = systemgraph.NewTable(Graph, "", g.applyRecord, propStatus, propRegistered, propLimits)
	return g
}

// Load reads the records from the store and starts writing new ones, until Close. It
// must be called once.
func (g *Registry) Load(ctx context.Context, store *kg.Store) error {
	if err := g.table.Load(ctx, store); err != nil {
		return err
	}
	g.jobs.Start("record agents", func(ctx context.Context) error { return g.runWriter(ctx, store) })
	return nil
}

// Close stops the writer and waits for it. Call it before closing the store.
func (g *Registry) Close() { g.jobs.Stop() }

// Follow applies a commit (kg.Governor.OnSystemChange).
func (g *Registry) Follow(c *kg.Commit) { g.table.Follow(c) }

func (g *Registry) applyRecord(subject kg.Term, r systemgraph.Record) {
	limits, _ := limitsOf(r.JSON(propLimits)) // was validated when written
	id, now := kg.AgentID(subject.Value()), agentState{Status(r.Text(propStatus)), r[propRegistered] != nil, limits}
	if now.status == "" {
		g.states.Delete(id)
	} else {
		g.states.Store(id, now)
	}
	if now.status == Suspended {
		g.OnSuspend()
	}
}

// Each calls fn for every agent with a record, in no particular order, until fn returns
// false.
func (g *Registry) Each(fn func(kg.AgentID) bool) {
	g.states.Range(func(id, _ any) bool { return fn(id.(kg.AgentID)) })
}

// Suspended reports whether the agent is suspended.
func (g *Registry) Suspended(id kg.AgentID) bool { return g.stateOf(id).status == Suspended }

// IsAvailable reports whether the agent can be asked: it is registered and not
// suspended.
func (g *Registry) IsAvailable(id kg.AgentID) bool {
	now := g.stateOf(id)
	return now.registered && now.status == Active
}

// Registered reports whether the agent is registered, even if it is suspended.
func (g *Registry) Registered(id kg.AgentID) bool { return g.stateOf(id).registered }

// Unregistered returns the agents with a record that are not registered, in no
// particular order.
func (g *Registry) Unregistered() (out []kg.AgentID) {
	g.Each(func(id kg.AgentID) bool {
		if !g.Registered(id) {
			out = append(out, id)
		}
		return true
	})
	return out
}

// Limits returns the limits that the agent declared.
func (g *Registry) Limits(id kg.AgentID) Limits { return g.stateOf(id).limits }

func (g *Registry) stateOf(id kg.AgentID) (now agentState) {
	if found, ok := g.states.Load(id); ok {
		now = found.(agentState)
	}
	return now
}

// Seen ensures that the agent gets a record. It never blocks.
func (g *Registry) Seen(p kg.Principal) {
	if _, known := g.states.Load(p.ID); known {
		return
	}
	if _, waiting := g.queued.LoadOrStore(p.ID, nil); waiting {
		return
	}
	select {
	case g.queue <- p:
	default:
		g.queued.Delete(p.ID)
	}
}

const writeTimeout = 10 * time.Second

func (g *Registry) runWriter(ctx context.Context, store systemgraph.Store) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-g.queue:
			if err := g.writeOne(ctx, store, p); err != nil && ctx.Err() == nil {
				g.log.Warn("cannot create the record of an agent", "agent", p.ID, "error", err)
			}
			g.queued.Delete(p.ID)
		}
	}
}

func (g *Registry) writeOne(ctx context.Context, store systemgraph.Store, p kg.Principal) error {
	if g.table.Len() >= MaxAgents {
		return kg.Errorf(kg.CodeLimitExceeded, "server has %d agents on record, which is the limit", MaxAgents)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return systemgraph.Update(ctx, store, kg.Meta{Principal: kg.SystemPrincipal(), Justification: "agent seen for the first time"}, func(tx *kg.Tx) error {
		return Ensure(tx, Record{ID: p.ID, Roles: p.Roles})
	})
}
