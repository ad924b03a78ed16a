package textindex

import "bytes"

// mergeInto writes one segment of several, without their removed texts. With a spool it needs 5 to
// 8 bytes of memory for each text, and without one 40.
func mergeInto(w *segmentWriter, list []*segment, sp *spool) {
	w.reserve(list, sp)
	number := w.mergeTexts(list)
	cursors := make([]*termCursor, len(list))
	for i, s := range list {
		cursors[i] = s.terms.fromBlock(0)
	}
	var term []byte
	for {
		least := -1
		for i, c := range cursors {
			if !c.atEnd() && (least < 0 || bytes.Compare(c.term, cursors[least].term) < 0) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		term = append(term[:0], cursors[least].term...)
		var from []*mergeCursor
		for i, c := range cursors {
			if !c.atEnd() && bytes.Equal(c.term, term) {
				m := &mergeCursor{cursor: newCursor(list[i], c.number), number: number[i]}
				if m.skipRemoved(); !m.done {
					from = append(from, m)
				}
				c.nextTerm()
			}
		}
		w.mergePostings(from)
		w.addTerm(term)
	}
}

// mergeTexts adds the texts of segments, and returns their new numbers, plus one: 0 is for a
// removed text.
func (w *segmentWriter) mergeTexts(list []*segment) []column {
	number := make([]column, len(list))
	at := make([]uint32, len(list))
	heads := make([]key, len(list))
	read := func(i int) bool {
		s := list[i]
		for at[i] < s.textCount() && s.isRemoved(at[i]) {
			number[i].appendValue(0)
			at[i]++
		}
		if at[i] == s.textCount() {
			return false
		}
		heads[i] = key{s.subjectAt(s.subjectOf(at[i])), s.refAt(at[i])}
		return true
	}
	var left []int
	all := uint32(0)
	for _, s := range list {
		all += s.textCount()
	}
	for i, s := range list {
		number[i] = reservedColumn(int(s.textCount()), widthOf(uint64(all)))
		if read(i) {
			left = append(left, i)
		}
	}
	for n := uint32(1); len(left) > 0; n++ {
		least := 0
		for j := 1; j < len(left); j++ {
			if heads[left[j]].compareTo(&heads[left[least]]) < 0 {
				least = j
			}
		}
		i := left[least]
		w.addText(heads[i].subject, heads[i].ref, uint32(list[i].length.valueAt(at[i])))
		number[i].appendValue(uint64(n))
		if at[i]++; !read(i) {
			left = append(left[:least], left[least+1:]...)
		}
	}
	return number
}

// mergeCursor walks the postings of a term in one of the merged segments.
type mergeCursor struct {
	*cursor
	number column
}

// newNumber returns the new number of the current text, plus one.
func (c *mergeCursor) newNumber() uint32 { return uint32(c.number.valueAt(c.doc)) }

// skipRemoved moves to the first text from the current one on that stays.
func (c *mergeCursor) skipRemoved() {
	for !c.done && c.newNumber() == 0 {
		c.nextText()
	}
}

// mergePostings adds the postings of a term with the new numbers of the texts.
func (w *segmentWriter) mergePostings(from []*mergeCursor) {
	for len(from) > 0 {
		least := 0
		for i := 1; i < len(from); i++ {
			if from[i].newNumber() < from[least].newNumber() {
				least = i
			}
		}
		c := from[least]
		w.addPosting(c.newNumber()-1, c.times)
		w.list.data = append(w.list.data, c.positions()...)
		c.nextText()
		if c.skipRemoved(); c.done {
			from = append(from[:least], from[least+1:]...)
		}
	}
}
