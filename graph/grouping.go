package graph

import (
	"cmp"
	"slices"

	"koine/kg"
)

// grouping is the plan of a field `groups`: keys and computed values. T is the
// type of the grouped elements: subject, fact or row.
type grouping[T any] struct {
	groupShape
	keys    []extract[T]
	compute []computation[T]
	// assertions reports that each assertion of a statement is grouped on its
	// own.
	assertions bool
}

// extract appends the members that an element has for a key or a computation,
// in any order; none if it has no value.
type extract[T any] func(m *termTable, t T, to []termNumber) ([]termNumber, error)

// computation is one entry of the argument `compute`.
type computation[T any] struct {
	fn    AggregateFunction
	value extract[T] // nil: the elements themselves
}

// groupTable collects groups while elements are added. Groups may be many, so
// each is a few numbers in flat slices.
type groupTable[T any] struct {
	plan    *grouping[T]
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

func newGroupTable[T any](s *kg.Snapshot, plan *grouping[T]) *groupTable[T] {
	t := &groupTable[T]{
		plan: plan, members: newTermTable(s, plan.limits.GroupedValues), index: map[groupKey]int32{},
		found: make([][]termNumber, len(plan.keys)), values: make([][]termNumber, len(plan.compute)),
	}
	if len(plan.keys) == 0 {
		t.insertGroup(noKey) // one group of everything, even of nothing
	}
	return t
}

func (t *groupTable[T]) insertGroup(key groupKey) int {
	i := len(t.keys)
	t.index[key] = int32(i)
	t.keys, t.counts = append(t.keys, key), append(t.counts, 0)
	for range t.plan.compute {
		t.cells = append(t.cells, cell{best: noTerm})
	}
	return i
}

// groupCells returns the cells of a group.
func (t *groupTable[T]) groupCells(group int) []cell {
	n := len(t.plan.compute)
	return t.cells[group*n : (group+1)*n]
}

// add adds an element to its groups: one for each combination of the key
// values that it has.
func (t *groupTable[T]) add(thing T) (err error) {
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
func (t *groupTable[T]) distinctMembers(of extract[T], thing T, to []termNumber) ([]termNumber, error) {
	list, err := of(t.members, thing, to)
	if len(list) > 1 {
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return list, err
}

// spreadKeys enumerates the combinations of members for the keys from next on.
func (t *groupTable[T]) spreadKeys(key groupKey, next int) error {
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

func (t *groupTable[T]) findGroup(key groupKey) (int, error) {
	if i, ok := t.index[key]; ok {
		return int(i), nil
	}
	if (len(t.keys)+1)*(1+len(t.plan.compute)) > t.plan.limits.Groups {
		return 0, limitError("groups", "the groups have more than %d keys and values", t.plan.limits.Groups).
			withHint("Group by a key with fewer values, add a filter, or compute fewer values.")
	}
	return t.insertGroup(key), nil
}

func (t *groupTable[T]) countMember(c *cell, fn AggregateFunction, m termNumber) error {
	c.count++
	v := &t.members.values[m]
	switch fn {
	case AggregateFunctionCountDistinct:
		return t.noteDistinct(c, m)
	case AggregateFunctionMin:
		if c.best == noTerm || v.compareTo(&t.members.values[c.best]) < 0 {
			c.best = m
		}
	case AggregateFunctionMax:
		if c.best == noTerm || v.compareTo(&t.members.values[c.best]) > 0 {
			c.best = m
		}
	case AggregateFunctionSum, AggregateFunctionAvg:
		if c.sum == nil {
			c.sum = &sum{}
		}
		c.sum.add(v)
	}
	return nil
}

// noteDistinct adds a value to the distinct values of a cell.
func (t *groupTable[T]) noteDistinct(c *cell, m termNumber) error {
	if _, known := c.distinct[m]; known {
		return nil
	}
	if t.known++; t.known > t.plan.limits.GroupedValues {
		return t.members.tooMany()
	}
	if c.distinct == nil {
		c.distinct = map[termNumber]struct{}{}
	}
	c.distinct[m] = struct{}{}
	return nil
}

// cellResult returns the value of a cell, the zero Term for null.
func (t *groupTable[T]) cellResult(c *cell, fn AggregateFunction) kg.Term {
	switch fn {
	case AggregateFunctionCountDistinct:
		return kg.Integer(int64(len(c.distinct)))
	case AggregateFunctionMin, AggregateFunctionMax:
		return t.termOf(c.best)
	case AggregateFunctionSum:
		if c.sum == nil {
			return kg.Integer(0)
		}
		return c.sum.sumTerm()
	case AggregateFunctionAvg:
		if c.sum == nil {
			return kg.Term{}
		}
		return c.sum.meanTerm()
	}
	return kg.Integer(int64(c.count))
}

func (t *groupTable[T]) termOf(m termNumber) kg.Term {
	if m == noTerm {
		return kg.Term{}
	}
	return t.members.values[m].term
}

// listGroups returns the groups that the field shows, ordered by the requested keys,
// then by decreasing size, then by their key terms, so that the order is
// deterministic.
func (t *groupTable[T]) listGroups() ([]group, error) {
	shown := topN[*group, group]{order: t.plan.order, compare: t.plan.compareGroups, n: t.plan.first}
	var scratch group
	for i := range t.keys {
		scratch.count, scratch.terms = t.counts[i], scratch.terms[:0]
		for _, m := range t.keys[i][:t.plan.nKeys] {
			scratch.terms = append(scratch.terms, t.termOf(m))
		}
		for k, c := range t.groupCells(i) {
			scratch.terms = append(scratch.terms, t.cellResult(&c, t.plan.compute[k].fn))
		}
		if !t.plan.meetsHaving(&scratch) {
			continue
		}
		if err := shown.add(&scratch, group{slices.Clone(scratch.terms), scratch.count}); err != nil {
			return nil, err
		}
	}
	return shown.firstKeys(), nil
}

// group is a group in the answer: the terms of its keys followed by its
// values, the zero Term for null.
type group struct {
	terms []kg.Term
	count uint64
}

// termAt returns the term at an index given by groupShape.termIndex.
func (g *group) termAt(i int) kg.Term {
	if i == sizeOfGroup {
		return kg.Integer(int64(g.count))
	}
	return g.terms[i]
}

// compareGroups orders groups that are equal in the requested order.
func (s *groupShape) compareGroups(a, b group) int {
	return cmp.Or(cmp.Compare(b.count, a.count), slices.CompareFunc(a.terms[:s.nKeys], b.terms[:s.nKeys], compareNullable))
}

// compareNullable is compareTerms with null after everything else.
func compareNullable(a, b kg.Term) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return compareTerms(a, b)
}
