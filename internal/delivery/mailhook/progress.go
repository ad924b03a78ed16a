package mailhook

import (
	"context"
	"strconv"

	"koine/internal/caller"
	"koine/internal/systemgraph"
	"koine/kg"
)

// savedProgress is the progress of a hook.
type savedProgress struct {
	hook      *hook
	delivered kg.Revision
}

// saveProgress stores the progress of the hooks in one commit.
func (s *Service) saveProgress(ctx context.Context) {
	list := s.dirtyHooks()
	if len(list) == 0 {
		return
	}
	err := s.commitUpdate(ctx, caller.Caller{Principal: kg.SystemPrincipal()}, "mailhook/told", func(tx *kg.Tx) error {
		for _, k := range list {
			if err := k.writeTo(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		return
	}
	for _, k := range list {
		k.hook.mu.Lock()
		k.hook.dirty = true
		k.hook.mu.Unlock()
	}
	if kg.CodeOf(err) != kg.CodeClosed && ctx.Err() == nil {
		s.options.Logger.Error("cannot store the progress of mailbox web hooks", "error", err)
	}
}

// dirtyHooks lists the hooks with unsaved progress.
func (s *Service) dirtyHooks() (out []savedProgress) {
	for _, h := range s.allHooks() {
		h.mu.Lock()
		if h.dirty {
			h.dirty = false
			out = append(out, savedProgress{h, h.deliveredRevision()})
		}
		h.mu.Unlock()
	}
	return out
}

// writeTo stores the progress unless the hook was replaced or removed.
func (k *savedProgress) writeTo(tx *kg.Tx) error {
	subject := subjectOf(k.hook.agent)
	r, err := systemgraph.Read(tx.MatchOwn, Graph, subject)
	if err != nil || r.Text(propTarget) != k.hook.sealed {
		return err
	}
	return systemgraph.Write(tx, Graph, subject, systemgraph.Record{propTold: systemgraph.Values(strconv.FormatUint(uint64(k.delivered), 10))})
}
