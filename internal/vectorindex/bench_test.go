package vectorindex

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/kg"
)

// benchRows and benchDimension are the size that docs/benchmarks.md names.
const (
	benchRows      = 100_000
	benchDimension = 768
	benchFirst     = 10
	benchClusters  = 1000
)

// benchSet has vectors of a kind in an index on disk.
type benchSet struct {
	dir     string
	index   *Index
	vectors [][]float32
	queries [][]float32
}

// newBenchSet makes vectors that are uniform on the sphere, or around the centres of clusters.
func newBenchSet(b *testing.B, kind string) *benchSet {
	r := rand.New(rand.NewPCG(5, 5))
	var centres [][]float32
	if kind == "clustered" {
		for range benchClusters {
			centres = append(centres, randomVector(r, benchDimension, "uniform"))
		}
	}
	next := func() []float32 {
		v := randomVector(r, benchDimension, "uniform")
		if centres != nil {
			for i, f := range centres[r.IntN(benchClusters)] {
				v[i] = f + 0.5*v[i]
			}
		}
		return v
	}
	s := &benchSet{dir: b.TempDir()}
	var err, unusable error
	if s.index, _, unusable, err = Open(s.dir); err != nil || unusable != nil {
		b.Fatal(err, unusable)
	}
	for i := range benchRows {
		v := next()
		s.vectors = append(s.vectors, v)
		s.index.Put(Key{Subject: Subject{Order: uint64(i)}, Owner: uint64(i)}, "m", v)
	}
	for range 200 {
		s.queries = append(s.queries, next())
	}
	if err := s.index.Save("x"); err != nil {
		b.Fatal(err)
	}
	return s
}

func (s *benchSet) request(query []float32, percent uint64) *Request {
	return &Request{Model: "m", Vector: query, First: benchFirst, Rights: Rights{
		Readable: func(graph, predicate kg.ID) bool { return true },
		Shown:    func(k *Key) (bool, error) { return k.Owner*0x9e3779b97f4a7c15>>32%100 < percent, nil },
	}}
}

// recall compares the hits of a request with those of computing every score.
func (s *benchSet) recall(b *testing.B, r *Request) float64 {
	got, err := s.index.Search(context.Background(), r)
	if err != nil {
		b.Fatal(err)
	}
	q := newQuery(r.Vector)
	var all []Place
	for i, v := range s.vectors {
		if shown, _ := r.Shown(&Key{Owner: uint64(i)}); shown {
			c := chunk{dimension: benchDimension}
			c.floats = appendFloats(c.floats, v)
			all = append(all, Place{Score: q.exactScore(c.floats, r.Metric), Subject: Subject{Order: uint64(i)}})
		}
	}
	slices.SortFunc(all, func(a, b Place) int {
		if a.ComesBefore(b) {
			return -1
		}
		return 1
	})
	found := 0
	for _, h := range got {
		if slices.Contains(all[:benchFirst], h.Place) {
			found++
		}
	}
	return float64(found) / benchFirst
}

// BenchmarkNearest searches 100,000 vectors of 768 numbers. recall@10 is beside computing
// every score.
func BenchmarkNearest(b *testing.B) {
	for _, kind := range []string{"uniform", "clustered"} {
		set := sync.OnceValue(func() *benchSet { return newBenchSet(b, kind) })
		for _, c := range []struct {
			name    string
			percent uint64
		}{{"all", 100}, {"1%", 1}, {"0.01%", 0}} {
			b.Run(kind+"/"+c.name, func(b *testing.B) {
				s := set()
				var took []time.Duration
				var before, after syscall.Rusage
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
				for i := 0; b.Loop(); i++ {
					begin := time.Now()
					if _, err := s.index.Search(context.Background(), s.request(s.queries[i%len(s.queries)], c.percent)); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(begin))
				}
				b.StopTimer()
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
				b.ReportMetric(float64(after.Utime.Nano()-before.Utime.Nano())/1e6/float64(len(took)), "cpu-ms")
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
				if c.percent > 0 {
					var sum float64
					n := slowtest.Size(10, 2)
					for i := range n {
						sum += s.recall(b, s.request(s.queries[i], c.percent))
					}
					b.ReportMetric(sum/float64(n), "recall@10")
				}
			})
		}
		b.Run(kind+"/restart", func(b *testing.B) {
			s := set()
			for b.Loop() {
				x, _, unusable, err := Open(s.dir)
				if err != nil || unusable != nil || x.Len() != benchRows {
					b.Fatal(err, unusable)
				}
				x.Clear()
			}
		})
	}
}
