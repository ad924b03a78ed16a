package courier

import (
	"context"
	"strconv"

	"koine/internal/caller"
	"koine/internal/records"
	"koine/kg"
)

// kept is how far a hook came.
type kept struct {
	hook *hook
	told kg.Revision
}

// keep writes down how far the hooks came, in one commit.
func (s *Service) keep(ctx context.Context) {
	list := s.moved()
	if len(list) == 0 {
		return
	}
	err := s.update(ctx, caller.Caller{Principal: kg.SystemPrincipal()}, "mailhook/told", func(tx *kg.Tx) error {
		for _, k := range list {
			if err := k.write(tx); err != nil {
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
		s.options.Logger.Error("how far web hooks of mailboxes came is not written down", "error", err)
	}
}

// moved lists the hooks of which it is to be written down.
func (s *Service) moved() (out []kept) {
	for _, h := range s.all() {
		h.mu.Lock()
		if h.dirty {
			h.dirty = false
			out = append(out, kept{h, h.told()})
		}
		h.mu.Unlock()
	}
	return out
}

// write does nothing where the hook was set anew meanwhile, or taken away.
func (k *kept) write(tx *kg.Tx) error {
	subject := subjectOf(k.hook.agent)
	r, err := records.Read(tx.MatchOwn, Graph, subject)
	if err != nil || r.Text(propTarget) != k.hook.sealed {
		return err
	}
	return records.Write(tx, Graph, subject, records.Record{propTold: records.Values(strconv.FormatUint(uint64(k.told), 10))})
}
