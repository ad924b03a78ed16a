package textindex

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// A finding has the hits of a search for all, with their scores, in batches of any size, also
// subject by subject, and while texts are added that it does not see. The texts of a subject fit a
// query if the subject is a hit.
func TestFindingHasAllHits(t *testing.T) {
	slowtest.WithoutRace(t)
	fits, spelt := 0, 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 5))
		w := &world{New(), map[key]Text{}}
		w.change(random, 200)
		for _, text := range queries {
			q, err := ParseQuery(text)
			if err != nil {
				t.Fatal(err)
			}
			known := map[key]bool{}
			for k := range w.texts {
				known[k] = true
			}
			r := Request{Query: q, First: math.MaxInt, Readable: func(g, _ kg.ID) bool { return g[8]%4 != 1 }, Shown: func(s kg.ID, x Ref) (bool, error) {
				return x.Object[8]%4 != 1 && known[key{Subject{uint64((int(s[7])<<8 + int(s[8])) * 7919 % 101), s}, x}], nil
			}}
			hits, err := w.index.Search(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(hits, func(a, b Hit) int { return a.Subject.compareTo(b.Subject) })
			finding := w.index.NewFinding(r)
			with, texts := finding.Estimate()
			if n := len(hits); uint64(n) > with || with > texts {
				t.Fatalf("seed %d: %s: %d hits, estimate %d of %d", seed, text, n, with, texts)
			}
			var all []Hit
			from, more := Subject{}, true
			for more {
				var list []Hit
				if list, from, more, err = finding.Scan(t.Context(), from, 1+random.IntN(5)); err != nil {
					t.Fatal(err)
				}
				all = append(all, list...)
				w.index.Add(Text{Subject: Subject{from.Order, id(3, len(all))}, Ref: Ref{Object: id(5, random.IntN(99))}, Value: "water cell drying capacity"})
			}
			if len(all) != len(hits) || len(hits) > 0 && !reflect.DeepEqual(all, hits) {
				t.Fatalf("seed %d: %s: a scan has\n%+v\nand a search\n%+v", seed, text, all, hits)
			}
			bySubject := map[Subject][]Text{}
			for k, x := range w.texts {
				if shown, _ := r.Shown(k.subject.ID, k.ref); shown && r.Readable(k.ref.Graph, k.ref.Predicate) {
					bySubject[k.subject] = append(bySubject[k.subject], x)
				}
			}
			for subject, list := range bySubject {
				i := slices.IndexFunc(hits, func(h Hit) bool { return h.Subject == subject })
				hit, err := finding.HitOf(t.Context(), subject)
				if err != nil || (hit != nil) != (i >= 0) || hit != nil && !reflect.DeepEqual(*hit, hits[i]) {
					t.Fatalf("seed %d: %s: hit %+v, want number %d, %v", seed, text, hit, i, err)
				}
				if got, err := finding.Fits(subject.ID, list); got != (hit != nil) || err != nil {
					t.Fatalf("seed %d: %s: %+v fit: %t", seed, text, list, got)
				}
				matched, err := q.Fit(subject.ID, list, &Filter{})
				if err != nil {
					t.Fatal(err)
				}
				ok := len(matched) > 0
				if finding.request.Query.isSpelt(finding.known) {
					spelt++
					if ok != (hit != nil) || hit != nil && len(matched) != len(hit.Texts) {
						t.Fatalf("seed %d: %s: %+v fit: %t with %d texts", seed, text, list, ok, len(matched))
					}
				}
				if ok {
					fits++
				}
			}
		}
	}
	if fits < 1000 || spelt < 1000 {
		t.Errorf("only %d subjects fit, %d queries are spelt as texts are", fits, spelt)
	}
}

// isSpelt reports whether no word is misspelt.
func (q *Query) isSpelt(known map[queryWord][]form) bool {
	return !slices.ContainsFunc(q.allWords(), func(w queryWord) bool { return len(known[w]) > 0 && !w.standsFor(known[w][0].term) })
}

// The state of a finding changes with what misspelt words stand for, and, with scores, with
// the statistics; not with other texts.
func TestStateOfFindings(t *testing.T) {
	x := New()
	texts := 0
	add := func(value string) {
		texts++
		x.Add(Text{Subject: Subject{ID: id(2, texts)}, Ref: Ref{Object: id(5, texts)}, Value: value})
	}
	state := func(query string, scores bool) uint64 {
		q, err := ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		return x.NewFinding(Request{Query: q, Readable: func(_, _ kg.ID) bool { return true }}).State(scores)
	}
	add("capacity")
	before, scored, misspelt := state("capacity wat*", false), state("capacity", true), state("capacitx", false)
	add("water capacity")
	if state("capacity wat*", false) != before {
		t.Error("a word that is written correctly: another text changes the state")
	}
	if state("capacity", true) == scored {
		t.Error("with scores, another text does not change the state")
	}
	if state("capacitx", false) != misspelt {
		t.Error("a misspelt word: another text with the same word changes the state")
	}
	add("capacitz")
	if state("capacitx", false) == misspelt {
		t.Error("a misspelt word: another word does not change the state")
	}
}

// A beginning that is taken as it is spelt stands for all words up to a bound, and misspelt words
// for none.
func TestFindingAsSpelt(t *testing.T) {
	x := New()
	add := func(n int) {
		x.Add(Text{Subject: Subject{ID: id(2, n)}, Ref: Ref{Object: id(5, n)}, Value: fmt.Sprintf("beginning%dx capacity", n)})
	}
	for n := range MaxBeginnings {
		add(n)
	}
	find := func(text string) *Finding {
		q, err := ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		return x.NewFinding(Request{Query: q, AsSpelt: true, Readable: func(_, _ kg.ID) bool { return true }})
	}
	hits, _, more, err := find("begin*").Scan(t.Context(), Subject{}, 2*MaxBeginnings)
	if f := find("begin*"); len(hits) != MaxBeginnings || more || err != nil || f.Overflows() {
		t.Errorf("at the bound: %d hits, %v, overflows: %t", len(hits), err, f.Overflows())
	}
	if hits, _, _, err := find("capacitx").Scan(t.Context(), Subject{}, 10); len(hits) > 0 || err != nil {
		t.Errorf("misspelt: %v, %v", hits, err)
	}
	if add(MaxBeginnings); !find("begin*").Overflows() {
		t.Error("past the bound it does not overflow")
	}
}
