package mailhook

import (
	"context"
	"slices"
	"sync"

	"koine/internal/systemgraph"
	"koine/internal/tasks"
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
	now, err := s.readHook(s.job.Context(), agent) // under the lock, so that the last call reads the newest
	if err != nil {
		return err
	}
	turn := new(sync.Mutex)
	if before := s.hooks[agent]; before != nil {
		before.line.Stop()
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

// watchLog watches for new letters from now on, and queues those that are in the mailboxes
// already.
func (s *Service) watchLog(ctx context.Context) (*kg.Watcher, error) {
	// Before loading, so that no letter is missed.
	w, err := s.store.Watch(s.job.Context(), kg.Filter{View: systemView, Ops: []kg.Op{kg.Add}, Patterns: []kg.Pattern{tasks.MailPattern()}}, s.store.Head())
	if err != nil {
		return nil, err
	}
	if s.loaded {
		err = s.rescanMailboxes()
	} else {
		err = s.loadHooks(ctx)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	s.loaded = true
	return w, nil
}

// rescanMailboxes queues the letters that arrived while the log was not followed.
func (s *Service) rescanMailboxes() error {
	for _, h := range s.allHooks() {
		if err := h.scanMailbox(); err != nil && h.line.Context().Err() == nil {
			return err
		}
	}
	return nil
}

func (s *Service) handleEvent(e *kg.Event) error {
	agent, notice := tasks.ParseMailEvent(e)
	if h := s.hookOf(agent); h != nil {
		h.enqueue(notice)
	}
	return nil
}
