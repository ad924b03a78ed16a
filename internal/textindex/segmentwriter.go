package textindex

import (
	"errors"

	"koine/internal/sealed"
	"koine/kg"
)

// segmentWriter gathers the columns of a segment.
type segmentWriter struct {
	subjects                      []Subject
	first, subject, group, length []uint32
	objects                       []kg.ID
	groups                        []group
	numbers                       map[group]uint32 // of groups, by graph and predicate
	terms                         dictionaryWriter
	postings                      []byte
}

func newSegmentWriter(texts int) *segmentWriter {
	return &segmentWriter{
		subject: make([]uint32, 0, texts), group: make([]uint32, 0, texts),
		length: make([]uint32, 0, texts), objects: make([]kg.ID, 0, texts),
		numbers: map[group]uint32{},
	}
}

// addText adds a text behind the last one, and returns the number of its group.
func (w *segmentWriter) addText(subject Subject, ref Ref, words uint32) (number uint32) {
	if n := len(w.subjects); n == 0 || w.subjects[n-1] != subject {
		w.subjects, w.first = append(w.subjects, subject), append(w.first, uint32(len(w.length)))
	}
	g := group{graph: ref.Graph, predicate: ref.Predicate}
	number, ok := w.numbers[g]
	if !ok {
		number = uint32(len(w.groups))
		w.numbers[g] = number
		w.groups = append(w.groups, g)
	}
	w.subject = append(w.subject, uint32(len(w.subjects)-1))
	w.group = append(w.group, number)
	w.objects, w.length = append(w.objects, ref.Object), append(w.length, words)
	w.groups[number].texts++
	w.groups[number].words += uint64(words)
	return number
}

// addTerm adds a term behind the last one.
func (w *segmentWriter) addTerm(term string, l *postingList) {
	w.terms.addTerm(term, uint64(len(w.postings)))
	w.postings = l.appendTo(w.postings)
}

// finishSegment returns the segment of the added texts and terms.
func (w *segmentWriter) finishSegment() *segment {
	orders, named := make([]uint64, len(w.subjects)), make([]kg.ID, len(w.subjects))
	for i, s := range w.subjects {
		orders[i], named[i] = s.Order, s.ID
	}
	var out imageWriter
	out.putNumber(segmentVersion)
	out.putColumn(newColumn(orders))
	out.putIDs(newIDs(named))
	out.putColumn(newColumn(append(w.first, uint32(len(w.length)))))
	out.putColumn(newColumn(w.subject))
	out.putColumn(newColumn(w.group))
	out.putIDs(newIDs(w.objects))
	out.putColumn(newColumn(w.length))
	out.putNumber(uint64(len(w.groups)))
	for _, g := range w.groups {
		out.putBytes(g.graph[:])
		out.putBytes(g.predicate[:])
		out.putNumber(g.texts)
		out.putNumber(g.words)
	}
	w.terms.writeTo(&out, uint64(len(w.postings)))
	out.putBytes(w.postings)
	s, err := openSegment(out.sealImage())
	if err != nil {
		panic(err) // it was written a moment ago
	}
	return s
}

var errVersion = errors.New("file has another version")

// segmentVersion changes with the form of a segment's image.
const segmentVersion = 1

// openSegment returns the segment of an image, and shares its memory.
func openSegment(image []byte) (*segment, error) {
	r, err := openImage(image)
	if err != nil {
		return nil, err
	}
	if r.readNumber() != segmentVersion {
		return nil, errVersion
	}
	s := &segment{image: image, withdrawn: map[groupTerm]uint32{}}
	s.orders, s.named, s.first, s.subject = r.readColumn(), r.readIDs(), r.readColumn(), r.readColumn()
	s.group, s.object, s.length = r.readColumn(), r.readIDs(), r.readColumn()
	s.groups = make([]group, min(r.readNumber(), uint64(len(image))))
	for i := range s.groups {
		g := &s.groups[i]
		copy(g.graph[:], r.readBytes())
		copy(g.predicate[:], r.readBytes())
		g.texts, g.words = r.readNumber(), r.readNumber()
	}
	s.terms = readDictionary(r)
	if s.postings = r.readBytes(); r.bad {
		return nil, sealed.ErrDamaged
	}
	s.removed = make([]uint64, (s.textCount()+63)/64)
	return s, nil
}
