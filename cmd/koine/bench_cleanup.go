package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// additions are the updates that were sent to the server. It is safe for
// concurrent use.
type additions struct {
	mu      sync.Mutex // guards numbers
	numbers []uint64
}

func (a *additions) note(n uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.numbers = append(a.numbers, n)
}

// take gives the next few and forgets them.
func (a *additions) take(most int) []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(most, len(a.numbers))
	few := a.numbers[:n]
	a.numbers = a.numbers[n:]
	return few
}

// updatesPerRemoval keeps a removal far below what one request may hold.
const updatesPerRemoval = 500

// cleanUp removes what the updates added and gives the number of statements.
// It is to be called when nothing is under way any more.
func (w *workload) cleanUp(ctx context.Context) (removed int, err error) {
	for {
		few := w.added.take(updatesPerRemoval)
		if len(few) == 0 {
			return removed, nil
		}
		var patches []any
		for _, n := range few {
			patches = append(patches, w.patches("remove", n)...)
		}
		n, err := w.remove(ctx, patches)
		if err != nil {
			return removed, err
		}
		removed += n
	}
}

func (w *workload) remove(ctx context.Context, patches []any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := rpcBody("knowledge/update", map[string]any{"mutations": patches, "justification": "The end of a benchmark"})
	if err != nil {
		return 0, err
	}
	text, err := w.answer(ctx, w.base, benchRequest{path: "/a2a", body: body})
	if err != nil {
		return 0, err
	}
	result, err := rpcResult(bytes.TrimSpace(text))
	if err != nil {
		return 0, err
	}
	var answer struct {
		StatementsAffected int `json:"statementsAffected"`
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return 0, fmt.Errorf("the server's answer: %w", err)
	}
	return answer.StatementsAffected, nil
}
