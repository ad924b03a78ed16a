package push

import (
	"context"

	"koine/internal/systemgraph"
	"koine/internal/tasks"
	"koine/internal/throttle"
	"koine/kg"
)

// watchedPatterns match changes of tasks and of configurations.
var watchedPatterns = []kg.Pattern{tasks.ChangesPattern(), {Predicate: systemgraph.Property(propSet)}}

// watchLog loads the hooks and watches the log from the earliest position of a hook.
func (s *Service) watchLog(ctx context.Context) (w *kg.Watcher, err error) {
	for range maxLoadAttempts {
		var from kg.Position
		if from, err = s.loadHooks(ctx); err != nil {
			return nil, err
		}
		w, err = s.store.Watch(s.job.Context(), kg.Filter{View: systemView, Patterns: watchedPatterns}, from)
		if kg.CodeOf(err) != kg.CodePositionGone { // otherwise the log was truncated concurrently
			return w, err
		}
	}
	return nil, err
}

// maxLoadAttempts is the number of consecutive attempts to load the hooks.
const maxLoadAttempts = 3

// loadHooks loads the hooks of active tasks and returns the position from which to read
// the log: the first commit that one of them has not delivered. A hook whose commit is
// no longer in the log gets the present task.
func (s *Service) loadHooks(ctx context.Context) (from kg.Position, err error) {
	s.dropAll()
	oldest := s.store.Oldest().Revision
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return from, err
	}
	defer snapshot.Close()
	from = snapshot.Position()
	// Ended configurations with propSet: written by older versions, or ended before
	// that could be recorded.
	ended := batch{flush: func(list []kg.Statement) { s.markEnded(ctx, list) }}
	defer ended.finish()
	for st, err := range snapshot.Match(kg.Pattern{Predicate: systemgraph.Property(propSet)}) {
		if err != nil {
			return from, err
		}
		h, done, err := s.loadHook(ctx, snapshot, st)
		if err != nil {
			return from, err
		}
		if done {
			ended.add(st)
		}
		if h == nil {
			continue
		}
		s.putHook(h)
		next := h.delivered.Revision + 1
		if h.delivered.Index != kg.EndOfCommit { // within a commit
			next--
		}
		switch {
		case !h.behind:
		case next <= oldest:
			h.enqueue(next)
		case next <= from.Revision:
			from.Revision = next - 1
		}
	}
	return from, nil
}

// loadHook returns the hook of a configuration, nil if there is nothing to deliver.
// done reports that there never will be.
func (s *Service) loadHook(ctx context.Context, snapshot *kg.Snapshot, set kg.Statement) (h *hook, done bool, err error) {
	if _, ours := ownerOf(set.Graph); !ours {
		return nil, false, nil
	}
	r, err := systemgraph.Read(snapshot.Match, set.Graph, set.Subject)
	if err != nil || r == nil || len(r[propTask]) == 0 {
		return nil, false, err
	}
	if r[propDone] != nil {
		return nil, true, nil
	}
	id := tasks.IDOf(r[propTask][0])
	c := s.configOf(id, r)
	if c == nil {
		s.options.Logger.Warn("push configuration was sealed by another store: set it again", "task", id)
		return nil, false, nil
	}
	t, err := s.tasks.Get(ctx, systemCaller(), id, tasks.ReadOptions{})
	if kg.CodeOf(err) == kg.CodeTaskNotFound {
		return nil, false, s.commitUpdate(ctx, systemCaller(), "push/delete", func(tx *kg.Tx) error { return removeConfigs(tx, set.Graph, id) })
	}
	if err != nil {
		return nil, false, err
	}
	h = newHook(s, c, t, r.Text(propSet))
	h.delivered = kg.Position{Revision: set.Assertions[0].Revision, Index: kg.EndOfCommit}
	if at, ok := parsePosition(r.Text(propPosition)); ok {
		h.delivered = at
	}
	h.behind, err = changedAfter(snapshot, t, h.delivered)
	if err != nil || h.behind || !t.Status.State.Ended() {
		return h, false, err
	}
	// The task may have ended after the snapshot was taken, and that must be delivered.
	now, err := s.store.View(ctx, systemView)
	if err != nil {
		return nil, false, err
	}
	defer now.Close()
	if h.behind, err = changedAfter(now, t, h.delivered); err != nil || !h.behind {
		return nil, err == nil, err
	}
	return h, false, nil
}

// changedAfter reports whether the task changed after a position.
func changedAfter(s *kg.Snapshot, t *tasks.Task, at kg.Position) (bool, error) {
	p := tasks.ChangesPattern()
	p.Subject = t.ID.Entity()
	for st, err := range s.Match(p) {
		if err != nil {
			return false, err
		}
		if (kg.Position{Revision: st.Assertions[0].Revision, Index: kg.EndOfCommit}).Compare(at) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// putHook adds a hook and replaces the previous one with its id.
func (s *Service) putHook(h *hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropHook(h.config.Task, h.config.ID)
	if s.hooks[h.config.Task] == nil {
		s.hooks[h.config.Task] = map[string]*hook{}
	}
	s.hooks[h.config.Task][h.config.ID] = h
	s.active.Charge(throttle.OwnerFor(h.task.Creator), 1)
}

// dropHook stops and removes a hook if it exists. The caller holds s.mu.
func (s *Service) dropHook(task tasks.TaskID, id string) {
	h := s.hooks[task][id]
	if h == nil {
		return
	}
	h.line.Stop()
	s.active.Release(throttle.OwnerFor(h.task.Creator), 1)
	delete(s.hooks[task], id)
	if len(s.hooks[task]) == 0 {
		delete(s.hooks, task)
	}
}

// dropAll stops and removes all hooks.
func (s *Service) dropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for task, hooks := range s.hooks {
		for id := range hooks {
			s.dropHook(task, id)
		}
	}
}

// handleEvent handles a change of a task or a configuration. It is called in log order.
func (s *Service) handleEvent(e *kg.Event) error {
	if e.Statement.Predicate == systemgraph.Property(propSet) {
		return s.handleConfig(e)
	}
	id, gone := tasks.ChangedBy(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	for config, h := range s.hooks[id] {
		if gone {
			s.dropHook(id, config)
		} else {
			h.enqueue(e.Commit.Revision)
		}
	}
	return nil
}

// handleConfig starts the hook of a new configuration, or stops that of a deleted one.
func (s *Service) handleConfig(e *kg.Event) error {
	if _, ours := ownerOf(e.Statement.Graph); !ours {
		return nil
	}
	snapshot, err := s.store.View(s.job.Context(), systemView)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	now := kg.Pattern{Subject: e.Statement.Subject, Predicate: e.Statement.Predicate, Graph: e.Statement.Graph}
	for st, err := range snapshot.Match(now) {
		if err != nil {
			return err
		}
		if s.isCurrent(st.Subject, st.Object.Value()) {
			return nil
		}
		h, _, err := s.loadHook(s.job.Context(), snapshot, st)
		if h != nil && err == nil {
			s.putHook(h)
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	task, id := keyOf(e.Statement.Subject)
	s.dropHook(task, id)
	return nil
}

// isCurrent reports whether the running hook is that of the latest configuration.
func (s *Service) isCurrent(subject kg.Term, version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	task, id := keyOf(subject)
	h := s.hooks[task][id]
	return h != nil && h.version == version
}

// Forget removes the configurations of a task, active or not, in the update that deletes
// the task (tasks.Options.DeleteTx). Later nobody could: they are found by their task.
func Forget(tx *kg.Tx, t *tasks.Task) error { return removeConfigs(tx, graphOf(t.Creator), t.ID) }

// removeConfigs removes all configurations of a task.
func removeConfigs(tx *kg.Tx, graph kg.Term, task tasks.TaskID) error {
	list, err := configSubjects(tx.MatchOwn, graph, task)
	for _, subject := range list {
		if err == nil {
			err = removeConfig(tx, graph, subject)
		}
	}
	return err
}
