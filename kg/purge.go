package kg

import (
	"bytes"
	"context"
	"slices"
	"time"

	"koine/kg/base"
	"koine/kg/internal/bulkindex"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// purgeSoon schedules the removal of unreachable generations from the index: abandoned ones,
// and the content of deleted graphs. With Options.History, Retain adds those that no readable
// revision needs.
func (s *Store) purgeSoon() {
	select {
	case s.purge <- struct{}{}:
	default: // a purge is scheduled already
	}
}

func (s *Store) purgeLoop(ctx context.Context) error {
	retry := time.NewTimer(s.options.purgeRetry)
	defer retry.Stop()
	retry.Stop()
	applied := s.replayed > 0
	for {
		select {
		case <-s.purge:
		case <-retry.C:
		case <-ctx.Done():
			return nil
		}
		err := s.giveUpAbandoned(ctx)
		if err == nil {
			err = s.purgeGenerations(ctx)
		}
		if err == nil && applied {
			err = s.purgeFirstContents(ctx)
			applied = err != nil
		}
		if err == nil || s.isStopping() {
			continue
		}
		s.log.Warn("the old content of replaced graphs could not be removed from the index: retrying later", "error", err)
		retry.Reset(s.options.purgeRetry)
	}
}

// purgeRetry is the delay after a failed purge.
const purgeRetry = 10 * time.Second

// purgeGenerations removes the content of unreachable generations from the index, and then
// their entries from the table of generations. An interrupted purge continues the next time.
func (s *Store) purgeGenerations(ctx context.Context) error {
	for _, id := range s.staleGenerations() {
		if err := s.purgeGeneration(ctx, id); err != nil {
			return err
		}
	}
	// A generation in which every statement came and went in one commit has no
	// counts, and yet rows that tell when its subjects changed last.
	h := s.head.Load()
	for _, g := range h.generations.Superseded() {
		if !h.catalogue.EverCounted(g.ID()) {
			if err := s.purgeGeneration(ctx, g.ID()); err != nil {
				return err
			}
		}
	}
	return s.forgetGenerations(ctx)
}

// purgeFirstContents removes the first content of graphs that is not kept, after a start that
// applied commits again. Of an earlier purge that a crash cut short, the index may lack the
// counts, by which purgeGenerations finds the content, and a commit that adds and removes equal
// numbers of statements makes none.
func (s *Store) purgeFirstContents(ctx context.Context) error {
	t := s.head.Load().generations
	if t == nil {
		return nil
	}
	for graph := range t.Timelines {
		if t.IsKept(graph) {
			continue
		}
		if err := s.purgeGeneration(ctx, graph); err != nil {
			return err
		}
	}
	return nil
}

// staleGenerations lists the ids of unreachable generations with content in the index.
func (s *Store) staleGenerations() (out []ID) {
	h := s.head.Load()
	if h.generations == nil {
		return nil
	}
	h.catalogue.Each(keys.PrefixPredicate, ID{}, func(graph, _ ID, _ uint64) {
		if !h.generations.IsKept(graph) && (len(out) == 0 || out[len(out)-1] != graph) {
			out = append(out, graph)
		}
	})
	return out
}

// purgeGeneration removes the content of a generation, its counts last: an interrupted purge
// finds the generation by them.
func (s *Store) purgeGeneration(ctx context.Context, id ID) error {
	present := func(key, _ []byte, gone func(bulkindex.KeyValue)) bool {
		q, ok := keys.GSPO.Parse(key)
		for _, o := range keys.Orders {
			if ok && o.Holds(q) {
				gone(bulkindex.KeyValue{Key: o.Append(nil, q)})
			}
		}
		return ok
	}
	past := func(key, _ []byte, gone func(bulkindex.KeyValue)) bool {
		q, ok := keys.GSPO.Past().Parse(key)
		from, to, _ := keys.Interval(key)
		for _, o := range keys.Orders {
			if ok && o.Holds(q) {
				gone(bulkindex.KeyValue{Key: o.AppendPast(nil, q, from, to)})
			}
		}
		return ok
	}
	plain := func(key, _ []byte, gone func(bulkindex.KeyValue)) bool {
		gone(bulkindex.KeyValue{Key: bytes.Clone(key)})
		return true
	}
	for _, part := range []struct {
		prefix []byte
		old    func(key, value []byte, gone func(bulkindex.KeyValue)) bool
	}{
		{append([]byte{byte(keys.GSPO)}, id[:]...), present},
		{append([]byte{byte(keys.GSPO.Past())}, id[:]...), past},
		{append(keys.LastPrefix(), id[:]...), plain},
	} {
		if _, err := s.pruneWhere(ctx, part.prefix, part.old); err != nil {
			return err
		}
	}
	return s.purgeCounts(ctx, id)
}

// purgeCounts removes the counts of a generation that has no other content.
func (s *Store) purgeCounts(ctx context.Context, id ID) error {
	return s.runBetween(ctx, func() error {
		h := *s.head.Load()
		h.catalogue = h.catalogue.Copy()
		var gone []bulkindex.KeyValue
		for _, prefix := range [...]byte{keys.PrefixPredicate, keys.PrefixClass} {
			h.catalogue.Each(prefix, id, func(graph, counted ID, _ uint64) {
				gone = append(gone, bulkindex.KeyValue{Key: slices.Concat([]byte{prefix}, graph[:], counted[:])})
			})
		}
		if err := s.deleteNow(gone); err != nil {
			return err
		}
		for _, k := range gone {
			h.catalogue.Tallies.Delete(string(k.Key))
		}
		s.replaceHead(&h)
		return nil
	})
}

// forgetGenerations removes entries from the table of generations that are superseded and have
// no content in the index.
//
// The log does not record it. An index rebuilt from the log has these entries again, and one
// rebuilt from a checkpoint has those of the checkpoint; later commits write to none of them.
func (s *Store) forgetGenerations(ctx context.Context) error {
	if len(s.head.Load().generations.Superseded()) == 0 {
		return nil
	}
	return s.runBetween(ctx, func() error {
		h := *s.head.Load()
		list := slices.DeleteFunc(h.generations.Superseded(), func(g *index.Generation) bool { return h.catalogue.EverCounted(g.ID()) })
		var gone []bulkindex.KeyValue
		for _, g := range list {
			gone = append(gone, bulkindex.KeyValue{Key: keys.GenerationRecord(uint64(g.Began))})
		}
		if len(gone) == 0 {
			return nil
		}
		if err := s.deleteNow(gone); err != nil {
			return err
		}
		h.generations = h.generations.WithoutEntries(list)
		s.replaceHead(&h)
		return nil
	})
}

// clearGenerations marks the generations before which a graph has no readable content.
func (s *Store) clearGenerations(ctx context.Context, floor Revision) error {
	cleared := uncleared(s.head.Load().generations, floor)
	if len(cleared) == 0 {
		return nil
	}
	return s.runBetween(ctx, func() error {
		if e := s.refusedFor(); e != nil {
			return e
		}
		if s.unindexed.Load() != nil {
			return errUnindexed()
		}
		t := s.head.Load().generations
		// Another purge may have removed some from the table meanwhile.
		s.putGenerations(slices.DeleteFunc(cleared, func(g *index.Generation) bool { return t == nil || t.Entries[g.Began] == nil }))
		return nil
	})
}

// clearAtStart marks the generations that clearGenerations marked before a crash. The floor was on disk first,
// and of the keys that were removed since some may be gone from the index. It runs before the
// committer.
func (s *Store) clearAtStart() {
	s.putGenerations(uncleared(s.head.Load().generations, s.oldestReadable()))
}

// uncleared returns the generations that are to be marked at a floor, marked.
func uncleared(t *index.Generations, floor Revision) (list []*index.Generation) {
	if t == nil || floor == 0 {
		return nil
	}
	for _, g := range t.Entries {
		if g.From != 0 && g.From <= floor && !g.Cleared {
			next := *g
			next.Cleared = true
			list = append(list, &next)
		}
	}
	return list
}

// putGenerations replaces entries of the table of generations.
func (s *Store) putGenerations(list []*index.Generation) {
	if len(list) == 0 {
		return
	}
	base := s.newKV(s.layers.flushed)
	defer base.Close()
	o := index.NewOverlay(s.layers.newKV(base, s.layers.mem))
	for _, g := range list {
		o.Put(string(keys.GenerationRecord(uint64(g.Began))), g.Encode())
	}
	h := *s.head.Load()
	h.generations = h.generations.WithEntries(list...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.layers.memBytes += o.MergeInto(s.layers.mem)
	s.layers.shared = nil
	s.head.Store(&h)
}

// replaceHead replaces the catalogue or the table of generations of the head. Only the
// committer calls it.
func (s *Store) replaceHead(h *head) {
	s.mu.Lock()
	s.head.Store(h)
	s.mu.Unlock()
}

// runBetween makes the committer call fn between two groups, and waits for it. Updates wait
// meanwhile, and longestHold records for how long at most.
func (s *Store) runBetween(ctx context.Context, fn func() error) error {
	done := make(chan error, 1)
	select {
	case s.between <- func() {
		began := time.Now()
		err := fn()
		// Only the committer raises it.
		s.longestHold.Store(max(s.longestHold.Load(), int64(time.Since(began))))
		done <- err
	}:
		return <-done
	case <-s.stop:
		return base.ErrClosed()
	case <-ctx.Done():
		return ctx.Err()
	}
}
