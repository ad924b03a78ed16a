package tasks

import (
	"context"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// Caller is who asks. Those who know no callers of requests name it so.
type Caller = caller.Caller

// Service keeps tasks. It is bound to a store by Load. Its methods may be called
// concurrently.
type Service struct {
	options  Options
	store    *kg.Store
	workers  sync.Map // kg.AgentID → Worker
	desk     *desk
	dispatch *dispatch
	paces    paces
	told     telling
}

// New makes a service.
func New(o Options) *Service {
	o = o.withDefaults()
	return &Service{options: o, desk: newDesk(o), dispatch: newDispatch()}
}

// Handle gives the tasks of an agent to a worker in this process. To be called
// before Load.
func (s *Service) Handle(agent kg.AgentID, w Worker) { s.workers.Store(agent, w) }

// Load binds the service to the store. Tasks that a worker in this process was at
// when it ended have failed. From then on tasks that nobody claims expire, until
// Close. It is called once, before any other method but Handle.
func (s *Service) Load(ctx context.Context, store *kg.Store) error {
	s.store = store
	if err := s.failInterrupted(ctx); err != nil {
		return err
	}
	s.desk.done.Go(s.expire)
	return s.startDispatch(ctx)
}

// Close ends the expiry and the work on tasks in this process, and waits for it. Call it before the
// store is closed.
func (s *Service) Close() { s.desk.close() }

// Worker returns the worker of an agent in this process, nil if it has none.
func (s *Service) Worker(agent kg.AgentID) Worker { return s.worker(agent) }

func (s *Service) worker(agent kg.AgentID) Worker {
	if w, ok := s.workers.Load(agent); ok {
		return w.(Worker)
	}
	return nil
}

// workerIDs are the agents that have a worker in this process.
func (s *Service) workerIDs() (ids []kg.AgentID) {
	s.workers.Range(func(id, _ any) bool {
		ids = append(ids, id.(kg.AgentID))
		return true
	})
	return ids
}

// meta is that of an update which the caller asks for.
func meta(by caller.Caller, method string) kg.Meta {
	return kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}
}

// own is koine itself, where it writes down what becomes of a task.
func own() caller.Caller { return caller.Caller{Principal: kg.SystemPrincipal()} }
