package textindex

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"koine/internal/textindex/words"
	"koine/kg"
)

// The bounds of the texts that are gathered before they become a segment: texts, and places
// of terms in them.
const (
	maxPendingTexts  = 1 << 15
	maxPendingPlaces = 1 << 20
)

// builder gathers texts that are in no segment yet. It keeps the places of their terms, and
// not the texts.
type builder struct {
	docs    map[key]uint32
	keys    []key    // of each text
	lengths []uint32 // words
	ends    []uint32 // where the places of each text end
	dropped []bool
	places  []place

	terms   []string
	numbers map[string]uint32 // of terms
	// known has the numbers of words as they are spelled.
	known map[string]uint32
	words []spelledWord
	found []place // of the words of one text, with numbers of words
}

// place is where a term is in a text.
type place struct{ term, position uint32 }

// spelledWord is a word with the numbers of its terms: none for no term, unknown for one that
// no text has needed.
type spelledWord struct {
	lower string
	marks words.Marks
	exact uint32
	stems [words.Languages]uint32
}

const (
	none    = ^uint32(0)
	unknown = none - 1
)

func newBuilder() *builder {
	return &builder{docs: map[key]uint32{}, numbers: map[string]uint32{}, known: map[string]uint32{}}
}

// startAnew returns an empty builder with the room of b, which must not be used any more. Its words
// are forgotten: most words of texts are rare, such as numbers and names.
func (b *builder) startAnew() *builder {
	clear(b.docs)
	clear(b.numbers)
	clear(b.known)
	clear(b.terms)
	clear(b.words)
	return &builder{
		docs: b.docs, keys: b.keys[:0], lengths: b.lengths[:0], ends: b.ends[:0], dropped: b.dropped[:0], places: b.places[:0],
		terms: b.terms[:0], numbers: b.numbers, known: b.known, words: b.words[:0], found: b.found[:0],
	}
}

// isFull reports whether the texts are enough for a segment.
func (b *builder) isFull() bool {
	return len(b.keys) >= maxPendingTexts || len(b.places) >= maxPendingPlaces
}

// addText adds a text, unless one with the same subject and Ref is there.
func (b *builder) addText(t *Text) {
	k := key{t.Subject, t.Ref}
	if _, ok := b.docs[k]; ok {
		return
	}
	b.docs[k] = uint32(len(b.keys))
	b.found = b.found[:0]
	var detector words.Detector
	for at := range words.Spans(t.Value) {
		if len(b.found) == MaxTextWords {
			break
		}
		n := b.wordAt(t.Value, at)
		if b.words[n].exact == none {
			continue
		}
		b.found = append(b.found, place{n, uint32(at.Position)})
		detector.AddWord(b.words[n].marks)
	}
	language := t.Language
	if language == words.Untagged {
		language = detector.UntaggedLanguage()
	}
	for _, p := range b.found {
		b.places = append(b.places, place{b.words[p.term].exact, p.position})
		if stem := b.stemOf(p.term, language); stem != none {
			b.places = append(b.places, place{stem, p.position})
		}
	}
	b.keys, b.lengths, b.dropped = append(b.keys, k), append(b.lengths, uint32(len(b.found))), append(b.dropped, false)
	b.ends = append(b.ends, uint32(len(b.places)))
}

// wordAt returns the number of a word of a text.
func (b *builder) wordAt(text string, at words.Span) uint32 {
	spelled := text[at.Start:at.End]
	n, ok := b.known[spelled]
	if ok {
		return n
	}
	spelled = strings.Clone(spelled) // the parts of it that are kept do not keep the text
	w := words.Span{End: len(spelled), Position: at.Position}.WordIn(spelled)
	of := spelledWord{lower: w.Lower, marks: words.MarksOf(w.Folded), exact: none}
	for l := range of.stems {
		of.stems[l] = unknown
	}
	if w.Folded != "" {
		of.exact = b.numberOf(exactKey(w.Folded))
	}
	n = uint32(len(b.words))
	b.words = append(b.words, of)
	b.known[spelled] = n
	return n
}

// stemOf returns the term of a word's stem.
func (b *builder) stemOf(n uint32, l words.Language) uint32 {
	w := &b.words[n]
	if w.stems[l] == unknown {
		w.stems[l] = none
		if l != words.Other && w.lower != "" {
			w.stems[l] = b.numberOf(stemKey(l, l.Stem(w.lower)))
		}
	}
	return w.stems[l]
}

func (b *builder) numberOf(term string) uint32 {
	n, ok := b.numbers[term]
	if !ok {
		n = uint32(len(b.terms))
		b.numbers[term] = n
		b.terms = append(b.terms, term)
	}
	return n
}

// dropText takes a text out, and reports whether it was there.
func (b *builder) dropText(k key) bool {
	doc, ok := b.docs[k]
	if ok {
		delete(b.docs, k)
		b.dropped[doc] = true
	}
	return ok
}

// dropGraph takes the texts of a graph out.
func (b *builder) dropGraph(graph kg.ID) {
	for k := range b.docs {
		if k.ref.Graph == graph {
			b.dropText(k)
		}
	}
}

// placesOf returns the places of a text's terms.
func (b *builder) placesOf(doc uint32) []place {
	if doc == 0 {
		return b.places[:b.ends[0]]
	}
	return b.places[b.ends[doc-1]:b.ends[doc]]
}

// buildSegment makes a segment of the texts.
func (b *builder) buildSegment() *segment {
	return writeSegment(func(w *segmentWriter) {
		order := b.sortTexts()
		for _, doc := range order {
			w.addText(b.keys[doc].subject, b.keys[doc].ref, b.lengths[doc])
		}
		// The places by term: first how many each has, then where those of each begin.
		begin := make([]uint32, len(b.terms)+1)
		for _, doc := range order {
			for _, p := range b.placesOf(doc) {
				begin[p.term+1]++
			}
		}
		for i := range b.terms {
			begin[i+1] += begin[i]
		}
		sorted := make([]docPlace, begin[len(b.terms)])
		next := slices.Clone(begin)
		for i, doc := range order {
			for _, p := range b.placesOf(doc) {
				sorted[next[p.term]] = docPlace{uint32(i), p.position}
				next[p.term]++
			}
		}
		for _, n := range b.sortTerms() {
			w.addPlaces(sorted[begin[n]:begin[n+1]])
			w.addTerm([]byte(b.terms[n]))
		}
	})
}

// docPlace is where a term is: a text, and the position in it.
type docPlace struct{ doc, position uint32 }

// addPlaces adds the postings of a term.
func (w *segmentWriter) addPlaces(list []docPlace) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].doc == list[0].doc {
			n++
		}
		w.addPosting(list[0].doc, uint32(n))
		before := uint32(0)
		for _, p := range list[:n] {
			w.list.data = binary.AppendUvarint(w.list.data, uint64(p.position-before))
			before = p.position
		}
		list = list[n:]
	}
}

// sortTexts returns the numbers of the texts in the order of a segment.
func (b *builder) sortTexts() []uint32 {
	order := make([]uint32, 0, len(b.docs))
	for doc := range b.keys {
		if !b.dropped[doc] {
			order = append(order, uint32(doc))
		}
	}
	slices.SortFunc(order, func(i, j uint32) int { return b.keys[i].compareTo(&b.keys[j]) })
	return order
}

// sortTerms returns the numbers of the terms in the order of a dictionary.
func (b *builder) sortTerms() []uint32 {
	order := make([]uint32, len(b.terms))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(i, j uint32) int { return cmp.Compare(b.terms[i], b.terms[j]) })
	return order
}

// compareTo orders texts as they are in a segment.
func (k *key) compareTo(o *key) int {
	if c := cmp.Compare(k.subject.Order, o.subject.Order); c != 0 {
		return c
	}
	if c := bytes.Compare(k.subject.ID[:], o.subject.ID[:]); c != 0 {
		return c
	}
	return compareRefs(k.ref, o.ref)
}
