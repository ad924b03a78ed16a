package assertions

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"koine/internal/extsort"
	"koine/kg"
)

// CompareOptions configures Compare. The zero value has the defaults.
type CompareOptions struct {
	// WithoutAssertions compares statements only.
	WithoutAssertions bool
	// Labels compares blank nodes by label. Otherwise they are compared by the
	// statements about them.
	Labels bool
	// MaxBlank bounds the statements with blank nodes that each side holds in
	// memory; 0 means DefaultMaxBlank. Beyond it, nodes are compared by label.
	MaxBlank int
	// MaxBlankWork bounds the work of pairing blank nodes, in visits to a statement;
	// 0 means DefaultMaxBlankWork.
	MaxBlankWork int
	// Dir is the directory for temporary files; "" means the system's.
	Dir string
	// SortBytes bounds the memory for sorting each side; 0 means
	// extsort.DefaultBytes.
	SortBytes int
}

// The defaults of CompareOptions.
const (
	DefaultMaxBlank     = 200_000
	DefaultMaxBlankWork = 50_000_000
)

// Difference is a statement that was added or removed, or that has different assertions
// on the two sides.
type Difference struct {
	kg.Quad
	Was, Is bool // present before, present after
	// Before and After are the assertions of the two sides, sorted by source, without
	// those that both sides have.
	Before, After []Assertion
}

// Comparison is the result of Compare. Close must be called.
type Comparison struct {
	before, after *extsort.Sorter
	notes         []string
}

// Compare reads two sets of statements in any order; each set must have a statement at
// most once. CompareOptions bound the memory.
func Compare(ctx context.Context, before, after iter.Seq2[Statement, error], o CompareOptions) (_ *Comparison, err error) {
	o.MaxBlank, o.MaxBlankWork = cmp.Or(o.MaxBlank, DefaultMaxBlank), cmp.Or(o.MaxBlankWork, DefaultMaxBlankWork)
	sorted := extsort.Options{Dir: o.Dir, Bytes: o.SortBytes}
	c := &Comparison{before: extsort.New(ctx, sorted), after: extsort.New(ctx, sorted)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	one := side{sorter: c.before, options: &o}
	other := side{sorter: c.after, options: &o}
	if err := one.readAll(before); err != nil {
		return nil, err
	}
	if err := other.readAll(after); err != nil {
		return nil, err
	}
	switch {
	case o.Labels:
	case one.overflowed || other.overflowed:
		c.addNote("more than %d statements have blank nodes: blank nodes are compared by label", o.MaxBlank)
	default:
		names, unsure := pairBlank(one.blank, other.blank, o.MaxBlankWork)
		if unsure {
			c.addNote("blank nodes could not all be paired within the work limit: some differences may be in labels only")
		}
		renameNodes(other.blank, names)
	}
	return c, errors.Join(one.flush(), other.flush())
}

func (c *Comparison) addNote(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// Notes returns the limits of the comparison's accuracy, as sentences.
func (c *Comparison) Notes() []string { return c.notes }

// Sure reports whether a difference is certain. If blank nodes could not be paired,
// statements with blank nodes may differ in labels only.
func (c *Comparison) Sure(d *Difference) bool { return len(c.notes) == 0 || !hasBlank(&d.Quad) }

// Close releases memory and temporary files.
func (c *Comparison) Close() error { return errors.Join(c.before.Close(), c.after.Close()) }

// side is one of the two sets while it is read.
type side struct {
	sorter     *extsort.Sorter
	options    *CompareOptions
	blank      []Statement // statements with blank nodes
	overflowed bool        // exceeded MaxBlank
	buf        []byte
}

func (s *side) readAll(statements iter.Seq2[Statement, error]) error {
	for st, err := range statements {
		if err == nil {
			err = s.addStatement(st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *side) addStatement(st Statement) error {
	if st.Graph.IsZero() {
		st.Graph = kg.DefaultGraph
	}
	if s.options.WithoutAssertions {
		st.Assertions = nil
	}
	slices.SortFunc(st.Assertions, func(a, b Assertion) int { return cmp.Compare(a.Source, b.Source) })
	if s.options.Labels || s.overflowed || !hasBlank(&st.Quad) {
		return s.addRecord(&st)
	}
	if len(s.blank) == s.options.MaxBlank {
		s.overflowed = true
		return errors.Join(s.flush(), s.addRecord(&st))
	}
	s.blank = append(s.blank, st)
	return nil
}

// flush adds the buffered statements to the sorter.
func (s *side) flush() error {
	for i := range s.blank {
		if err := s.addRecord(&s.blank[i]); err != nil {
			return err
		}
	}
	s.blank = nil
	return nil
}

func (s *side) addRecord(st *Statement) error {
	s.buf = appendTriple(appendTerm(s.buf[:0], st.Graph), &st.Quad)
	for i := range st.Assertions {
		s.buf = appendAssertion(s.buf, &st.Assertions[i])
	}
	return s.sorter.Add(s.buf)
}

func hasBlank(q *kg.Quad) bool {
	return q.Subject.Kind() == kg.KindBlank || q.Object.Kind() == kg.KindBlank || q.Graph.Kind() == kg.KindBlank
}

func renameNodes(statements []Statement, names map[kg.Term]kg.Term) {
	for i := range statements {
		q := &statements[i].Quad
		for _, t := range [...]*kg.Term{&q.Subject, &q.Object, &q.Graph} {
			if name, ok := names[*t]; ok {
				*t = name
			}
		}
	}
}

// Differences yields the differences, ordered by graph, subject, predicate and object.
func (c *Comparison) Differences() iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		before, stopBefore := newCursor(c.before)
		defer stopBefore()
		after, stopAfter := newCursor(c.after)
		defer stopAfter()
		for before.more || after.more {
			d, ok, err := mergeNext(before, after)
			if err != nil {
				yield(Difference{}, err)
				return
			}
			if ok && !yield(d, nil) {
				return
			}
		}
		if err := errors.Join(before.err, after.err); err != nil {
			yield(Difference{}, err)
		}
	}
}

// mergeNext consumes the smallest statement of both sides; ok reports that it differs.
func mergeNext(before, after *cursor) (d Difference, ok bool, err error) {
	if err := errors.Join(before.err, after.err); err != nil {
		return d, false, err
	}
	order := 0
	switch {
	case !before.more:
		order = 1
	case !after.more:
		order = -1
	default:
		order = bytes.Compare(before.key, after.key)
	}
	if order <= 0 {
		d.Quad, d.Was, d.Before = before.quad, true, before.decodeAssertions()
		before.next()
	}
	if order >= 0 {
		d.Quad, d.Is, d.After = after.quad, true, after.decodeAssertions()
		after.next()
	}
	if err := errors.Join(before.err, after.err); err != nil {
		return d, false, err
	}
	if order == 0 {
		d.Before, d.After = subtract(d.Before, d.After), subtract(d.After, d.Before)
	}
	return d, order != 0 || len(d.Before)+len(d.After) > 0, nil
}

// subtract returns the assertions of list that other lacks.
func subtract(list, other []Assertion) (out []Assertion) {
	for i := range list {
		if !slices.ContainsFunc(other, func(a Assertion) bool { return a.Equal(&list[i]) }) {
			out = append(out, list[i])
		}
	}
	return out
}

// cursor iterates over the statements of one side.
type cursor struct {
	pull func() ([]byte, error, bool)
	more bool
	err  error
	quad kg.Quad
	key  []byte
	rest []byte // encoded assertions
}

func newCursor(s *extsort.Sorter) (*cursor, func()) {
	next, stop := iter.Pull2(s.Sorted())
	c := &cursor{pull: next}
	c.next()
	return c, stop
}

func (c *cursor) next() {
	row, err, more := c.pull()
	c.more = more && err == nil
	if !c.more {
		c.err = err
		return
	}
	r := record{rest: row}
	c.quad = kg.Quad{Graph: r.readTerm(), Subject: r.readTerm(), Predicate: r.readTerm(), Object: r.readTerm()}
	c.key = append(c.key[:0], row[:len(row)-len(r.rest)]...)
	c.rest = append(c.rest[:0], r.rest...)
	c.err = r.err
}

func (c *cursor) decodeAssertions() (list []Assertion) {
	r := record{rest: c.rest}
	for len(r.rest) > 0 {
		list = append(list, r.readAssertion())
	}
	if r.err != nil {
		c.err = r.err
	}
	return list
}
