package search_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"koine/internal/search"
	"koine/kg"
)

// BenchmarkUpdates measures durable updates of ten statements, three of them with texts, with
// the index and without it in turns. A round ends when the last update is answered; what the
// index does afterwards is not in it, and is told by behind/op.
func BenchmarkUpdates(b *testing.B) {
	for _, writers := range []int{16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			const updates = 20_000
			var with, without, cpuWith, cpuWithout time.Duration
			var behind kg.Revision
			for round := range b.N {
				for turn := range 2 {
					indexed := (round+turn)%2 == 0
					before := processorTime(b)
					took := updateBeside(b, indexed, writers, updates, &behind)
					if used := processorTime(b) - before; indexed {
						with, cpuWith = with+took, cpuWith+used
					} else {
						without, cpuWithout = without+took, cpuWithout+used
					}
				}
			}
			all := float64(b.N * updates)
			b.ReportMetric(all/with.Seconds(), "updates/s")
			b.ReportMetric(all/without.Seconds(), "updates/s-without")
			b.ReportMetric(without.Seconds()/with.Seconds(), "ratio")
			b.ReportMetric(cpuWith.Seconds()/cpuWithout.Seconds(), "cpu-ratio")
			b.ReportMetric(float64(behind)/float64(b.N), "behind/op")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// processorTime returns the processor time of the process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func updateBeside(b *testing.B, indexed bool, writers, updates int, behind *kg.Revision) time.Duration {
	dir := b.TempDir()
	store, err := kg.Open(dir+"/data", kg.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var texts *search.Service
	if indexed {
		if texts, err = search.Open(store, search.Options{Dir: dir + "/search"}); err != nil {
			b.Fatal(err)
		}
		texts.Start()
	}
	next := make(chan int)
	var all sync.WaitGroup
	start := time.Now()
	for range writers {
		all.Go(func() {
			for i := range next {
				if _, err := store.Update(b.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://bench"}}, func(tx *kg.Tx) error {
					for _, q := range tenQuads(i) {
						if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range updates {
		next <- i
	}
	close(next)
	all.Wait()
	took := time.Since(start)
	if indexed {
		at, _ := texts.Revision()
		*behind += store.Head().Revision - at
		if err := texts.Close(); err != nil {
			b.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	return took
}

// tenQuads are about one new subject, with values of several kinds, as those of the updates
// of package kg.
func tenQuads(i int) []kg.Quad {
	quads := make([]kg.Quad, 10)
	for j := range quads {
		object := kg.Integer(int64(i * j))
		switch j % 3 {
		case 1:
			object = kg.IRI(fmt.Sprintf("https://bench.example/thing/%d", (i*7+j)%(i+1)))
		case 2:
			object = kg.String(fmt.Sprintf("the text of value %d of thing %d", j, i))
		}
		quads[j] = kg.Quad{Subject: kg.IRI(fmt.Sprintf("https://bench.example/thing/%d", i)), Predicate: kg.IRI(fmt.Sprintf("https://bench.example/p%d", j)), Object: object, Graph: kg.DefaultGraph}
	}
	return quads
}
