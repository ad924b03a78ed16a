package textindex

import (
	"cmp"
	"slices"
)

// mergeSegments makes one segment of several, without their removed texts.
func mergeSegments(list []*segment) *segment {
	type from struct {
		segment int
		doc     uint32
		subject Subject
		ref     Ref
	}
	var order []from
	for i, s := range list {
		for doc := range s.textCount() {
			if !s.isRemoved(doc) {
				order = append(order, from{i, doc, s.subjectAt(s.subjectOf(doc)), s.refAt(doc)})
			}
		}
	}
	slices.SortFunc(order, func(a, b from) int {
		return cmp.Or(a.subject.compareTo(b.subject), compareRefs(a.ref, b.ref))
	})
	w := newSegmentWriter(len(order))
	number := make([][]uint32, len(list)) // the new number of each text, plus one
	for i, s := range list {
		number[i] = make([]uint32, s.textCount())
	}
	for i, f := range order {
		number[f.segment][f.doc] = uint32(i) + 1
		w.addText(f.subject, f.ref, uint32(list[f.segment].length.valueAt(f.doc)))
	}
	var all []string
	for _, s := range list {
		all = slices.AppendSeq(all, s.terms.startingWith(""))
	}
	slices.Sort(all)
	for _, term := range slices.Compact(all) {
		if l := w.mergePostings(list, number, term); l.texts > 0 {
			w.addTerm(term, l)
		}
	}
	return w.finishSegment()
}

// mergePostings gathers the postings of a term with the new numbers of the texts.
func (w *segmentWriter) mergePostings(list []*segment, number [][]uint32, term string) *postingList {
	type posting struct {
		doc       uint32
		positions []int
	}
	var all []posting
	for i, from := range list {
		n, ok := from.terms.findTerm(term)
		if !ok {
			continue
		}
		for c := newCursor(from, n); !c.done; c.nextText() {
			if doc := number[i][c.doc]; doc > 0 {
				all = append(all, posting{doc - 1, c.readPositions(nil)})
			}
		}
	}
	slices.SortFunc(all, func(a, b posting) int { return cmp.Compare(a.doc, b.doc) })
	l := &postingList{inGroup: map[uint32]uint32{}}
	for _, p := range all {
		l.addPosting(p.doc, w.group[p.doc], p.positions)
	}
	return l
}
