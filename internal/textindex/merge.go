package textindex

import "bytes"

// mergeInto writes one segment of several, without their removed texts.
func mergeInto(w *segmentWriter, list []*segment) {
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
func (w *segmentWriter) mergeTexts(list []*segment) [][]uint32 {
	number := make([][]uint32, len(list))
	at := make([]uint32, len(list))
	heads := make([]key, len(list))
	read := func(i int) bool {
		s := list[i]
		for at[i] < s.textCount() && s.isRemoved(at[i]) {
			at[i]++
		}
		if at[i] == s.textCount() {
			return false
		}
		heads[i] = key{s.subjectAt(s.subjectOf(at[i])), s.refAt(at[i])}
		return true
	}
	var left []int
	for i, s := range list {
		number[i] = make([]uint32, s.textCount())
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
		number[i][at[i]] = n
		if at[i]++; !read(i) {
			left = append(left[:least], left[least+1:]...)
		}
	}
	return number
}

// mergeCursor walks the postings of a term in one of the merged segments.
type mergeCursor struct {
	*cursor
	number []uint32
}

// skipRemoved moves to the first text from the current one on that stays.
func (c *mergeCursor) skipRemoved() {
	for !c.done && c.number[c.doc] == 0 {
		c.nextText()
	}
}

// mergePostings adds the postings of a term with the new numbers of the texts.
func (w *segmentWriter) mergePostings(from []*mergeCursor) {
	for len(from) > 0 {
		least := 0
		for i := 1; i < len(from); i++ {
			if from[i].number[from[i].doc] < from[least].number[from[least].doc] {
				least = i
			}
		}
		c := from[least]
		w.addPosting(c.number[c.doc]-1, c.times)
		w.list.data = append(w.list.data, c.positions()...)
		c.nextText()
		if c.skipRemoved(); c.done {
			from = append(from[:least], from[least+1:]...)
		}
	}
}
