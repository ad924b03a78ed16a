package path

import (
	"slices"

	"koine/kg"
)

// MaxRadius bounds the depth of a Neighbourhood.
const MaxRadius = 6

// Defaults of Extent.
const (
	DefaultNeighbours = 1_000 // entities
	DefaultAround     = 5_000 // statements
)

// Extent is how much of a neighbourhood is given. Zero members mean their
// defaults.
type Extent struct{ Entities, Statements int }

// Around is what is around an entity.
type Around struct {
	// Entities are those within reach without the one in the middle, the nearest
	// first, those equally near in the order of their ids.
	Entities []kg.ID
	// Statements are those that were gone through, the nearest first: each once
	// for each graph that holds it, with literals for objects as well.
	Statements []kg.Row
	// By is, for each of Entities, the index of the statement that led to it.
	By []int
	// Levels are how many Statements there are up to each level that has any: as
	// many levels as the furthest statement is away.
	Levels []int
	// Cut tells that there was more than the extent allowed. What is given is
	// whole: both ends of a statement are the middle, among Entities, or a literal.
	Cut bool
}

// Neighbourhood goes out from an entity, level by level, up to depth statements
// far. Within a level the statements taken along their direction come before
// those taken against it, each in the order of the index. It is cut at the first
// statement that the extent has no room for. The error has CodeInvalid for a
// depth that is out of range, CodeLimitExceeded when more than Edges.Statements
// are read.
func Neighbourhood(s *kg.Snapshot, of kg.ID, depth int, edges Edges, extent Extent) (*Around, error) {
	if depth < 1 || depth > MaxRadius {
		return nil, kg.Errorf(kg.CodeInvalid, "a neighbourhood is 1 to %d statements deep, not %d", MaxRadius, depth).At("depth")
	}
	if extent.Entities <= 0 {
		extent.Entities = DefaultNeighbours
	}
	if extent.Statements <= 0 {
		extent.Statements = DefaultAround
	}
	c, err := edges.bind(s)
	if err != nil || !of.IsResource() {
		return &Around{}, err
	}
	n := &surroundings{
		crossing: c, extent: extent, around: &Around{},
		seen: map[kg.ID]struct{}{of: {}}, passed: map[kg.IDQuad]struct{}{}, level: []kg.ID{of},
	}
	for range depth {
		if err := n.widen(edges.Direction); err != nil || n.around.Cut || len(n.level) == 0 {
			if err == errStopped {
				err = nil
			}
			return n.around, err
		}
	}
	return n.around, nil
}

// surroundings are a neighbourhood as it grows.
type surroundings struct {
	*crossing
	extent Extent
	around *Around
	seen   map[kg.ID]struct{}
	passed map[kg.IDQuad]struct{}
	level  []kg.ID
	next   []neighbour
}

// neighbour is an entity with the index of the statement that led to it.
type neighbour struct {
	id kg.ID
	by int
}

// widen goes one level further.
func (n *surroundings) widen(d Direction) error {
	n.next = nil
	before := len(n.around.Statements)
	var err error
	if d != Against {
		err = n.each(n.level, false, func(row *kg.Row) error { return n.take(row, row.Object) })
	}
	if err == nil && d != Along {
		err = n.each(n.level, true, func(row *kg.Row) error { return n.take(row, row.Subject) })
	}
	slices.SortFunc(n.next, func(a, b neighbour) int { return compareIDs(a.id, b.id) })
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

func (n *surroundings) take(row *kg.Row, far kg.ID) error {
	if _, old := n.passed[row.IDQuad]; old {
		return nil // seen from its other end
	}
	_, known := n.seen[far]
	fresh := !known && far.IsResource()
	if len(n.around.Statements) == n.extent.Statements || fresh && len(n.around.Entities)+len(n.next) == n.extent.Entities {
		n.around.Cut = true
		return errStopped
	}
	n.passed[row.IDQuad] = struct{}{}
	n.around.Statements = append(n.around.Statements, *row)
	if fresh {
		n.seen[far] = struct{}{}
		n.next = append(n.next, neighbour{far, len(n.around.Statements) - 1})
	}
	return nil
}
