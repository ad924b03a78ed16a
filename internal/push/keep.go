package push

import (
	"context"

	"koine/internal/records"
	"koine/kg"
)

// kept is a position that is written down.
type kept struct {
	hook *hook
	at   kg.Position
	done bool
}

// keep writes down where the hooks stand, in one commit. Those that are done are not
// told of any more.
func (s *Service) keep(ctx context.Context) {
	list := s.moved()
	if len(list) == 0 {
		return
	}
	err := s.update(ctx, own(), "push/position", func(tx *kg.Tx) error {
		for _, k := range list {
			if err := k.write(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && kg.CodeOf(err) != kg.CodeClosed && ctx.Err() == nil {
		s.options.Logger.Error("positions of push notifications are not written down", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range list {
		h := k.hook
		h.mu.Lock()
		if err != nil {
			h.dirty = true
		} else if k.done && s.hooks[h.config.Task][h.config.ID] == h {
			s.drop(h.config.Task, h.config.ID)
		}
		h.mu.Unlock()
	}
}

// moved lists the hooks whose position is to be written down.
func (s *Service) moved() (out []kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hooks := range s.hooks {
		for _, h := range hooks {
			h.mu.Lock()
			if h.dirty {
				h.dirty = false
				out = append(out, kept{h, h.at, h.done})
			}
			h.mu.Unlock()
		}
	}
	return out
}

// write does nothing where the configuration was set anew meanwhile, or deleted.
func (k *kept) write(tx *kg.Tx) error {
	c, graph := k.hook.config, graphOf(k.hook.task.Creator)
	subject := entity(c.Task, c.ID)
	r, err := records.Read(tx.MatchOwn, graph, subject)
	if err != nil || r.Text(propSet) != k.hook.set {
		return err
	}
	now := records.Record{propPosition: records.Values(formatPosition(k.at))}
	if k.done {
		end(now)
	}
	return records.Write(tx, graph, subject, now)
}

// maxEnded bounds the configurations that one commit ends, and those that wait for it.
const maxEnded = 1000

// batch collects statements, and flushes at most maxEnded at a time.
type batch struct {
	list  []kg.Statement
	flush func([]kg.Statement)
}

func (b *batch) add(st kg.Statement) {
	if b.list = append(b.list, st); len(b.list) == maxEnded {
		b.end()
	}
}

// end flushes what is left.
func (b *batch) end() {
	if len(b.list) > 0 {
		b.flush(b.list)
	}
	b.list = b.list[:0]
}

// endAll writes down that nothing comes any more of configurations, which are said by the
// statements that they were set by. Until it can, a start reads them again.
func (s *Service) endAll(ctx context.Context, list []kg.Statement) {
	err := s.update(ctx, own(), "push/position", func(tx *kg.Tx) error {
		for _, set := range list {
			r, err := records.Read(tx.MatchOwn, set.Graph, set.Subject)
			if err != nil {
				return err
			}
			if r.Text(propSet) != set.Object.Value() {
				continue // set anew
			}
			now := records.Record{}
			end(now)
			if err := records.Write(tx, set.Graph, set.Subject, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.options.Logger.Warn("push notification configurations of ended tasks are read again by the next start", "error", err)
	}
}
