package shapes

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Set is the compiled shapes of a store, a kg.Verifier. It is safe for concurrent use. The
// zero Set has no shapes and the default budget.
type Set struct {
	// Budget bounds one validation. It must not be changed in use.
	Budget Budget
	// Logger receives a warning if the shapes graph has unsupported parts; nil
	// discards it.
	Logger *slog.Logger

	active atomic.Pointer[shapeSet]

	mirror systemgraph.Mirror
	quads  map[kg.Quad]bool // shapes graph; used by applyShapes only
}

func (s *Set) currentSet() *shapeSet {
	if now := s.active.Load(); now != nil {
		return now
	}
	return &shapeSet{}
}

var graph = kg.Pattern{Graph: kg.ShapesGraph}

// Load compiles the shapes of a store that was just opened. Unsupported parts are omitted
// with one warning: Put rejects or lists them, and shapes stored before Put did so stay
// valid. Exceeding a limit is an error.
func (s *Set) Load(ctx context.Context, store *kg.Store) error {
	var broken error
	err := s.mirror.Load(ctx, store, func(at kg.Revision, facts []systemgraph.Fact) { broken = s.applyShapes(at, facts) }, graph)
	if err == nil && broken != nil {
		e := *kg.AsError(broken)
		e.Message = "the shapes of this store are invalid: " + e.Message
		e.Hint = "Remove the shape with: koine shapes remove --data DIR IRI"
		err = &e
	}
	if left := s.LeftOut(); err == nil && len(left) > 0 && s.Logger != nil {
		s.Logger.Warn("parts of the shapes are not supported: koine shapes list shows them", "things", len(left), "first", left[0].String())
	}
	return err
}

// Follow applies a commit; use it as kg.Governor.OnSystemChange. If the new shapes exceed a
// limit, which Put prevents, the previous ones stay in force.
func (s *Set) Follow(c *kg.Commit) {
	s.mirror.Follow(c, func(at kg.Revision, facts []systemgraph.Fact) {
		if err := s.applyShapes(at, facts); err != nil && s.Logger != nil {
			s.Logger.Error("the shapes of a commit are invalid: the previous shapes stay in force", "revision", at, "error", err)
		}
	}, graph)
}

// applyShapes compiles the shapes of a revision and puts them in force.
func (s *Set) applyShapes(at kg.Revision, facts []systemgraph.Fact) error {
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
	compiled, err := compileShapes(documentOf(inOrder(s.quads)))
	if err != nil {
		return err
	}
	compiled.since = at
	s.active.Store(compiled)
	return nil
}

func inOrder(quads map[kg.Quad]bool) []kg.Quad {
	return slices.SortedFunc(maps.Keys(quads), func(a, b kg.Quad) int {
		return cmp.Or(a.Subject.Compare(b.Subject), a.Predicate.Compare(b.Predicate), a.Object.Compare(b.Object))
	})
}

// Shape describes a stored shape.
type Shape struct {
	ID          kg.Term
	Severity    kg.Term
	Message     string // "" for those of its constraints
	Deactivated bool
	// The target declarations.
	Classes, Nodes, SubjectsOf, ObjectsOf []kg.Term
	LeftOut                               []LeftOut // omitted parts
}

// List returns the named shapes in the order of their names.
func (s *Set) List() []Shape {
	now := s.currentSet()
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

// LeftOut returns the omitted parts of everything in the shapes graph, in the order of
// names.
func (s *Set) LeftOut() []LeftOut { return s.currentSet().leftOut }
