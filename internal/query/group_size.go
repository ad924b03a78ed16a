package query

import (
	"cmp"
	"errors"

	"koine/kg"
)

// sizedGroup is a group by one key of which only the size is known.
type sizedGroup struct {
	key   kg.ID // zero: the elements without a value
	count uint64
}

// groupSizes collects the groups that a field shows if they have one key and
// nothing but their size is computed. Each group is added once. Terms are read
// for the groups that may be shown, or if a condition or the order needs them.
type groupSizes struct {
	shape    *GroupShape
	snapshot *kg.Snapshot
	top      topTies[sizedGroup]
	keys     int // that are not null
	groups   int
	mostRows int64 // that a pattern may have
	scratch  Group
}

// errAtLimit ends a count at a limit of the grouping. The groups are then
// collected in another way, which tells which one.
var errAtLimit = errors.New("a limit of the grouping is reached")

func newGroupSizes(s *kg.Snapshot, shape *GroupShape) *groupSizes {
	g := &groupSizes{shape: shape, snapshot: s}
	g.top = topTies[sizedGroup]{n: shape.first, compare: func(a, b *sizedGroup) int { return cmp.Compare(b.count, a.count) }}
	switch {
	case len(shape.orderIndexes) == 0 || shape.countsElements(shape.orderIndexes[0]) && shape.order[0].descending:
	case shape.countsElements(shape.orderIndexes[0]):
		g.top.compare = func(a, b *sizedGroup) int { return cmp.Compare(a.count, b.count) }
	default: // by the key: all are needed
		g.top.compare = func(*sizedGroup, *sizedGroup) int { return 0 }
	}
	return g
}

// add adds a group.
func (g *groupSizes) add(key kg.ID, count uint64) error {
	if g.groups++; !key.IsZero() {
		g.keys++
	}
	if g.keys > g.shape.limits.Values || g.groups*(1+len(g.shape.Names)-g.shape.Keys) > g.shape.limits.Groups {
		return errAtLimit
	}
	group := sizedGroup{key, count}
	if len(g.shape.having) > 0 {
		if err := g.fillGroup(&g.scratch, group, g.shape.havingReadsKeys); err != nil {
			return err
		}
		if !g.shape.meetsHaving(&g.scratch) {
			return nil
		}
	}
	g.top.add(group)
	return nil
}

// placeholder stands for the term of a key that is not read.
var placeholder = kg.Integer(0)

// fillGroup sets the terms of a group.
func (g *groupSizes) fillGroup(to *Group, group sizedGroup, key bool) (err error) {
	to.Count, to.Terms = group.count, append(to.Terms[:0], kg.Term{})
	switch {
	case group.key.IsZero():
	case !key:
		to.Terms[0] = placeholder
	default:
		if to.Terms[0], err = g.snapshot.Term(group.key); err != nil {
			return err
		}
	}
	for range g.shape.Names[g.shape.Keys:] {
		to.Terms = append(to.Terms, kg.Integer(int64(group.count)))
	}
	return nil
}

// shown returns the groups that the field shows, in order.
func (g *groupSizes) shown() ([]Group, error) {
	shown := topN[*Group, Group]{order: g.shape.order, compare: g.shape.compareGroups, n: g.shape.first}
	for _, group := range g.top.all() {
		var one Group
		if err := g.fillGroup(&one, group, true); err != nil {
			return nil, err
		}
		if err := shown.add(&one, one); err != nil {
			return nil, err
		}
	}
	return shown.firstKeys(), nil
}

// excludesNull reports whether no group without a value of the key is shown.
func (s *GroupShape) excludesNull() bool { return s.havingNeedsKey }

// countsElements reports whether an index is that of a number of elements.
func (s *GroupShape) countsElements(index int) bool {
	return index == sizeOfGroup || index >= s.Keys && s.sizesOnly
}
