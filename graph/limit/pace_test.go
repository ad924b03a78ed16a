package limit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestHeavyQueriesTakeTurns proves that a query is light for heavyAfter steps,
// that at most as many heavy ones work as the gate has places, that one lets
// another in when its turn is over, and that waiting ends with the query.
func TestHeavyQueriesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(Gate, 1)
		steps := func(p *Pace, n int) {
			t.Helper()
			for range n {
				if err := p.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		first, second := &Pace{Gate: gate}, &Pace{Gate: gate}
		steps(first, heavyAfter)
		if len(gate) != 0 {
			t.Error("a light query took a place")
		}
		steps(first, 1)
		if len(gate) != 1 {
			t.Error("a heavy query took no place")
		}
		steps(second, heavyAfter)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := second.Step(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beside a heavy query: got %v, want it to wait until its end", err)
		}
		let := make(chan error, 1)
		go func() { let <- second.Step(t.Context()) }()
		synctest.Wait()
		time.Sleep(heavyTurn) // of the bubble's clock; the turn of the first is over
		gone := make(chan error, 1)
		go func() { gone <- first.Step(t.Context()) }()
		if err := <-let; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(gone) != 0 {
			t.Error("two heavy queries work in one place")
		}
		second.Close()
		if err := <-gone; err != nil {
			t.Fatal(err)
		}
		first.Close()
		first.Close()
		if len(gate) != 0 {
			t.Error("a place was not given back")
		}
	})
}
