package search

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"koine/internal/jobs"
	"koine/internal/textindex"
	"koine/kg"
)

// history has the texts that went, for views of the past. No text is in it and in the index of
// the present, so that the present has the statistics that it has without it.
type history struct {
	texts   *textindex.Index
	keeping sync.Mutex       // held while a text goes from one index to the other
	both    *textindex.Index // with the present

	// The rest is guarded by Service.mu.
	from kg.Position // the log is read from here on; zero for its beginning
	done bool        // all texts that went are known
	// deleted are graphs that were deleted while the log was read.
	deleted map[kg.ID]bool
}

// openHistory opens the texts that went, whose directory is in that of the index.
func (s *Service) openHistory() error {
	texts, place, unusable, err := textindex.Open(filepath.Join(s.options.Dir, "history"))
	if err != nil {
		return err
	}
	if unusable != nil {
		s.options.Logger.Warn("history of the text index is not usable; it is built anew", "error", unusable)
	}
	h := &history{texts: texts, both: s.index.Together(texts), deleted: map[kg.ID]bool{}}
	if from, err := s.store.ParsePosition(place); err == nil && place != "" && !s.building {
		h.from, h.done = from, from.Compare(s.position) >= 0
	} else {
		texts.Clear()
	}
	s.history = h
	return nil
}

// indexFor returns the index for views of the present or the past.
func (s *Service) indexFor(past bool) *textindex.Index {
	if past && s.history != nil {
		return s.history.both
	}
	return s.index
}

// hasHistory reports whether views of the past find texts that went since, and whether these are
// still being read from the log.
func (s *Service) hasHistory() (has, reading bool) {
	if s.history == nil {
		return false, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return true, !s.history.done
}

// isRemoved reports whether the text of a statement is not in the present.
func (s *Service) isRemoved(snapshot *kg.Snapshot, q *kg.Quad) (bool, error) {
	if s.history == nil {
		return false, nil
	}
	ids, known, err := snapshot.PatternIDs(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate, Object: q.Object, Graph: q.Graph})
	if err != nil || !known {
		return false, err
	}
	return !s.index.Has(subjectOf(q.Subject, ids.Subject), textindex.Ref{Graph: ids.Graph, Predicate: ids.Predicate, Object: ids.Object}), nil
}

// addText adds a text to the present.
func (s *Service) addText(t *textindex.Text) {
	if h := s.history; h != nil {
		h.keeping.Lock()
		defer h.keeping.Unlock()
		h.texts.Remove(*t)
	}
	s.index.Add(*t)
}

// removeText takes a text out of the present.
func (s *Service) removeText(t *textindex.Text) {
	if h := s.history; h != nil {
		h.keeping.Lock()
		defer h.keeping.Unlock()
		defer h.texts.Add(*t)
	}
	s.index.Remove(*t)
}

// keepText adds a text that was in the present once to the history, unless it is there again.
func (s *Service) keepText(t *textindex.Text) {
	s.history.keeping.Lock()
	defer s.history.keeping.Unlock()
	s.mu.Lock()
	deleted := s.history.deleted[t.Ref.Graph]
	s.mu.Unlock()
	if !deleted && !s.index.Has(t.Subject, t.Ref) {
		s.history.texts.Add(*t)
	}
}

// forgetGraph takes the texts of a deleted graph out of the history.
func (s *Service) forgetGraph(graph kg.ID) {
	s.history.keeping.Lock()
	defer s.history.keeping.Unlock()
	s.history.texts.RemoveGraph(graph)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.history.done {
		s.history.deleted[graph] = true
	}
}

// keepContent keeps the texts that a graph had before a revision in which it was replaced.
func (s *Service) keepContent(ctx context.Context, graph kg.Term, replaced kg.Revision) error {
	if replaced <= 1 {
		return nil
	}
	v := systemView
	v.At = replaced - 1
	snapshot, err := s.store.View(ctx, v)
	if kg.CodeOf(err) == kg.CodeRevisionGone {
		return nil // nobody can read them
	}
	if err != nil {
		return err
	}
	defer snapshot.Close()
	id, known, err := snapshot.ID(graph)
	if err != nil || !known {
		return err
	}
	return eachText(ctx, snapshot, kg.IDPattern{Graph: id}, func(uint64) {}, func(_ *kg.Quad, _ kg.IDQuad, t *textindex.Text) { s.keepText(t) })
}

// readHistory reads the log for texts that went, whenever the index was built anew.
func (s *Service) readHistory(ctx context.Context) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		building, done, from, until, moved := s.building, s.history.done, s.history.from, s.position, s.moved
		s.mu.Unlock()
		if building || done {
			select {
			case <-moved:
			case <-ctx.Done():
			}
			continue
		}
		err := s.readRemovals(ctx, from, until)
		s.mu.Lock()
		switch {
		case s.building:
		case err == nil:
			s.history.done, s.saved = true, kg.Position{}
			clear(s.history.deleted)
		case kg.CodeOf(err) == kg.CodePositionGone:
			s.history.from = kg.Position{}
		}
		s.mu.Unlock()
		if err != nil && ctx.Err() == nil && kg.CodeOf(err) != kg.CodeClosed {
			s.options.Logger.Warn("history of the text index is not read; it is tried again", "error", err)
			jobs.Wait(ctx, retryPause, nil)
		}
	}
	return nil
}

// readRemovals keeps the texts that went in a part of the log.
func (s *Service) readRemovals(ctx context.Context, from, until kg.Position) error {
	if from == (kg.Position{}) {
		from = s.store.Oldest()
	}
	filter := kg.Filter{View: systemView, Replacements: true}
	for from.Compare(until) < 0 {
		l, err := s.store.ReadLog(ctx, filter, kg.LogRange{After: from, Until: until})
		if err != nil {
			return err
		}
		for e, err := range l.Events() {
			if err == nil {
				err = s.keepRemoved(ctx, &e)
			}
			if err != nil {
				return err
			}
		}
		from = l.Reached()
	}
	s.options.Logger.Log(ctx, slog.LevelInfo, "history of the text index is read", "texts", s.history.texts.Size().Texts)
	return nil
}

// keepRemoved keeps the texts that an event removed.
func (s *Service) keepRemoved(ctx context.Context, e *kg.Event) error {
	if e.Replaced != nil {
		return s.keepContent(ctx, e.Replaced.Graph, e.Position.Revision)
	}
	var list []*kg.Quad
	for i := range e.Previous {
		list = append(list, &e.Previous[i].Quad)
	}
	if e.Op == kg.Remove && !e.StatementRemains {
		list = append(list, &e.Statement.Quad)
	}
	if list = slices.DeleteFunc(list, func(q *kg.Quad) bool { return !mayHaveText(q) }); len(list) == 0 {
		return nil
	}
	snapshot, err := s.store.View(ctx, systemView) // of the ids
	if err != nil {
		return err
	}
	defer snapshot.Close()
	for _, q := range list {
		t, ok := newText(q)
		ids, known, err := snapshot.PatternIDs(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate, Object: q.Object, Graph: q.Graph})
		if err != nil {
			return err
		}
		if ok && known {
			identify(&t, q.Subject, kg.IDQuad(ids))
			s.keepText(&t)
		}
	}
	return nil
}
