package kg_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"koine/kg"
)

// parallel is a verifier that reads a judgement's snapshots from several goroutines,
// as the documentation of Snapshot allows.
type parallel struct{}

func (parallel) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range 8 {
		wg.Go(func() {
			n := 0
			for _, err := range j.After.Match(kg.Pattern{}) {
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
				n++
			}
			if n == 0 {
				mu.Lock()
				failed = errors.New("it does not see what the update makes")
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return kg.Verdict{Outcome: kg.Accepted}, failed
}

func TestJudgedTogether(t *testing.T) {
	o := smallOptions()
	o.Verifier = parallel{}
	s := openStore(t, t.TempDir(), o)
	for i := range 50 {
		var patches []kg.Patch
		for k := range 20 {
			patches = append(patches, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", i)), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(k))}})
		}
		if _, err := s.Update(within(t), kg.Meta{Principal: tester}, apply(patches)); err != nil {
			t.Fatal(err)
		}
	}
}
