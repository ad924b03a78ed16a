// Package valuewalk reads the statements of a predicate in the order of their values, as far as
// the index has it: the ids of most numbers, times, booleans and short texts are in the order of
// what they stand for (see kg/base). A walk merges the ranges of ids of each datatype with the
// literals of the dictionary, which it sorts if they are few.
package valuewalk

import (
	"cmp"
	"slices"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// Walk yields the statements of a predicate in the order of their values, in one direction, and
// those of equal values in the order of their ids. It belongs to one goroutine.
type Walk struct {
	descending bool
	streams    []*valueStream
}

// Row is a statement with the value of its object.
type Row struct {
	Value valuespace.Value
	kg.IDQuad
}

// maxSorted bounds the values of the dictionary that a walk sorts itself.
const maxSorted = 4096

// valueStream is a part of a walk, in the same order.
type valueStream struct {
	head Row
	pull func() (Row, bool, error) // ends with false
	// unordered stands for values that are behind all others and not in their order: the walk
	// ends where they begin.
	unordered bool
}

// inlineKinds are the kinds of values with the ranges of their ids. Negative zero is apart,
// because it equals zero: a stream has each value once.
var inlineKinds = func() (out []struct {
	kind valuespace.Kind
	ids  kg.IDRange
}) {
	add := func(kind valuespace.Kind, r kg.IDRange) {
		out = append(out, struct {
			kind valuespace.Kind
			ids  kg.IDRange
		}{kind, r})
	}
	for _, ids := range valuespace.NumberIDs() {
		add(valuespace.KindNumber, ids)
	}
	for _, ids := range valuespace.MomentIDs() {
		add(valuespace.KindMoment, ids)
	}
	add(valuespace.KindBoolean, kg.BooleanIDs())
	add(valuespace.KindText, kg.TextPrefixIDs(""))
	return out
}()

// New begins a walk over the values of a predicate, at the value of from if it is set. It returns
// nil if the index does not have the order.
func New(s *kg.Snapshot, predicate kg.ID, descending bool, from *valuespace.Value) (*Walk, error) {
	w := &Walk{descending: descending}
	any, err := anyObject(s, predicate, kg.ResourceIDs())
	if err != nil || any && descending {
		return nil, err
	}
	if any {
		w.streams = append(w.streams, &valueStream{unordered: true})
	}
	for _, k := range inlineKinds {
		ids := k.ids
		if from != nil {
			at := *from
			c := cmp.Compare(k.kind, at.Kind)
			switch {
			case c < 0 && !descending, c > 0 && descending:
				continue // before the value
			case c == 0:
				cover := at.IDsFrom()
				if descending {
					cover = at.IDsUpTo()
				}
				rest := kg.IntersectIDs([]kg.IDRange{ids}, cover)
				if len(rest) == 0 {
					continue
				}
				ids = rest[0]
			}
		}
		if any, err := anyObject(s, predicate, ids); err != nil {
			return nil, err
		} else if any {
			w.streams = append(w.streams, &valueStream{pull: streamIDs(s, predicate, ids, descending)})
		}
	}
	sorted, ok, err := sortNumbered(s, predicate, descending)
	if !ok || err != nil {
		return nil, err
	}
	w.streams = append(w.streams, &valueStream{pull: pullFrom(sorted, from, descending)})
	for i := 0; i < len(w.streams); i++ {
		if err := w.advanceStream(i); err != nil {
			return nil, err
		}
		if w.streams[i] == nil {
			w.streams = slices.Delete(w.streams, i, i+1)
			i--
		}
	}
	return w, nil
}

// advanceStream moves a stream to its next row and sets it to nil at its end.
func (w *Walk) advanceStream(i int) error {
	t := w.streams[i]
	if t.unordered {
		return nil
	}
	row, more, err := t.pull()
	if t.head = row; !more {
		w.streams[i] = nil
	}
	return err
}

func (w *Walk) comesBefore(a, b *valueStream) bool {
	if a.unordered || b.unordered {
		return b.unordered
	}
	return compareRows(a.head, b.head, w.descending) < 0
}

func compareRows(a, b Row, descending bool) int {
	c := a.Value.Order(b.Value)
	if descending {
		c = -c
	}
	return cmp.Or(c, a.Subject.Compare(b.Subject), a.Object.Compare(b.Object), a.Graph.Compare(b.Graph))
}

// Next returns the next statement. It returns false at the end of the order that the index has,
// see Complete.
func (w *Walk) Next() (row Row, more bool, err error) {
	if len(w.streams) == 0 {
		return row, false, nil
	}
	least := 0
	for i, t := range w.streams {
		if w.comesBefore(t, w.streams[least]) {
			least = i
		}
	}
	t := w.streams[least]
	if t.unordered {
		return row, false, nil
	}
	row = t.head
	if err = w.advanceStream(least); w.streams[least] == nil {
		w.streams = slices.Delete(w.streams, least, least+1)
	}
	return row, err == nil, err
}

// Complete reports, behind the last statement, whether the walk has returned all statements of
// the predicate.
func (w *Walk) Complete() bool { return len(w.streams) == 0 }

// anyObject reports whether the view shows a statement of the predicate with an object in the
// range.
func anyObject(s *kg.Snapshot, predicate kg.ID, ids kg.IDRange) (bool, error) {
	for row, err := range s.MatchIDs(kg.IDPattern{Predicate: predicate}, beforeObjects(predicate, ids)) {
		return err == nil && ids.Contains(row.Object), err
	}
	return false, nil
}

// lastID is greater than all ids.
var lastID = func() (id kg.ID) {
	for i := range id {
		id[i] = 0xff
	}
	return id
}()

// beforeObjects is a place behind which the statements with objects in the range come.
func beforeObjects(predicate kg.ID, ids kg.IDRange) *kg.IDQuad {
	return &kg.IDQuad{Subject: lastID, Predicate: predicate, Object: ids.Before(), Graph: lastID}
}

// sortNumbered returns the statements with literals of the dictionary as objects, in the order of
// their values. ok is false if there are more than maxSorted.
func sortNumbered(s *kg.Snapshot, predicate kg.ID, descending bool) (rows []Row, ok bool, err error) {
	ids := kg.NumberedLiteralIDs()
	var object kg.ID
	var v valuespace.Value
	for row, err := range s.MatchIDs(kg.IDPattern{Predicate: predicate}, beforeObjects(predicate, ids)) {
		if err != nil {
			return nil, false, err
		}
		if !ids.Contains(row.Object) {
			break
		}
		if len(rows) == maxSorted {
			return nil, false, nil
		}
		if row.Object != object {
			t, err := s.Term(row.Object)
			if err != nil {
				return nil, false, err
			}
			object, v = row.Object, valuespace.Of(t)
		}
		rows = append(rows, Row{v, row.IDQuad})
	}
	slices.SortFunc(rows, func(a, b Row) int { return compareRows(a, b, descending) })
	return rows, true, nil
}

// pullFrom yields sorted rows from a value on.
func pullFrom(rows []Row, from *valuespace.Value, descending bool) func() (Row, bool, error) {
	if from != nil {
		least := Row{Value: *from} // the zero ids are before all
		i, _ := slices.BinarySearchFunc(rows, least, func(a, b Row) int { return compareRows(a, b, descending) })
		rows = rows[i:]
	}
	return func() (row Row, more bool, err error) {
		if len(rows) == 0 {
			return row, false, nil
		}
		row, rows = rows[0], rows[1:]
		return row, true, nil
	}
}
