package push

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"koine/internal/caller"
	"koine/internal/records"
	"koine/internal/tasks"
	"koine/internal/webhook"
	"koine/kg"
)

// Service keeps configurations and delivers. It is bound to a store by Load. Its
// methods may be called concurrently.
type Service struct {
	options Options
	store   *kg.Store
	tasks   *tasks.Service
	sender  *webhook.Sender
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu    sync.Mutex                        // guards what follows
	hooks map[tasks.TaskID]map[string]*hook // of tasks that go on, by the id of the configuration
	count int                               // of them
}

// New makes a service.
func New(o Options) *Service {
	o = o.withDefaults()
	s := &Service{options: o, sender: webhook.New(o.Options), hooks: map[tasks.TaskID]map[string]*hook{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Load binds the service to a store and its tasks. From then on it delivers, until
// Close. It is called once, before any other method.
func (s *Service) Load(ctx context.Context, store *kg.Store, work *tasks.Service) error {
	s.store, s.tasks = store, work
	w, err := s.startWatch(ctx)
	if err != nil {
		return err
	}
	s.done.Go(func() { s.followLog(w) })
	s.done.Go(func() { webhook.RunEvery(s.ctx, s.options.FlushEvery, s.savePositions) })
	return nil
}

// Close ends delivery, waits for what is under way and writes down how far it came.
// Call it before the store is closed.
func (s *Service) Close() {
	s.cancel()
	s.done.Wait()
	s.sender.Close()
	if s.store != nil {
		s.savePositions(context.Background())
	}
}

// errNoConfig is the same for a configuration that is not there and one of a task that
// one may not see.
func errNoConfig() *kg.Error {
	return kg.Errorf(kg.CodeTaskNotFound, "there is no such push notification configuration").At("id")
}

// authorizedTask is one whose configurations are the caller's: it created the task, or, where
// others may too, administers.
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
		return nil, kg.Errorf(kg.CodePermissionDenied, "push notifications of a task are its creator's").At("taskId")
	}
	return t, nil
}

// Set makes a configuration, in place of the one with its id. What happens to the task
// from then on is sent. Who created the task may.
//
// Errors: CodeTaskNotFound; CodePermissionDenied; CodeInvalid; CodeLimitExceeded;
// CodeOverloaded.
func (s *Service) Set(ctx context.Context, by caller.Caller, c Config) (*Config, error) {
	along, err := s.PrepareConfig(c)
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
	err = s.commitUpdate(ctx, by, "push/set", func(tx *kg.Tx) error { return along(tx, t) })
	return &c, err
}

// PrepareConfig checks a configuration and writes it beside a task that is about to be made or
// goes on (tasks.Sending.Along).
func (s *Service) PrepareConfig(c Config) (func(tx *kg.Tx, t *tasks.Task) error, error) {
	if err := c.validate(s.options.AllowPrivate); err != nil {
		return nil, err
	}
	set, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	full := s.count >= s.options.MaxActive
	s.mu.Unlock()
	if full {
		return nil, kg.Errorf(kg.CodeOverloaded, "there are %d web hooks already", s.options.MaxActive)
	}
	return func(tx *kg.Tx, t *tasks.Task) error {
		mine := c
		if mine.Task = t.ID; mine.ID == "" {
			mine.ID = string(t.ID)
		}
		graph, subject := graphOf(t.Creator), configEntity(mine.Task, mine.ID)
		there, err := configSubjects(tx.MatchOwn, graph, mine.Task)
		if err != nil {
			return err
		}
		if len(there) >= MaxConfigs && !slices.Contains(there, subject) {
			return kg.Errorf(kg.CodeLimitExceeded, "a task has at most %d push notification configurations", MaxConfigs).At("taskId")
		}
		return records.Write(tx, graph, subject, s.configRecord(&mine, set.String(), t.Status.State.Ended()))
	}, nil
}

// configSubjects lists the configurations of a task.
func configSubjects(match records.Matcher, graph kg.Term, task tasks.TaskID) (out []kg.Term, err error) {
	for st, err := range match(kg.Pattern{Predicate: records.Property(propTask), Object: task.Entity(), Graph: graph}) {
		if err != nil {
			return nil, err
		}
		out = append(out, st.Subject)
	}
	return out, nil
}

// List lists the configurations of a task, by their ids. Who created the task may, and
// administrators.
//
// Errors: CodeTaskNotFound; CodePermissionDenied.
func (s *Service) List(ctx context.Context, by caller.Caller, id tasks.TaskID) ([]Config, error) {
	t, err := s.authorizedTask(ctx, by, id, true)
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
		r, err := records.Read(snapshot.Match, graph, subject)
		if err != nil {
			return nil, err
		}
		if c := s.configOf(id, r); c != nil {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b Config) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// systemView is koine's own.
var systemView = kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true}

// Get reads a configuration of a task; "" is that which was set without an id.
//
// Errors: CodeTaskNotFound, also where there is none; CodePermissionDenied.
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

// Delete takes a configuration away. Nothing more is sent that has not been begun
// with. One that is not there is no error.
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

// removeConfig removes all that is stated about a configuration.
func removeConfig(tx *kg.Tx, graph, subject kg.Term) error {
	var quads []kg.Quad
	for st, err := range tx.MatchOwn(kg.Pattern{Subject: subject, Graph: graph}) {
		if err != nil {
			return err
		}
		quads = append(quads, st.Quad)
	}
	for _, q := range quads {
		if err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: q}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) commitUpdate(ctx context.Context, by caller.Caller, method string, do func(*kg.Tx) error) error {
	return records.Update(ctx, s.store, kg.Meta{Principal: by.Principal, Actor: by.Actor, Method: method}, do)
}

// systemCaller is koine itself.
func systemCaller() caller.Caller { return caller.Caller{Principal: kg.SystemPrincipal()} }
