package push

import (
	"context"

	"koine/internal/systemgraph"
	"koine/kg"
)

// savedPosition is a position to store.
type savedPosition struct {
	hook *hook
	at   kg.Position
	done bool
}

// savePositions stores the positions of the hooks in one commit, and removes the hooks
// that are done.
func (s *Service) savePositions(ctx context.Context) {
	list := s.dirtyHooks()
	if len(list) == 0 {
		return
	}
	err := s.commitUpdate(ctx, systemCaller(), "push/position", func(tx *kg.Tx) error {
		for _, k := range list {
			if err := k.writeTo(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && kg.CodeOf(err) != kg.CodeClosed && ctx.Err() == nil {
		s.options.Logger.Error("cannot store the positions of push notifications", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range list {
		h := k.hook
		h.mu.Lock()
		if err != nil {
			h.dirty = true
		} else if k.done && s.hooks[h.config.Task][h.config.ID] == h {
			s.dropHook(h.config.Task, h.config.ID)
		}
		h.mu.Unlock()
	}
}

// dirtyHooks lists the hooks with an unsaved position.
func (s *Service) dirtyHooks() (out []savedPosition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hooks := range s.hooks {
		for _, h := range hooks {
			h.mu.Lock()
			if h.dirty {
				h.dirty = false
				out = append(out, savedPosition{h, h.delivered, h.done})
			}
			h.mu.Unlock()
		}
	}
	return out
}

// writeTo stores the position unless the configuration was replaced or deleted.
func (k *savedPosition) writeTo(tx *kg.Tx) error {
	c, graph := k.hook.config, graphOf(k.hook.task.Creator)
	subject := configEntity(c.Task, c.ID)
	r, err := systemgraph.Read(tx.MatchOwn, graph, subject)
	if err != nil || r.Text(propSet) != k.hook.version {
		return err
	}
	now := systemgraph.Record{propPosition: systemgraph.Values(formatPosition(k.at))}
	if k.done {
		markDone(now)
	}
	return systemgraph.Write(tx, graph, subject, now)
}

// maxEnded is the maximum number of configurations that one commit marks as done.
const maxEnded = 1000

// batch collects statements and flushes at most maxEnded at a time.
type batch struct {
	list  []kg.Statement
	flush func([]kg.Statement)
}

func (b *batch) add(st kg.Statement) {
	if b.list = append(b.list, st); len(b.list) == maxEnded {
		b.finish()
	}
}

// finish flushes the rest.
func (b *batch) finish() {
	if len(b.list) > 0 {
		b.flush(b.list)
	}
	b.list = b.list[:0]
}

// markEnded marks configurations as done, given the statements that set them. If it
// fails, the next start reads them again.
func (s *Service) markEnded(ctx context.Context, list []kg.Statement) {
	err := s.commitUpdate(ctx, systemCaller(), "push/position", func(tx *kg.Tx) error {
		for _, set := range list {
			r, err := systemgraph.Read(tx.MatchOwn, set.Graph, set.Subject)
			if err != nil {
				return err
			}
			if r.Text(propSet) != set.Object.Value() {
				continue // replaced
			}
			now := systemgraph.Record{}
			markDone(now)
			if err := systemgraph.Write(tx, set.Graph, set.Subject, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.options.Logger.Warn("cannot mark the push configurations of ended tasks; the next start reads them again", "error", err)
	}
}
