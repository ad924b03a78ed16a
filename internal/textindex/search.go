package textindex

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"koine/internal/textindex/words"
	"koine/kg"
)

// The parameters of BM25, and the weights of a word's forms beside the word itself.
const (
	k1 = 1.2
	b  = 0.75

	stemWeight   = 0.9
	prefixWeight = 0.8
	typoWeight   = 0.6 // for each letter that differs

	// functionWeight is the weight of the function words of a query ("the", "how").
	functionWeight = 0.1
	// againWeight is the weight of a word in a second text of the subject.
	againWeight = 0.3
)

// MaxForms bounds the terms that a prefix or a misspelt word stands for.
const MaxForms = 64

// MaxBeginnings bounds the words that a beginning stands for in a request that is AsSpelt.
const MaxBeginnings = 4096

// Request is a search under the rights of a caller.
type Request struct {
	Query *Query
	// Readable reports whether the caller may read the statements with a predicate in a graph.
	// Texts of others count nowhere.
	Readable func(graph, predicate kg.ID) bool
	// Shown reports whether a text of a readable statement is shown in the caller's view; nil
	// shows all. It is called for texts that may be among the hits.
	Shown func(subject kg.ID, text Ref) (bool, error)
	// Filter chooses among the texts that are shown. It changes no score of a text.
	Filter Filter
	First  int
	// After is the last hit of the page before.
	After *Place
	// AsSpelt means that misspelt words stand for none, and beginnings for up to MaxBeginnings
	// words.
	AsSpelt bool
	// Statistics, if it is set, has the statistics of an earlier page, or none: then it gets
	// those of this search.
	Statistics *Statistics
}

// Statistics are the numbers that scores follow from, besides the texts of a hit. With the
// statistics of an earlier page, a text scores the same although others came and went.
type Statistics struct {
	Average float64          // words of a text
	Words   []WordStatistics // in the order of the query
}

// WordStatistics are those of a word of a query.
type WordStatistics struct {
	IDF float64
	// Misspelt means that no text has the word, and that it stands for similar ones.
	Misspelt bool
}

// Filter chooses among the texts and subjects that a caller sees. A nil function admits all.
// Unwanted words are looked for in the other texts too.
type Filter struct {
	// Group reports whether the texts of a predicate in a graph are searched. It is called
	// once for each.
	Group func(graph, predicate kg.ID) bool
	// Text reports whether a text that is shown is searched.
	Text func(subject kg.ID, text Ref) (bool, error)
	// Subject reports whether a subject may be a hit. It is called last, for subjects with
	// texts that make a hit.
	Subject func(subject kg.ID) (bool, error)
}

// Place is the place of a hit in the order of a search.
type Place struct {
	Score   float64
	Subject Subject
}

// ComesBefore reports whether p comes before o: the higher score first.
func (p Place) ComesBefore(o Place) bool {
	if p.Score != o.Score {
		return p.Score > o.Score
	}
	return p.Subject.compareTo(o.Subject) < 0
}

// Hit is a subject that has words of the query.
type Hit struct {
	Place
	Texts []Match // the best first
}

// Match is a text with words of the query.
type Match struct {
	Ref   Ref
	Score float64
}

// searchSegments finds the first hits of a request in segments.
func searchSegments(ctx context.Context, list []*segment, r *Request) ([]Hit, error) {
	s := &searcher{ctx: ctx, request: r}
	s.openParts(list)
	s.openQuery()
	return s.findHits()
}

// openQuery opens the words of the query.
func (s *searcher) openQuery() {
	st := s.request.Statistics
	fill := st != nil && st.Words == nil
	if fill {
		st.Average = s.average
	}
	for _, w := range s.request.Query.words {
		c := s.openWord(w, func(p *part) []bool { return p.searched })
		if s.words = append(s.words, c); fill {
			st.Words = append(st.Words, WordStatistics{c.idf, c.misspelt})
		}
	}
	for _, list := range s.request.Query.without {
		var all []*wordCursor
		for _, w := range list {
			all = append(all, s.openWord(w, func(p *part) []bool { return p.readable }))
		}
		s.without = append(s.without, all)
	}
	slices.SortStableFunc(s.words, func(a, b *wordCursor) int { return cmp.Compare(a.most, b.most) })
}

// searcher is a search under way.
type searcher struct {
	ctx     context.Context
	request *Request
	known   map[queryWord][]form // of a Finding
	pinned  map[queryWord]WordStatistics
	parts   []*part
	large   *segment // gives ranks by its numbers; nil for ranks by order
	texts   uint64   // that the caller may read
	average float64  // words of a text
	words   []*wordCursor
	without [][]*wordCursor
	hits    hitHeap
	// byBound and byWindow are the words in the order of their bounds, the least first.
	byBound, byWindow []*wordCursor
}

// part is a segment with the groups of it that the caller may read, and those that the filter
// admits among them.
type part struct {
	*segment
	readable, searched []bool
	all                bool     // all texts are searched, and none was removed
	single             bool     // each subject has one text
	large              *segment // gives ranks by its numbers; nil for ranks by order
}

func (s *searcher) openParts(list []*segment) {
	type decision struct{ readable, searched bool }
	known := map[[2]kg.ID]decision{}
	filter := s.request.Filter.Group
	var total uint64
	for _, from := range list {
		p := &part{segment: from, readable: make([]bool, len(from.groups)), searched: make([]bool, len(from.groups))}
		for i, g := range from.groups {
			d, ok := known[[2]kg.ID{g.graph, g.predicate}]
			if !ok {
				d.readable = s.request.Readable(g.graph, g.predicate)
				d.searched = d.readable && (filter == nil || filter(g.graph, g.predicate))
				known[[2]kg.ID{g.graph, g.predicate}] = d
			}
			p.readable[i], p.searched[i] = d.readable, d.searched
			if d.readable {
				s.texts += g.texts
				total += g.words
			}
		}
		p.all = !slices.Contains(p.searched, false) && from.gone == 0
		p.single = from.subjectCount() == from.textCount()
		s.parts = append(s.parts, p)
	}
	s.openRanks()
	s.average = max(float64(total)/max(float64(s.texts), 1), 1)
	if st := s.request.Statistics; st != nil && st.Words != nil {
		s.average, s.pinned = st.Average, map[queryWord]WordStatistics{}
		for i, w := range s.request.Query.words {
			s.pinned[w] = st.Words[i]
		}
	}
}

// textsWith returns how many readable texts have a term.
func (s *searcher) textsWith(term string) (n uint64) {
	for _, p := range s.parts {
		if number, ok := p.terms.findTerm(term); ok {
			p.textsWith(number, func(group uint32, texts uint64) {
				if p.readable[group] {
					n += texts
				}
			})
		}
	}
	return n
}

// hasTermIn reports whether a text of one of the groups has a term.
func (p *part) hasTermIn(groups []bool, term uint32) (found bool) {
	p.textsWith(term, func(group uint32, _ uint64) { found = found || groups[group] })
	return found
}

// form is a term that stands for a word of the query.
type form struct {
	term   string
	weight float64
	texts  uint64
}

// formsOf returns the terms of readable texts that a word stands for.
func (s *searcher) formsOf(w queryWord) (out []form) {
	if s.known != nil {
		return s.known[w]
	}
	add := func(term string, weight float64) uint64 {
		n := s.textsWith(term)
		if n > 0 {
			out = append(out, form{term, weight, n})
		}
		return n
	}
	add(exactKey(w.folded), 1)
	if w.lower != "" {
		for l := words.English; l <= words.Spanish; l++ {
			add(stemKey(l, l.Stem(w.lower)), stemWeight)
		}
	}
	if w.prefix {
		s.eachTerm(exactKey(w.folded), func(term string) bool {
			if term != exactKey(w.folded) {
				add(term, prefixWeight)
			}
			return len(out) < MaxForms || s.request.AsSpelt && len(out) <= MaxBeginnings
		})
	}
	misspelt := len(out) == 0 && !s.request.AsSpelt
	if st, ok := s.pinned[w]; ok {
		misspelt = st.Misspelt
	}
	if most := maxTypos(w.folded); misspelt && most > 0 && w.lower != "" {
		misspelt := func(prefix, word string, weight float64) {
			s.eachTerm(prefix, func(term string) bool {
				if n := editDistance(word, term[len(prefix):], most); n <= most {
					add(term, weight*math.Pow(typoWeight, float64(n)))
				}
				return len(out) < MaxForms
			})
		}
		misspelt(exactKey(""), w.folded, 1)
		for l := words.English; l <= words.Spanish; l++ {
			misspelt(stemKey(l, ""), l.Stem(w.lower), stemWeight)
		}
	}
	return out
}

// maxTypos is how many letters of a word may be wrong.
func maxTypos(word string) int {
	switch n := len(word); {
	case n >= 8:
		return 2
	case n >= 4:
		return 1
	}
	return 0
}

// eachTerm calls f with the terms that begin with a prefix, in order and each once, until it
// returns false.
func (s *searcher) eachTerm(prefix string, f func(term string) bool) {
	lists := make([][]string, 0, len(s.parts))
	for _, p := range s.parts {
		lists = append(lists, slices.Collect(p.terms.startingWith(prefix)))
	}
	for {
		next, found := "", false
		for _, list := range lists {
			if len(list) > 0 && (!found || list[0] < next) {
				next, found = list[0], true
			}
		}
		if !found || !f(next) {
			return
		}
		for i, list := range lists {
			if len(list) > 0 && list[0] == next {
				lists[i] = list[1:]
			}
		}
	}
}

// openWord returns a cursor over the subjects with a word in texts of some groups.
func (s *searcher) openWord(w queryWord, groups func(*part) []bool) *wordCursor {
	c := &wordCursor{}
	var exactly, stems, others uint64
	for _, f := range s.formsOf(w) {
		c.misspelt = c.misspelt || !w.standsFor(f.term)
		switch {
		case f.term == exactKey(w.folded):
			exactly = f.texts
		case f.term[0] != exactTerm:
			stems += f.texts
		default:
			others += f.texts
		}
		c.most = max(c.most, f.weight)
		for _, p := range s.parts {
			if n, ok := p.terms.findTerm(f.term); ok && p.hasTermIn(groups(p), n) {
				if slices.ContainsFunc(c.cursors, func(o formCursor) bool { return o.part == p && o.weight >= f.weight && o.isList(p.segment, n) }) {
					continue // of a word that is its stem
				}
				c.cursors = append(c.cursors, formCursor{postings: p.openPostings(n), part: p, weight: f.weight})
				c.cursors[len(c.cursors)-1].loadBlock(0)
			}
		}
	}
	n := float64(min(max(exactly, stems)+others, s.texts))
	if st, ok := s.pinned[w]; ok {
		c.idf, c.misspelt = st.IDF, st.Misspelt
	} else {
		c.idf = math.Log(1 + (float64(s.texts)-n+0.5)/(n+0.5))
		if w.function {
			c.idf *= functionWeight
		}
	}
	c.most *= c.idf * (k1 + 1) * (1 + againWeight)
	return c
}

// textAt is a text of a subject under evaluation.
type textAt struct {
	part *part
	doc  uint32
}

// evaluateSubject returns the hit of a subject, or nil if it is none of the first.
func (s *searcher) evaluateSubject(at *spot) (*Hit, error) {
	subject := at.subject()
	for _, w := range s.words {
		w.seekSubject(at)
		w.best = s.bestOf(w, at)
	}
	if !s.isWanted(Place{s.sumOfBest(), subject}) {
		return nil, nil
	}
	scores := map[textAt][]float64{} // for each word
	for i, w := range s.words {
		s.eachScore(w, at, func(at textAt, score float64) {
			if scores[at] == nil {
				scores[at] = make([]float64, len(s.words))
			}
			scores[at][i] = max(scores[at][i], score)
		})
	}
	if unwanted, err := s.hasUnwanted(at); err != nil || unwanted {
		return nil, err
	}
	hit := &Hit{Place: Place{Subject: subject}}
	sums := make([]wordSum, len(s.words))
	for key, list := range scores {
		ref := key.part.refAt(key.doc)
		if searched, err := s.isSearched(subject, ref); err != nil {
			return nil, err
		} else if !searched {
			delete(scores, key)
			continue
		}
		sum := 0.0
		for i, score := range list {
			sum += score
			sums[i].addText(ref.Object, score)
		}
		hit.Texts = append(hit.Texts, Match{ref, sum})
	}
	for _, sum := range sums {
		hit.Score += sum.best + againWeight*sum.again
	}
	if len(hit.Texts) == 0 || !s.hasPhrases(scores) || !s.isWanted(hit.Place) || s.request.After != nil && !s.request.After.ComesBefore(hit.Place) {
		return nil, nil
	}
	if accepts := s.request.Filter.Subject; accepts != nil {
		if ok, err := accepts(subject.ID); err != nil || !ok {
			return nil, err
		}
	}
	slices.SortFunc(hit.Texts, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), compareRefs(a.Ref, b.Ref))
	})
	return hit, nil
}

// wordSum adds up the scores of a subject's texts for a word. The same text counts once, however
// many statements have it.
type wordSum struct {
	best, again float64 // again is the best of another text
	object      kg.ID   // the text with the best score
}

func (s *wordSum) addText(object kg.ID, score float64) {
	switch {
	case object == s.object:
		s.best = max(s.best, score)
	case score > s.best:
		s.again, s.best, s.object = s.best, score, object
	default:
		s.again = max(s.again, score)
	}
}

func compareRefs(a, b Ref) int {
	return cmp.Or(bytes.Compare(a.Predicate[:], b.Predicate[:]), bytes.Compare(a.Object[:], b.Object[:]), bytes.Compare(a.Graph[:], b.Graph[:]))
}

// isWanted reports whether a place is before the last of the first hits.
func (s *searcher) isWanted(p Place) bool {
	return p.Score > 0 && (len(s.hits) < s.request.First || p.ComesBefore(s.hits[0].Place))
}

// eachScore calls f with the scores for the word of the texts of a subject, at which the
// word's cursors are. A text with several forms of it comes several times.
func (s *searcher) eachScore(w *wordCursor, subject *spot, f func(at textAt, score float64)) {
	for j := range w.cursors {
		form := &w.cursors[j]
		if !form.isAt(subject) {
			continue
		}
		for i, end := form.i, form.textsEnd(); i < end; i++ {
			if doc := form.docs[i]; form.isSearchedAt(doc) {
				f(textAt{form.part, doc}, s.scoreOf(w, form.weight, form.times[i], uint32(form.s.length.valueAt(doc))))
			}
		}
	}
}

func (s *searcher) isShown(subject Subject, text Ref) (bool, error) {
	if s.request.Shown == nil {
		return true, nil
	}
	return s.request.Shown(subject.ID, text)
}

// isSearched reports whether a text is shown, and the filter admits it.
func (s *searcher) isSearched(subject Subject, text Ref) (bool, error) {
	shown, err := s.isShown(subject, text)
	if admits := s.request.Filter.Text; shown && err == nil && admits != nil {
		return admits(subject.ID, text)
	}
	return shown, err
}

// hasUnwanted reports whether a text of a subject that the caller sees has a word, or all
// words of a phrase in order, that is not wanted.
func (s *searcher) hasUnwanted(subject *spot) (bool, error) {
	for i, list := range s.without {
		list[0].seekSubject(subject)
		for j := range list[0].cursors {
			f := &list[0].cursors[j]
			if !f.isAt(subject) {
				continue
			}
			for _, doc := range f.docs[f.i:f.textsEnd()] {
				if f.s.isRemoved(doc) || !f.part.readable[f.s.groupOf(doc)] {
					continue
				}
				if phrase := foldedWords(s.request.Query.without[i]); len(phrase) > 1 && !(textAt{f.part, doc}).hasPhrase(phrase) {
					continue
				}
				if shown, err := s.isShown(subject.subject(), f.s.refAt(doc)); err != nil || shown {
					return shown, err
				}
			}
		}
	}
	return false, nil
}

// hasPhrases reports whether each phrase is in one of the texts.
func (s *searcher) hasPhrases(texts map[textAt][]float64) bool {
	for _, phrase := range s.request.Query.phrases {
		found := false
		for at := range texts {
			found = found || at.hasPhrase(phrase)
		}
		if !found {
			return false
		}
	}
	return true
}

func (at textAt) hasPhrase(phrase []string) bool {
	var starts []int
	for i, word := range phrase {
		n, ok := at.part.terms.findTerm(exactKey(word))
		if !ok {
			return false
		}
		c := newCursor(at.part.segment, n)
		if c.seekText(at.doc); c.done || c.doc != at.doc {
			return false
		}
		places := c.readPositions(nil)
		if i == 0 {
			starts = places
			continue
		}
		starts = slices.DeleteFunc(starts, func(p int) bool { _, ok := slices.BinarySearch(places, p+i); return !ok })
	}
	return len(starts) > 0
}

// hitHeap has the worst of the hits first.
type hitHeap []Hit

func (h hitHeap) Len() int           { return len(h) }
func (h hitHeap) Less(i, j int) bool { return h[j].ComesBefore(h[i].Place) }
func (h hitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *hitHeap) Push(x any)        { *h = append(*h, x.(Hit)) }
func (h *hitHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// editDistance returns how many letters differ between two words: by another, a missing, an
// additional one, or two that changed places. Past most it returns more than most.
func editDistance(a, b string, most int) int {
	if len(a)-len(b) > most*4 || len(b)-len(a) > most*4 {
		return most + 1
	}
	r, t := []rune(a), []rune(b)
	if len(r)-len(t) > most || len(t)-len(r) > most {
		return most + 1
	}
	two, one, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(r); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if r[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && r[i-1] == t[j-2] && r[i-2] == t[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > most {
			return most + 1
		}
		two, one, row = one, row, two
	}
	return one[len(t)]
}
