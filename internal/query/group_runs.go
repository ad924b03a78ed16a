package query

import (
	"errors"

	"koine/internal/query/idtable"
	"koine/internal/query/pattern"
	"koine/kg"
)

// valueCount counts the elements of each value of a run of statements in the order
// of their objects. In the run, a statement in several graphs comes once for each.
type valueCount struct {
	sizes    *groupSizes
	members  *idtable.Table // the elements; nil: all subjects are
	seen     []uint64       // bits of the members with a value
	withSome int            // members with a value
	all      idtable.Table  // the subjects with a value, if all subjects are members

	subject, object kg.ID
	count           uint64
}

// countValues counts the values of a predicate.
func (c *valueCount) countValues(s *kg.Snapshot, predicate kg.ID) error {
	if c.members != nil {
		c.seen = make([]uint64, (c.members.Len()+63)/64)
	}
	err := kg.WalkIDs(s, kg.IDPattern{Predicate: predicate}, func(q *kg.IDQuad) error {
		if q.Object != c.object {
			if err := c.endValue(); err != nil {
				return err
			}
			c.object = q.Object
		} else if q.Subject == c.subject {
			return nil // in another graph too
		}
		c.subject = q.Subject
		c.countSubject()
		return nil
	})
	if err != nil {
		return err
	}
	return c.endValue()
}

// countSubject counts the present subject, if it is a member.
func (c *valueCount) countSubject() {
	if c.members == nil {
		if _, isNew := c.all.Add(c.subject); isNew {
			c.withSome++
		}
		c.count++
		return
	}
	i := c.members.Find(c.subject)
	if i < 0 {
		return
	}
	c.count++
	if bit := uint64(1) << (i % 64); c.seen[i/64]&bit == 0 {
		c.seen[i/64] |= bit
		c.withSome++
	}
}

func (c *valueCount) endValue() error {
	n := c.count
	if c.count = 0; n == 0 {
		return nil
	}
	return c.sizes.add(c.object, n)
}

// endRuns returns the groups that a count by runs found. done is false if it ended at a
// limit of the grouping.
func endRuns(sizes *groupSizes, err error) (groups []Group, done bool, err2 error) {
	if errors.Is(err, errAtLimit) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	groups, err = sizes.shown()
	return groups, true, err
}

// readsRuns reports whether a whole property can be read at once: by keys alone, and
// with no bound of the statements that may be read.
func readsRuns(s *kg.Snapshot) bool {
	_, limited := s.ReadsLeft()
	return !limited && kg.WalksKeys(s)
}

// groupByRun groups the entities by one property of which only numbers are asked:
// it counts the run of the property's statements. done is false if the list or the
// grouping needs more than that.
func (l *EntityList) groupByRun(s *kg.Snapshot, by *EntityGrouping) (groups []Group, done bool, err error) {
	m := l.Match
	if !readsRuns(s) || !by.countsByOneKey() || m.test != nil || m.class.IsZero() && len(m.accessPaths) > 0 {
		return nil, false, nil
	}
	c := &valueCount{sizes: newGroupSizes(s, &by.GroupShape)}
	if !m.class.IsZero() {
		if c.members, err = instancesOf(s, m.class); err != nil {
			return nil, false, err
		}
	}
	predicate, known, err := s.ID(kg.IRI(by.names[0]))
	if err == nil && known {
		err = c.countValues(s, predicate)
	}
	if err == nil {
		err = c.addNull(s, by.excludesNull())
	}
	return endRuns(c.sizes, err)
}

// addNull adds the group of the elements without a value.
func (c *valueCount) addNull(s *kg.Snapshot, hidden bool) error {
	var all int
	switch {
	case c.members != nil:
		all = c.members.Len()
	case hidden:
		return c.sizes.add(kg.ID{}, 1) // it is one of the groups that are limited
	default:
		var err error
		if all, err = countSubjects(s); err != nil {
			return err
		}
	}
	if all == c.withSome {
		return nil
	}
	return c.sizes.add(kg.ID{}, uint64(all-c.withSome))
}

// countSubjects counts the subjects that the view shows.
func countSubjects(s *kg.Snapshot) (n int, err error) {
	var last kg.ID
	err = kg.WalkIDs(s, kg.IDPattern{}, func(q *kg.IDQuad) error {
		if q.Subject != last {
			last = q.Subject
			n++
		}
		return nil
	})
	return n, err
}

// instancesOf numbers the subjects of a class in the order of their ids.
func instancesOf(s *kg.Snapshot, class kg.Term) (*idtable.Table, error) {
	t := new(idtable.Table)
	p, known, err := s.PatternIDs(kg.Pattern{Predicate: RDFType, Object: class})
	if !known || err != nil {
		return t, err
	}
	return t, kg.WalkIDs(s, p, func(q *kg.IDQuad) error {
		t.Add(q.Subject)
		return nil
	})
}

// GroupTriple groups the solutions of a pattern of one triple, s ?p ?o with a given
// predicate, by one variable of which only numbers are asked. rows are their number.
// done is false if the pattern or the grouping needs more than that, or if there are
// more rows than most.
func GroupTriple(s *kg.Snapshot, p *pattern.Pattern, by *RowGrouping, most int64) (groups []Group, rows uint64, done bool, err error) {
	t, ok := p.SoleTriple()
	if !ok || !readsRuns(s) || !by.countsByOneKey() {
		return nil, 0, false, nil
	}
	sizes := newGroupSizes(s, &by.GroupShape)
	sizes.mostRows = most
	predicate, known, err := s.ID(t.Predicate)
	if err != nil {
		return nil, 0, false, err
	}
	if known {
		if by.names[0] == t.Object {
			rows, err = countObjects(s, predicate, sizes)
		} else {
			rows, err = countSubjectsOf(s, predicate, sizes)
		}
	}
	groups, done, err = endRuns(sizes, err)
	return groups, rows, done, err
}

// countObjects counts the subjects of each object of a predicate.
func countObjects(s *kg.Snapshot, predicate kg.ID, sizes *groupSizes) (rows uint64, err error) {
	var subject, object kg.ID
	var n uint64
	err = kg.WalkIDs(s, kg.IDPattern{Predicate: predicate}, func(q *kg.IDQuad) error {
		if q.Object != object {
			if n > 0 {
				if err := sizes.add(object, n); err != nil {
					return err
				}
			}
			object, n = q.Object, 0
		} else if q.Subject == subject {
			return nil // in another graph too
		}
		subject = q.Subject
		n++
		rows++
		if rows > uint64(sizes.mostRows) {
			return errAtLimit
		}
		return nil
	})
	if err == nil && n > 0 {
		err = sizes.add(object, n)
	}
	return rows, err
}

// countSubjectsOf counts the objects of each subject of a predicate.
func countSubjectsOf(s *kg.Snapshot, predicate kg.ID, sizes *groupSizes) (rows uint64, err error) {
	var last kg.IDQuad
	c := partCount{sizes: sizes}
	err = kg.WalkIDs(s, kg.IDPattern{Predicate: predicate}, func(q *kg.IDQuad) error {
		if q.Object == last.Object && q.Subject == last.Subject {
			return nil // in another graph too
		}
		last = *q
		if rows++; rows > uint64(sizes.mostRows) {
			return errAtLimit
		}
		return c.count(&q.Subject)
	})
	if err != nil {
		return rows, err
	}
	return rows, c.addGroups()
}

// groupByRun groups the statements of a pattern by one part of which only numbers are
// asked. done is false if the grouping needs more than that.
func (l *StatementList) groupByRun(s *kg.Snapshot, p kg.IDPattern, by *StatementGrouping) (groups []Group, done bool, err error) {
	if !readsRuns(s) || !by.countsByOneKey() || l.Match.test != nil {
		return nil, false, nil
	}
	part, ok := partOf[StatementAttribute(by.names[0])]
	if !ok || part == partGraph {
		return nil, false, nil
	}
	sizes := newGroupSizes(s, &by.GroupShape)
	c := partCount{sizes: sizes}
	err = kg.WalkIDs(s, p, func(q *kg.IDQuad) error {
		return c.count([...]*kg.ID{&q.Subject, &q.Predicate, &q.Object}[part])
	})
	if err == nil {
		err = c.addGroups()
	}
	return endRuns(sizes, err)
}

// partCount counts ids, which mostly come in runs.
type partCount struct {
	sizes  *groupSizes
	of     idtable.Table
	ids    []kg.ID
	counts []uint64
	last   kg.ID
	at     int
}

func (c *partCount) count(id *kg.ID) error {
	if *id != c.last || len(c.ids) == 0 {
		i, isNew := c.of.Add(*id)
		if isNew {
			if len(c.ids) >= c.sizes.shape.limits.Values {
				return errAtLimit
			}
			c.ids, c.counts = append(c.ids, *id), append(c.counts, 0)
		}
		c.last, c.at = *id, i
	}
	c.counts[c.at]++
	return nil
}

// addGroups adds the groups.
func (c *partCount) addGroups() error {
	for i, id := range c.ids {
		if err := c.sizes.add(id, c.counts[i]); err != nil {
			return err
		}
	}
	return nil
}
