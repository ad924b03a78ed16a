package query

import (
	"cmp"
	"slices"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// A list that is ordered by a property is read in that order where the index has it: the ids of
// most numbers, times, booleans and short texts are in the order of their values. The walk
// merges the values of each datatype, and ends with the page. It gives up where it would read
// more than it saves; ranking all entities then answers.

// Bounds of a walk.
const (
	// leastRanked is the number of statements up to which all entities are ranked.
	leastRanked = 1024
	// walkedShare is the part of the statements that ranking would read, of which a walk reads
	// at most as many. A walk reads entities out of order, which costs more for each.
	walkedShare = 8
	// maxSorted bounds the values of the dictionary that a walk sorts itself.
	maxSorted = 4096
)

// walkLimit returns how many statements of the first key a walk may read, 0 if all entities are
// to be ranked.
func (l *EntityList) walkLimit(s *kg.Snapshot) (most int, err error) {
	if len(l.Order) == 0 || l.Order[0].property == nil || l.Order[0].nullFirst || l.Backward || l.Match.matchesObjects() {
		return 0, nil
	}
	if _, limited := s.ReadsLeft(); limited {
		return 0, nil
	}
	if l.Total {
		if l.Match.class.IsZero() {
			return 0, nil
		}
		if _, known, err := s.Instances(l.Match.class); !known || err != nil {
			return 0, err
		}
	}
	d, n, err := cheapestAccessPath(s, l.Match.accessPaths, true)
	if err != nil || d != nil && d.iris != nil {
		return 0, err
	}
	if d == nil {
		if n, _, err = s.Estimate(kg.IDPattern{}); err != nil {
			return 0, err
		}
	}
	if n <= leastRanked {
		return 0, nil
	}
	return int(min(n/walkedShare, 1<<30)) + leastRanked, nil
}

// walkPage finds a page of the list by a walk over at most so many statements of the first key.
// found is false if that does not suffice.
func (l *EntityList) walkPage(s *kg.Snapshot, after *kg.ID, first, most int) (g Page[kg.ID], found bool, err error) {
	var behind *ranked[kg.ID]
	if after != nil {
		if behind, err = l.rank(s, *after); err != nil || behind.rank[0].null {
			return g, false, err
		}
	}
	w, err := newOrderWalk(s, *l.Order[0].property, l.Order[0].descending, behind)
	if err != nil || w == nil {
		return g, false, err
	}
	kept, whole, err := l.collectWalked(s, w, behind, first+1, most)
	if err != nil || !whole {
		return g, false, err
	}
	if l.Total {
		if g.Total, err = l.countAll(s); err != nil {
			return g, false, err
		}
	}
	b := topN[*subject, kg.ID]{order: l.Order, compare: kg.ID.Compare, n: first + 1, kept: kept}
	g.fill(b.firstKeys(), first, false)
	return g, true, nil
}

// collectWalked collects the first n entities of a walk that match, and those that the first key
// does not tell from the last of them. whole is false if the walk ended before, or after so many
// statements.
func (l *EntityList) collectWalked(s *kg.Snapshot, w *orderWalk, behind *ranked[kg.ID], n, most int) (kept []ranked[kg.ID], whole bool, err error) {
	reader, err := l.Match.readSubjects(s)
	if err != nil {
		return nil, false, err
	}
	defer reader.close()
	class, known, err := l.classPattern(s)
	if !known || err != nil {
		return nil, false, err
	}
	seen := map[kg.ID]struct{}{}
	b := topN[*subject, kg.ID]{order: l.Order, compare: kg.ID.Compare}
	var last valuespace.Value
	for ; ; most-- {
		row, more, err := w.nextRow()
		if !more || err != nil {
			return nil, false, err
		}
		if len(kept) >= n && (len(l.Order) == 1 || row.value.Order(last) != 0) {
			return kept, true, nil
		}
		if last = row.value; most == 0 {
			return nil, false, nil
		}
		if _, again := seen[row.subject]; again {
			continue
		}
		seen[row.subject] = struct{}{}
		e, err := reader.read(row.subject)
		ok := false
		if err == nil {
			ok, err = l.matchesWalked(e, class)
		}
		var r rank
		if err == nil && ok {
			r, err = l.Order.rankOf(e)
		}
		if err != nil {
			return nil, false, err
		}
		if at := (ranked[kg.ID]{r, row.subject}); ok && (behind == nil || b.compareRanked(at, *behind) > 0) {
			kept = append(kept, at)
		}
	}
}

// classPattern returns the pattern by which an entity has the class of the match, if that is
// the whole condition. known is false if no entity has it.
func (l *EntityList) classPattern(s *kg.Snapshot) (p kg.IDPattern, known bool, err error) {
	if l.Match.test != nil || l.Match.class.IsZero() {
		return p, true, nil
	}
	return s.PatternIDs(kg.Pattern{Predicate: RDFType, Object: l.Match.class})
}

func (l *EntityList) matchesWalked(e *subject, class kg.IDPattern) (bool, error) {
	if class == (kg.IDPattern{}) {
		return l.Match.matchesEntity(e)
	}
	class.Subject = e.id
	return Shows(e.snapshot, class)
}

// orderWalk yields the statements of a predicate in the order of their values, in one direction,
// and those of equal values in the order of the subjects' ids.
type orderWalk struct {
	descending bool
	streams    []*valueStream
}

// walkedRow is a statement of a walk.
type walkedRow struct {
	value   valuespace.Value
	subject kg.ID
}

// valueStream is a part of a walk, in the same order.
type valueStream struct {
	head walkedRow
	pull func() (walkedRow, bool, error) // ends with false
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

// newOrderWalk begins a walk over the values of a property, at the value of behind if it is set.
// It returns nil if the index does not have the order.
func newOrderWalk(s *kg.Snapshot, property kg.Term, descending bool, behind *ranked[kg.ID]) (*orderWalk, error) {
	w := &orderWalk{descending: descending}
	predicate, known, err := s.ID(property)
	if !known || err != nil {
		return nil, err
	}
	any, err := anyObject(s, predicate, kg.ResourceIDs())
	if err != nil || any && descending {
		return nil, err
	}
	if any {
		w.streams = append(w.streams, &valueStream{unordered: true})
	}
	for _, k := range inlineKinds {
		ids := k.ids
		if behind != nil {
			at := behind.rank[0].Value
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
	w.streams = append(w.streams, &valueStream{pull: pullFrom(sorted, behind, descending)})
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
func (w *orderWalk) advanceStream(i int) error {
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

func (w *orderWalk) comesBefore(a, b *valueStream) bool {
	if a.unordered || b.unordered {
		return b.unordered
	}
	return compareWalked(a.head, b.head, w.descending) < 0
}

func compareWalked(a, b walkedRow, descending bool) int {
	c := a.value.Order(b.value)
	if descending {
		c = -c
	}
	return cmp.Or(c, a.subject.Compare(b.subject))
}

// nextRow returns the next statement. It returns false at the end of the order that the index has.
func (w *orderWalk) nextRow() (row walkedRow, more bool, err error) {
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

// anyObject reports whether the view shows a statement of the predicate with an object in the
// range.
func anyObject(s *kg.Snapshot, predicate kg.ID, ids kg.IDRange) (bool, error) {
	for row, err := range s.MatchIDs(kg.IDPattern{Predicate: predicate}, beforeObjects(predicate, ids)) {
		return err == nil && ids.Contains(row.Object), err
	}
	return false, nil
}

// beforeObjects is a place behind which the statements with objects in the range come.
func beforeObjects(predicate kg.ID, ids kg.IDRange) *kg.IDQuad {
	return &kg.IDQuad{Subject: lastID, Predicate: predicate, Object: ids.Before(), Graph: lastID}
}

// sortNumbered returns the statements with literals of the dictionary as objects, in the order of
// their values. ok is false if there are more than maxSorted.
func sortNumbered(s *kg.Snapshot, predicate kg.ID, descending bool) (rows []walkedRow, ok bool, err error) {
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
		rows = append(rows, walkedRow{v, row.Subject})
	}
	slices.SortFunc(rows, func(a, b walkedRow) int { return compareWalked(a, b, descending) })
	return rows, true, nil
}

// pullFrom yields sorted rows from the value of behind on.
func pullFrom(rows []walkedRow, behind *ranked[kg.ID], descending bool) func() (walkedRow, bool, error) {
	if behind != nil {
		from := walkedRow{value: behind.rank[0].Value} // the zero id is before all
		i, _ := slices.BinarySearchFunc(rows, from, func(a, b walkedRow) int { return compareWalked(a, b, descending) })
		rows = rows[i:]
	}
	return func() (row walkedRow, more bool, err error) {
		if len(rows) == 0 {
			return row, false, nil
		}
		row, rows = rows[0], rows[1:]
		return row, true, nil
	}
}

// streamIDs yields the statements with objects in a range of ids that are in the order of their
// values.
func streamIDs(s *kg.Snapshot, predicate kg.ID, ids kg.IDRange, descending bool) func() (walkedRow, bool, error) {
	c := &objectChunks{snapshot: s, predicate: predicate, left: ids, descending: descending, width: 1}
	var object kg.ID
	var v valuespace.Value
	return func() (row walkedRow, more bool, err error) {
		if len(c.rows) == 0 {
			if err = c.read(); err != nil || len(c.rows) == 0 {
				return row, false, err
			}
		}
		at := c.rows[0]
		if c.rows = c.rows[1:]; at.Object != object {
			t, err := s.Term(at.Object)
			if err != nil {
				return row, false, err
			}
			object, v = at.Object, valuespace.Of(t)
		}
		return walkedRow{v, at.Subject}, true, nil
	}
}

// objectChunks reads the statements of a predicate with objects in a range of ids of one datatype,
// some at a time, by object in one direction and then by subject. The index is read forward only,
// so a descending walk looks for a place with some statements behind it.
type objectChunks struct {
	snapshot   *kg.Snapshot
	predicate  kg.ID
	left       kg.IDRange // not read yet
	ended      bool
	descending bool
	rows       []kg.IDQuad
	after      *kg.IDQuad // last statement of an ascending walk
	// width is the number of ids that the next chunk of a descending walk spans.
	width uint64
}

// maxChunk is the number of statements that are read at once. A descending walk never tears those
// with one object apart.
const maxChunk = 256

// read reads the next chunk into rows, which stays empty at the end.
func (c *objectChunks) read() error {
	c.rows = c.rows[:0:0]
	if !c.descending {
		return c.readForward()
	}
	crowded, known := uint64(0), false // from this id on there are more than a chunk
	for !c.ended {
		first, last := c.left.First.Number(), c.left.Last.Number()
		from := c.left
		if known {
			c.width = (last-crowded)/2 + 1
		}
		whole := c.width > last-first
		if !whole {
			from.First = c.left.Last.WithNumber(last - c.width + 1)
		}
		many, err := c.readBackward(from, from.First == from.Last)
		if err != nil {
			return err
		}
		if many {
			crowded, known = from.First.Number(), true
			continue
		}
		if c.ended = whole; !whole {
			c.left.Last = from.Before()
		}
		if len(c.rows) > 0 {
			if len(c.rows) < maxChunk/4 {
				c.width = growWidth(c.width, 2)
			}
			return nil
		}
		c.width = growWidth(c.width, 16)
	}
	return nil
}

func growWidth(width, by uint64) uint64 {
	if width > 1<<63/by {
		return 1 << 63
	}
	return width * by
}

// readBackward reads the statements with objects in a range, those with the greatest object first.
// many is true, and nothing is read, if there are more than maxChunk, unless all are wanted.
func (c *objectChunks) readBackward(ids kg.IDRange, all bool) (many bool, err error) {
	c.rows = c.rows[:0]
	for row, err := range c.snapshot.MatchIDs(kg.IDPattern{Predicate: c.predicate}, beforeObjects(c.predicate, ids)) {
		if err != nil {
			return false, err
		}
		if !ids.Contains(row.Object) {
			break
		}
		if len(c.rows) >= maxChunk && !all {
			c.rows = c.rows[:0]
			return true, nil
		}
		c.rows = append(c.rows, row.IDQuad)
	}
	slices.SortStableFunc(c.rows, func(a, b kg.IDQuad) int { return b.Object.Compare(a.Object) })
	return false, nil
}

// readForward reads the next chunk of an ascending walk.
func (c *objectChunks) readForward() error {
	if c.ended {
		return nil
	}
	if c.after == nil {
		c.after = beforeObjects(c.predicate, c.left)
	}
	for row, err := range c.snapshot.MatchIDs(kg.IDPattern{Predicate: c.predicate}, c.after) {
		if err != nil {
			return err
		}
		if !c.left.Contains(row.Object) {
			break
		}
		if c.rows = append(c.rows, row.IDQuad); len(c.rows) == maxChunk {
			last := row.IDQuad
			c.after = &last
			return nil
		}
	}
	c.ended = true
	return nil
}
