package search_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"koine/internal/search"
	"koine/internal/slowtest"
	"koine/kg"
)

// BenchmarkNear searches entities with vectors of 768 numbers in a store: all, those of a class
// that one in a hundred has, and beside words.
func BenchmarkNear(b *testing.B) {
	const dimension, perCommit = 768, 200
	rows := slowtest.Size(100_000, 10_000)
	dir := b.TempDir()
	store, err := kg.Open(filepath.Join(dir, "data"), kg.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	service, err := search.Open(store, search.Options{Dir: filepath.Join(dir, "search")})
	if err != nil {
		b.Fatal(err)
	}
	service.Start()
	defer service.Close()
	r := rand.New(rand.NewPCG(1, 1))
	vector := func() []float32 {
		v := make([]float32, dimension)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	begin := time.Now()
	for n := 0; n < rows; n += perCommit {
		var list []kg.Patch
		for i := n; i < n+perCommit; i++ {
			list = append(list, embedded(text("", fmt.Sprint("s", i), "label", fmt.Sprint("entity number ", i)), "m", vector()...))
			if i%100 == 0 {
				list = append(list, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", i)), Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("urn:Rare")}})
			}
		}
		if _, err := store.Update(b.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, func(tx *kg.Tx) error {
			for _, p := range list {
				if err := tx.Apply(p); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	if err := service.WaitFor(b.Context(), store.Head().Revision); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d statements with vectors written and indexed in %s", rows, time.Since(begin).Round(time.Second))
	snapshot, err := store.View(b.Context(), kg.View{Principal: kg.Principal{ID: "agent://bob"}, AllGraphs: true})
	if err != nil {
		b.Fatal(err)
	}
	defer snapshot.Close()
	for _, c := range []struct {
		name    string
		request search.Request
	}{
		{"all", search.Request{}}, {"class of 1%", search.Request{Filter: search.Filter{Classes: []kg.Term{kg.IRI("urn:Rare")}}}},
		{"beside words", search.Request{Query: "number 77"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				request := c.request
				request.First, request.Near = 10, &search.Near{Model: "m", Vector: vector()}
				begin := time.Now()
				page, err := service.Search(context.Background(), snapshot, request)
				if err != nil || len(page.Hits) != 10 {
					b.Fatal(len(page.Hits), err)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
