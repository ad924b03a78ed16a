package inboxhook

import (
	"context"
	"slices"
	"sync"

	"koine/channels"
	"koine/internal/agents"
	"koine/internal/delivery"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Service delivers messages to endpoints. Load connects it to a store.
type Service struct {
	options  Options
	store    Store
	channels *channels.Service
	agents   Agents
	sender   *delivery.Sender
	job      delivery.Job

	mu    sync.Mutex // guards hooks
	hooks map[kg.AgentID]*hook
}

// Store is the store of registrations and progress (kg.Store).
type Store interface {
	systemgraph.Store
	Head() kg.Position
	Watch(context.Context, kg.Filter, kg.Position) (*kg.Watcher, error)
	FormatPosition(kg.Position) string
	ParsePosition(string) (kg.Position, error)
}

// Agents finds registered agents (agents.Directory).
type Agents interface {
	Get(ctx context.Context, id kg.AgentID) (*agents.Record, error)
}

// New returns a service.
func New(o Options) *Service {
	o = o.withDefaults()
	s := &Service{options: o, sender: delivery.New(o.Options), hooks: map[kg.AgentID]*hook{}}
	s.job = delivery.Job{Name: "messages to endpoints", Logger: o.Logger, Watch: s.watchEndpoints, Handle: s.handleEvent, Save: s.saveProgress, SaveEvery: o.FlushEvery}
	s.job.Init()
	return s
}

// Load connects the service to a store, its channels and its agents, and starts delivery,
// until Close. It must be called once.
func (s *Service) Load(ctx context.Context, store Store, c *channels.Service, directory Agents) error {
	s.store, s.channels, s.agents = store, c, directory
	return s.job.Start(ctx)
}

// Close stops delivery, waits for calls in progress, and stores the progress. Call it
// before closing the channels and the store.
func (s *Service) Close() {
	s.job.Close()
	s.sender.Close()
}

// systemView is a view of all graphs.
var systemView = kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}

// watchEndpoints starts the deliveries to the registered endpoints, and watches for changes
// of registrations from now on.
func (s *Service) watchEndpoints(ctx context.Context) (*kg.Watcher, error) {
	// Before loading, so that no change is missed.
	w, err := s.store.Watch(s.job.Context(), kg.Filter{View: systemView, Patterns: agents.EndpointPatterns()}, s.store.Head())
	if err == nil {
		if err = s.loadEndpoints(ctx); err != nil {
			w.Close()
		}
	}
	return w, err
}

// loadEndpoints starts the deliveries to the endpoints in the store, and ends those to others.
func (s *Service) loadEndpoints(ctx context.Context) error {
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	subjects, err := systemgraph.Subjects(snapshot.Match, agents.EndpointPatterns()[0])
	if err != nil {
		return err
	}
	s.mu.Lock()
	list := make([]kg.AgentID, 0, len(subjects)+len(s.hooks))
	for agent := range s.hooks {
		list = append(list, agent)
	}
	s.mu.Unlock()
	for _, subject := range subjects {
		list = append(list, kg.AgentID(subject.Value()))
	}
	slices.Sort(list)
	for _, agent := range slices.Compact(list) {
		if err := s.follow(ctx, agent); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) handleEvent(e *kg.Event) error {
	return s.follow(s.job.Context(), kg.AgentID(e.Statement.Subject.Value()))
}

// endpointOf returns the endpoint of an agent, "" for none.
func (s *Service) endpointOf(ctx context.Context, agent kg.AgentID) (string, error) {
	r, err := s.agents.Get(ctx, agent)
	if kg.CodeOf(err) == kg.CodeAgentNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return s.options.Endpoint(r), nil
}

// follow makes the deliveries to an agent those to its endpoint of now.
func (s *Service) follow(ctx context.Context, agent kg.AgentID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	url, err := s.endpointOf(ctx, agent) // under the lock, so that the last call reads the newest
	if err != nil {
		return err
	}
	before := s.hooks[agent]
	if before != nil && before.target.URL == url && before.line.Context().Err() == nil {
		return nil
	}
	if before != nil {
		before.line.Stop()
		delete(s.hooks, agent)
	}
	if url == "" {
		return nil
	}
	target := delivery.Target{URL: url}
	if err := target.Check(s.options.AllowPrivate); err != nil {
		s.options.Logger.Warn("endpoint of an agent gets no messages", "agent", agent, "error", err)
		return nil
	}
	if len(s.hooks) >= s.options.MaxEndpoints {
		s.options.Logger.Warn("endpoint of an agent gets no messages: there are too many", "agent", agent, "limit", s.options.MaxEndpoints)
		return nil
	}
	position, err := s.progressOf(ctx, agent)
	if err != nil {
		return err
	}
	h := &hook{service: s, agent: agent, target: target, turn: new(sync.Mutex), position: position, line: s.job.NewLine()}
	if before != nil {
		h.turn = before.turn // a call in progress may still complete
	}
	s.hooks[agent] = h
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line.Wake(&h.mu, h.next)
	return nil
}
