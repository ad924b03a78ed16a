package courier

import (
	"context"
	"slices"
	"sync"

	"koine/internal/records"
	"koine/internal/tasks"
	"koine/internal/webhook"
	"koine/kg"
)

// loadHooks begins with the hooks that are written down.
func (s *Service) loadHooks(ctx context.Context) error {
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	var list []kg.AgentID
	for st, err := range snapshot.Match(kg.Pattern{Predicate: records.Property(propTarget), Graph: Graph}) {
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

// restartHook carries letters to the hook of an agent as it is written down, in place of the
// one before it.
func (s *Service) restartHook(agent kg.AgentID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.readHook(s.ctx, agent) // whoever comes last finds the newest
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
		s.options.Logger.Warn("the web hook of a mailbox was sealed by another store: set it again", "agent", agent)
		return nil
	}
	h := newHook(s, agent, now, turn)
	s.hooks[agent] = h
	return h.scanMailbox()
}

// startWatch begins to hear of letters, from now on.
func (s *Service) startWatch() (*kg.Watcher, error) {
	return s.store.Watch(s.ctx, kg.Filter{View: systemView, Ops: []kg.Op{kg.Add}, Patterns: []kg.Pattern{tasks.MailPattern()}}, s.store.Head())
}

// followLog tells the hooks of letters, until Close. Where the log cannot be followed, it
// begins anew, and what came meanwhile is in the mailboxes.
func (s *Service) followLog(w *kg.Watcher) {
	for {
		err := s.readEvents(w)
		for again := true; again; {
			if s.ctx.Err() != nil || kg.CodeOf(err) == kg.CodeClosed {
				return
			}
			s.options.Logger.Warn("web hooks of mailboxes begin to follow the log anew", "error", err)
			if !webhook.Sleep(s.ctx, watchPause) {
				return
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
	return s.ctx.Err()
}
