package graph

import (
	"cmp"
	"slices"

	"koine/kg"
)

// grouping is a field `groups`, planned: what its things have in common and
// what is computed of each group. T is what is grouped: a subject, a fact, a
// row.
type grouping[T any] struct {
	groupShape
	keys    []extract[T]
	compute []computation[T]
	// assertions tells that the assertions of statements are grouped, each by
	// itself.
	assertions bool
}

// extract appends the members that a thing has for a key, or to compute with,
// in any order; none when it has no value.
type extract[T any] func(m *members, t T, to []member) ([]member, error)

// computation is one entry of the argument `compute`.
type computation[T any] struct {
	fn AggregateFunction
	of extract[T] // nil: the things themselves
}

// groupTable holds the groups while things are added. There may be very many,
// so that a group is a few numbers in flat lists.
type groupTable[T any] struct {
	plan    *grouping[T]
	members *members
	index   map[groupKey]int32
	keys    []groupKey // of each group
	counts  []uint64   // of each group: how many things are in it
	cells   []cell     // of each group, one for each computation
	known   int        // values that cells know apart

	// of the thing that is being added; the next one uses the memory again
	found  [][]member // for each key
	values [][]member // for each computation
}

// groupKey is what a group has in common; what is behind the plan's keys is
// nobody.
type groupKey [MaxGroupKeys]member

var noKey = groupKey{nobody, nobody, nobody, nobody}

// cell is one value while it is being computed.
type cell struct {
	count    uint64
	distinct map[member]struct{} // of COUNT_DISTINCT
	sum      *sum                // of SUM and AVG
	best     member              // of MIN and MAX
}

func newGroupTable[T any](s *kg.Snapshot, plan *grouping[T]) *groupTable[T] {
	t := &groupTable[T]{
		plan: plan, members: newMembers(s, plan.limits.GroupedValues), index: map[groupKey]int32{},
		found: make([][]member, len(plan.keys)), values: make([][]member, len(plan.compute)),
	}
	if len(plan.keys) == 0 {
		t.insert(noKey) // one of all, even of nothing
	}
	return t
}

func (t *groupTable[T]) insert(key groupKey) int {
	i := len(t.keys)
	t.index[key] = int32(i)
	t.keys, t.counts = append(t.keys, key), append(t.counts, 0)
	for range t.plan.compute {
		t.cells = append(t.cells, cell{best: nobody})
	}
	return i
}

// of are the cells of a group.
func (t *groupTable[T]) of(group int) []cell {
	n := len(t.plan.compute)
	return t.cells[group*n : (group+1)*n]
}

// add puts a thing into its groups: one for each way to choose a value of each
// key.
func (t *groupTable[T]) add(thing T) (err error) {
	for i, of := range t.plan.keys {
		if t.found[i], err = t.distinct(of, thing, t.found[i][:0]); err != nil {
			return err
		}
		if len(t.found[i]) == 0 {
			t.found[i] = append(t.found[i], nobody)
		}
	}
	for i := range t.plan.compute {
		if of := t.plan.compute[i].of; of != nil {
			if t.values[i], err = t.distinct(of, thing, t.values[i][:0]); err != nil {
				return err
			}
		}
	}
	return t.spread(noKey, 0)
}

// distinct gives the members of a thing, each once.
func (t *groupTable[T]) distinct(of extract[T], thing T, to []member) ([]member, error) {
	list, err := of(t.members, thing, to)
	if len(list) > 1 {
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return list, err
}

// spread chooses a member for each key from the next on.
func (t *groupTable[T]) spread(key groupKey, next int) error {
	if next < len(t.found) {
		for _, m := range t.found[next] {
			key[next] = m
			if err := t.spread(key, next+1); err != nil {
				return err
			}
		}
		return nil
	}
	i, err := t.find(key)
	if err != nil {
		return err
	}
	t.counts[i]++
	for k := range t.plan.compute {
		c, to := &t.plan.compute[k], &t.of(i)[k]
		if c.of == nil {
			to.count++
			continue
		}
		for _, m := range t.values[k] {
			if err := t.count(to, c.fn, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *groupTable[T]) find(key groupKey) (int, error) {
	if i, ok := t.index[key]; ok {
		return int(i), nil
	}
	if (len(t.keys)+1)*(1+len(t.plan.compute)) > t.plan.limits.Groups {
		return 0, limitError("groups", "there are more than %d groups and values computed of them", t.plan.limits.Groups).
			hint("Group by something with fewer values, narrow what is grouped, or compute less.")
	}
	return t.insert(key), nil
}

func (t *groupTable[T]) count(c *cell, fn AggregateFunction, m member) error {
	c.count++
	v := &t.members.values[m]
	switch fn {
	case AggregateFunctionCountDistinct:
		return t.know(c, m)
	case AggregateFunctionMin:
		if c.best == nobody || v.order(&t.members.values[c.best]) < 0 {
			c.best = m
		}
	case AggregateFunctionMax:
		if c.best == nobody || v.order(&t.members.values[c.best]) > 0 {
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

// know notes that a cell has seen a value.
func (t *groupTable[T]) know(c *cell, m member) error {
	if _, known := c.distinct[m]; known {
		return nil
	}
	if t.known++; t.known > t.plan.limits.GroupedValues {
		return t.members.tooMany()
	}
	if c.distinct == nil {
		c.distinct = map[member]struct{}{}
	}
	c.distinct[m] = struct{}{}
	return nil
}

// result is what a cell came to; the zero Term for null.
func (t *groupTable[T]) result(c *cell, fn AggregateFunction) kg.Term {
	switch fn {
	case AggregateFunctionCountDistinct:
		return kg.Integer(int64(len(c.distinct)))
	case AggregateFunctionMin, AggregateFunctionMax:
		return t.termOf(c.best)
	case AggregateFunctionSum:
		if c.sum == nil {
			return kg.Integer(0)
		}
		return c.sum.result()
	case AggregateFunctionAvg:
		if c.sum == nil {
			return kg.Term{}
		}
		return c.sum.mean()
	}
	return kg.Integer(int64(c.count))
}

func (t *groupTable[T]) termOf(m member) kg.Term {
	if m == nobody {
		return kg.Term{}
	}
	return t.members.values[m].term
}

// list gives the groups that the field shows, in order: by the keys asked for,
// then the greatest first, then by what they have in common, so that the order
// is always the same.
func (t *groupTable[T]) list() ([]group, error) {
	shown := best[*group, group]{order: t.plan.order, compare: t.plan.compareGroups, n: t.plan.first}
	var scratch group
	for i := range t.keys {
		scratch.count, scratch.terms = t.counts[i], scratch.terms[:0]
		for _, m := range t.keys[i][:t.plan.nKeys] {
			scratch.terms = append(scratch.terms, t.termOf(m))
		}
		for k, c := range t.of(i) {
			scratch.terms = append(scratch.terms, t.result(&c, t.plan.compute[k].fn))
		}
		if !t.plan.shows(&scratch) {
			continue
		}
		if err := shown.add(&scratch, group{slices.Clone(scratch.terms), scratch.count}); err != nil {
			return nil, err
		}
	}
	return shown.keys(), nil
}

// group is a group in the answer: the terms of its keys and then of its values,
// the zero Term for null.
type group struct {
	terms []kg.Term
	count uint64
}

// term is what a group has under a name; see groupShape.named.
func (g *group) term(i int) kg.Term {
	if i == sizeOfGroup {
		return kg.Integer(int64(g.count))
	}
	return g.terms[i]
}

// compareGroups orders groups that are equal in what was asked for.
func (s *groupShape) compareGroups(a, b group) int {
	return cmp.Or(cmp.Compare(b.count, a.count), slices.CompareFunc(a.terms[:s.nKeys], b.terms[:s.nKeys], compareNullable))
}

// compareNullable is compareTerms with null behind all.
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
