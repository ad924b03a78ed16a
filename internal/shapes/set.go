package shapes

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"koine/internal/records"
	"koine/kg"
)

// Set is the shapes of a store, compiled, and judges by them. It is safe for
// concurrent use. The zero Set has no shapes and the default budget.
type Set struct {
	// Budget of a judgement. Not to be changed in use.
	Budget Budget
	// Logger is told when the shapes graph holds what is not judged; nil discards.
	Logger *slog.Logger

	now atomic.Pointer[set]

	mirror records.Mirror
	quads  map[kg.Quad]bool // the shapes graph; belongs to take
}

func (s *Set) current() *set {
	if now := s.now.Load(); now != nil {
		return now
	}
	return &set{}
}

// graph is what the shapes are kept in.
var graph = kg.Pattern{Graph: kg.ShapesGraph}

// Load reads the shapes of a store that was just opened. What of them cannot be
// judged is left out, with one warning: Put refuses it or lists it, and what was kept
// before Put did is judged as it was. Shapes past a bound are an error.
func (s *Set) Load(ctx context.Context, store *kg.Store) error {
	var broken error
	err := s.mirror.Load(ctx, store, func(at kg.Revision, facts []records.Fact) { broken = s.take(at, facts) }, graph)
	if err == nil && broken != nil {
		e := *kg.AsError(broken)
		e.Message = "the shapes of this store cannot be used: " + e.Message
		e.Hint = "Take the shape away with: koine shapes remove --data DIR IRI"
		err = &e
	}
	if left := s.LeftOut(); err == nil && len(left) > 0 && s.Logger != nil {
		s.Logger.Warn("not all of the shapes is judged: koine shapes list tells what is left out", "things", len(left), "first", left[0].String())
	}
	return err
}

// Follow takes a commit in; for kg.Options.OnSystemChange. Shapes past a bound, which
// Put would have refused, leave the ones before them in force.
func (s *Set) Follow(c *kg.Commit) {
	s.mirror.Follow(c, func(at kg.Revision, facts []records.Fact) {
		if err := s.take(at, facts); err != nil && s.Logger != nil {
			s.Logger.Error("the shapes of a commit cannot be used: the ones before stay in force", "revision", at, "error", err)
		}
	}, graph)
}

// take makes the shapes those of the revision, if they compile.
func (s *Set) take(at kg.Revision, facts []records.Fact) error {
	if s.quads == nil {
		s.quads = map[kg.Quad]bool{}
	}
	for _, f := range facts {
		if f.Exists {
			s.quads[f.Quad] = true
		} else {
			delete(s.quads, f.Quad)
		}
	}
	compiled, err := compile(documentOf(inOrder(s.quads)))
	if err != nil {
		return err
	}
	compiled.since = at
	s.now.Store(compiled)
	return nil
}

// shapesOf reads the shapes graph.
func shapesOf(snapshot *kg.Snapshot) (map[kg.Quad]bool, error) {
	quads := map[kg.Quad]bool{}
	for st, err := range snapshot.Match(kg.Pattern{Graph: kg.ShapesGraph}) {
		if err != nil {
			return nil, err
		}
		quads[st.Quad] = true
	}
	return quads, nil
}

func inOrder(quads map[kg.Quad]bool) []kg.Quad {
	return slices.SortedFunc(maps.Keys(quads), func(a, b kg.Quad) int {
		if c := a.Subject.Compare(b.Subject); c != 0 {
			return c
		}
		if c := a.Predicate.Compare(b.Predicate); c != 0 {
			return c
		}
		return a.Object.Compare(b.Object)
	})
}

// Shape is one of a Set, for people.
type Shape struct {
	ID          kg.Term
	Severity    kg.Term
	Message     string // "" for those of its constraints
	Deactivated bool
	// What it is judged for.
	Classes, Nodes, SubjectsOf, ObjectsOf []kg.Term
	LeftOut                               []LeftOut // what of it is not judged
}

// List gives the shapes that have a name, in the order of their names.
func (s *Set) List() []Shape {
	now := s.current()
	left := map[kg.Term][]LeftOut{}
	for _, l := range now.leftOut {
		left[l.Shape] = append(left[l.Shape], l)
	}
	var out []Shape
	for _, x := range now.all {
		out = append(out, Shape{
			ID: x.id, LeftOut: left[x.id], Severity: x.severity, Message: x.message, Deactivated: x.deactivated,
			Classes: x.targets.classes, Nodes: x.targets.nodes, SubjectsOf: x.targets.subjectsOf, ObjectsOf: x.targets.objectsOf,
		})
	}
	return out
}

// LeftOut lists what is not judged of all that is kept, shapes or not, in the order of
// their names.
func (s *Set) LeftOut() []LeftOut { return s.current().leftOut }
