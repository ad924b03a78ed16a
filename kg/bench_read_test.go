package kg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"koine/kg/internal/keys"
)

const (
	fb       = "http://rdf.freebase.com/ns/"
	starring = fb + "film/film/starring"
	actor    = fb + "film/performance/actor"
)

// loadedMovies is a store with the film graph, warm.
func loadedMovies(b *testing.B) *Store {
	b.Helper()
	quads := needMovies(b)
	s := openBench(b, b.TempDir(), Options{TermCache: 1 << 19})
	loadAll(b, s, quads, LoadOptions{})
	b.Cleanup(func() { closeBench(b, s) })
	return s
}

func viewBench(b *testing.B, s *Store) *Snapshot {
	b.Helper()
	snap, err := s.View(context.Background(), View{})
	if err != nil {
		b.Fatal(err)
	}
	return snap
}

// sample picks subjects of a predicate.
func sample(b *testing.B, s *Store, predicate string, n int) []Term {
	b.Helper()
	snap := viewBench(b, s)
	defer snap.Close()
	var all []Term
	for st, err := range snap.Match(Pattern{Predicate: IRI(predicate)}) {
		if err != nil {
			b.Fatal(err)
		}
		if k := len(all); k == 0 || all[k-1] != st.Subject {
			all = append(all, st.Subject)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortFunc(all[:min(n, len(all))], Term.Compare)
	return slices.Compact(all[:min(n, len(all))])
}

// rawPrefix counts the keys of a prefix with a bare Badger iterator, and reads values on
// request.
func rawPrefix(it *badger.Iterator, prefix []byte, values bool) (n int) {
	for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
		n++
		if values {
			_ = it.Item().Value(func([]byte) error { return nil })
		}
	}
	return n
}

// rawIterator is one over SPOG at the newest revision.
func rawIterator(b *testing.B, s *Store) (*badger.Iterator, func()) {
	b.Helper()
	txn := s.db.NewTransactionAt(uint64(s.Head().Revision), false)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{byte(keys.SPOG)}})
	return it, func() { it.Close(); txn.Discard() }
}

// BenchmarkSubject reads one subject with all its statements, decoded, beside
// the raw iterator over the same keys and values. Aim: ratio of the rates at
// least 0.5, also after 100,000 replacements of one of its properties.
func BenchmarkSubject(b *testing.B) {
	s := loadedMovies(b)
	films := sample(b, s, starring, 2000)
	b.Run("films", func(b *testing.B) { benchSubjects(b, s, films) })
	b.Run("replaced", func(b *testing.B) {
		film := films[0]
		replaceMany(b, s, film, 100_000)
		benchSubjects(b, s, []Term{film})
	})
}

// replaceMany replaces one property of a subject n times, many in one commit as
// different subjects would be, but never twice in one.
func replaceMany(b *testing.B, s *Store, subject Term, n int) {
	b.Helper()
	inParallel(256, n, func(i int) {
		_, err := s.Update(context.Background(), Meta{}, func(tx *Tx) error {
			return tx.Apply(Patch{Op: Replace, Quad: Quad{Subject: subject, Predicate: IRI("https://bench.example/status"), Object: Integer(int64(i))}})
		})
		if err != nil {
			b.Error(err)
		}
	})
}

func benchSubjects(b *testing.B, s *Store, subjects []Term) {
	const reads = 4000
	snap := viewBench(b, s)
	defer snap.Close()
	prefixes := make([][]byte, len(subjects))
	for i, t := range subjects {
		id, _, err := snap.ID(t)
		if err != nil {
			b.Fatal(err)
		}
		prefixes[i], _ = keys.SPOG.AppendPrefix(nil, IDQuad{Subject: id})
	}
	it, done := rawIterator(b, s)
	defer done()
	koine := func(int) (int, time.Duration) {
		return timed(reads, func() {
			for i := range reads {
				for _, err := range snap.Match(Pattern{Subject: subjects[i%len(subjects)]}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	twin := func(int) (int, time.Duration) {
		return timed(reads, func() {
			for i := range reads {
				rawPrefix(it, prefixes[i%len(prefixes)], true)
			}
		})
	}
	koine(0) // warm the term cache
	compare(b, "subjects", koine, twin)
}

// BenchmarkTwoHops walks film → performance → actor in ids and decodes the
// actors, beside two nested raw iterators. Aim: ratio at least 0.6.
func BenchmarkTwoHops(b *testing.B) {
	const walks = 2000
	s := loadedMovies(b)
	films := sample(b, s, starring, 2000)
	snap := viewBench(b, s)
	defer snap.Close()
	id := func(t Term) ID {
		id, ok, err := snap.ID(t)
		if !ok || err != nil {
			b.Fatal(t, err)
		}
		return id
	}
	starringID, actorID := id(IRI(starring)), id(IRI(actor))
	ids := make([]ID, len(films))
	for i, f := range films {
		ids[i] = id(f)
	}
	koine := func(int) (int, time.Duration) {
		return timed(walks, func() {
			for i := range walks {
				for p, err := range snap.MatchIDs(IDPattern{Subject: ids[i%len(ids)], Predicate: starringID}, nil) {
					if err != nil {
						b.Fatal(err)
					}
					for a, err := range snap.MatchIDs(IDPattern{Subject: p.Object, Predicate: actorID}, nil) {
						if err != nil {
							b.Fatal(err)
						}
						if _, err := snap.Term(a.Object); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
		})
	}
	outer, doneOuter := rawIterator(b, s)
	defer doneOuter()
	inner, doneInner := rawIterator(b, s)
	defer doneInner()
	twin := func(int) (int, time.Duration) {
		return timed(walks, func() {
			for i := range walks {
				prefix, _ := keys.SPOG.AppendPrefix(nil, IDQuad{Subject: ids[i%len(ids)], Predicate: starringID})
				for outer.Seek(prefix); outer.ValidForPrefix(prefix); outer.Next() {
					q, _ := keys.SPOG.Parse(outer.Item().Key())
					next, _ := keys.SPOG.AppendPrefix(nil, IDQuad{Subject: q.Object, Predicate: actorID})
					rawPrefix(inner, next, false)
				}
			}
		})
	}
	koine(0)
	compare(b, "walks", koine, twin)
}

// BenchmarkFilterIndex matches a change of ten statements against 10,000
// watchers of single subjects, beside asking each of them. Aim: at most 1 µs for
// a change.
func BenchmarkFilterIndex(b *testing.B) {
	x := newFilterIndex()
	watchers := make([]*Watcher, 10_000)
	for i := range watchers {
		p := Pattern{Subject: IRI(fmt.Sprintf("https://bench.example/thing/%d", i))}
		if i%3 == 0 {
			p.Predicate = IRI("https://bench.example/p1")
		}
		w := &Watcher{filter: &watchFilter{Filter: Filter{Patterns: []Pattern{p}}}}
		watchers[i] = w
		x.add(w)
	}
	c := &Commit{}
	for _, q := range tenQuads(77, 10) {
		c.Changes = append(c.Changes, Change{Quad: q})
	}
	const commits = 1000
	found := 0
	koine := func(int) (int, time.Duration) {
		return timed(commits*len(c.Changes), func() {
			for range commits {
				x.matchCommit(c, func(*Watcher) { found++ })
			}
		})
	}
	twin := func(int) (int, time.Duration) {
		return timed(len(c.Changes), func() {
			for i := range c.Changes {
				for _, w := range watchers {
					if w.filter.Patterns[0].Matches(c.Changes[i].Quad) {
						found++
					}
				}
			}
		})
	}
	compare(b, "changes", koine, twin)
	if found == 0 {
		b.Fatal("nothing matched")
	}
}

// BenchmarkWalk passes over all statements of a property by WalkIDs, in turns with a bare
// Badger iterator over the same keys, and with MatchIDs. It reports per statement.
func BenchmarkWalk(b *testing.B) {
	s := loadedMovies(b)
	snap := viewBench(b, s)
	defer snap.Close()
	id, _, err := snap.ID(IRI(fb + "film/film/directed_by"))
	if err != nil {
		b.Fatal(err)
	}
	prefix, _ := keys.POSG.AppendPrefix(nil, IDQuad{Predicate: id})
	var walked, matched, raw int
	sides := []func(){
		func() {
			walked = 0
			if err := WalkIDs(snap, IDPattern{Predicate: id}, func(*IDQuad) error { walked++; return nil }); err != nil {
				b.Fatal(err)
			}
		},
		func() {
			txn := s.db.NewTransactionAt(uint64(s.Head().Revision), false)
			it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
			raw = rawPrefix(it, prefix, false)
			it.Close()
			txn.Discard()
		},
		func() {
			matched = 0
			for _, err := range snap.MatchIDs(IDPattern{Predicate: id}, nil) {
				if err != nil {
					b.Fatal(err)
				}
				matched++
			}
		},
	}
	var took [3]time.Duration
	for b.Loop() {
		for i, side := range sides {
			start := time.Now()
			side()
			took[i] += time.Since(start)
		}
	}
	if walked != matched || walked != raw || walked == 0 {
		b.Fatalf("%d, %d and %d statements", walked, matched, raw)
	}
	for i, unit := range []string{"walk-ns/statement", "badger-ns/statement", "match-ns/statement"} {
		b.ReportMetric(float64(took[i].Nanoseconds())/float64(b.N)/float64(walked), unit)
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "x-badger")
}
