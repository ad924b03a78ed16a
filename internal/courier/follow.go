package courier

import (
	"context"
	"slices"
	"sync"

	"koine/internal/systemgraph"
	"koine/internal/tasks"
	"koine/internal/webhook"
	"koine/kg"
)

// loadHooks starts the stored hooks.
func (s *Service) loadHooks(ctx context.Context) error {
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	var list []kg.AgentID
	for st, err := range snapshot.Match(kg.Pattern{Predicate: systemgraph.Property(propTarget), Graph: Graph}) {
		if err != nil {
			return err
		}
		list = append(list, kg.AgentID(st.Subject.Value()))
	}
	slices.Sort(list)
	for _, agent := range list {
		if err := s.restartHook(agent); err != nil {
			return err
		}
	}
	return nil
}

// restartHook starts the stored hook of an agent, if any, in place of the running one.
func (s *Service) restartHook(agent kg.AgentID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.readHook(s.jobs.Context(), agent) // under the lock, so that the last call reads the newest
	if err != nil {
		return err
	}
	turn := new(sync.Mutex)
	if before := s.hooks[agent]; before != nil {
		before.cancel()
		turn = before.turn
		delete(s.hooks, agent)
	}
	switch {
	case now == nil:
		return nil
	case now.target == nil:
		s.options.Logger.Warn("web hook of a mailbox was sealed by another store: set it again", "agent", agent)
		return nil
	}
	h := newHook(s, agent, now, turn)
	s.hooks[agent] = h
	return h.scanMailbox()
}

// startWatch watches for new letters from now on.
func (s *Service) startWatch() (*kg.Watcher, error) {
	return s.store.Watch(s.jobs.Context(), kg.Filter{View: systemView, Ops: []kg.Op{kg.Add}, Patterns: []kg.Pattern{tasks.MailPattern()}}, s.store.Head())
}

// followLog passes new letters to the hooks until Close. After an error it restarts the
// watch; the mailboxes have the letters that arrived meanwhile.
func (s *Service) followLog(ctx context.Context, w *kg.Watcher) error {
	for {
		err := s.readEvents(w)
		for again := true; again; {
			if ctx.Err() != nil || kg.CodeOf(err) == kg.CodeClosed {
				return nil
			}
			s.options.Logger.Warn("web hooks of mailboxes restart following the log", "error", err)
			if !webhook.Sleep(ctx, watchPause) {
				return nil
			}
			if w, err = s.startWatch(); err != nil {
				continue
			}
			if err = s.rescanMailboxes(); err != nil {
				w.Close()
			}
			again = err != nil
		}
	}
}

// rescanMailboxes queues the letters that arrived while the log was not followed.
func (s *Service) rescanMailboxes() error {
	for _, h := range s.allHooks() {
		if err := h.scanMailbox(); err != nil && h.ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (s *Service) readEvents(w *kg.Watcher) error {
	defer w.Close()
	for e, err := range w.Events() {
		if err != nil {
			return err
		}
		agent, notice := tasks.ParseMailEvent(&e)
		if h := s.hookOf(agent); h != nil {
			h.enqueue(notice)
		}
	}
	return s.jobs.Context().Err()
}
