package textindex

import (
	"bytes"
	"cmp"
	"slices"
)

// mergeSegments makes one segment of several, without what was removed.
func mergeSegments(list []*segment) *segment {
	type from struct {
		segment int
		doc     uint32
	}
	var order []from
	for i, s := range list {
		for doc := range uint32(len(s.refs)) {
			if !s.isRemoved(doc) {
				order = append(order, from{i, doc})
			}
		}
	}
	slices.SortFunc(order, func(a, b from) int {
		s, t := list[a.segment], list[b.segment]
		p, q := &s.refs[a.doc], &t.refs[b.doc]
		return cmp.Or(s.subjects[s.subject[a.doc]].compare(t.subjects[t.subject[b.doc]]), bytes.Compare(p.Predicate[:], q.Predicate[:]),
			bytes.Compare(p.Object[:], q.Object[:]), bytes.Compare(p.Graph[:], q.Graph[:]))
	})
	out := newSegment(len(order))
	graphs := graphNumbers{}
	number := make([][]uint32, len(list)) // the new number of each text, plus one
	for i, s := range list {
		number[i] = make([]uint32, len(s.refs))
	}
	for _, f := range order {
		s := list[f.segment]
		number[f.segment][f.doc] = uint32(len(out.refs)) + 1
		out.addText(s.subjects[s.subject[f.doc]], s.refs[f.doc], graphs.number(out, s.refs[f.doc].Graph), s.length[f.doc])
	}
	out.first = append(out.first, uint32(len(out.refs)))

	var all []string
	for _, s := range list {
		all = append(all, s.terms...)
	}
	slices.Sort(all)
	for _, term := range slices.Compact(all) {
		l := out.mergePostings(list, number, term)
		if l.texts == 0 {
			continue
		}
		out.terms, out.offsets = append(out.terms, term), append(out.offsets, uint32(len(out.postings)))
		out.postings = l.appendTo(out.postings)
	}
	out.offsets = append(out.offsets, uint32(len(out.postings)))
	return out
}

// mergePostings gathers the postings of a term with the new numbers of the texts.
func (s *segment) mergePostings(list []*segment, number [][]uint32, term string) *postingList {
	type posting struct {
		doc       uint32
		positions []int
	}
	var all []posting
	for i, from := range list {
		n, ok := from.findTerm(term)
		if !ok {
			continue
		}
		for c := newCursor(from, n); !c.done; c.next() {
			if doc := number[i][c.doc]; doc > 0 {
				all = append(all, posting{doc - 1, c.positions(nil)})
			}
		}
	}
	slices.SortFunc(all, func(a, b posting) int { return cmp.Compare(a.doc, b.doc) })
	l := &postingList{inGraph: map[uint32]uint32{}}
	for _, p := range all {
		l.add(p.doc, s.graph[p.doc], p.positions)
	}
	return l
}
