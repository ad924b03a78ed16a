package push

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/systemgraph"
	"koine/internal/tasks"
	"koine/internal/throttle"
	"koine/kg"
)

// Service manages configurations and delivers notifications. Load connects it to a
// store. Its methods may be called concurrently.
type Service struct {
	options Options
	store   *kg.Store
	tasks   *tasks.Service
	sender  *delivery.Sender
	job     delivery.Job
	active  *throttle.Pool // hooks, shared by the creators of their tasks

	mu    sync.Mutex                        // guards hooks
	hooks map[tasks.TaskID]map[string]*hook // of active tasks, by the id of the configuration
}

// New returns a service.
func New(o Options) *Service {
	o = o.withDefaults()
	s := &Service{options: o, sender: delivery.New(o.Options), active: throttle.NewPool(int64(o.MaxActive)), hooks: map[tasks.TaskID]map[string]*hook{}}
	s.job = delivery.Job{Name: "push notifications", Logger: o.Logger, Watch: s.watchLog, Handle: s.handleEvent, Save: s.savePositions, SaveEvery: o.FlushEvery}
	s.job.Init()
	return s
}

// Load connects the service to a store and its tasks, and starts delivery, until Close.
// It must be called once, before any other method.
func (s *Service) Load(ctx context.Context, store *kg.Store, work *tasks.Service) error {
	s.store, s.tasks = store, work
	return s.job.Start(ctx)
}

// Close stops delivery, waits for calls in progress, and stores the positions. Call it
// before closing the store.
func (s *Service) Close() {
	s.job.Close()
	s.sender.Close()
}

// errNoConfig is the same for a configuration that does not exist and one of a task
// that the caller may not see.
func errNoConfig() *kg.Error {
	return kg.Errorf(kg.CodeTaskNotFound, "push configuration not found").At("id")
}

// authorizedTask returns the task if the caller created it or, with others, is an
// administrator.
func (s *Service) authorizedTask(ctx context.Context, by caller.Caller, id tasks.TaskID, others bool) (*tasks.Task, error) {
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	t, err := s.tasks.Get(ctx, by, id, tasks.ReadOptions{})
	if err != nil {
		return nil, kg.AsError(err).At("taskId")
	}
	if t.Creator != agent && !(others && isAdministrator(by.Principal)) {
		return nil, kg.Errorf(kg.CodePermissionDenied, "only the creator of the task can manage its push configurations").At("taskId")
	}
	return t, nil
}

// Set creates a configuration, or replaces the one with the same id. Later events of
// the task are delivered. It requires the creator of the task.
//
// Errors: CodeTaskNotFound; CodePermissionDenied; CodeInvalid; CodeLimitExceeded;
// CodeOverloaded.
func (s *Service) Set(ctx context.Context, by caller.Caller, c Config) (*Config, error) {
	write, err := s.PrepareConfig(c)
	if err != nil {
		return nil, err
	}
	t, err := s.authorizedTask(ctx, by, c.Task, false)
	if err != nil {
		return nil, err
	}
	if c.ID == "" {
		c.ID = string(t.ID)
	}
	err = s.commitUpdate(ctx, by, "push/set", func(tx *kg.Tx) error { return write(tx, t) })
	return &c, err
}

// PrepareConfig validates a configuration and returns a function that writes it within
// an update of its task (tasks.Sending).
func (s *Service) PrepareConfig(c Config) (func(tx *kg.Tx, t *tasks.Task) error, error) {
	if err := c.validate(s.options.AllowPrivate); err != nil {
		return nil, err
	}
	version, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	return func(tx *kg.Tx, t *tasks.Task) error {
		config := c
		if config.Task = t.ID; config.ID == "" {
			config.ID = string(t.ID)
		}
		graph, subject := graphOf(t.Creator), configEntity(config.Task, config.ID)
		existing, err := configSubjects(tx.MatchOwn, graph, config.Task)
		if err != nil {
			return err
		}
		if len(existing) >= MaxConfigs && !slices.Contains(existing, subject) {
			return kg.Errorf(kg.CodeLimitExceeded, "task has %d push configurations, which is the limit", MaxConfigs).At("taskId")
		}
		if err := s.checkShare(t, config.ID); err != nil {
			return err
		}
		return systemgraph.Write(tx, graph, subject, s.configRecord(&config, version.String(), t.Status.State.Ended()))
	}, nil
}

// checkShare returns an error if a further hook exceeds the share of the task's creator.
// Hooks count once they run: those of commits that are not followed yet are not among them.
func (s *Service) checkShare(t *tasks.Task, id string) error {
	s.mu.Lock()
	replaces := s.hooks[t.ID][id] != nil
	s.mu.Unlock()
	if replaces || t.Status.State.Ended() || s.active.HasRoom(throttle.OwnerFor(t.Creator), 1) {
		return nil
	}
	e := kg.Errorf(kg.CodeOverloaded, "agent has its share of the %d push configurations of active tasks on this server", s.options.MaxActive)
	e.Hint = "Delete configurations that are no longer needed, or try again when their tasks have ended."
	return e
}

// configSubjects lists the configurations of a task.
func configSubjects(match systemgraph.Matcher, graph kg.Term, task tasks.TaskID) (out []kg.Term, err error) {
	for st, err := range match(kg.Pattern{Predicate: systemgraph.Property(propTask), Object: task.Entity(), Graph: graph}) {
		if err != nil {
			return nil, err
		}
		out = append(out, st.Subject)
	}
	return out, nil
}

// List returns the configurations of a task, sorted by id. It requires the creator of
// the task or an administrator; an administrator gets them without secrets (Config.withoutSecrets).
//
// Errors: CodeTaskNotFound; CodePermissionDenied.
func (s *Service) List(ctx context.Context, by caller.Caller, id tasks.TaskID) ([]Config, error) {
	t, err := s.authorizedTask(ctx, by, id, true)
	if err != nil {
		return nil, err
	}
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	graph := graphOf(t.Creator)
	list, err := configSubjects(snapshot.Match, graph, id)
	if err != nil {
		return nil, err
	}
	var out []Config
	for _, subject := range list {
		r, err := systemgraph.Read(snapshot.Match, graph, subject)
		if err != nil {
			return nil, err
		}
		c := s.configOf(id, r)
		if c == nil {
			continue
		}
		if t.Creator != agent {
			c = c.withoutSecrets()
		}
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Config) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// systemView is a view of all graphs.
var systemView = kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}

// Get returns a configuration of a task, as List does; id "" is the one set without an id.
//
// Errors: CodeTaskNotFound, also if the configuration does not exist;
// CodePermissionDenied.
func (s *Service) Get(ctx context.Context, by caller.Caller, task tasks.TaskID, id string) (*Config, error) {
	list, err := s.List(ctx, by, task)
	if err != nil {
		return nil, err
	}
	if id == "" {
		id = string(task)
	}
	for i := range list {
		if list[i].ID == id {
			return &list[i], nil
		}
	}
	return nil, errNoConfig()
}

// Delete deletes a configuration. Only calls in progress still complete. Deleting a
// configuration that does not exist is not an error.
//
// Errors: CodeTaskNotFound; CodePermissionDenied.
func (s *Service) Delete(ctx context.Context, by caller.Caller, task tasks.TaskID, id string) error {
	t, err := s.authorizedTask(ctx, by, task, true)
	if err != nil {
		return err
	}
	if id == "" {
		id = string(task)
	}
	return s.commitUpdate(ctx, by, "push/delete", func(tx *kg.Tx) error {
		return removeConfig(tx, graphOf(t.Creator), configEntity(task, id))
	})
}

// removeConfig removes all statements about a configuration.
func removeConfig(tx *kg.Tx, graph, subject kg.Term) error {
	return systemgraph.Remove(tx, kg.Pattern{Subject: subject, Graph: graph})
}

func (s *Service) commitUpdate(ctx context.Context, by caller.Caller, method string, do func(*kg.Tx) error) error {
	return systemgraph.Update(ctx, s.store, kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}, do)
}

// systemCaller is the caller of koine itself.
func systemCaller() caller.Caller { return caller.Caller{Principal: kg.SystemPrincipal()} }
