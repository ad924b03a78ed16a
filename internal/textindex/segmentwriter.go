package textindex

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"

	"koine/internal/sealed"
)

// segmentWriter writes a segment: first all texts are added in their order, then the terms
// with their postings.
type segmentWriter struct {
	out *imageWriter

	orders, first, subject columnWriter
	named, object          idWriter
	group, length          column
	spool                  *spool // nil for a segment in memory
	texts                  textStarts
	last                   Subject
	groups                 []group
	numbers                map[group]uint32 // of groups, by graph and predicate

	terms  dictionaryWriter
	list   postingList
	lists  map[listHash]uint64 // places of the lists of words with at least minSharedList bytes
	hashes [2]maphash.Hash     // of random seeds: nobody can make two lists with one hash
}

func newSegmentWriter(out *imageWriter) *segmentWriter {
	return &segmentWriter{out: out, numbers: map[group]uint32{}, lists: map[listHash]uint64{}}
}

// reserve makes room for the texts of a merge, so that no column grows. With a spool,
// the columns that postings do not need are in its file.
func (w *segmentWriter) reserve(list []*segment, sp *spool) {
	w.spool = sp
	texts, groups := 0, 0
	orders, named, object, lengths := 1, 1, 1, 1
	for _, s := range list {
		texts += int(s.textCount() - s.gone)
		groups += len(s.groups)
		orders, named = max(orders, s.orders.width), max(named, s.named.values.width)
		object, lengths = max(object, s.object.values.width), max(lengths, s.length.width)
	}
	w.orders.reserve(texts, orders, sp)
	w.named.values.reserve(texts, named, sp)
	w.object.values.reserve(texts, object, sp)
	w.first.reserve(texts+1, widthOf(uint64(texts)), sp)
	w.subject.reserve(texts, widthOf(uint64(texts)), sp)
	w.group = reservedColumn(texts, widthOf(uint64(groups)))
	w.length = reservedColumn(texts, lengths)
	w.texts.reserve(texts)
}

// addText adds a text behind the last one.
func (w *segmentWriter) addText(subject Subject, ref Ref, words uint32) {
	doc := w.length.countValues()
	isNew := doc == 0 || w.last != subject
	w.texts.add(isNew, doc == 0 || w.last.Order != subject.Order)
	if isNew {
		w.last = subject
		w.orders.appendValue(subject.Order)
		w.named.appendID(subject.ID)
		w.first.appendValue(uint64(doc))
	}
	g := group{graph: ref.Graph, predicate: ref.Predicate}
	number, ok := w.numbers[g]
	if !ok {
		number = uint32(len(w.groups))
		w.numbers[g] = number
		w.groups = append(w.groups, g)
	}
	w.subject.appendValue(uint64(w.orders.count - 1))
	w.group.appendValue(uint64(number))
	w.object.appendID(ref.Object)
	w.length.appendValue(uint64(words))
	w.groups[number].texts++
	w.groups[number].words += uint64(words)
}

// textStarts marks the first text of each subject, and of each order of subjects, in three bits for
// each text. Postings need nothing else of their subjects.
type textStarts struct {
	count            uint32
	subjects, orders starts
}

func (t *textStarts) reserve(texts int) {
	t.subjects.reserve(texts)
	t.orders.reserve(texts)
}

func (t *textStarts) add(subject, order bool) {
	t.subjects.add(t.count, subject)
	t.orders.add(t.count, order)
	t.count++
}

// sameSubject reports whether two texts are of one subject.
func (t *textStarts) sameSubject(a, b uint32) bool { return t.subjects.rank(a) == t.subjects.rank(b) }

// sameOrder reports whether the subjects of two texts have one order.
func (t *textStarts) sameOrder(a, b uint32) bool { return t.orders.rank(a) == t.orders.rank(b) }

// isOneOfSeveral reports whether the subject of a text has other texts.
func (t *textStarts) isOneOfSeveral(doc uint32) bool {
	return !t.subjects.has(doc) || doc+1 < t.count && !t.subjects.has(doc+1)
}

// starts is a set of texts with their ranks.
type starts struct {
	words  []uint64 // a bit for each text
	before []uint32 // how many are in the words before each
	count  uint32
}

func (s *starts) reserve(texts int) {
	s.words, s.before = make([]uint64, 0, texts/64+1), make([]uint32, 0, texts/64+1)
}

func (s *starts) add(doc uint32, in bool) {
	if doc%64 == 0 {
		s.words, s.before = append(s.words, 0), append(s.before, s.count)
	}
	if in {
		s.words[doc/64] |= 1 << (doc % 64)
		s.count++
	}
}

func (s *starts) has(doc uint32) bool { return s.words[doc/64]&(1<<(doc%64)) != 0 }

// rank returns how many texts up to a text, and with it, are in the set.
func (s *starts) rank(doc uint32) uint32 {
	return s.before[doc/64] + uint32(bits.OnesCount64(s.words[doc/64]<<(63-doc%64)))
}

// blockSize is how many texts a block of postings has. It has more if they are of one
// subject, so that no two blocks have subjects of the same order.
const blockSize = 64

// postingList gathers the postings of a term.
type postingList struct {
	inGroup []uint32 // texts by group
	touched []uint32 // groups with texts
	inBlock uint32   // texts of the last block
	last    uint32
	blocks  []byte // the entries of full blocks
	impacts []byte
	front   frontier // of the last block
	flags   blockFlags
	whole   frontier // of all blocks
	any     blockFlags
	data    []byte // of the postings, but for the part in the spool
	spooled int64
	header  []byte
}

// dataSize returns the bytes of the postings.
func (l *postingList) dataSize() int { return int(l.spooled) + len(l.data) }

// impact is how often a term is in a text, and how many words the text has.
type impact struct{ times, length uint32 }

// blockEntry is the size of a block's entry: its last text, where its postings end, and where
// its impacts end, with its flags.
const blockEntry = 12

// blockFlags tell of the subjects in a block: repeats means that one has the term in several
// texts, several that one has several texts, with the term or not.
type blockFlags struct{ repeats, several bool }

func (f blockFlags) bits() (n uint32) {
	if f.repeats {
		n |= 1
	}
	if f.several {
		n |= 2
	}
	return n
}

// maxImpacts bounds the impacts of a block.
const maxImpacts = 6

// addPosting adds a text with the term; the caller appends the positions to w.list.data.
func (w *segmentWriter) addPosting(doc, times uint32) {
	l := &w.list
	if w.spool != nil && len(l.data) >= spoolPiece {
		w.spoolPostings()
	}
	if l.inBlock >= blockSize && !w.texts.sameOrder(l.last, doc) {
		l.endBlock()
	}
	delta := doc - l.last
	if l.inBlock == 0 {
		delta = doc // a block begins anew
	}
	if times == 1 {
		l.data = binary.AppendUvarint(l.data, uint64(delta)<<1)
	} else {
		l.data = binary.AppendUvarint(l.data, uint64(delta)<<1|1)
		l.data = binary.AppendUvarint(l.data, uint64(times))
	}
	l.flags.repeats = l.flags.repeats || l.inBlock > 0 && w.texts.sameSubject(l.last, doc)
	l.flags.several = l.flags.several || w.texts.isOneOfSeveral(doc)
	l.inBlock, l.last = l.inBlock+1, doc
	l.front.addImpact(impact{times, uint32(w.length.valueAt(doc))})
	g := uint32(0)
	if len(w.groups) > 1 {
		g = uint32(w.group.valueAt(doc))
	}
	for len(l.inGroup) <= int(g) {
		l.inGroup = append(l.inGroup, 0)
	}
	if l.inGroup[g] == 0 {
		l.touched = append(l.touched, g)
	}
	l.inGroup[g]++
}

// frontier has the impacts that no other of some texts exceeds: none has the term more often in
// a text that is not longer. Past maxImpacts two become one that exceeds both.
type frontier []impact

func (f *frontier) addImpact(x impact) {
	for _, y := range *f {
		if y.times >= x.times && y.length <= x.length {
			return
		}
	}
	list := slices.DeleteFunc(*f, func(y impact) bool { return x.times >= y.times && x.length <= y.length })
	at, _ := slices.BinarySearchFunc(list, x, func(a, b impact) int { return cmp.Compare(a.times, b.times) })
	list = slices.Insert(list, at, x)
	if len(list) > maxImpacts {
		list[1].length = list[0].length // a longer text has the term more often
		list = slices.Delete(list, 0, 1)
	}
	*f = list
}

func (f frontier) appendTo(b []byte) []byte {
	for _, x := range f {
		b = binary.AppendUvarint(b, uint64(x.times))
		b = binary.AppendUvarint(b, uint64(x.length))
	}
	return b
}

func (l *postingList) endBlock() {
	for _, x := range l.front {
		l.whole.addImpact(x)
	}
	l.impacts = l.front.appendTo(l.impacts)
	l.blocks = binary.BigEndian.AppendUint32(l.blocks, l.last)
	l.blocks = binary.BigEndian.AppendUint32(l.blocks, uint32(l.dataSize()))
	l.blocks = binary.BigEndian.AppendUint32(l.blocks, uint32(len(l.impacts))<<2|l.flags.bits())
	l.any = blockFlags{l.any.repeats || l.flags.repeats, l.any.several || l.flags.several}
	l.front, l.inBlock, l.flags = l.front[:0], 0, blockFlags{}
}

// addTerm adds a term behind the last one, with the postings that were added since; none if
// there are no postings. A list of one block has no entries and no impacts.
func (w *segmentWriter) addTerm(term []byte) {
	l := &w.list
	if len(l.touched) == 0 {
		return
	}
	if len(l.blocks) > 0 {
		l.endBlock()
	}
	blocks := uint64(len(l.blocks) / blockEntry)
	slices.Sort(l.touched)
	l.header = binary.AppendUvarint(l.header[:0], uint64(len(l.touched))<<1|min(blocks, 1))
	for _, g := range l.touched {
		l.header = binary.AppendUvarint(l.header, uint64(g))
		l.header = binary.AppendUvarint(l.header, uint64(l.inGroup[g]))
		l.inGroup[g] = 0
	}
	if blocks == 0 {
		l.header = binary.AppendUvarint(l.header, uint64(l.dataSize()))
	} else {
		l.header = binary.AppendUvarint(l.header, blocks<<2|uint64(l.any.bits()))
		whole := l.whole.appendTo(nil)
		l.blocks = append(binary.AppendUvarint(l.blocks, uint64(len(whole))), whole...)
	}
	w.terms.addTerm(term, w.writePostings(term[0] != exactTerm))
	l.whole, l.any, l.flags = l.whole[:0], blockFlags{}, blockFlags{}
	l.touched, l.inBlock, l.last = l.touched[:0], 0, 0
	l.blocks, l.impacts, l.front, l.data, l.spooled = l.blocks[:0], l.impacts[:0], l.front[:0], l.data[:0], 0
}

// spoolPostings writes the postings of the term so far to the spool.
func (w *segmentWriter) spoolPostings() {
	l := &w.list
	w.hashPart(l.data)
	w.spool.writeAt(l.data, w.spool.size+l.spooled)
	l.spooled += int64(len(l.data))
	l.data = l.data[:0]
}

// listHash names a list of postings by its content.
type listHash [2]uint64

// minSharedList is the size of the smallest list whose place is remembered, which takes more than 40
// bytes. Lists of words in one text, such as numbers, are shorter.
const minSharedList = 20

// writePostings writes the list of postings and returns where it is. Most words are their stems:
// a list of a stem that is that of a word is not written again, unless it is short.
func (w *segmentWriter) writePostings(isStem bool) (at uint64) {
	l := &w.list
	at = w.out.size
	if l.dataSize()+len(l.header)+len(l.blocks)+len(l.impacts) >= minSharedList {
		hash := w.hashList()
		if at, ok := w.lists[hash]; ok && isStem {
			return at
		}
		if !isStem {
			w.lists[hash] = at
		}
	}
	w.out.appendPart(l.header)
	w.out.appendPart(l.blocks)
	w.out.appendPart(l.impacts)
	if l.spooled > 0 {
		w.spool.copyTo(w.out, w.spool.size, l.spooled)
	}
	w.out.appendPart(l.data)
	return at
}

// hashList returns the hash of the list.
func (w *segmentWriter) hashList() (hash listHash) {
	l := &w.list
	for _, part := range [][]byte{l.data, l.header, l.blocks, l.impacts} {
		w.hashPart(part)
	}
	for i := range w.hashes {
		hash[i] = w.hashes[i].Sum64()
		w.hashes[i].Reset()
	}
	return hash
}

func (w *segmentWriter) hashPart(part []byte) {
	for i := range w.hashes {
		_, _ = w.hashes[i].Write(part)
	}
}

// finishSegment ends the segment's file.
func (w *segmentWriter) finishSegment() error {
	out := w.out
	w.first.appendValue(uint64(w.length.countValues()))
	out.putNumber(segmentVersion)
	out.putNumber(out.size) // of the postings
	w.terms.writeTo(out)
	w.orders.writeTo(out)
	w.named.writeTo(out)
	w.first.writeTo(out)
	w.subject.writeTo(out)
	out.putColumn(w.group)
	w.object.writeTo(out)
	out.putColumn(w.length)
	out.putNumber(uint64(len(w.groups)))
	for _, g := range w.groups {
		out.putBytes(g.graph[:])
		out.putBytes(g.predicate[:])
		out.putNumber(g.texts)
		out.putNumber(g.words)
	}
	return out.sealImage()
}

// writeSegment returns a segment in memory.
func writeSegment(write func(w *segmentWriter)) *segment {
	var b bytes.Buffer
	w := newSegmentWriter(&imageWriter{out: &b})
	write(w)
	err := w.finishSegment()
	s, err2 := readSegment(b.Bytes())
	if err := errors.Join(err, err2); err != nil {
		panic(err) // it was written to memory a moment ago
	}
	return s
}

var errVersion = errors.New("file has another version")

// segmentVersion changes with the form of a segment's image.
const segmentVersion = 5

// readSegment returns the segment of an image, and shares its memory. The checksum is not
// compared.
func readSegment(image []byte) (*segment, error) {
	r, err := readImage(image)
	if err != nil {
		return nil, err
	}
	if r.readNumber() != segmentVersion {
		return nil, errVersion
	}
	s := &segment{image: image, withdrawn: map[groupTerm]uint32{}}
	s.postings = r.readBytes()
	s.terms = readDictionary(r)
	s.orders, s.named, s.first, s.subject = r.readColumn(), r.readIDs(), r.readColumn(), r.readColumn()
	s.group, s.object, s.length = r.readColumn(), r.readIDs(), r.readColumn()
	s.groups = make([]group, min(r.readNumber(), uint64(len(image))))
	for i := range s.groups {
		g := &s.groups[i]
		copy(g.graph[:], r.readBytes())
		copy(g.predicate[:], r.readBytes())
		g.texts, g.words = r.readNumber(), r.readNumber()
	}
	if r.bad {
		return nil, sealed.ErrDamaged
	}
	s.removed = make([]uint64, (s.textCount()+63)/64)
	return s, nil
}
