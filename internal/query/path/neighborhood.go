package path

import (
	"slices"

	"koine/kg"
)

// MaxRadius is the largest depth of a Neighborhood.
const MaxRadius = 6

// The defaults of Extent.
const (
	DefaultNeighbours = 1_000 // entities
	DefaultAround     = 5_000 // statements
)

// Extent bounds the size of a neighborhood. A zero field means its default.
type Extent struct{ Entities, Statements int }

// Around is the neighborhood of an entity.
type Around struct {
	// Entities are the entities within reach except the centre, nearest first, then
	// by id.
	Entities []kg.ID
	// Statements are the statements followed, nearest first: each once per graph,
	// including those with literals as objects.
	Statements []kg.Row
	// By has, for each of Entities, the index of the statement that reached it.
	By []int
	// Levels has the cumulative number of Statements at each level, up to the
	// furthest statement.
	Levels []int
	// Cut reports that the extent cut the neighborhood off. The result is still
	// closed: both ends of a statement are the centre, in Entities, or a literal.
	Cut bool
}

// Neighborhood expands from an entity level by level, up to depth statements away.
// Within a level, statements in forward direction come before inverted ones, each in
// index order. It is cut at the first statement that exceeds the extent. The error has
// CodeInvalid for a depth out of range, and CodeLimitExceeded if more than
// Edges.Statements are read.
func Neighborhood(s *kg.Snapshot, of kg.ID, depth int, edges Edges, extent Extent) (*Around, error) {
	if depth < 1 || depth > MaxRadius {
		return nil, kg.Errorf(kg.CodeInvalid, "depth must be between 1 and %d, got %d", MaxRadius, depth).At("depth")
	}
	if extent.Entities <= 0 {
		extent.Entities = DefaultNeighbours
	}
	if extent.Statements <= 0 {
		extent.Statements = DefaultAround
	}
	c, err := edges.bindPredicates(s)
	if err != nil || !of.IsResource() {
		return &Around{}, err
	}
	n := &neighborhoodBuilder{
		expander: c, extent: extent, around: &Around{},
		seen: map[kg.ID]struct{}{of: {}}, passed: map[kg.IDQuad]struct{}{}, level: []kg.ID{of},
	}
	for range depth {
		if err := n.expandLevel(edges.Direction); err != nil || n.around.Cut || len(n.level) == 0 {
			if err == errSearchStopped {
				err = nil
			}
			return n.around, err
		}
	}
	return n.around, nil
}

// neighborhoodBuilder is a neighborhood under construction.
type neighborhoodBuilder struct {
	*expander
	extent Extent
	around *Around
	seen   map[kg.ID]struct{}
	passed map[kg.IDQuad]struct{}
	level  []kg.ID
	next   []neighbour
}

// neighbour is an entity and the index of the statement that reached it.
type neighbour struct {
	id kg.ID
	by int
}

// expandLevel expands one level.
func (n *neighborhoodBuilder) expandLevel(d Direction) error {
	n.next = nil
	before := len(n.around.Statements)
	var err error
	if d != In {
		err = n.eachStatement(n.level, false, func(row *kg.Row) error { return n.addStatement(row, row.Object) })
	}
	if err == nil && d != Out {
		err = n.eachStatement(n.level, true, func(row *kg.Row) error { return n.addStatement(row, row.Subject) })
	}
	slices.SortFunc(n.next, func(a, b neighbour) int { return a.id.Compare(b.id) })
	n.level = nil
	for _, e := range n.next {
		n.level = append(n.level, e.id)
		n.around.By = append(n.around.By, e.by)
	}
	n.around.Entities = append(n.around.Entities, n.level...)
	if len(n.around.Statements) > before {
		n.around.Levels = append(n.around.Levels, len(n.around.Statements))
	}
	return err
}

func (n *neighborhoodBuilder) addStatement(row *kg.Row, far kg.ID) error {
	if _, old := n.passed[row.IDQuad]; old {
		return nil // already taken from its other end
	}
	_, known := n.seen[far]
	fresh := !known && far.IsResource()
	if len(n.around.Statements) == n.extent.Statements || fresh && len(n.around.Entities)+len(n.next) == n.extent.Entities {
		n.around.Cut = true
		return errSearchStopped
	}
	n.passed[row.IDQuad] = struct{}{}
	n.around.Statements = append(n.around.Statements, *row)
	if fresh {
		n.seen[far] = struct{}{}
		n.next = append(n.next, neighbour{far, len(n.around.Statements) - 1})
	}
	return nil
}
