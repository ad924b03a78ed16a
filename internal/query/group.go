package query

import (
	"cmp"
	"slices"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// Grouping is a compiled grouping: keys and computed values. T is the type of
// the grouped elements.
type Grouping[T any] struct {
	GroupShape
	keys    []extract[T]
	compute []computation[T]
	// assertions reports that each assertion of a statement is grouped on its
	// own.
	assertions bool
	// names are the predicates, attributes or variables of the keys, "" for others.
	names []string
}

func (g *Grouping[T]) addKey(as, name string, of extract[T]) {
	g.keys, g.Names, g.Keys = append(g.keys, of), append(g.Names, as), g.Keys+1
	g.names = append(g.names, name)
}

// finish completes the grouping.
func (g *Grouping[T]) finish(o GroupOptions) error {
	g.sizesOnly = !slices.ContainsFunc(g.compute, func(c computation[T]) bool { return c.value != nil })
	return g.complete(o)
}

// AddsNumbers reports whether a sum is computed: its rounding depends on the order of the
// elements.
func (g *Grouping[T]) AddsNumbers() bool {
	return slices.ContainsFunc(g.compute, func(c computation[T]) bool { return c.fn == Sum || c.fn == Avg })
}

// countsByOneKey reports whether the groups have one key, with a name, and nothing
// but their sizes is computed.
func (g *Grouping[T]) countsByOneKey() bool {
	return len(g.keys) == 1 && g.names[0] != "" && g.sizesOnly && !g.assertions
}

// addValue adds a computed value, after all keys. of is nil for the elements
// themselves.
func (g *Grouping[T]) addValue(as string, fn AggregateFunction, of extract[T]) error {
	if of == nil && fn != Count {
		return kg.Errorf(kg.CodeInvalid, "%s requires values: only COUNT works without", fn)
	}
	g.compute, g.Names = append(g.compute, computation[T]{fn, of}), append(g.Names, as)
	return nil
}

// extract appends the members that an element has for a key or a computation,
// in any order; none if it has no value.
type extract[T any] func(m *termTable, t T, to []termNumber) ([]termNumber, error)

// computation is one entry of the argument `compute`.
type computation[T any] struct {
	fn    AggregateFunction
	value extract[T] // nil: the elements themselves
}

// GroupTable collects groups while elements are added. Groups may be many, so
// each is a few numbers in flat slices.
type GroupTable[T any] struct {
	plan    *Grouping[T]
	members *termTable
	index   map[groupKey]int32
	keys    []groupKey // per group
	counts  []uint64   // per group: its number of elements
	cells   []cell     // per group, one for each computation
	known   int        // distinct values in all cells

	// Of the element being added; the memory is reused.
	found  [][]termNumber // per key
	values [][]termNumber // per computation
}

// groupKey holds a group's members for the plan's keys, padded with noTerm.
type groupKey [MaxGroupKeys]termNumber

var noKey = groupKey{noTerm, noTerm, noTerm, noTerm}

// cell is one value being computed.
type cell struct {
	count    uint64
	distinct map[termNumber]struct{} // for COUNT_DISTINCT
	sum      *sum                    // for SUM and AVG
	best     termNumber              // for MIN and MAX
}

func NewGroupTable[T any](s *kg.Snapshot, plan *Grouping[T]) *GroupTable[T] {
	t := &GroupTable[T]{
		plan: plan, members: newTermTable(s, plan.limits.Values), index: map[groupKey]int32{},
		found: make([][]termNumber, len(plan.keys)), values: make([][]termNumber, len(plan.compute)),
	}
	if len(plan.keys) == 0 {
		t.insertGroup(noKey) // one group of everything, even of nothing
	}
	return t
}

func (t *GroupTable[T]) insertGroup(key groupKey) int {
	i := len(t.keys)
	t.index[key] = int32(i)
	t.keys, t.counts = append(t.keys, key), append(t.counts, 0)
	for range t.plan.compute {
		t.cells = append(t.cells, cell{best: noTerm})
	}
	return i
}

// groupCells returns the cells of a group.
func (t *GroupTable[T]) groupCells(group int) []cell {
	n := len(t.plan.compute)
	return t.cells[group*n : (group+1)*n]
}

// Add adds an element to its groups: one for each combination of the key
// values that it has.
func (t *GroupTable[T]) Add(thing T) (err error) {
	for i, of := range t.plan.keys {
		if t.found[i], err = t.distinctMembers(of, thing, t.found[i][:0]); err != nil {
			return err
		}
		if len(t.found[i]) == 0 {
			t.found[i] = append(t.found[i], noTerm)
		}
	}
	for i := range t.plan.compute {
		if of := t.plan.compute[i].value; of != nil {
			if t.values[i], err = t.distinctMembers(of, thing, t.values[i][:0]); err != nil {
				return err
			}
		}
	}
	return t.spreadKeys(noKey, 0)
}

// distinctMembers returns the distinct members of an element.
func (t *GroupTable[T]) distinctMembers(of extract[T], thing T, to []termNumber) ([]termNumber, error) {
	list, err := of(t.members, thing, to)
	if len(list) > 1 {
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return list, err
}

// spreadKeys enumerates the combinations of members for the keys from next on.
func (t *GroupTable[T]) spreadKeys(key groupKey, next int) error {
	if next < len(t.found) {
		for _, m := range t.found[next] {
			key[next] = m
			if err := t.spreadKeys(key, next+1); err != nil {
				return err
			}
		}
		return nil
	}
	i, err := t.findGroup(key)
	if err != nil {
		return err
	}
	t.counts[i]++
	for k := range t.plan.compute {
		c, to := &t.plan.compute[k], &t.groupCells(i)[k]
		if c.value == nil {
			to.count++
			continue
		}
		for _, m := range t.values[k] {
			if err := t.countMember(to, c.fn, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *GroupTable[T]) findGroup(key groupKey) (int, error) {
	if i, ok := t.index[key]; ok {
		return int(i), nil
	}
	if (len(t.keys)+1)*(1+len(t.plan.compute)) > t.plan.limits.Groups {
		return 0, groupLimit("groups", "Group by a key with fewer values, add a filter, or compute fewer values.",
			"the groups have more than %d keys and values", t.plan.limits.Groups)
	}
	return t.insertGroup(key), nil
}

func (t *GroupTable[T]) countMember(c *cell, fn AggregateFunction, m termNumber) error {
	c.count++
	switch fn {
	case Count:
		return nil
	case CountDistinct:
		return t.noteDistinct(c, m)
	}
	if err := t.members.loadTerm(m); err != nil {
		return err
	}
	v := &t.members.values[m]
	switch fn {
	case Min:
		if c.best == noTerm || v.compareTo(&t.members.values[c.best]) < 0 {
			c.best = m
		}
	case Max:
		if c.best == noTerm || v.compareTo(&t.members.values[c.best]) > 0 {
			c.best = m
		}
	case Sum, Avg:
		if c.sum == nil {
			c.sum = &sum{}
		}
		c.sum.add(v)
	}
	return nil
}

// noteDistinct adds a value to the distinct values of a cell.
func (t *GroupTable[T]) noteDistinct(c *cell, m termNumber) error {
	if _, known := c.distinct[m]; known {
		return nil
	}
	if t.known++; t.known > t.plan.limits.Values {
		return t.members.tooMany()
	}
	if c.distinct == nil {
		c.distinct = map[termNumber]struct{}{}
	}
	c.distinct[m] = struct{}{}
	return nil
}

// cellResult returns the value of a cell, the zero Term for null.
func (t *GroupTable[T]) cellResult(c *cell, fn AggregateFunction) kg.Term {
	switch fn {
	case CountDistinct:
		return kg.Integer(int64(len(c.distinct)))
	case Min, Max:
		if c.best == noTerm {
			return kg.Term{}
		}
		return t.members.values[c.best].term
	case Sum:
		if c.sum == nil {
			return kg.Integer(0)
		}
		return c.sum.sumTerm()
	case Avg:
		if c.sum == nil {
			return kg.Term{}
		}
		return c.sum.meanTerm()
	}
	return kg.Integer(int64(c.count))
}

// keyTerm returns the term of a key, the zero Term for null.
func (t *GroupTable[T]) keyTerm(m termNumber) (kg.Term, error) {
	if m == noTerm {
		return kg.Term{}, nil
	}
	err := t.members.loadTerm(m)
	return t.members.values[m].term, err
}

// Groups returns the groups that the field shows, ordered by the requested keys,
// then by decreasing size, then by their key terms, so that the order is
// deterministic. It reads the terms of the keys of those that may be shown.
func (t *GroupTable[T]) Groups() ([]Group, error) {
	candidates, err := t.candidates()
	if err != nil {
		return nil, err
	}
	shown := topN[*Group, Group]{order: t.plan.order, compare: t.plan.compareGroups, n: t.plan.first}
	for _, c := range candidates {
		var one Group
		if err := t.fillGroup(&one, c.at, true); err != nil {
			return nil, err
		}
		if err := shown.add(&one, one); err != nil {
			return nil, err
		}
	}
	return shown.firstKeys(), nil
}

// rankedGroup is the index of a group with its place in the order.
type rankedGroup struct {
	rank  rank
	count uint64
	at    int
}

// candidates returns the groups that may be shown: those that meet the conditions
// and are not behind the last one, as far as the order tells without key terms.
func (t *GroupTable[T]) candidates() ([]rankedGroup, error) {
	byKey := slices.ContainsFunc(t.plan.orderIndexes, func(i int) bool { return i >= 0 && i < t.plan.Keys })
	reads := byKey || t.plan.havingReadsKeys
	first := topTies[rankedGroup]{n: t.plan.first, compare: func(a, b *rankedGroup) int {
		return cmp.Or(t.plan.order.compare(a.rank, b.rank), cmp.Compare(b.count, a.count))
	}}
	var scratch Group
	for i := range t.keys {
		r := rankedGroup{count: t.counts[i], at: i}
		if len(t.plan.having) > 0 || len(t.plan.order) > 0 {
			if err := t.fillGroup(&scratch, i, reads); err != nil {
				return nil, err
			}
			if !t.plan.meetsHaving(&scratch) {
				continue
			}
			var err error
			if r.rank, err = t.plan.order.rankOf(&scratch); err != nil {
				return nil, err
			}
		}
		first.add(r)
	}
	return first.all(), nil
}

// fillGroup sets the terms of a group. Without keys, these are placeholders.
func (t *GroupTable[T]) fillGroup(to *Group, at int, keys bool) error {
	to.Count, to.Terms = t.counts[at], to.Terms[:0]
	for _, m := range t.keys[at][:t.plan.Keys] {
		term := placeholder
		if keys || m == noTerm {
			var err error
			if term, err = t.keyTerm(m); err != nil {
				return err
			}
		}
		to.Terms = append(to.Terms, term)
	}
	for k, c := range t.groupCells(at) {
		to.Terms = append(to.Terms, t.cellResult(&c, t.plan.compute[k].fn))
	}
	return nil
}

// Group is a group in the answer: the terms of its keys followed by its
// values, the zero Term for null.
type Group struct {
	Terms []kg.Term
	Count uint64
}

// Term returns the term at an index given by GroupShape.Index.
func (g *Group) Term(i int) kg.Term {
	if i == sizeOfGroup {
		return kg.Integer(int64(g.Count))
	}
	return g.Terms[i]
}

// compareGroups orders groups that are equal in the requested order.
func (s *GroupShape) compareGroups(a, b Group) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), slices.CompareFunc(a.Terms[:s.Keys], b.Terms[:s.Keys], compareNullable))
}

// compareNullable is valuespace.OrderTerms with null after everything else.
func compareNullable(a, b kg.Term) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return valuespace.OrderTerms(a, b)
}
