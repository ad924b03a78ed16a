package agents

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"koine/internal/records"
	"koine/kg"
)

// Registry knows in memory who is suspended, and writes the records of agents
// that come with a token, behind the requests and not in their way.
type Registry struct {
	table  *records.Table
	states sync.Map // kg.AgentID → standing, of all that have a record
	// OnSuspend is called when the status of an agent has changed; it must not
	// block. To be set before Load.
	OnSuspend func()

	log   *slog.Logger
	queue chan kg.Principal
	// queued holds the agents that are in the queue or were refused a place.
	queued sync.Map
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// agentState is what is known of an agent in memory.
type agentState struct {
	status     Status
	registered bool
	limits     Limits
}

// queueLength bounds the agents that wait for their record. One that finds no
// room gets it at a later visit.
const queueLength = 256

// NewRegistry makes an empty registry.
func NewRegistry(log *slog.Logger) *Registry {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &Registry{OnSuspend: func() {}, log: log, queue: make(chan kg.Principal, queueLength)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.table = records.NewTable(Graph, "", g.applyRecord, propStatus, propRegistered, propLimits)
	return g
}

// Load reads what stands in the store, once, and begins to write records there
// until Close.
func (g *Registry) Load(ctx context.Context, store *kg.Store) error {
	if err := g.table.Load(ctx, store); err != nil {
		return err
	}
	g.done.Go(func() { g.runWriter(store) })
	return nil
}

// Close ends the writing of records, and waits for it. Call it before the store
// is closed.
func (g *Registry) Close() {
	g.cancel()
	g.done.Wait()
}

// Follow takes a commit (kg.Options.OnSystemChange).
func (g *Registry) Follow(c *kg.Commit) { g.table.Follow(c) }

func (g *Registry) applyRecord(subject kg.Term, r records.Record) {
	limits, _ := limitsOf(rawOf(r, propLimits)) // as it was written
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

// Each calls fn for every agent that has a record, in no order, until it says stop.
func (g *Registry) Each(fn func(kg.AgentID) bool) {
	g.states.Range(func(id, _ any) bool { return fn(id.(kg.AgentID)) })
}

// Suspended tells whether the agent is refused.
func (g *Registry) Suspended(id kg.AgentID) bool { return g.stateOf(id).status == Suspended }

// IsAvailable tells whether the agent can be asked: it is registered, and not refused.
func (g *Registry) IsAvailable(id kg.AgentID) bool {
	now := g.stateOf(id)
	return now.registered && now.status == Active
}

// Registered tells whether the agent is registered, be it refused or not.
func (g *Registry) Registered(id kg.AgentID) bool { return g.stateOf(id).registered }

// Unregistered lists the agents on record that are not registered, in no order.
func (g *Registry) Unregistered() (out []kg.AgentID) {
	g.Each(func(id kg.AgentID) bool {
		if !g.Registered(id) {
			out = append(out, id)
		}
		return true
	})
	return out
}

// Limits are how much the agent takes, as it said.
func (g *Registry) Limits(id kg.AgentID) Limits { return g.stateOf(id).limits }

func (g *Registry) stateOf(id kg.AgentID) (now agentState) {
	if found, ok := g.states.Load(id); ok {
		now = found.(agentState)
	}
	return now
}

// Seen sees to it that the agent gets a record. It never blocks.
func (g *Registry) Seen(p kg.Principal) {
	if _, known := g.states.Load(p.ID); known {
		return
	}
	if _, waits := g.queued.LoadOrStore(p.ID, nil); waits {
		return
	}
	select {
	case g.queue <- p:
	default:
		g.queued.Delete(p.ID)
	}
}

// writeTimeout bounds the writing of one record.
const writeTimeout = 10 * time.Second

func (g *Registry) runWriter(store records.Store) {
	for {
		select {
		case <-g.ctx.Done():
			return
		case p := <-g.queue:
			if err := g.writeOne(store, p); err != nil && g.ctx.Err() == nil {
				g.log.Warn("an agent got no record yet", "agent", p.ID, "error", err)
			}
			g.queued.Delete(p.ID)
		}
	}
}

func (g *Registry) writeOne(store records.Store, p kg.Principal) error {
	if g.table.Len() >= MaxAgents {
		return kg.Errorf(kg.CodeLimitExceeded, "there are %d agents on record already", MaxAgents)
	}
	ctx, cancel := context.WithTimeout(g.ctx, writeTimeout)
	defer cancel()
	return records.Update(ctx, store, kg.Meta{Principal: kg.SystemPrincipal(), Justification: "agent seen for the first time"}, func(tx *kg.Tx) error {
		return Ensure(tx, Record{ID: p.ID, Roles: p.Roles})
	})
}
