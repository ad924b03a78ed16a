// Package valuewalk reads the statements of a predicate in the order of their values, as far as
// the index has it: the ids of most numbers, times, booleans and short texts are in the order of
// what they stand for (see kg/base). A walk merges the ranges of ids of each datatype with the
// literals of the dictionary. It sorts these if they are few, and reads numbers and moments in the
// order of the dictionary otherwise.
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
	bounds     bounds
	gaveUp     bool // a stream has more rows than it reads
}

// Row is a statement with the value of its object.
type Row struct {
	Value valuespace.Value
	kg.IDQuad
}

// bounds are the bounds of a walk.
type bounds struct {
	sorted  int // literals of the dictionary that are sorted
	foreign int // literals without a statement of the predicate that are passed
	ties    int // literals of one rank, and statements of literals with equal values, which are sorted
}

// defaultBounds are the bounds of New.
var defaultBounds = bounds{sorted: 4096, foreign: 8192, ties: 1 << 15}

// valueStream is a part of a walk, in the same order.
type valueStream struct {
	head   Row
	pull   func() (Row, bool, error) // ends with false
	ranked *rankedChunks             // behind pull; nil for other streams
	// unordered stands for values that are behind all others and not in their order: the walk
	// ends where they begin.
	unordered bool
}

// inlineKind is a kind of values and a range of their ids.
type inlineKind struct {
	kind valuespace.Kind
	ids  kg.IDRange
}

// inlineKinds are the kinds of values with the ranges of their ids. Negative zero is apart,
// because it equals zero: a stream has each value once.
var inlineKinds = func() (out []inlineKind) {
	add := func(kind valuespace.Kind, r kg.IDRange) { out = append(out, inlineKind{kind, r}) }
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

// orderedKinds are those of inlineKinds that are before all others.
var orderedKinds = slices.DeleteFunc(slices.Clone(inlineKinds), func(k inlineKind) bool {
	return k.kind != valuespace.KindNumber && k.kind != valuespace.KindMoment
})

// New begins a walk over the values of a predicate, at the value of from if it is set. It returns
// nil if the index does not have the order.
func New(s *kg.Snapshot, predicate kg.ID, descending bool, from *valuespace.Value) (*Walk, error) {
	return newWalk(s, predicate, descending, from, defaultBounds)
}

func newWalk(s *kg.Snapshot, predicate kg.ID, descending bool, from *valuespace.Value, most bounds) (*Walk, error) {
	w := &Walk{descending: descending, bounds: most}
	any, err := anyObject(s, predicate, kg.ResourceIDs())
	if err != nil || any && descending {
		return nil, err
	}
	if any {
		w.streams = append(w.streams, &valueStream{unordered: true})
	}
	kinds, err := w.addNumbered(s, predicate, from, any)
	if err != nil || kinds == nil {
		return nil, err
	}
	if err := w.addInline(s, predicate, from, kinds); err != nil {
		return nil, err
	}
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

// addNumbered adds streams of the literals of the dictionary. It returns the kinds of values in ids
// that can be merged with them, nil if there is no order. unordered reports that there is a stream
// of values without an order already.
func (w *Walk) addNumbered(s *kg.Snapshot, predicate kg.ID, from *valuespace.Value, unordered bool) ([]inlineKind, error) {
	if few, err := w.addSorted(s, predicate, from); err != nil {
		return nil, err
	} else if few {
		return inlineKinds, nil
	}
	has, err := kg.LiteralKinds(s, predicate)
	if err != nil || has[kg.OtherValues] && w.descending || !kg.HasRanks(s) {
		return nil, err
	}
	if has[kg.NumberValues] {
		w.addRanked(s, predicate, valuespace.KindNumber, kg.NumberValues, from)
	}
	if has[kg.MomentValues] {
		w.addRanked(s, predicate, valuespace.KindMoment, kg.MomentValues, from)
	}
	if !has[kg.OtherValues] {
		return inlineKinds, nil
	}
	if !unordered { // the others are behind all numbers and moments
		w.streams = append(w.streams, &valueStream{unordered: true})
	}
	return orderedKinds, nil
}

// addInline adds streams of the values that are in ids.
func (w *Walk) addInline(s *kg.Snapshot, predicate kg.ID, from *valuespace.Value, kinds []inlineKind) error {
	for _, k := range kinds {
		ids := k.ids
		if from != nil {
			c := cmp.Compare(k.kind, from.Kind)
			switch {
			case c < 0 && !w.descending, c > 0 && w.descending:
				continue // before the value
			case c == 0:
				rest := kg.IntersectIDs([]kg.IDRange{ids}, from.IDsBehind(w.descending))
				if len(rest) == 0 {
					continue
				}
				ids = rest[0]
			}
		}
		if any, err := anyObject(s, predicate, ids); err != nil {
			return err
		} else if any {
			w.streams = append(w.streams, &valueStream{pull: streamIDs(s, predicate, ids, w.descending)})
		}
	}
	return nil
}

// advanceStream moves a stream to its next row and sets it to nil at its end.
func (w *Walk) advanceStream(i int) error {
	t := w.streams[i]
	if t.unordered {
		return nil
	}
	row, more, err := t.pull()
	if t.head = row; !more {
		w.gaveUp = w.gaveUp || t.ranked != nil && t.ranked.gaveUp
		w.streams[i] = nil
	}
	return err
}

// addRanked adds the stream of a kind of values of the dictionary.
func (w *Walk) addRanked(s *kg.Snapshot, predicate kg.ID, kind valuespace.Kind, of kg.ValueKind, from *valuespace.Value) {
	ranks := kg.AllRanks(of)
	if from != nil {
		c := cmp.Compare(kind, from.Kind)
		at, _ := from.Rank()
		switch {
		case c < 0 && !w.descending, c > 0 && w.descending:
			return // before the value
		case c == 0 && w.descending:
			ranks.Last = at.At
		case c == 0:
			ranks.First = at.At
		}
	}
	ranked := streamRanked(s, predicate, ranks, w.descending, w.bounds)
	w.streams = append(w.streams, &valueStream{pull: ranked.nextRow, ranked: ranked})
}

func (w *Walk) comesBefore(a, b *valueStream) bool {
	if a.unordered || b.unordered {
		return b.unordered
	}
	return compareRows(a.head, b.head, w.descending) < 0
}

func compareRows(a, b Row, descending bool) int {
	return cmp.Or(inDirection(a.Value.Order(b.Value), descending), a.Subject.Compare(b.Subject), a.Object.Compare(b.Object), a.Graph.Compare(b.Graph))
}

// Next returns the next statement. It returns false at the end of the order that the index has,
// see Complete.
func (w *Walk) Next() (row Row, more bool, err error) {
	if len(w.streams) == 0 || w.gaveUp {
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
func (w *Walk) Complete() bool { return len(w.streams) == 0 && !w.gaveUp }

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

// addSorted adds the stream of the literals of the dictionary that the predicate has, sorted by their
// values. ok is false if there are too many.
func (w *Walk) addSorted(s *kg.Snapshot, predicate kg.ID, from *valuespace.Value) (ok bool, err error) {
	ids, ok, err := listNumbered(s, predicate, w.bounds.sorted)
	if !ok || err != nil {
		return false, err
	}
	literals, err := valuesOf(s, ids)
	if err != nil {
		return false, err
	}
	sortLiterals(literals, w.descending)
	if from != nil {
		i, _ := slices.BinarySearchFunc(literals, *from, func(l literal, v valuespace.Value) int { return inDirection(l.value.Order(v), w.descending) })
		literals = literals[i:]
	}
	sorted := &rankedChunks{snapshot: s, predicate: predicate, descending: w.descending, ended: true, many: fewRanked, bounds: w.bounds}
	sorted.addLiterals(literals)
	w.streams = append(w.streams, &valueStream{pull: sorted.nextRow, ranked: sorted})
	return true, nil
}

// listNumbered lists the literals of the dictionary that statements of the predicate have as their
// objects, in the order of the ids. ok is false if there are more than most.
func listNumbered(s *kg.Snapshot, predicate kg.ID, most int) (ids []kg.ID, ok bool, err error) {
	numbered := kg.NumberedLiteralIDs()
	w := s.Sweep()
	defer w.Close()
	w.Seek(kg.IDPattern{Predicate: predicate}, beforeObjects(predicate, numbered))
	for w.Next() && numbered.Contains(w.Row().Object) {
		if len(ids) == most {
			return nil, false, nil
		}
		object := w.Row().Object
		ids = append(ids, object)
		w.To(kg.IDQuad{Predicate: predicate, Object: object.WithNumber(object.Number() + 1)})
	}
	return ids, true, w.Err()
}

// literal is a literal of the dictionary with its value.
type literal struct {
	id    kg.ID
	value valuespace.Value
}

func valuesOf(s *kg.Snapshot, ids []kg.ID) (list []literal, err error) {
	for _, id := range ids {
		t, err := s.Term(id)
		if err != nil {
			return nil, err
		}
		list = append(list, literal{id, valuespace.Of(t)})
	}
	return list, nil
}

func sortLiterals(list []literal, descending bool) {
	slices.SortStableFunc(list, func(a, b literal) int { return inDirection(a.value.Order(b.value), descending) })
}

// inDirection returns the result of a comparison in one direction.
func inDirection(c int, descending bool) int {
	if descending {
		return -c
	}
	return c
}
