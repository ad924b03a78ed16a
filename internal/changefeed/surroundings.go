package changefeed

import (
	"cmp"
	"context"
	"iter"
	"maps"

	"koine/internal/operation"
	"koine/kg"
)

// Limits of Surroundings: depth, number of entities, and statements read to find them.
const (
	MaxDepth        = 3
	MaxEntities     = kg.MaxPatterns / 2 // each needs two patterns of a filter
	DefaultEntities = 256
	DefaultReads    = 100_000
)

// Surroundings is a Subject: an entity and its surroundings, one event for each commit.
// With depth 0 these are the statements with the entity as subject; with depth d, the
// statements with either end within d-1 links of the entity, in either direction, as
// the view shows them. A class (rdf:type) is not a link, because it would connect all
// instances of the class.
//
// The set of entities follows the graph: an event has the changes of a commit around
// the entities before or after the commit. So it depends only on the graph at the
// position, and a resumed stream continues exactly as the interrupted one.
type Surroundings struct {
	Entity   kg.Term
	Depth    int
	FromView kg.View
	// Entities and Reads limit the search; 0 selects the defaults. Beyond them it fails
	// with CodeLimitExceeded.
	Entities, Reads int

	now entities
	// within is the commit in the middle of which the stream starts, 0 for none. In
	// that case now holds the entities before and after it, and next those after it.
	within kg.Revision
	next   entities
}

// entities is the set of entities whose statements are watched.
type entities map[kg.Term]struct{}

// View returns the view of the subscription.
func (s *Surroundings) View() kg.View { return s.FromView }

// Begin finds the entities as of the position.
func (s *Surroundings) Begin(ctx context.Context, store *kg.Store, from kg.Position) (f kg.Filter, err error) {
	if s.next, err = s.entitiesAt(ctx, store, from.Revision); err != nil {
		return f, err
	}
	s.now = s.next
	if from.Index != kg.EndOfCommit && from.Revision > 0 {
		// The link that extended the set may be before the position, and the statements
		// around the added entities after it.
		before, err := s.entitiesAt(ctx, store, from.Revision-1)
		if err != nil {
			return f, err
		}
		s.within, s.now = from.Revision, unionOf(before, s.next)
	}
	return s.buildFilter(), nil
}

func unionOf(a, b entities) entities {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

func (s *Surroundings) buildFilter() kg.Filter {
	f := kg.Filter{View: s.FromView, Replacements: true}
	for e := range s.now {
		f.Patterns = append(f.Patterns, kg.Pattern{Subject: e})
		if s.Depth > 0 {
			f.Patterns = append(f.Patterns, kg.Pattern{Object: e})
		}
	}
	return f
}

// Current yields one event for the entity, without a statement.
func (s *Surroundings) Current(_ context.Context, snapshot *kg.Snapshot) iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		first, err := FirstStatement(snapshot, kg.Pattern{Subject: s.Entity}, kg.Pattern{Object: s.Entity})
		yield(operation.Event{Snapshot: true, SnapshotEnd: true, Statement: first, Empty: first == nil}, err)
	}
}

// FirstStatement returns the first visible statement of the first pattern that has one,
// or nil.
func FirstStatement(s *kg.Snapshot, patterns ...kg.Pattern) (*kg.Statement, error) {
	for _, p := range patterns {
		for st, err := range s.Match(p) {
			if err != nil {
				return nil, err
			}
			return &st, nil
		}
	}
	return nil, nil
}

// Changes yields the commits and updates the set of entities.
func (s *Surroundings) Changes(ctx context.Context, store *kg.Store, w *kg.Watcher) iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for changes, err := range w.Commits() {
			if err == nil && changes[0].Replaced == nil {
				changes, err = s.applyCommit(ctx, store, w, changes)
			}
			if err != nil {
				yield(operation.Event{}, err)
				return
			}
			if len(changes) > 0 && !yield(commitEvent(changes), nil) {
				return
			}
		}
	}
}

// applyCommit returns the changes of a commit to deliver, and updates the set of entities.
func (s *Surroundings) applyCommit(ctx context.Context, store *kg.Store, w *kg.Watcher, changes []kg.Event) ([]kg.Event, error) {
	end := commitEvent(changes).Position
	seen, before, after := s.now, s.now, s.now
	if s.within == end.Revision {
		after = s.next // changes are around the entities of both sides
	} else {
		if s.within != 0 {
			before, after = s.next, s.next
		}
		if s.Depth > 1 && changesLinks(changes) {
			var err error
			if after, err = s.entitiesAt(ctx, store, end.Revision); err != nil {
				return nil, err
			}
		}
	}
	s.within, s.next = 0, nil
	if !maps.Equal(after, s.now) {
		s.now = after
		if err := w.Refilter(s.buildFilter()); err != nil {
			return nil, err
		}
	}
	// A link that extends the set matches the old filter, so the commit was not missed,
	// but some of its changes were.
	if around := unionOf(before, after); !maps.Equal(around, seen) {
		return s.readCommit(ctx, w, end, around)
	}
	return changes, nil
}

// readCommit returns all changes of one commit around the entities, after the position of the
// watcher.
func (s *Surroundings) readCommit(ctx context.Context, w *kg.Watcher, end kg.Position, around entities) (changes []kg.Event, err error) {
	from := w.Position()
	if before := (kg.Position{Epoch: end.Epoch, Revision: end.Revision - 1, Index: kg.EndOfCommit}); from.Compare(before) < 0 {
		from = before
	}
	filter := kg.Filter{View: s.FromView, Keep: func(st kg.Statement) bool { return s.touchesAny(around, st.Quad) }}
	log, err := w.ReadLog(ctx, filter, kg.LogRange{After: from, Until: end, Commits: 1})
	if err != nil {
		return nil, err
	}
	for e, err := range log.Events() {
		if err != nil {
			return nil, err
		}
		changes = append(changes, e)
	}
	return changes, nil
}

func (s *Surroundings) touchesAny(set entities, q kg.Quad) bool {
	if _, ok := set[q.Subject]; ok || s.Depth == 0 {
		return ok
	}
	_, ok := set[q.Object]
	return ok
}

var rdfType = kg.IRI(kg.RDFType)

// changesLinks reports whether a link between two entities was added or removed.
func changesLinks(changes []kg.Event) bool {
	for i := range changes {
		if changes[i].Statement.Object.IsResource() && changes[i].Statement.Predicate != rdfType {
			return true
		}
		for _, p := range changes[i].Previous {
			if p.Object.IsResource() && p.Predicate != rdfType {
				return true
			}
		}
	}
	return false
}

func (s *Surroundings) entitiesAt(ctx context.Context, store *kg.Store, r kg.Revision) (entities, error) {
	if s.Depth <= 1 || r == 0 {
		return entities{s.Entity: {}}, nil
	}
	view := s.FromView
	view.At = r
	snapshot, err := store.View(ctx, view)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	class, _, err := snapshot.ID(rdfType)
	if err != nil {
		return nil, err
	}
	search := search{snapshot: snapshot, class: class, found: map[kg.ID]struct{}{}, limit: cmp.Or(max(s.Entities, 0), DefaultEntities), reads: cmp.Or(max(s.Reads, 0), DefaultReads)}
	start, known, err := snapshot.ID(s.Entity)
	if err != nil || !known {
		return entities{s.Entity: {}}, err
	}
	if err := search.searchFrom(start, s.Depth-1); err != nil {
		return nil, err
	}
	return search.foundEntities()
}

// search finds the linked entities, breadth first.
type search struct {
	snapshot     *kg.Snapshot
	class        kg.ID // rdf:type, which is not a link
	found        map[kg.ID]struct{}
	limit, reads int
}

func (s *search) searchFrom(start kg.ID, steps int) error {
	s.found[start] = struct{}{}
	reached := []kg.ID{start}
	for range steps {
		var next []kg.ID
		for _, id := range reached {
			out, err := s.linkedWith(kg.IDPattern{Subject: id}, func(r kg.Row) kg.ID { return r.Object })
			if err != nil {
				return err
			}
			in, err := s.linkedWith(kg.IDPattern{Object: id}, func(r kg.Row) kg.ID { return r.Subject })
			if err != nil {
				return err
			}
			next = append(append(next, out...), in...)
		}
		reached = next
	}
	return nil
}

// linkedWith returns the entities at the other end of matching statements that were not
// found before.
func (s *search) linkedWith(p kg.IDPattern, other func(kg.Row) kg.ID) (found []kg.ID, err error) {
	for row, err := range s.snapshot.MatchIDs(p, nil) {
		if err != nil {
			return nil, err
		}
		if s.reads--; s.reads < 0 {
			return nil, s.tooMuch("the entity has too many statements around it at revision %d to find all linked entities", s.snapshot.Revision())
		}
		id := other(row)
		if _, had := s.found[id]; had || !id.IsResource() || row.Predicate == s.class {
			continue
		}
		if s.found[id] = struct{}{}; len(s.found) > s.limit {
			return nil, s.tooMuch("the entity has more entities around it at revision %d than the limit of %d", s.snapshot.Revision(), s.limit)
		}
		found = append(found, id)
	}
	return found, nil
}

func (s *search) tooMuch(format string, args ...any) error {
	e := kg.Errorf(kg.CodeLimitExceeded, format, args...).At("depth")
	e.Hint = "Use a smaller depth, or subscribe to statements with a pattern."
	return e
}

func (s *search) foundEntities() (entities, error) {
	set := make(entities, len(s.found))
	for id := range s.found {
		t, err := s.snapshot.Term(id)
		if err != nil {
			return nil, err
		}
		set[t] = struct{}{}
	}
	return set, nil
}
