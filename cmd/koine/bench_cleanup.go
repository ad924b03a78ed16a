package main

import (
	"context"
	"sync"

	"koine/client"
)

// sentUpdates collects the numbers of the updates that were sent to the server. It is safe
// for concurrent use.
type sentUpdates struct {
	mu      sync.Mutex // guards numbers
	numbers []uint64
}

func (a *sentUpdates) addUpdate(n uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.numbers = append(a.numbers, n)
}

// popUpdates removes and returns up to most numbers.
func (a *sentUpdates) popUpdates(most int) []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(most, len(a.numbers))
	few := a.numbers[:n]
	a.numbers = a.numbers[n:]
	return few
}

// updatesPerRemoval keeps a removal far below the limits of one request.
const updatesPerRemoval = 500

// cleanUp removes the statements that the updates added and returns their number. No other
// request may be in flight.
func (w *workload) cleanUp(ctx context.Context) (removed int, err error) {
	for {
		few := w.added.popUpdates(updatesPerRemoval)
		if len(few) == 0 {
			return removed, nil
		}
		var patches []client.Patch
		for _, n := range few {
			patches = append(patches, w.makePatches(client.Remove, n)...)
		}
		n, err := w.removePatches(ctx, patches)
		if err != nil {
			return removed, err
		}
		removed += n
	}
}

func (w *workload) removePatches(ctx context.Context, patches []client.Patch) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	result, err := w.client.Update(ctx, client.Update{Patches: patches, Justification: "The end of a benchmark", Once: true})
	if err != nil {
		return 0, err
	}
	return result.StatementsAffected, nil
}
