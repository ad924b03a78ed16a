package mailhook

import (
	"context"
	"sync"
	"time"

	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/systemgraph"
	"koine/internal/tasks"
	"koine/kg"
)

// Service manages hooks and delivers letters to them. Load connects it to a store. Its
// methods may be called concurrently.
type Service struct {
	options Options
	store   Store
	tasks   *tasks.Service
	sender  *delivery.Sender
	job     delivery.Job
	loaded  bool // used by watchLog

	mu    sync.Mutex // guards hooks
	hooks map[kg.AgentID]*hook
}

// Store is the store of hooks and letters (kg.Store).
type Store interface {
	systemgraph.Store
	Head() kg.Position
	Watch(context.Context, kg.Filter, kg.Position) (*kg.Watcher, error)
	Seal(plain, bound []byte) string
	Unseal(token string, bound []byte) ([]byte, error)
}

// New returns a service.
func New(o Options) *Service {
	o = o.withDefaults()
	s := &Service{options: o, sender: delivery.New(o.Options), hooks: map[kg.AgentID]*hook{}}
	s.job = delivery.Job{Name: "web hooks of mailboxes", Logger: o.Logger, Watch: s.watchLog, Handle: s.handleEvent, Save: s.saveProgress, SaveEvery: o.FlushEvery}
	s.job.Init()
	return s
}

// Load connects the service to a store and its tasks, and starts delivery, until Close.
// It must be called once, before any other method.
func (s *Service) Load(ctx context.Context, store Store, work *tasks.Service) error {
	s.store, s.tasks = store, work
	return s.job.Start(ctx)
}

// Close stops delivery, waits for calls in progress, and stores the progress. Call it
// before closing the store.
func (s *Service) Close() {
	s.job.Close()
	s.sender.Close()
}

// Set configures the hook of the calling agent, in place of the previous one. All
// letters in its mailbox are delivered first, including those delivered before.
//
// Errors: CodeAgentNotFound if the agent is not registered; CodeInvalid;
// CodeLimitExceeded; CodeOverloaded.
func (s *Service) Set(ctx context.Context, by caller.Caller, t delivery.Target) (*State, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	if err := t.Check(s.options.AllowPrivate); err != nil {
		return nil, err
	}
	sealed, err := s.sealTarget(agent, &t)
	if err != nil {
		return nil, err
	}
	err = s.commitUpdate(ctx, by, "mailhook/set", func(tx *kg.Tx) error {
		if err := s.checkMayHaveHook(tx, agent); err != nil {
			return err
		}
		return systemgraph.Write(tx, Graph, subjectOf(agent), systemgraph.Record{
			propTarget: systemgraph.Values(sealed), propSet: {kg.DateTime(tx.Time())}, propTold: nil,
		})
	})
	if err != nil {
		return nil, err
	}
	if err := s.restartHook(agent); err != nil {
		return nil, err
	}
	return s.State(ctx, by)
}

// checkMayHaveHook returns an error if the agent cannot have a hook.
func (s *Service) checkMayHaveHook(tx *kg.Tx, agent kg.AgentID) error {
	found, err := atLeast(tx.MatchOwn, kg.Pattern{Subject: subjectOf(agent), Predicate: agents.Registered, Graph: agents.Graph}, 1)
	if err != nil {
		return err
	}
	if !found {
		return kg.Errorf(kg.CodeAgentNotFound, "agent is not registered: register it before setting a web hook").At("id")
	}
	hooks := kg.Pattern{Predicate: systemgraph.Property(propTarget), Graph: Graph}
	full, err := atLeast(tx.MatchOwn, hooks, s.options.MaxHooks)
	if err != nil || !full {
		return err
	}
	hooks.Subject = subjectOf(agent)
	if found, err = atLeast(tx.MatchOwn, hooks, 1); err == nil && !found {
		err = kg.Errorf(kg.CodeOverloaded, "server has %d mailbox web hooks, which is the limit", s.options.MaxHooks)
	}
	return err
}

// atLeast reports whether at least n statements match.
func atLeast(match systemgraph.Matcher, p kg.Pattern, n int) (bool, error) {
	count := 0
	for _, err := range match(p) {
		if err != nil {
			return false, err
		}
		if count++; count == n {
			return true, nil
		}
	}
	return false, nil
}

// State is the part of a hook that its agent may see. It does not suffice to call the
// hook.
type State struct {
	Origin string // scheme and host of the URL
	Scheme string // authentication scheme; "" for none
	Set    time.Time
	// Pending is the number of letters to deliver.
	Pending int
	// FailingSince is the time since which calls fail, or the zero Time; Failure is the
	// last error.
	FailingSince time.Time
	Failure      string
}

// State returns the state of the calling agent's hook.
//
// Errors: CodeNotFound if there is none.
func (s *Service) State(ctx context.Context, by caller.Caller) (*State, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	now, err := s.readHook(ctx, agent)
	if err != nil {
		return nil, err
	}
	if now == nil || now.target == nil {
		return nil, errNoHook()
	}
	if h := s.hookOf(agent); h != nil && h.sealed == now.sealed {
		return h.currentState(now.set), nil
	}
	return &State{Origin: now.target.Origin(), Scheme: now.target.Scheme, Set: now.set}, nil
}

func errNoHook() *kg.Error { return kg.Errorf(kg.CodeNotFound, "agent has no web hook").At("id") }

// Delete removes the calling agent's hook.
//
// Errors: CodeNotFound if there is none.
func (s *Service) Delete(ctx context.Context, by caller.Caller) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	err = s.commitUpdate(ctx, by, "mailhook/delete", func(tx *kg.Tx) error {
		found, err := atLeast(tx.MatchOwn, kg.Pattern{Subject: subjectOf(agent), Predicate: systemgraph.Property(propTarget), Graph: Graph}, 1)
		if err != nil {
			return err
		}
		if !found {
			return errNoHook()
		}
		return Forget(tx, agent)
	})
	if err != nil {
		return err
	}
	return s.restartHook(agent)
}

// readHook reads the current hook of an agent; nil if there is none.
func (s *Service) readHook(ctx context.Context, agent kg.AgentID) (*storedHook, error) {
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return s.hookIn(snapshot.Match, agent)
}

func (s *Service) hookOf(agent kg.AgentID) *hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hooks[agent]
}

// dropHook stops and removes a hook.
func (s *Service) dropHook(h *hook) {
	h.line.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hooks[h.agent] == h {
		delete(s.hooks, h.agent)
	}
}

// allHooks lists the running hooks.
func (s *Service) allHooks() []*hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*hook, 0, len(s.hooks))
	for _, h := range s.hooks {
		out = append(out, h)
	}
	return out
}

// systemView is a view of all graphs.
var systemView = kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}

func (s *Service) commitUpdate(ctx context.Context, by caller.Caller, method string, do func(*kg.Tx) error) error {
	return systemgraph.Update(ctx, s.store, kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}, do)
}
