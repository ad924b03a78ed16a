package livematch

import (
	"context"
	"errors"
	"slices"
	"strings"

	"koine/internal/query/pattern"
	"koine/kg"
)

// Difference has the rows that a commit added and removed, each in a stable order.
// No row is in both.
type Difference struct{ Added, Removed []Row }

// Empty reports whether no row was added or removed.
func (d *Difference) Empty() bool { return len(d.Added)+len(d.Removed) == 0 }

// Difference returns the rows that were added and removed between two snapshots of
// one view, before and after a commit. It fails with CodeResync if that exceeds the
// limits.
func (m *Match) Difference(ctx context.Context, before, after *kg.Snapshot, commit *kg.Commit) (Difference, error) {
	d := &comparison{Match: m, ctx: ctx, before: before, after: after, evaluationsLeft: m.limits.Evaluations}
	out, err := d.run(commit)
	switch {
	case err == nil:
		return out, nil
	case kg.CodeOf(err) == kg.CodeLimitExceeded:
		return out, tooMuch("the row changes of revision %d cannot be computed: %s", commit.Revision, kg.AsError(err).Message)
	case errors.Is(err, context.DeadlineExceeded):
		return out, tooMuch("the row changes of revision %d were not computed in time", commit.Revision)
	}
	return out, err
}

// comparison computes one difference.
type comparison struct {
	*Match
	ctx             context.Context
	before, after   *kg.Snapshot
	evaluationsLeft int // evaluations left
}

// emptyBinding returns the empty binding, with which every solution agrees.
func emptyBinding() []binding { return []binding{{}} }

// errTooManyEvaluations reports that the bindings need too many evaluations.
var errTooManyEvaluations = errors.New("too many evaluations")

func (d *comparison) run(commit *kg.Commit) (Difference, error) {
	bindings, err := d.bindingsOf(commit)
	if err != nil {
		return Difference{}, err
	}
	out, err := d.diffUnder(bindings)
	if errors.Is(err, errTooManyEvaluations) {
		d.evaluationsLeft = 1
		out, err = d.diffUnder(emptyBinding())
	}
	if n := len(out.Added) + len(out.Removed); err == nil && n > d.limits.Rows {
		err = tooMuch("revision %d changed %d rows; the limit is %d", commit.Revision, n, d.limits.Rows)
	}
	return out, err
}

// diffUnder returns the difference of the rows that agree with any of the bindings.
func (d *comparison) diffUnder(bindings []binding) (out Difference, err error) {
	was, is := rows{}, rows{}
	for _, b := range bindings {
		if err := d.countEvaluation(); err != nil {
			return out, err
		}
		if err := d.addRows(d.before, b, was); err != nil {
			return out, err
		}
		if err := d.addRows(d.after, b, is); err != nil {
			return out, err
		}
	}
	// A solution that agrees with no binding may give the same row.
	hidden := slices.ContainsFunc(bindings, func(b binding) bool { return !d.showsAll(b) })
	if out.Added, err = d.missingFrom(is, was, d.before, hidden); err != nil {
		return out, err
	}
	out.Removed, err = d.missingFrom(was, is, d.after, hidden)
	return out, err
}

// bindingsOf returns the bindings of the solutions that the commit may have changed.
// An empty binding stands for all solutions.
func (d *comparison) bindingsOf(commit *kg.Commit) ([]binding, error) {
	id := func(t kg.Term) (kg.ID, error) {
		id, known, err := d.after.ID(t)
		if err == nil && !known {
			err = kg.Errorf(kg.CodeInternal, "a term of the commit is not in the store: %v", t)
		}
		return id, err
	}
	found := map[string]binding{}
	for i := range commit.Changes {
		for k := range d.triggers {
			b, ok, err := d.triggers[k].bindingFor(commit.Changes[i].Quad, id)
			if err != nil {
				return nil, err
			}
			if len(b) == 0 && ok {
				return emptyBinding(), nil
			}
			if ok {
				found[b.key()] = b
			}
			if len(found) > d.limits.Evaluations {
				return emptyBinding(), nil
			}
		}
	}
	list := make([]binding, 0, len(found))
	for _, b := range found {
		list = append(list, b)
	}
	return removeCovered(list), nil
}

// removeCovered removes bindings that a more general one covers.
func removeCovered(list []binding) []binding {
	slices.SortFunc(list, func(a, b binding) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a.key(), b.key())
	})
	var out []binding
	for _, b := range list {
		if !slices.ContainsFunc(out, b.isCoveredBy) {
			out = append(out, b)
		}
	}
	return out
}

// showsAll reports whether rows show all variables of the binding: then every solution
// with the same row agrees with it.
func (d *comparison) showsAll(b binding) bool {
	for name := range b {
		if !slices.Contains(d.columns, name) {
			return false
		}
	}
	return true
}

// countEvaluation counts one evaluation against the limits.
func (d *comparison) countEvaluation() error {
	if d.evaluationsLeft--; d.evaluationsLeft < 0 {
		return errTooManyEvaluations
	}
	if read := d.before.StatementsRead() + d.after.StatementsRead(); read > int64(d.limits.Statements) {
		return kg.Errorf(kg.CodeLimitExceeded, "more than %d statements would have to be read", d.limits.Statements)
	}
	return nil
}

// addRows adds the rows that agree with the binding to the set.
func (d *comparison) addRows(s *kg.Snapshot, b binding, into rows) error {
	var failed error
	err := d.eachRow(s, b, func(r Row) bool {
		var key string
		if key, failed = d.rowKey(s, r); failed != nil {
			return false
		}
		into[key] = r
		return len(into) <= d.limits.SnapshotRows
	})
	if err == nil {
		err = failed
	}
	if err == nil && len(into) > d.limits.SnapshotRows {
		err = kg.Errorf(kg.CodeLimitExceeded, "more than %d rows would have to be compared", d.limits.SnapshotRows)
	}
	return err
}

// rowKey returns a key that is equal for equal rows of both snapshots. A path of length
// zero may yield a term that the store does not know; the key uses the id that the
// term has after the commit, because the commit may add it.
func (d *comparison) rowKey(s *kg.Snapshot, r Row) (string, error) {
	settled := r
	for i, id := range r {
		if !kg.IsLocal(id) {
			continue
		}
		t, err := s.Term(id)
		if err != nil {
			return "", err
		}
		known, ok, err := d.after.ID(t)
		if err == nil && !ok {
			known, err = d.after.LocalID(t)
		}
		if err != nil {
			return "", err
		}
		if &settled[0] == &r[0] {
			settled = slices.Clone(r)
		}
		settled[i] = known
	}
	return settled.key(), nil
}

func (d *comparison) eachRow(s *kg.Snapshot, b binding, yield func(Row) bool) error {
	q := pattern.Query{Distinct: true, Select: d.columns, Bound: b}
	e, err := d.pattern.Evaluate(d.ctx, s, q)
	if err != nil {
		return err
	}
	for row, err := range e.Rows() {
		if err != nil {
			return err
		}
		if !yield(d.projectRow(row)) {
			return nil
		}
	}
	return nil
}

// missingFrom returns the rows of set that are not in other and, if ask is set, not in the
// other snapshot either.
func (d *comparison) missingFrom(set, other rows, in *kg.Snapshot, ask bool) (list []Row, err error) {
	for key, row := range set {
		if _, there := other[key]; there {
			continue
		}
		if ask {
			if err := d.countEvaluation(); err != nil {
				return nil, err
			}
			there, err := d.hasRow(in, row)
			if err != nil {
				return nil, err
			}
			if there {
				continue
			}
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b Row) int { return strings.Compare(a.key(), b.key()) })
	return list, nil
}

// hasRow reports whether any solution of the snapshot gives the row.
func (d *comparison) hasRow(s *kg.Snapshot, row Row) (found bool, err error) {
	b := binding{}
	for i, name := range d.columns {
		if slices.Contains(d.certain, name) {
			b[name] = row[i]
		}
	}
	err = d.eachRow(s, b, func(r Row) bool {
		found = slices.Equal(r, row)
		return !found
	})
	return found, err
}
