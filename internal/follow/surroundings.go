package follow

import (
	"context"
	"iter"
	"maps"

	"koine/internal/operation"
	"koine/kg"
)

// Bounds of Surroundings: how deep they are at the most, how many entities they
// have, and how many statements are read to find these.
const (
	MaxDepth        = 3
	MaxEntities     = kg.MaxPatterns / 2 // each takes two patterns of a filter
	DefaultEntities = 256
	DefaultReads    = 100_000
)

// Surroundings are a Subject: an entity and what is around it, one event for
// each commit. With depth 0 these are the statements of which the entity is the
// subject; with depth d all those at either end of which is an entity that is
// within d-1 statements of it, in either direction, as the view shows them. These
// are not statements of its class (rdf:type), by which everything else of that
// class would be around it.
//
// Which entities these are follows the graph: a commit is told with what it
// changed around the entities before or after it. So it depends on nothing but
// the graph at the position, and a stream that is taken up again goes on as it
// would have.
type Surroundings struct {
	Entity kg.Term
	Depth  int
	Seen   kg.View
	// Entities and Reads bound the search; 0 stands for the defaults. Beyond them
	// it fails with CodeLimitExceeded.
	Entities, Reads int

	now entities
	// within is the commit in the middle of which they are begun to be followed,
	// 0 for none: now is then of before and after it, and next of after it.
	within kg.Revision
	next   entities
}

// entities are those whose statements are watched.
type entities map[kg.Term]struct{}

// View is under whose eyes they are seen.
func (s *Surroundings) View() kg.View { return s.Seen }

// Begin finds the entities as of the position.
func (s *Surroundings) Begin(ctx context.Context, store *kg.Store, from kg.Position) (f kg.Filter, err error) {
	if s.next, err = s.at(ctx, store, from.Revision); err != nil {
		return f, err
	}
	s.now = s.next
	if from.Index != kg.EndOfCommit && from.Revision > 0 {
		// The link that made them more may lie before the position, and what it
		// made part of them behind it.
		before, err := s.at(ctx, store, from.Revision-1)
		if err != nil {
			return f, err
		}
		s.within, s.now = from.Revision, union(before, s.next)
	}
	return s.filter(), nil
}

func union(a, b entities) entities {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

func (s *Surroundings) filter() kg.Filter {
	f := kg.Filter{View: s.Seen, Replacements: true}
	for e := range s.now {
		f.Patterns = append(f.Patterns, kg.Pattern{Subject: e})
		if s.Depth > 0 {
			f.Patterns = append(f.Patterns, kg.Pattern{Object: e})
		}
	}
	return f
}

// Stand is the entity as it stands: one event, whose content is not a statement.
func (s *Surroundings) Stand(_ context.Context, snapshot *kg.Snapshot) iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		standing, err := FirstStatement(snapshot, kg.Pattern{Subject: s.Entity}, kg.Pattern{Object: s.Entity})
		yield(operation.Event{Snapshot: true, SnapshotEnd: true, Standing: standing, Nothing: standing == nil}, err)
	}
}

// FirstStatement returns the first statement of the first pattern that has any that the
// snapshot shows, or nil.
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

// Changes yields the commits, and follows the entities.
func (s *Surroundings) Changes(ctx context.Context, store *kg.Store, w *kg.Watcher) iter.Seq2[operation.Event, error] {
	return func(yield func(operation.Event, error) bool) {
		for changes, err := range w.Commits() {
			if err == nil && changes[0].Replaced == nil {
				changes, err = s.commit(ctx, store, w, changes)
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

// commit makes of what was seen of a commit what is to be told of it, and goes
// on with the entities as of behind it.
func (s *Surroundings) commit(ctx context.Context, store *kg.Store, w *kg.Watcher, changes []kg.Event) ([]kg.Event, error) {
	end := commitEvent(changes).Position
	seen, before, after := s.now, s.now, s.now
	if s.within == end.Revision {
		after = s.next // and what was seen is of before and after
	} else {
		if s.within != 0 {
			before, after = s.next, s.next
		}
		if s.Depth > 1 && linked(changes) {
			var err error
			if after, err = s.at(ctx, store, end.Revision); err != nil {
				return nil, err
			}
		}
	}
	s.within, s.next = 0, nil
	if !maps.Equal(after, s.now) {
		s.now = after
		if err := w.Refilter(s.filter()); err != nil {
			return nil, err
		}
	}
	// A link that made them more fits the filter that was: the commit cannot have
	// been passed over, but not all was seen of it.
	if told := union(before, after); !maps.Equal(told, seen) {
		return s.read(ctx, w, end, told)
	}
	return changes, nil
}

// read gives what one commit changed around the entities, behind where the watcher
// is.
func (s *Surroundings) read(ctx context.Context, w *kg.Watcher, end kg.Position, around entities) (changes []kg.Event, err error) {
	from := w.Position()
	if before := (kg.Position{Epoch: end.Epoch, Revision: end.Revision - 1, Index: kg.EndOfCommit}); from.Compare(before) < 0 {
		from = before
	}
	filter := kg.Filter{View: s.Seen, Keep: func(st kg.Statement) bool { return s.touch(around, st.Quad) }}
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

// touch tells whether a statement is one of the entities'.
func (s *Surroundings) touch(set entities, q kg.Quad) bool {
	if _, ok := set[q.Subject]; ok || s.Depth == 0 {
		return ok
	}
	_, ok := set[q.Object]
	return ok
}

var rdfType = kg.IRI(kg.RDFType)

// linked tells whether a link between two entities came or went.
func linked(changes []kg.Event) bool {
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

// at finds the entities as of a revision.
func (s *Surroundings) at(ctx context.Context, store *kg.Store, r kg.Revision) (entities, error) {
	if s.Depth <= 1 || r == 0 {
		return entities{s.Entity: {}}, nil
	}
	view := s.Seen
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
	search := search{snapshot: snapshot, class: class, found: map[kg.ID]struct{}{}, most: orDefault(s.Entities, DefaultEntities), reads: orDefault(s.Reads, DefaultReads)}
	start, known, err := snapshot.ID(s.Entity)
	if err != nil || !known {
		return entities{s.Entity: {}}, err
	}
	if err := search.from(start, s.Depth-1); err != nil {
		return nil, err
	}
	return search.entities()
}

func orDefault(n, unsaid int) int {
	if n <= 0 {
		return unsaid
	}
	return n
}

// search finds what is linked with an entity, breadth first.
type search struct {
	snapshot    *kg.Snapshot
	class       kg.ID // the predicate that links nothing
	found       map[kg.ID]struct{}
	most, reads int
}

func (s *search) from(start kg.ID, steps int) error {
	s.found[start] = struct{}{}
	reached := []kg.ID{start}
	for range steps {
		var next []kg.ID
		for _, id := range reached {
			out, err := s.linked(kg.IDPattern{Subject: id}, func(r kg.Row) kg.ID { return r.Object })
			if err != nil {
				return err
			}
			in, err := s.linked(kg.IDPattern{Object: id}, func(r kg.Row) kg.ID { return r.Subject })
			if err != nil {
				return err
			}
			next = append(append(next, out...), in...)
		}
		reached = next
	}
	return nil
}

// linked finds the entities at the other end of what fits, that were not found
// before.
func (s *search) linked(p kg.IDPattern, other func(kg.Row) kg.ID) (found []kg.ID, err error) {
	for row, err := range s.snapshot.MatchIDs(p, nil) {
		if err != nil {
			return nil, err
		}
		if s.reads--; s.reads < 0 {
			return nil, s.tooMuch("too many statements are around it at revision %d to find all entities that they link", s.snapshot.Revision())
		}
		id := other(row)
		if _, had := s.found[id]; had || !id.IsResource() || row.Predicate == s.class {
			continue
		}
		if s.found[id] = struct{}{}; len(s.found) > s.most {
			return nil, s.tooMuch("there are more entities around it at revision %d than the %d that can be watched", s.snapshot.Revision(), s.most)
		}
		found = append(found, id)
	}
	return found, nil
}

func (s *search) tooMuch(format string, args ...any) error {
	e := kg.Errorf(kg.CodeLimitExceeded, format, args...).At("depth")
	e.Hint = "Follow it with a smaller depth, or follow what matters of it with a pattern."
	return e
}

func (s *search) entities() (entities, error) {
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
