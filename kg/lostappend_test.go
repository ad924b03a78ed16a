package kg_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// TestLostAppends proves that a store continues after its log lost an append, that the
// callers get the error, and that nothing of the append is left: the index, with the
// dictionary's numbers, equals one made from the log, observers saw only the commits in the
// log, and the numbers of later updates have no gap.
func TestLostAppends(t *testing.T) {
	t.Parallel()
	for name, verifier := range map[string]kg.Verifier{"": nil, "judged": judging{func(ctx context.Context, j kg.Judgement) error { return nil }}} {
		t.Run(name, func(t *testing.T) {
			if verifier != nil {
				slowtest.Long(t)
			}
			const workers, updates = 8, 60
			var losing atomic.Bool
			var lost atomic.Int64
			random := rand.New(rand.NewPCG(5, 5)) // appends come one at a time
			o := tinyLog().WithFaults(kg.Faults{OverlapFrom: 1, LoseAppend: func(kg.Revision) bool {
				if !losing.Load() || random.IntN(4) != 0 {
					return false
				}
				lost.Add(1)
				return true
			}})
			o.Verifier = verifier
			dir := t.TempDir()
			s := openStore(t, dir, o)
			var told []kg.Revision
			s.Observe(func(c *kg.Commit) { told = append(told, c.Revision) })
			losing.Store(true)
			counter := kg.Quad{Subject: kg.IRI("urn:counter"), Predicate: kg.IRI("urn:at")}
			acknowledged := make(map[int64]bool)
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range workers {
				wg.Go(func() {
					w := newWorker(uint64(i), fmt.Sprint("w", i))
					for range updates {
						meta, patches := w.update()
						for {
							n := int64(0)
							r, err := s.Update(within(t), meta, func(tx *kg.Tx) error {
								n = 0
								for st, err := range tx.Match(kg.Pattern{Subject: counter.Subject, Predicate: counter.Predicate}) {
									if err != nil {
										return err
									}
									n, _ = strconv.ParseInt(st.Object.Value(), 10, 64)
								}
								n++
								next := counter
								next.Object = kg.Integer(n)
								for _, p := range append(patches, kg.Patch{Op: kg.Replace, Quad: next}) {
									if err := tx.Apply(p); err != nil {
										return err
									}
								}
								return nil
							})
							if kg.CodeOf(err) == kg.CodeOverloaded {
								continue // it was lost, or waited for too long
							}
							if err != nil || r.Replayed {
								t.Errorf("%+v, %v", r, err)
								return
							}
							mu.Lock()
							if acknowledged[n] {
								t.Errorf("two updates took the number %d", n)
							}
							acknowledged[n] = true
							mu.Unlock()
							break
						}
					}
				})
			}
			wg.Wait()
			report, err := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(25_000), kg.LoadOptions{})
			for ; err != nil; report, err = s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(25_000), kg.LoadOptions{}) {
				if kg.CodeOf(err) != kg.CodeOverloaded {
					t.Fatal(report, err)
				}
			}
			losing.Store(false)
			if lost.Load() == 0 || len(acknowledged) != workers*updates || !acknowledged[1] || !acknowledged[workers*updates] {
				t.Errorf("%d appends were lost, and %d updates took numbers", lost.Load(), len(acknowledged))
			}
			mustCheck(t, s)
			if err := s.Ready(); err != nil {
				t.Error(err)
			}
			want := settledRows(t, s)
			for i, r := range told {
				if r != kg.Revision(i+1) {
					t.Fatalf("the observer was told of revision %d after %d", r, i)
				}
			}
			mustClose(t, s)
			o = tinyLog()
			o.Rebuild = true
			equalLines(t, "the rebuilt index", want, settledRows(t, openStore(t, dir, o)))
		})
	}
}
