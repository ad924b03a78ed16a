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
	members  *idtable.Set // the elements; nil: all subjects are
	withSome idtable.Set  // those with a value

	subject, object kg.ID
	count           uint64
}

// countValues counts the values of a predicate.
func (c *valueCount) countValues(s *kg.Snapshot, predicate kg.ID) error {
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
	if c.members == nil || c.members.Has(c.subject) {
		c.withSome.Add(c.subject)
		c.count++
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
	if err == nil && known && by.excludesNull() && m.class.IsZero() && by.names[0] == kg.RDFType {
		if counted, err := countClasses(s, c.sizes); counted || err != nil {
			return endRuns(c.sizes, err)
		}
		c.sizes = newGroupSizes(s, &by.GroupShape)
	}
	if err == nil && known {
		err = c.countValues(s, predicate)
	}
	if err == nil {
		err = c.addNull(s, by.excludesNull())
	}
	return endRuns(c.sizes, err)
}

// maxCountedClasses bounds the classes that are looked up one by one.
const maxCountedClasses = 256

// countClasses adds the values of rdf:type with their subjects. counted is false if the catalogue
// does not know them all.
func countClasses(s *kg.Snapshot, sizes *groupSizes) (counted bool, err error) {
	list, err := kg.TypeValues(s)
	if err != nil || len(list) > maxCountedClasses {
		return false, err
	}
	for _, class := range list {
		n, known, err := s.Instances(class.Term)
		if !known || err != nil {
			return false, err
		}
		id, _, err := s.ID(class.Term)
		if err == nil {
			err = sizes.add(id, n)
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
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
	if all == c.withSome.Len() {
		return nil
	}
	return c.sizes.add(kg.ID{}, uint64(all-c.withSome.Len()))
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

// instancesOf returns the subjects of a class.
func instancesOf(s *kg.Snapshot, class kg.Term) (*idtable.Set, error) {
	t := new(idtable.Set)
	p, known, err := s.PatternIDs(kg.Pattern{Predicate: RDFType, Object: class})
	if !known || err != nil {
		return t, err
	}
	return t, kg.WalkIDs(s, p, func(q *kg.IDQuad) error {
		t.Add(q.Subject)
		return nil
	})
}

// GroupStar groups the solutions of a star by one variable of which only numbers are asked. rows
// are their number. done is false if the pattern or the grouping needs more than that, if there
// are more rows than most, or if whole runs would be read for few rows.
func GroupStar(s *kg.Snapshot, p *pattern.Pattern, by *RowGrouping, most int64) (groups []Group, rows uint64, done bool, err error) {
	star, ok := p.Star()
	if !ok || !readsRuns(s) || !by.countsByOneKey() {
		return nil, 0, false, nil
	}
	c := starCount{snapshot: s, sizes: newGroupSizes(s, &by.GroupShape)}
	c.sizes.mostRows = most
	predicate, known, err := s.ID(star.Predicate)
	if err != nil {
		return nil, 0, false, err
	}
	if known {
		if pays, err := c.findMembers(star, predicate); !pays || err != nil {
			return nil, 0, false, err
		}
		if by.names[0] == star.Object {
			err = c.countObjects(predicate)
		} else {
			err = c.countSubjects(predicate)
		}
	}
	groups, done, err = endRuns(c.sizes, err)
	return groups, c.rows, done, err
}

// starCount counts the rows of a star.
type starCount struct {
	snapshot *kg.Snapshot
	sizes    *groupSizes
	members  *idtable.Set // the subjects that meet the tests; nil: all do
	rows     uint64
}

// A run is read as a whole for a star if it has at most this many statements for each that the
// smallest of the star's other runs has, beside some that cost nothing to read.
const (
	runShare = 8
	smallRun = 1024
)

// findMembers finds the subjects that meet the star's tests. It returns false, and finds none, if
// the runs differ too much in length to be read as a whole.
func (c *starCount) findMembers(star pattern.Star, predicate kg.ID) (pays bool, err error) {
	if len(star.Tests) == 0 {
		return true, nil
	}
	runs := []kg.IDPattern{{Predicate: predicate}}
	for _, t := range star.Tests {
		p, known, err := c.snapshot.PatternIDs(kg.Pattern{Predicate: t.Predicate, Object: t.Object})
		if err != nil {
			return false, err
		}
		if !known {
			c.members = new(idtable.Set)
			return true, nil
		}
		runs = append(runs, p)
	}
	var least, greatest uint64
	for i, p := range runs {
		n, err := c.estimateRun(p)
		if err != nil {
			return false, err
		}
		if greatest = max(greatest, n); i == 0 || n < least {
			least = n
		}
	}
	if greatest > smallRun && greatest/runShare > least {
		return false, nil
	}
	for _, p := range runs[1:] {
		before := c.members
		c.members = new(idtable.Set)
		err := kg.WalkIDs(c.snapshot, p, func(q *kg.IDQuad) error {
			if before == nil || before.Has(q.Subject) {
				c.members.Add(q.Subject)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// estimateRun returns the number of statements in a run, an upper bound if there are more than
// smallRun.
func (c *starCount) estimateRun(p kg.IDPattern) (uint64, error) {
	most, known, err := c.snapshot.Estimate(p)
	if known || err != nil || most <= smallRun {
		return most, err
	}
	n := uint64(0)
	for _, err := range c.snapshot.MatchIDs(p, nil) {
		if err != nil {
			return 0, err
		}
		if n++; n > smallRun {
			return most, nil
		}
	}
	return n, nil
}

// countRow counts a row. It reports false if its subject does not meet the tests.
func (c *starCount) countRow(subject kg.ID) (bool, error) {
	if c.members != nil && !c.members.Has(subject) {
		return false, nil
	}
	if c.rows++; c.rows > uint64(c.sizes.mostRows) {
		return false, errAtLimit
	}
	return true, nil
}

// countObjects counts the subjects of each object of the predicate.
func (c *starCount) countObjects(predicate kg.ID) error {
	var subject, object kg.ID
	var n uint64
	err := kg.WalkIDs(c.snapshot, kg.IDPattern{Predicate: predicate}, func(q *kg.IDQuad) error {
		if q.Object != object {
			if n > 0 {
				if err := c.sizes.add(object, n); err != nil {
					return err
				}
			}
			object, n = q.Object, 0
		} else if q.Subject == subject {
			return nil // in another graph too
		}
		subject = q.Subject
		counts, err := c.countRow(subject)
		if counts {
			n++
		}
		return err
	})
	if err == nil && n > 0 {
		err = c.sizes.add(object, n)
	}
	return err
}

// countSubjects counts the objects of each subject of the predicate.
func (c *starCount) countSubjects(predicate kg.ID) error {
	var last kg.IDQuad
	parts := partCount{sizes: c.sizes}
	err := kg.WalkIDs(c.snapshot, kg.IDPattern{Predicate: predicate}, func(q *kg.IDQuad) error {
		if q.Object == last.Object && q.Subject == last.Subject {
			return nil // in another graph too
		}
		last = *q
		counts, err := c.countRow(q.Subject)
		if !counts || err != nil {
			return err
		}
		return parts.count(&q.Subject)
	})
	if err != nil {
		return err
	}
	return parts.addGroups()
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
	if part == partPredicate && p == (kg.IDPattern{Graph: p.Graph}) {
		return endRuns(sizes, countPredicates(s, p.Graph, sizes))
	}
	c := partCount{sizes: sizes}
	err = kg.WalkIDs(s, p, func(q *kg.IDQuad) error {
		return c.count([...]*kg.ID{&q.Subject, &q.Predicate, &q.Object}[part])
	})
	if err == nil {
		err = c.addGroups()
	}
	return endRuns(sizes, err)
}

// countPredicates adds the predicates of a graph, or of all, with the counts of the catalogue.
func countPredicates(s *kg.Snapshot, graph kg.ID, sizes *groupSizes) error {
	list, err := s.Predicates()
	if err != nil {
		return err
	}
	for _, p := range list {
		id, _, err := s.ID(p.Term)
		if err == nil && !graph.IsZero() {
			p.Count, err = s.CountIDs(kg.IDPattern{Predicate: id, Graph: graph})
		}
		if err == nil && p.Count > 0 {
			err = sizes.add(id, p.Count)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
