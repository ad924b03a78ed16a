package tasks

import (
	"context"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// Caller is an alias for packages that do not import internal/caller.
type Caller = caller.Caller

// Service manages tasks. Load binds it to a store. Its methods may be called
// concurrently.
type Service struct {
	options   Options
	store     *kg.Store
	workers   sync.Map // kg.AgentID → Worker
	pool      *workerPool
	dispatch  *dispatcher
	rates     rateLimits
	delivered deliveries
}

// New returns a service. Call Load before using it.
func New(o Options) *Service {
	o = o.withDefaults()
	return &Service{options: o, pool: newWorkerPool(o), dispatch: newDispatcher()}
}

// Handle assigns the tasks of an agent to a worker in this process. Call it before
// Load.
func (s *Service) Handle(agent kg.AgentID, w Worker) { s.workers.Store(agent, w) }

// Load binds the service to the store. It fails the tasks that workers were running
// when the process stopped, and starts to expire unclaimed tasks until Close. Call it
// once, before any other method but Handle.
func (s *Service) Load(ctx context.Context, store *kg.Store) error {
	s.store = store
	if err := s.failInterrupted(ctx); err != nil {
		return err
	}
	s.pool.group.Start("expire tasks", s.runExpiry)
	return s.startDispatch(ctx)
}

// Close stops expiry and workers, and waits for them. Call it before closing the store.
func (s *Service) Close() { s.pool.group.Stop() }

// Worker returns the worker of an agent in this process, nil if it has none.
func (s *Service) Worker(agent kg.AgentID) Worker {
	if w, ok := s.workers.Load(agent); ok {
		return w.(Worker)
	}
	return nil
}

func (s *Service) workerIDs() (ids []kg.AgentID) {
	s.workers.Range(func(id, _ any) bool {
		ids = append(ids, id.(kg.AgentID))
		return true
	})
	return ids
}

// metaFor returns the metadata of an update by the caller.
func metaFor(by caller.Caller, method string) kg.Meta {
	return kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}
}

// systemCaller returns koine itself as the caller.
func systemCaller() caller.Caller { return caller.Caller{Principal: kg.SystemPrincipal()} }

// Guard controls access to the graphs of tasks and passes everything else on. It is
// part of the store (kg.Governor.Access), so reads and subscriptions of a task's
// statements follow one rule everywhere.
type Guard struct{ kg.Front }

// NewGuard returns a Guard in front of next.
func NewGuard(next kg.Access) *Guard { return &Guard{kg.Front{Access: next}} }

// Allowed decides for the graphs of tasks: the creator and the handler read them, and
// only this package writes them.
func (g *Guard) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	creator, handler, ok := pairOf(graph)
	if !ok {
		return g.Access.Allowed(p, graph, right)
	}
	if right != kg.Discover && right != kg.Read {
		return p.Trusted()
	}
	return takesPart(p, creator, handler)
}

// takesPart reports whether the principal may read the tasks of the two agents. In open
// mode, where every caller is an administrator, only the two may.
func takesPart(p kg.Principal, creator, handler kg.AgentID) bool {
	return p.Trusted() || p.ID == creator || p.ID == handler || p.HasRole(kg.RoleAdmin) && p.Method != openMethod
}

const openMethod = "open"
