package courier

import (
	"context"
	"sync"
	"time"

	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/records"
	"koine/internal/tasks"
	"koine/internal/webhook"
	"koine/kg"
)

// Service keeps the hooks and carries letters to them. It is bound to a store by Load.
// Its methods may be called concurrently.
type Service struct {
	options Options
	store   Store
	tasks   *tasks.Service
	sender  *webhook.Sender
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu    sync.Mutex // guards hooks
	hooks map[kg.AgentID]*hook
}

// Store is where hooks are kept, and what tells of letters (kg.Store).
type Store interface {
	records.Store
	Head() kg.Position
	Watch(context.Context, kg.Filter, kg.Position) (*kg.Watcher, error)
	Seal(plain, bound []byte) string
	Unseal(token string, bound []byte) ([]byte, error)
}

// New makes a service.
func New(o Options) *Service {
	o = o.withDefaults()
	s := &Service{options: o, sender: webhook.New(o.Options), hooks: map[kg.AgentID]*hook{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Load binds the service to a store and its tasks. From then on it carries letters,
// until Close. It is called once, before any other method.
func (s *Service) Load(ctx context.Context, store Store, work *tasks.Service) error {
	s.store, s.tasks = store, work
	w, err := s.startWatch() // what comes from here on is heard of, whatever is seen already
	if err != nil {
		return err
	}
	if err := s.loadHooks(ctx); err != nil {
		w.Close()
		return err
	}
	s.done.Go(func() { s.followLog(w) })
	s.done.Go(func() { webhook.RunEvery(s.ctx, s.options.FlushEvery, s.saveProgress) })
	return nil
}

// Close ends the carrying, waits for what is under way and writes down how far it came.
// Call it before the store is closed.
func (s *Service) Close() {
	s.cancel()
	s.done.Wait()
	s.sender.Close()
	if s.store != nil {
		s.saveProgress(context.Background())
	}
}

// Set says where the agent that asks is called, in place of what it said before. What
// waits in its mailbox is carried there first, what was carried before too.
//
// Errors: CodeAgentNotFound for one that has not registered; CodeInvalid;
// CodeLimitExceeded; CodeOverloaded.
func (s *Service) Set(ctx context.Context, by caller.Caller, t webhook.Target) (*State, error) {
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
		return records.Write(tx, Graph, subjectOf(agent), records.Record{
			propTarget: records.Values(sealed), propSet: {kg.DateTime(tx.Time())}, propTold: nil,
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

// checkMayHaveHook tells whether the agent may have a hook.
func (s *Service) checkMayHaveHook(tx *kg.Tx, agent kg.AgentID) error {
	there, err := atLeast(tx.MatchOwn, kg.Pattern{Subject: subjectOf(agent), Predicate: agents.Registered, Graph: agents.Graph}, 1)
	if err != nil {
		return err
	}
	if !there {
		return kg.Errorf(kg.CodeAgentNotFound, "an agent registers before it has a web hook").At("id")
	}
	hooks := kg.Pattern{Predicate: records.Property(propTarget), Graph: Graph}
	full, err := atLeast(tx.MatchOwn, hooks, s.options.MaxHooks)
	if err != nil || !full {
		return err
	}
	hooks.Subject = subjectOf(agent)
	if there, err = atLeast(tx.MatchOwn, hooks, 1); err == nil && !there {
		err = kg.Errorf(kg.CodeOverloaded, "%d agents have a web hook already", s.options.MaxHooks)
	}
	return err
}

// atLeast tells whether there are so many statements.
func atLeast(match records.Matcher, p kg.Pattern, many int) (bool, error) {
	n := 0
	for _, err := range match(p) {
		if err != nil {
			return false, err
		}
		if n++; n == many {
			return true, nil
		}
	}
	return false, nil
}

// State is what an agent is told of its hook: nothing by which others could call it.
type State struct {
	Origin string // scheme and host of the address
	Scheme string // of the credentials; "" for none
	Set    time.Time
	// Pending is how many letters are to be carried.
	Pending int
	// FailingSince is since when calls fail, the zero Time while they do not; Failure is how
	// the last one did.
	FailingSince time.Time
	Failure      string
}

// State tells of the hook of the agent that asks.
//
// Errors: CodeNotFound where there is none.
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

func errNoHook() *kg.Error { return kg.Errorf(kg.CodeNotFound, "the agent has no web hook").At("id") }

// Delete takes the hook of the agent that asks away.
//
// Errors: CodeNotFound where there is none.
func (s *Service) Delete(ctx context.Context, by caller.Caller) error {
	agent, err := by.Agent()
	if err != nil {
		return err
	}
	err = s.commitUpdate(ctx, by, "mailhook/delete", func(tx *kg.Tx) error {
		there, err := atLeast(tx.MatchOwn, kg.Pattern{Subject: subjectOf(agent), Predicate: records.Property(propTarget), Graph: Graph}, 1)
		if err != nil {
			return err
		}
		if !there {
			return errNoHook()
		}
		return Forget(tx, agent)
	})
	if err != nil {
		return err
	}
	return s.restartHook(agent)
}

// readHook reads the hook of an agent as it is; nil for none.
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

// dropHook ends a hook, which is not there any more.
func (s *Service) dropHook(h *hook) {
	h.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hooks[h.agent] == h {
		delete(s.hooks, h.agent)
	}
}

// allHooks lists the hooks that there are.
func (s *Service) allHooks() []*hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*hook, 0, len(s.hooks))
	for _, h := range s.hooks {
		out = append(out, h)
	}
	return out
}

// systemView is koine's own.
var systemView = kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}

func (s *Service) commitUpdate(ctx context.Context, by caller.Caller, method string, do func(*kg.Tx) error) error {
	return records.Update(ctx, s.store, kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}, do)
}
