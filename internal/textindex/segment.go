package textindex

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"sort"

	"koine/internal/sealed"
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

// Text is a text of the index. Its language may be words.Untagged.
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
	gone    uint32   // how many texts were removed
	// withdrawn has how many removed texts of a group still count in the postings of a term.
	withdrawn map[groupTerm]uint32
	changed   bool        // since removed was written
	file      sealed.File // no name before the first Save
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

// findSubject returns the number of the first subject that is not before t, of those from low
// to high; high if there is none. Orders are spread evenly, so that a few guesses come near.
func (s *segment) findSubject(t Subject, low, high uint32) uint32 {
	for guesses := 0; guesses < 4 && high-low > 16; guesses++ {
		first, last := s.orders.valueAt(low), s.orders.valueAt(high-1)
		if t.Order <= first || t.Order > last {
			break
		}
		n := low + uint32(float64(t.Order-first)/float64(last-first)*float64(high-1-low))
		if s.isBefore(n, t) {
			low = n + 1
		} else {
			high = n
		}
	}
	return low + uint32(sort.Search(int(high-low), func(i int) bool { return !s.isBefore(low+uint32(i), t) }))
}

// isBefore reports whether a subject is before t.
func (s *segment) isBefore(n uint32, t Subject) bool {
	if order := s.orders.valueAt(n); order != t.Order {
		return order < t.Order
	}
	return s.subjectAt(n).compareTo(t) < 0
}

func (s *segment) isRemoved(doc uint32) bool { return s.removed[doc/64]&(1<<(doc%64)) != 0 }

// findText returns the number of a text that was not removed.
func (s *segment) findText(t *Text) (doc uint32, ok bool) {
	n := s.findSubject(t.Subject, 0, s.subjectCount())
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
	for key := range readTerms(t) {
		if term, ok := s.terms.findTerm(key); ok {
			s.withdrawn[groupTerm{term, s.groupOf(doc)}]++
		}
	}
	return true
}

func (s *segment) markRemoved(doc uint32) {
	s.removed[doc/64] |= 1 << (doc % 64)
	s.gone++
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
	head, b := uvarint(s.postingsOf(term))
	for range head >> 1 {
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

// postings are the texts with a term, in blocks.
type postings struct {
	s       *segment
	blocks  []byte // entries of the blocks; none for a single block
	flags   blockFlags
	whole   []byte // impacts of all blocks together
	impacts []byte
	data    []byte
}

// openPostings returns the postings of a term.
func (s *segment) openPostings(term uint32) postings {
	head, b := uvarint(s.postingsOf(term))
	for range head &^ 1 {
		_, b = uvarint(b)
	}
	p := postings{s: s}
	n, b := uvarint(b)
	if head&1 != 0 {
		p.flags, n = blockFlags{n&1 != 0, n&2 != 0}, n>>2
		p.blocks, b = b[:n*blockEntry], b[n*blockEntry:]
		n, b = uvarint(b)
		p.whole, b = b[:n], b[n:]
		_, end, impacts := p.blockAt(p.blockCount() - 1)
		p.impacts, b = b[:impacts], b[impacts:]
		n = uint64(end)
	}
	p.data = b[:n]
	return p
}

// isList reports whether the postings are the list of a term, of which there is one for a word
// and its stem.
func (c *postings) isList(s *segment, term uint32) bool {
	of := s.openPostings(term)
	return &of.data[0] == &c.data[0]
}

// blockAt returns the entry of a block: its last text, and where its postings and impacts end.
func (c *postings) blockAt(n uint32) (last, end, impacts uint32) {
	e := c.blocks[n*blockEntry:]
	return binary.BigEndian.Uint32(e), binary.BigEndian.Uint32(e[4:]), binary.BigEndian.Uint32(e[8:]) >> 2
}

func (c *postings) flagsOf(n uint32) blockFlags {
	b := c.blocks[n*blockEntry+blockEntry-1]
	return blockFlags{b&1 != 0, b&2 != 0}
}

func (c *postings) blockCount() uint32 { return max(uint32(len(c.blocks)/blockEntry), 1) }

// dataOf returns the postings of a block.
func (c *postings) dataOf(n uint32) []byte {
	begin, end := uint32(0), uint32(len(c.data))
	if n > 0 {
		_, begin, _ = c.blockAt(n - 1)
	}
	if len(c.blocks) > 0 {
		_, end, _ = c.blockAt(n)
	}
	return c.data[begin:end]
}

// cursor walks the postings of a term.
type cursor struct {
	postings
	doc    uint32 // the current text
	times  uint32 // how often the term is in it
	done   bool
	number uint32 // of the current block

	at   []byte // positions of the current text, and what follows
	rest []byte // postings behind the current text, in its block
}

func newCursor(s *segment, term uint32) *cursor {
	c := &cursor{postings: s.openPostings(term)}
	c.openBlock(0)
	c.nextText()
	return c
}

// openBlock moves in front of the first text of a block.
func (c *cursor) openBlock(n uint32) {
	c.number, c.doc, c.rest = n, 0, c.dataOf(n)
}

// nextText moves to the next text.
func (c *cursor) nextText() {
	if len(c.rest) == 0 {
		if c.number+1 >= c.blockCount() {
			c.done = true
			return
		}
		c.openBlock(c.number + 1)
	}
	head, b := uvarint(c.rest)
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
	c.rest = b
}

// seekText moves to the first text that is not before doc.
func (c *cursor) seekText(doc uint32) {
	if c.done || c.doc >= doc {
		return
	}
	if n := c.blockOf(doc); n != c.number {
		if n == c.blockCount() {
			c.done = true
			return
		}
		c.openBlock(n)
		c.nextText()
	}
	for !c.done && c.doc < doc {
		c.nextText()
	}
}

// blockOf returns the first block from the current one on whose last text is not before doc.
// A single block is searched to its end.
func (c *cursor) blockOf(doc uint32) uint32 {
	if len(c.blocks) == 0 || c.lastOf(c.number) >= doc {
		return c.number
	}
	// By growing steps, then between the last two.
	low, high, step := c.number, c.number+1, uint32(1)
	for high < c.blockCount() && c.lastOf(high) < doc {
		low, high, step = high, high+step, 2*step
	}
	low, high = low+1, min(high, c.blockCount())
	return low + uint32(sort.Search(int(high-low), func(i int) bool { return c.lastOf(low+uint32(i)) >= doc }))
}

func (c *postings) lastOf(n uint32) uint32 { return binary.BigEndian.Uint32(c.blocks[n*blockEntry:]) }

// positions returns where the term is in the current text, as in the segment.
func (c *cursor) positions() []byte { return c.at[:len(c.at)-len(c.rest)] }

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

// impactsOf returns the impacts of a block: no text of it has the term more often in fewer
// words than one of them says. A single block has none.
func (c *postings) impactsOf(n uint32) []byte {
	begin := uint32(0)
	if n > 0 {
		_, _, begin = c.blockAt(n - 1)
	}
	_, _, end := c.blockAt(n)
	return c.impacts[begin:end]
}
