package path_test

import (
	"compress/gzip"
	"context"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"koine/internal/query/path"
	"koine/internal/rdf"
	"koine/kg"
)

const (
	starring = "http://rdf.freebase.com/ns/film/film/starring"
	actor    = "http://rdf.freebase.com/ns/film/performance/actor"
)

// films returns the film graph that KOINE_FILMS names (gzipped N-Quads), or else the
// excerpt in the repository.
func films(b *testing.B) *kg.Snapshot {
	b.Helper()
	name := os.Getenv("KOINE_FILMS")
	if name == "" {
		name = "../../rdf/testdata/movies-excerpt.nq.gz"
	}
	f, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	store, err := kg.Open(b.TempDir(), kg.Options{ReserveBytes: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := store.Load(context.Background(), kg.Meta{}, rdf.Read(z, rdf.NQuads, rdf.Options{Name: name}), kg.LoadOptions{}); err != nil {
		b.Fatal(err)
	}
	s, err := store.View(context.Background(), kg.View{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		s.Close()
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkFollow follows a path from 100 films to the actors of their performances,
// alternating with a baseline: two hand-written loops over MatchIDs that keep each actor
// of a film once. Aim: at most twice the baseline's time.
//
//	KOINE_FILMS=movies.nq.gz go test ./internal/query/path -run '^$' -bench Follow
func BenchmarkFollow(b *testing.B) {
	s := films(b)
	var ids []kg.ID
	for row, err := range s.MatchIDs(kg.IDPattern{Predicate: idOf(b, s, kg.IRI(starring))}, nil) {
		if err != nil {
			b.Fatal(err)
		}
		ids = append(ids, row.Subject)
	}
	slices.SortFunc(ids, func(a, b kg.ID) int { return slices.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	var some []kg.ID // spread over the graph
	for i := range 100 {
		some = append(some, ids[i*len(ids)/100])
	}
	p, err := path.Parse("<"+starring+">/<"+actor+">", prefixes(b))
	if err != nil {
		b.Fatal(err)
	}
	var took [2]time.Duration
	var found [2]int
	for b.Loop() {
		for i, side := range []func(testing.TB, *kg.Snapshot, []kg.ID, *path.Path) int{followActors, loopOverActors} {
			start := time.Now()
			found[i] = side(b, s, some, p)
			took[i] += time.Since(start)
		}
	}
	if found[0] != found[1] || found[0] == 0 {
		b.Fatalf("the path finds %d actors, the loops %d", found[0], found[1])
	}
	b.ReportMetric(float64(took[0].Microseconds())/float64(b.N), "path-µs")
	b.ReportMetric(float64(took[1].Microseconds())/float64(b.N), "loops-µs")
	b.ReportMetric(float64(took[0])/float64(took[1]), "times")
}

func followActors(b testing.TB, s *kg.Snapshot, films []kg.ID, p *path.Path) (n int) {
	bound, err := p.Bind(s, path.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, err := range bound.ForwardAll(films) {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	return n
}

func loopOverActors(b testing.TB, s *kg.Snapshot, films []kg.ID, _ *path.Path) (n int) {
	first, second := idOf(b, s, kg.IRI(starring)), idOf(b, s, kg.IRI(actor))
	for _, film := range films {
		seen := map[kg.ID]bool{}
		for part, err := range s.MatchIDs(kg.IDPattern{Subject: film, Predicate: first}, nil) {
			if err != nil {
				b.Fatal(err)
			}
			for row, err := range s.MatchIDs(kg.IDPattern{Subject: part.Object, Predicate: second}, nil) {
				if err != nil {
					b.Fatal(err)
				}
				if !seen[row.Object] {
					seen[row.Object] = true
					n++
				}
			}
		}
	}
	return n
}
