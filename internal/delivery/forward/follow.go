package forward

import (
	"context"

	"koine/internal/systemgraph"
	"koine/internal/tasks"
	"koine/kg"
)

// watchLog watches for new letters from now on, and queues those that are in the mailboxes
// already.
func (s *Service) watchLog(ctx context.Context) (*kg.Watcher, error) {
	// Before loading, so that no letter is missed.
	w, err := s.store.Watch(s.job.Context(), kg.Filter{View: systemView, Ops: []kg.Op{kg.Add}, Patterns: []kg.Pattern{tasks.MailPattern()}}, s.store.Head())
	if err != nil {
		return nil, err
	}
	if s.loaded {
		err = s.rescan()
	} else {
		err = s.load(ctx)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	s.loaded = true
	return w, nil
}

// load starts the stored upstreams.
func (s *Service) load(ctx context.Context) error {
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return err
	}
	list, err := systemgraph.Subjects(snapshot.Match, kg.Pattern{Predicate: systemgraph.Property(propSetting), Graph: Graph})
	snapshot.Close()
	if err != nil {
		return err
	}
	for _, subject := range list {
		if err := s.restart(kg.AgentID(subject.Value())); err != nil {
			return err
		}
	}
	return nil
}

// restart starts the stored upstream of an agent, if any, in place of the running one.
func (s *Service) restart(agent kg.AgentID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, _, err := s.readSetting(s.job.Context(), agent) // under the lock, so that the last call reads the newest
	if err != nil {
		return err
	}
	if before := s.upstreams[agent]; before != nil {
		before.stop()
		before.running.Wait() // no task is worked on twice
		delete(s.upstreams, agent)
	}
	switch {
	case now == nil:
		return nil
	case now.setting == nil:
		s.options.Logger.Warn("upstream of an agent was sealed by another store: set it again", "agent", agent)
		return nil
	}
	u := newUpstream(s, agent, now)
	s.upstreams[agent] = u
	return u.scanMailbox()
}

// rescan queues the letters that arrived while the log was not followed.
func (s *Service) rescan() error {
	for _, u := range s.all() {
		if err := u.scanMailbox(); err != nil && u.ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (s *Service) handleEvent(e *kg.Event) error {
	agent, notice := tasks.ParseMailEvent(e)
	if u := s.upstreamOf(agent); u != nil {
		u.enqueue(notice)
	}
	return nil
}

func (s *Service) upstreamOf(agent kg.AgentID) *upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.upstreams[agent]
}

func (s *Service) all() []*upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*upstream, 0, len(s.upstreams))
	for _, u := range s.upstreams {
		out = append(out, u)
	}
	return out
}
