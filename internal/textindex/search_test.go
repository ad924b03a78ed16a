package textindex

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/internal/textindex/words"
	"koine/kg"
)

func id(tag byte, n int) (out kg.ID) {
	out[0], out[7], out[8] = tag, byte(n>>8), byte(n)
	return out
}

// vocabulary has words with common stems, beginnings and spellings.
var vocabulary = strings.Fields("cell cells dry dried drying water waters crystal crystals capacity run runs running zelle zellen größe grosse a the of capacitys")

func randomText(random *rand.Rand, subjects, graphs int) Text {
	n := random.IntN(subjects)
	var list []string
	for range 1 + random.IntN(8) {
		list = append(list, vocabulary[random.IntN(len(vocabulary))])
	}
	return Text{
		Subject:  Subject{Order: uint64(n * 7919 % 101), ID: id(2, n)},
		Ref:      Ref{Graph: id(2, 1000+random.IntN(graphs)), Predicate: id(2, 2000+random.IntN(2)), Object: id(4, random.IntN(50))},
		Language: words.Language(random.IntN(3)),
		Value:    strings.Join(list, " "),
	}
}

// world is an index and a copy of its texts.
type world struct {
	index *Index
	texts map[key]Text
}

// change adds and removes texts. small makes many segments of few texts.
func (w *world) change(random *rand.Rand, n int) {
	for range n {
		if random.IntN(4) == 0 && len(w.texts) > 0 {
			keys := make([]key, 0, len(w.texts))
			for k := range w.texts {
				keys = append(keys, k)
			}
			slices.SortFunc(keys, func(a, b key) int {
				return cmp.Or(a.subject.compareTo(b.subject), compareRefs(a.ref, b.ref))
			})
			k := keys[random.IntN(len(keys))]
			if !w.index.Remove(w.texts[k]) {
				panic("a text is not there")
			}
			delete(w.texts, k)
			continue
		}
		if random.IntN(200) == 0 {
			graph := id(2, 1000+random.IntN(4))
			w.index.RemoveGraph(graph)
			maps.DeleteFunc(w.texts, func(k key, _ Text) bool { return k.ref.Graph == graph })
		}
		t := randomText(random, 30, 4)
		k := key{t.Subject, t.Ref}
		if before, ok := w.texts[k]; ok {
			t = before // an index ignores a text that it has
		}
		w.texts[k] = t
		w.index.Add(t)
		if random.IntN(12) == 0 { // as if there were many
			w.index.flushPending()
			if random.IntN(3) == 0 && len(w.index.segments) > 2 {
				w.index.segments = append(w.index.segments[:1:1], writeSegment(func(to *segmentWriter) { mergeInto(to, w.index.segments[1:], nil) }))
			}
		}
	}
}

var queries = []string{"cell", "drying water", `"the cell"`, "cells -water", "cap*", "capasity", "größe zellen", `water "of crystal"`, "run running runs a the", `cell -"dry water"`, "xylophone", "capacitx* dry"}

// plain searches texts one by one, in the way that the documentation says.
func plain(texts map[key]Text, r *Request) (hits []Hit) {
	type seen struct {
		exact map[string][]int
		terms map[string]int
		n     int
	}
	var total, count float64
	read := map[key]seen{}
	with := map[string]float64{}
	for k, t := range texts {
		if !r.Readable(t.Ref.Graph, t.Ref.Predicate) {
			continue
		}
		s := seen{exact: map[string][]int{}, terms: map[string]int{}}
		for w := range words.Split(t.Value) {
			s.n++
			s.exact[w.Folded] = append(s.exact[w.Folded], w.Position)
			s.terms[exactKey(w.Folded)]++
			if t.Language != words.Other {
				s.terms[stemKey(t.Language, t.Language.Stem(w.Lower))]++
			}
		}
		for term := range s.terms {
			with[term]++
		}
		read[k] = s
		count++
		total += float64(s.n)
	}
	average := max(total/max(count, 1), 1)
	formsOf := func(w queryWord) map[string]float64 {
		out := map[string]float64{}
		note := func(term string, weight float64) {
			if with[term] > 0 {
				out[term] = max(out[term], weight)
			}
		}
		note(exactKey(w.folded), 1)
		for l := words.English; l <= words.Spanish; l++ {
			note(stemKey(l, l.Stem(w.lower)), stemWeight)
		}
		for term := range with {
			if w.prefix && term[0] == exactTerm && term != exactKey(w.folded) && strings.HasPrefix(term, exactKey(w.folded)) {
				note(term, prefixWeight)
			}
		}
		if most := maxTypos(w.folded); len(out) == 0 && most > 0 {
			for term := range with {
				word, weight := w.folded, 1.0
				if term[0] != exactTerm {
					word, weight = words.Language(term[0]-stemTerm).Stem(w.lower), stemWeight
				}
				if n := editDistance(word, term[1:], most); n <= most {
					note(term, weight*math.Pow(typoWeight, float64(n)))
				}
			}
		}
		return out
	}
	hasPhrase := func(s seen, phrase []string) bool {
		for _, p := range s.exact[phrase[0]] {
			all := true
			for i, w := range phrase {
				all = all && slices.Contains(s.exact[w], p+i)
			}
			if all {
				return true
			}
		}
		return false
	}
	bySubject := map[Subject]*Hit{}
	bestOf := map[Subject][]map[kg.ID]float64{} // by word and object
	phrases := map[Subject]map[int]bool{}
	bad := map[Subject]bool{}
	for k, s := range read {
		sum := 0.0
		for i, w := range r.Query.words {
			var exactly, stems, others, score float64
			for term, weight := range formsOf(w) {
				switch {
				case term == exactKey(w.folded):
					exactly = with[term]
				case term[0] != exactTerm:
					stems += with[term]
				default:
					others += with[term]
				}
				tf := float64(s.terms[term])
				score = max(score, weight*tf*(k1+1)/(tf+k1*(1-b+b*float64(s.n)/average)))
			}
			n := min(max(exactly, stems)+others, count)
			score *= math.Log(1 + (count-n+0.5)/(n+0.5))
			if w.function {
				score *= functionWeight
			}
			if bestOf[k.subject] == nil {
				bestOf[k.subject] = make([]map[kg.ID]float64, len(r.Query.words))
			}
			if score > 0 && r.Shown != nil {
				if shown, _ := r.Shown(k.subject.ID, k.ref); !shown {
					score = 0
				}
			}
			if o := bestOf[k.subject][i]; o != nil {
				o[k.ref.Object] = max(o[k.ref.Object], score)
			} else {
				bestOf[k.subject][i] = map[kg.ID]float64{k.ref.Object: score}
			}
			sum += score
		}
		shown := true
		if r.Shown != nil {
			shown, _ = r.Shown(k.subject.ID, k.ref)
		}
		for _, list := range r.Query.without {
			if shown && len(list) > 1 && hasPhrase(s, foldedWords(list)) {
				bad[k.subject] = true
			}
			for term := range formsOf(list[0]) {
				bad[k.subject] = bad[k.subject] || shown && len(list) == 1 && s.terms[term] > 0
			}
		}
		if sum > 0 {
			for i, phrase := range r.Query.phrases {
				if phrases[k.subject] == nil {
					phrases[k.subject] = map[int]bool{}
				}
				phrases[k.subject][i] = phrases[k.subject][i] || hasPhrase(s, phrase)
			}
			if bySubject[k.subject] == nil {
				bySubject[k.subject] = &Hit{Place: Place{Subject: k.subject}}
			}
			bySubject[k.subject].Texts = append(bySubject[k.subject].Texts, Match{k.ref, sum})
		}
	}
	for subject, hit := range bySubject {
		for _, scores := range bestOf[subject] {
			list := slices.Sorted(maps.Values(scores))
			slices.Reverse(list)
			hit.Score += list[0]
			if len(list) > 1 {
				hit.Score += againWeight * list[1]
			}
		}
		all := true
		for i := range r.Query.phrases {
			all = all && phrases[subject][i]
		}
		if all && !bad[subject] && (r.After == nil || r.After.ComesBefore(hit.Place)) {
			hits = append(hits, *hit)
		}
	}
	return hits
}

// Search finds the subjects that a walk over all texts finds, with the same scores, page by page, from any
// arrangement of segments.
func TestSearchIsExact(t *testing.T) {
	slowtest.WithoutRace(t)
	all, mixed := 0, 0
	for seed := range uint64(slowtest.Size(60, 20)) {
		random := rand.New(rand.NewPCG(seed, 2))
		w := &world{New(), map[key]Text{}}
		for range 6 {
			w.change(random, 60)
			if random.IntN(2) == 0 { // nearly all texts are in one segment
				w.index.Settle()
				w.change(random, 5)
			}
			w.index.readSegments(func(list []*segment) {
				s := &searcher{request: &Request{Readable: func(_, _ kg.ID) bool { return true }}}
				if s.openParts(list); s.large != nil && len(list) > 1 {
					mixed++
				}
			})
			readable := random.IntN(16)
			hidden, hides := random.IntN(4), random.IntN(2) == 0
			for _, text := range queries {
				q, err := ParseQuery(text)
				if err != nil {
					t.Fatal(err)
				}
				r := &Request{Query: q, First: 1 + random.IntN(8), Readable: func(g, p kg.ID) bool {
					return readable&(1<<(g[8]&3)) != 0 && !(hides && g[8]%4 == 2 && p[8]%2 == 0)
				}}
				if hidden > 0 {
					r.Shown = func(_ kg.ID, x Ref) (bool, error) { return int(x.Object[8])%4 != hidden, nil }
				}
				want := map[Subject]Hit{}
				for _, h := range plain(w.texts, r) {
					want[h.Subject] = h
				}
				found := 0
				for {
					hits, err := w.index.Search(context.Background(), r)
					if err != nil {
						t.Fatal(err)
					}
					for i, h := range hits {
						p, ok := want[h.Subject]
						if !ok || math.Abs(p.Score-h.Score) > 1e-9 || len(p.Texts) != len(h.Texts) {
							t.Fatalf("seed %d: %s finds\n%+v\nand a walk\n%+v", seed, text, h, p)
						}
						if i > 0 && !hits[i-1].ComesBefore(h.Place) {
							t.Fatalf("seed %d: %s: %+v comes before %+v", seed, text, hits[i-1], h)
						}
					}
					found += len(hits)
					if len(hits) < r.First {
						break
					}
					r.After = &hits[len(hits)-1].Place
				}
				if found != len(want) {
					t.Fatalf("seed %d: %s finds %d subjects, a walk %d", seed, text, found, len(want))
				}
				all += found
			}
		}
	}
	if all < slowtest.Size(30000, 10000) || mixed < 20 {
		t.Errorf("%d subjects are found in all, %d times with ranks of a segment in several", all, mixed)
	}
}

// The first hits are those of a walk over all texts also where most subjects are skipped:
// frequent words cannot make a hit beside rare ones.
func TestSkippedSubjectsAreNoHits(t *testing.T) {
	slowtest.WithoutRace(t)
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 4))
		w := &world{New(), map[key]Text{}}
		for n := range 600 {
			value := strings.Repeat("the a of ", 1+random.IntN(3)) + strings.Repeat("filler ", random.IntN(6))
			if random.IntN(20) == 0 {
				value += " crystal"
			}
			if random.IntN(3) == 0 {
				value += strings.Repeat(" water", 1+random.IntN(3))
			}
			x := randomText(random, 1, 1)
			subject := n / 2 * 2 // has two texts
			x.Subject, x.Ref.Object, x.Value = Subject{Order: uint64(subject * 7919 % 1009), ID: id(2, subject)}, id(4, n), value
			w.texts[key{x.Subject, x.Ref}] = x
			w.index.Add(x)
		}
		for _, text := range []string{"the crystal", "the a water", "water crystal of", "the filler"} {
			q, err := ParseQuery(text)
			if err != nil {
				t.Fatal(err)
			}
			for first := 1; first <= 20; first += 3 {
				r := &Request{Query: q, First: first, Readable: func(_, _ kg.ID) bool { return true }}
				want := plain(w.texts, r)
				slices.SortFunc(want, func(a, b Hit) int {
					if math.Abs(a.Score-b.Score) > 1e-9 {
						return cmp.Compare(b.Score, a.Score)
					}
					return a.Subject.compareTo(b.Subject)
				})
				hits, err := w.index.Search(context.Background(), r)
				if err != nil || len(hits) != first {
					t.Fatalf("seed %d: %s: %d hits, %v", seed, text, len(hits), err)
				}
				for i := range hits {
					if math.Abs(hits[i].Score-want[i].Score) > 1e-9 {
						t.Fatalf("seed %d: %s: hit %d of %d is %+v, and a walk finds %+v", seed, text, i, first, hits[i], want[i])
					}
				}
			}
		}
	}
}

// The first hits among many texts, in blocks that are mostly skipped, are those of all hits, bit for
// bit: with one text of a subject or several, in one segment, in a large one and small ones, or in
// segments of about one size.
func TestFirstOfManyHitsAreExact(t *testing.T) {
	slowtest.WithoutRace(t)
	searched := 0
	for seed := range uint64(slowtest.Size(24, 8)) {
		random := rand.New(rand.NewPCG(seed, 6))
		zipf := rand.NewZipf(random, 1.2, 3, 40)
		x, subjects := New(), []int{1 << 14, 3000}[seed%2]
		add := func(from, to int) {
			for n := from; n < to; n++ {
				list := make([]string, 1+random.IntN(12))
				for i := range list {
					list[i] = fmt.Sprintf("w%c%s", 'a'+zipf.Uint64(), []string{"lk", "lks", "lking"}[random.IntN(3)])
				}
				subject := n
				if subjects < 1<<14 {
					subject = random.IntN(subjects)
				}
				x.Add(Text{
					Subject: Subject{Order: uint64(subject) * 7919 % 10007, ID: id(2, subject)}, Ref: Ref{Graph: id(2, 50000+random.IntN(3)), Object: id(4, n)},
					Language: words.English, Value: strings.Join(list, " "),
				})
			}
			x.flushPending()
		}
		switch seed / 2 % 3 {
		case 0:
			add(0, 8000)
		case 1:
			add(0, 7500)
			add(7500, 7800)
			add(7800, 8000)
		default:
			add(0, 3000)
			add(3000, 6000)
			add(6000, 8000)
		}
		for range 12 {
			text := ""
			for range 1 + random.IntN(3) {
				text += fmt.Sprintf(" w%c%s", 'a'+zipf.Uint64(), []string{"lk", "lks", "lking", "*"}[random.IntN(4)])
			}
			q, err := ParseQuery(text)
			if err != nil {
				t.Fatal(err)
			}
			hidden := id(2, 50000+random.IntN(6))
			r := Request{Query: q, Readable: func(g, _ kg.ID) bool { return g != hidden }}
			all, _, _, err := x.NewFinding(r).Scan(t.Context(), Subject{}, math.MaxInt)
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(all, func(a, b Hit) int {
				if a.ComesBefore(b.Place) {
					return -1
				}
				return 1
			})
			for _, r.First = range []int{1, 10, 100} {
				hits, err := x.Search(t.Context(), &r)
				if err != nil {
					t.Fatal(err)
				}
				if want := all[:min(len(all), r.First)]; !slices.EqualFunc(hits, want, func(a, b Hit) bool { return a.Place == b.Place && reflect.DeepEqual(a.Texts, b.Texts) }) {
					t.Fatalf("seed %d: the first %d hits of%s are\n%.2000v\nand of all\n%.2000v", seed, r.First, text, hits, want)
				}
				searched++
			}
		}
	}
	if searched < 250 {
		t.Errorf("%d searches", searched)
	}
}

// An index with texts that the caller may not read gives the answers of one without them,
// to the last bit.
func TestOthersChangeNothing(t *testing.T) {
	readable := func(g, p kg.ID) bool { return g[8]%2 == 0 && (g[8]%4 == 0 || p[8]%2 == 0) }
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 3))
		all, own := &world{New(), map[key]Text{}}, New()
		all.change(random, 300)
		for _, x := range all.texts {
			if readable(x.Ref.Graph, x.Ref.Predicate) {
				own.Add(x)
			}
		}
		for i := range 1000 {
			x := randomText(random, 30, 4)
			x.Ref.Graph, x.Ref.Object, x.Value = id(2, 1001), id(5, i), "water crystal capacitx capacitys drying"
			all.index.Add(x)
		}
		for _, text := range queries {
			q, err := ParseQuery(text)
			if err != nil {
				t.Fatal(err)
			}
			r := &Request{Query: q, First: 10, Readable: readable}
			got, err := all.index.Search(context.Background(), r)
			want, err2 := own.Search(context.Background(), r)
			if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %s finds\n%+v\nand without the others\n%+v %v %v", seed, text, got, want, err, err2)
			}
		}
	}
}

// Function words are those of the query's language.
func TestFunctionWordsOfQueries(t *testing.T) {
	for query, want := range map[string]string{
		"the water in the crystal":    "the in the",
		"die casting":                 "",
		"der Kristall und das Wasser": "der und das",
		"the* who":                    "who",
		`"the who" -the`:              "the who",
	} {
		q, err := ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range q.allWords() {
			if w.function {
				got = append(got, w.folded)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has the function words %q, want %q", query, got, want)
		}
	}
	q, err := ParseQuery("the crystal")
	if text := "In the water there is a crystal"; err != nil || firstIn(q, text) != strings.Index(text, "crystal") {
		t.Errorf("%q begins at %d, %v", text, firstIn(q, text), err)
	}
	q, err = ParseQuery("the")
	if text := "In the water"; err != nil || firstIn(q, text) != 3 {
		t.Errorf("%q begins at %d, %v", text, firstIn(q, text), err)
	}
}

func TestParseQueryErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    `query "" has no word to search for`,
		"-water":                              `query "-water" has no word to search for`,
		"?!":                                  `query "?!" has no word to search for`,
		"\xff":                                "query is not valid UTF-8",
		strings.Repeat("x", MaxQueryBytes+1):  "query has 1025 bytes; at most 1024 are allowed",
		strings.Repeat("x ", MaxQueryWords+1): "query has more than 32 words",
	} {
		if _, err := ParseQuery(text); err == nil || kg.AsError(err).Message != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{strings.Repeat("x", MaxQueryBytes), strings.Repeat("x ", MaxQueryWords)} {
		if _, err := ParseQuery(text); err != nil {
			t.Error(err)
		}
	}
}

func TestDistance(t *testing.T) {
	for pair, want := range map[string]int{"cell cell": 0, "cell cel": 1, "cell clel": 1, "cell bell": 1, "cell celle": 1, "cell call": 1, "capacity kapacity": 1, "capacity capasitty": 2, "cell dry": 3, "größe grösse": 2} {
		a, b, _ := strings.Cut(pair, " ")
		if got := min(editDistance(a, b, 2), 3); got != want {
			t.Errorf("%s: %d, want %d", pair, got, want)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	x := New()
	var list []string
	for i := range 20_000 {
		list = append(list, fmt.Sprintf("w%d", i))
	}
	zipf := rand.NewZipf(random, 1.1, 4, uint64(len(list)-1))
	for i := range 200_000 {
		var text []string
		for range 10 {
			text = append(text, list[zipf.Uint64()])
		}
		var subject kg.ID
		subject[0], subject[5], subject[6], subject[7], subject[8] = 2, byte(i>>24), byte(i>>16), byte(i>>8), byte(i)
		x.Add(Text{Subject: Subject{random.Uint64(), subject}, Ref: Ref{Graph: id(2, 1), Predicate: id(2, 2), Object: subject}, Language: words.English, Value: strings.Join(text, " ")})
	}
	for _, text := range []string{"w0 w1", "w10 w200", "w500 w3000"} {
		b.Run(text, func(b *testing.B) {
			q, err := ParseQuery(text)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if hits, err := x.Search(b.Context(), &Request{Query: q, First: 10, Readable: func(_, _ kg.ID) bool { return true }}); err != nil || len(hits) != 10 {
					b.Fatal(len(hits), err)
				}
			}
		})
	}
}

// firstIn returns where in a text the first word of a query is, len(text) if there is none.
func firstIn(q *Query, text string) int {
	for start := range q.WordsIn(text, words.English, &Statistics{Words: make([]WordStatistics, len(q.words))}) {
		return start
	}
	return len(text)
}
