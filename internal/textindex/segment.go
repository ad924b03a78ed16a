package textindex

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"

	"koine/internal/textindex/words"
	"koine/kg"
)

// Subject is the subject of a text. Order is a number that depends on the subject's name
// alone, and decides between equal scores; the id decides between equal numbers.
type Subject struct {
	Order uint64
	ID    kg.ID
}

func (s Subject) compareTo(t Subject) int {
	if c := cmp.Compare(s.Order, t.Order); c != 0 {
		return c
	}
	return bytes.Compare(s.ID[:], t.ID[:])
}

// Ref names the statement that a text belongs to.
type Ref struct{ Graph, Predicate, Object kg.ID }

// Text is a text of the index.
type Text struct {
	Subject  Subject
	Ref      Ref
	Language words.Language
	Value    string
}

// MaxTextWords bounds the words of a text that are indexed.
const MaxTextWords = 1 << 16

// The kinds of terms: a word in its folded form, and its stem in a language.
const (
	exactTerm byte = 0x01
	stemTerm  byte = 0x10 // with the language added
)

func exactKey(word string) string { return string([]byte{exactTerm}) + word }

func stemKey(l words.Language, stem string) string { return string([]byte{stemTerm + byte(l)}) + stem }

// place is where a term is in a text.
type place struct {
	term     string
	position int
}

// placesOf returns the terms of a text with their positions, and the number of words.
func placesOf(t *Text) (out []place, n int) {
	for w := range words.Split(t.Value) {
		if n == MaxTextWords {
			break
		}
		n++
		out = append(out, place{exactKey(w.Folded), w.Position})
		if t.Language != words.Other && w.Lower != "" {
			out = append(out, place{stemKey(t.Language, t.Language.Stem(w.Lower)), w.Position})
		}
	}
	return out, n
}

// segment is a set of texts that does not grow, as it is in its file. Its columns have one
// element for each text, in the order of subjects.
type segment struct {
	orders  column // Subject.Order of each subject
	named   ids    // Subject.ID of each subject
	first   column // the first text of each subject, and the number of texts at the end
	subject column // of each text: its subject's number
	group   column // of each text: its place in groups
	object  ids
	length  column // words
	groups  []group

	terms    dictionary
	postings []byte
	image    []byte

	removed []uint64 // a bit for each text
	// withdrawn has how many removed texts of a group still count in the postings of a term.
	withdrawn map[groupTerm]uint32
	changed   bool        // since removed was written
	file      segmentFile // no name before the first Save
	unmap     func()      // nil for an image in memory
}

func (s *segment) textCount() uint32 { return uint32(s.length.countValues()) }

func (s *segment) subjectCount() uint32 { return uint32(s.orders.countValues()) }

func (s *segment) subjectAt(n uint32) Subject { return Subject{s.orders.valueAt(n), s.named.idAt(n)} }

// subjectOf returns the number of a text's subject.
func (s *segment) subjectOf(doc uint32) uint32 { return uint32(s.subject.valueAt(doc)) }

// textsOf returns the first text of a subject, and the first behind its texts.
func (s *segment) textsOf(subject uint32) (first, end uint32) {
	return uint32(s.first.valueAt(subject)), uint32(s.first.valueAt(subject + 1))
}

func (s *segment) groupOf(doc uint32) uint32 { return uint32(s.group.valueAt(doc)) }

func (s *segment) refAt(doc uint32) Ref {
	g := &s.groups[s.groupOf(doc)]
	return Ref{Graph: g.graph, Predicate: g.predicate, Object: s.object.idAt(doc)}
}

// group counts the texts of a predicate in a graph that were not removed. Whether a caller
// may read a statement follows from these two, so that statistics are counted by group.
type group struct {
	graph, predicate kg.ID
	texts, words     uint64
}

type groupTerm struct{ term, group uint32 }

// blockSize is how many texts one entry of a skip list stands for.
const blockSize = 128

// buildSegment makes a segment of texts. No two have the same subject and Ref.
func buildSegment(texts []Text) *segment {
	slices.SortFunc(texts, func(a, b Text) int {
		return cmp.Or(a.Subject.compareTo(b.Subject), bytes.Compare(a.Ref.Predicate[:], b.Ref.Predicate[:]),
			bytes.Compare(a.Ref.Object[:], b.Ref.Object[:]), bytes.Compare(a.Ref.Graph[:], b.Ref.Graph[:]))
	})
	w := newSegmentWriter(len(texts))
	lists := map[string]*postingList{}
	for i := range texts {
		t, doc := &texts[i], uint32(i)
		places, n := placesOf(t)
		g := w.addText(t.Subject, t.Ref, uint32(n))
		slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.term, b.term) })
		for len(places) > 0 {
			var positions []int
			for len(positions) < len(places) && places[len(positions)].term == places[0].term {
				positions = append(positions, places[len(positions)].position)
			}
			l := lists[places[0].term]
			if l == nil {
				l = &postingList{inGroup: map[uint32]uint32{}}
				lists[places[0].term] = l
			}
			l.addPosting(doc, g, positions)
			places = places[len(positions):]
		}
	}
	terms := make([]string, 0, len(lists))
	for term := range lists {
		terms = append(terms, term)
	}
	slices.Sort(terms)
	for _, term := range terms {
		w.addTerm(term, lists[term])
	}
	return w.finishSegment()
}

// postingList gathers the postings of a term.
type postingList struct {
	inGroup map[uint32]uint32 // texts by group
	texts   uint32
	last    uint32
	skips   []skip
	data    []byte
}

// skip is an entry of a skip list: the last text of a block, and where the block ends.
type skip struct{ last, end uint32 }

func (l *postingList) addPosting(doc, group uint32, positions []int) {
	l.inGroup[group]++
	delta := doc - l.last
	if l.texts%blockSize == 0 {
		delta = doc // a block begins anew
		if l.texts > 0 {
			l.skips = append(l.skips, skip{l.last, uint32(len(l.data))})
		}
	}
	l.texts, l.last = l.texts+1, doc
	if len(positions) == 1 {
		l.data = binary.AppendUvarint(l.data, uint64(delta)<<1)
	} else {
		l.data = binary.AppendUvarint(l.data, uint64(delta)<<1|1)
		l.data = binary.AppendUvarint(l.data, uint64(len(positions)))
	}
	before := 0
	for _, p := range positions {
		l.data = binary.AppendUvarint(l.data, uint64(p-before))
		before = p
	}
}

// appendTo appends the counts by group, the skip list and the postings.
func (l *postingList) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(l.texts))
	b = binary.AppendUvarint(b, uint64(len(l.inGroup)))
	for _, g := range sortedKeys(l.inGroup) {
		b = binary.AppendUvarint(b, uint64(g))
		b = binary.AppendUvarint(b, uint64(l.inGroup[g]))
	}
	for _, s := range l.skips {
		b = binary.BigEndian.AppendUint32(b, s.last)
		b = binary.BigEndian.AppendUint32(b, s.end)
	}
	return append(b, l.data...)
}

func sortedKeys(m map[uint32]uint32) []uint32 {
	keys := make([]uint32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// findSubject returns the number of the first subject that is not before t.
func (s *segment) findSubject(t Subject, from uint32) uint32 {
	return from + uint32(sort.Search(int(s.subjectCount()-from), func(i int) bool {
		n := from + uint32(i)
		if order := s.orders.valueAt(n); order != t.Order {
			return order > t.Order
		}
		return s.subjectAt(n).compareTo(t) >= 0
	}))
}

func (s *segment) isRemoved(doc uint32) bool { return s.removed[doc/64]&(1<<(doc%64)) != 0 }

// findText returns the number of a text that was not removed.
func (s *segment) findText(t *Text) (doc uint32, ok bool) {
	n := s.findSubject(t.Subject, 0)
	if n == s.subjectCount() || s.subjectAt(n) != t.Subject {
		return 0, false
	}
	for doc, end := s.textsOf(n); doc < end; doc++ {
		if s.refAt(doc) == t.Ref && !s.isRemoved(doc) {
			return doc, true
		}
	}
	return 0, false
}

// removeText takes a text out, and reports whether it was there. The text's words are optional for
// the statistics.
func (s *segment) removeText(t *Text) bool {
	doc, ok := s.findText(t)
	if !ok {
		return false
	}
	s.markRemoved(doc)
	places, _ := placesOf(t)
	seen := map[string]bool{}
	for _, p := range places {
		if term, ok := s.terms.findTerm(p.term); ok && !seen[p.term] {
			seen[p.term] = true
			s.withdrawn[groupTerm{term, s.groupOf(doc)}]++
		}
	}
	return true
}

func (s *segment) markRemoved(doc uint32) {
	s.removed[doc/64] |= 1 << (doc % 64)
	s.changed = true
	g := &s.groups[s.groupOf(doc)]
	g.texts--
	g.words -= s.length.valueAt(doc)
}

// removeGraph takes the texts of a graph out. Groups without texts count for no term.
func (s *segment) removeGraph(graph kg.ID) {
	for doc := range s.textCount() {
		if s.groups[s.groupOf(doc)].graph == graph && !s.isRemoved(doc) {
			s.markRemoved(doc)
		}
	}
}

// textsWith calls count with the number of texts of each group that have a term.
func (s *segment) textsWith(term uint32, count func(group uint32, texts uint64)) {
	b := s.postingsOf(term)
	_, b = uvarint(b)
	n, b := uvarint(b)
	for range n {
		var g, texts uint64
		g, b = uvarint(b)
		texts, b = uvarint(b)
		if s.groups[g].texts == 0 {
			continue
		}
		count(uint32(g), texts-uint64(s.withdrawn[groupTerm{term, uint32(g)}]))
	}
}

func uvarint(b []byte) (uint64, []byte) {
	if b[0] < 0x80 {
		return uint64(b[0]), b[1:]
	}
	v, n := binary.Uvarint(b)
	return v, b[n:]
}

// cursor walks the postings of a term.
type cursor struct {
	s     *segment
	term  uint32
	doc   uint32 // the current text
	times uint32 // how often the term is in it
	done  bool

	left  uint32 // texts behind the current one
	skips []byte // entries behind the current block
	block []byte // the rest of the data
	whole []byte
	at    []byte // positions of the current text
	index uint32 // of the current text in its block
}

func newCursor(s *segment, term uint32) *cursor {
	b := s.postingsOf(term)
	texts, b := uvarint(b)
	groups, b := uvarint(b)
	for range 2 * groups {
		_, b = uvarint(b)
	}
	skips := 8 * ((texts - 1) / blockSize)
	c := &cursor{s: s, term: term, left: uint32(texts), skips: b[:skips], whole: b[skips:]}
	c.block = c.whole
	c.nextText()
	return c
}

// nextText moves to the next text.
func (c *cursor) nextText() {
	if c.left == 0 {
		c.done = true
		return
	}
	c.left--
	if c.index == blockSize {
		c.index, c.doc, c.skips = 0, 0, c.skips[8:]
	}
	c.index++
	head, b := uvarint(c.block)
	c.doc += uint32(head >> 1)
	c.times = 1
	if head&1 != 0 {
		var n uint64
		n, b = uvarint(b)
		c.times = uint32(n)
	}
	c.at = b
	for n := c.times; n > 0; b = b[1:] {
		if b[0] < 0x80 {
			n--
		}
	}
	c.block = b
}

// seekText moves to the first text that is not before doc.
func (c *cursor) seekText(doc uint32) {
	for !c.done && len(c.skips) >= 8 && binary.BigEndian.Uint32(c.skips) < doc {
		c.left -= blockSize - c.index
		c.block = c.whole[binary.BigEndian.Uint32(c.skips[4:]):]
		c.index, c.doc, c.skips = 0, 0, c.skips[8:]
		c.nextText()
	}
	for !c.done && c.doc < doc {
		c.nextText()
	}
}

// readPositions appends where the term is in the current text.
func (c *cursor) readPositions(out []int) []int {
	b, position := c.at, 0
	for range c.times {
		var delta uint64
		delta, b = uvarint(b)
		position += int(delta)
		out = append(out, position)
	}
	return out
}
