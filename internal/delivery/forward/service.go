package forward

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

// Service manages upstreams and forwards letters to them. Load connects it to a store. Its
// methods may be called concurrently.
type Service struct {
	options Options
	store   Store
	tasks   *tasks.Service
	sender  *delivery.Sender
	job     delivery.Job
	loaded  bool // used by watchLog

	mu        sync.Mutex // guards upstreams
	upstreams map[kg.AgentID]*upstream
}

// Store is the store of upstreams and letters (kg.Store).
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
	s := &Service{options: o, upstreams: map[kg.AgentID]*upstream{}}
	s.sender = delivery.New(delivery.Options{AllowPrivate: o.AllowPrivate, MaxConcurrent: o.MaxCalls, Timeout: o.ConnectTimeout, Streams: true})
	s.job = delivery.Job{Name: "forwarded letters", Logger: o.Logger, Watch: s.watchLog, Handle: s.handleEvent, Save: s.sweep, SaveEvery: o.SweepEvery}
	s.job.Init()
	return s
}

// Load connects the service to a store and its tasks, and starts forwarding, until Close.
// It must be called once, before any other method.
func (s *Service) Load(ctx context.Context, store Store, work *tasks.Service) error {
	s.store, s.tasks = store, work
	return s.job.Start(ctx)
}

// Close stops forwarding and ends calls in progress. Call it before closing the store.
func (s *Service) Close() {
	for _, u := range s.all() {
		u.stop()
	}
	s.job.Close()
	s.sender.Close()
}

// CheckManages returns an error for a caller that may not set the upstream of an agent: the
// agent, callers that may act for it and administrators may. The error is that of an agent that
// does not exist.
func CheckManages(by caller.Caller, agent kg.AgentID) error {
	admin := by.Principal.IsAdmin() && by.Principal.Method != kg.MethodOpen && by.Acting() == by.Principal.ID
	if agent.Valid() != nil || agent == kg.System || agent == kg.Anonymous || !admin && !by.Principal.MayActFor(agent) {
		return errNoAgent()
	}
	return nil
}

func errNoAgent() *kg.Error {
	return kg.Errorf(kg.CodeAgentNotFound, "there is no such agent").At("id")
}

func errNoUpstream() *kg.Error { return kg.Errorf(kg.CodeNotFound, "agent has no upstream").At("id") }

// Set sets the upstream of an agent, in place of the previous one.
//
// Errors: CodeAgentNotFound if the agent is not registered or not the caller's; CodeInvalid;
// CodeLimitExceeded; CodeOverloaded.
func (s *Service) Set(ctx context.Context, by caller.Caller, agent kg.AgentID, setting Setting) (*State, error) {
	if err := CheckManages(by, agent); err != nil {
		return nil, err
	}
	if err := setting.Dialect.check(); err != nil {
		return nil, err
	}
	if err := setting.Check(s.options.AllowPrivate); err != nil {
		return nil, err
	}
	sealed, err := s.sealSetting(agent, &setting)
	if err != nil {
		return nil, err
	}
	err = s.update(ctx, by, "upstream/set", func(tx *kg.Tx) error {
		if err := s.checkMayHave(tx, agent); err != nil {
			return err
		}
		return systemgraph.Write(tx, Graph, subjectOf(agent), systemgraph.Record{propSetting: systemgraph.Values(sealed), propSet: {kg.DateTime(tx.Time())}})
	})
	if err != nil {
		return nil, err
	}
	if err := s.restart(agent); err != nil {
		return nil, err
	}
	return s.State(ctx, by, agent)
}

// checkMayHave returns an error if the agent cannot have an upstream.
func (s *Service) checkMayHave(tx *kg.Tx, agent kg.AgentID) error {
	_, found, err := systemgraph.First(tx.MatchOwn, kg.Pattern{Subject: subjectOf(agent), Predicate: agents.Registered, Graph: agents.Graph})
	if err != nil {
		return err
	}
	if !found {
		return errNoAgent()
	}
	count := 0
	for st, err := range tx.MatchOwn(kg.Pattern{Predicate: systemgraph.Property(propSetting), Graph: Graph}) {
		if err != nil {
			return err
		}
		if st.Subject == subjectOf(agent) {
			return nil // it has one already
		}
		count++
	}
	if count >= s.options.MaxUpstreams {
		return kg.Errorf(kg.CodeOverloaded, "server has %d upstreams of agents, which is the limit", s.options.MaxUpstreams)
	}
	return nil
}

// State is the part of an upstream that may be seen. It does not suffice to call it.
type State struct {
	Origin string // scheme and host of the URL
	Dialect
	Streaming   bool
	Scheme      string // authentication scheme; "" for none
	Credentials bool   // whether there are credentials
	Set         time.Time
	// Waiting is the number of letters that the upstream has not settled, of which Active
	// are under way.
	Waiting, Active int
	// FailingSince is the time since which calls fail, or the zero Time; Failure is the
	// last error.
	FailingSince time.Time
	Failure      string
}

// State returns the state of an agent's upstream.
//
// Errors: CodeAgentNotFound as Set; CodeNotFound if there is none.
func (s *Service) State(ctx context.Context, by caller.Caller, agent kg.AgentID) (*State, error) {
	if err := CheckManages(by, agent); err != nil {
		return nil, err
	}
	now, registered, err := s.readSetting(ctx, agent)
	switch {
	case err != nil:
		return nil, err
	case !registered:
		return nil, errNoAgent()
	case now == nil || now.setting == nil:
		return nil, errNoUpstream()
	}
	t := now.setting
	out := &State{Origin: t.Origin(), Dialect: t.Dialect, Streaming: !t.Unary, Scheme: t.Scheme, Credentials: t.Credentials != "", Set: now.set}
	if u := s.upstreamOf(agent); u != nil && u.sealed == now.sealed {
		u.addState(out)
	}
	return out, nil
}

// Delete removes the upstream of an agent. Its letters stay in the mailbox.
//
// Errors: CodeAgentNotFound as Set; CodeNotFound if there is none.
func (s *Service) Delete(ctx context.Context, by caller.Caller, agent kg.AgentID) error {
	if _, err := s.State(ctx, by, agent); err != nil && kg.CodeOf(err) != kg.CodeNotFound {
		return err
	}
	err := s.update(ctx, by, "upstream/delete", func(tx *kg.Tx) error {
		_, found, err := systemgraph.First(tx.MatchOwn, kg.Pattern{Subject: subjectOf(agent), Predicate: systemgraph.Property(propSetting), Graph: Graph})
		if err != nil {
			return err
		}
		if !found {
			return errNoUpstream()
		}
		return Forget(tx, agent)
	})
	if err != nil {
		return err
	}
	return s.restart(agent)
}

// readSetting reads the setting of an agent, nil if there is none, and whether it is registered.
func (s *Service) readSetting(ctx context.Context, agent kg.AgentID) (now *storedSetting, registered bool, err error) {
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return nil, false, err
	}
	defer snapshot.Close()
	if _, registered, err = systemgraph.First(snapshot.Match, kg.Pattern{Subject: subjectOf(agent), Predicate: agents.Registered, Graph: agents.Graph}); err != nil {
		return nil, false, err
	}
	now, err = s.settingIn(snapshot.Match, agent)
	return now, registered, err
}

// systemView is a view of all graphs.
var systemView = kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}

func (s *Service) update(ctx context.Context, by caller.Caller, method string, do func(*kg.Tx) error) error {
	return systemgraph.Update(ctx, s.store, kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}, do)
}
