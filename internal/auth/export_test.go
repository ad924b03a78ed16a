package auth

import (
	"context"
	"fmt"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Sessions returns the number of active sessions.
func (g *Gate) Sessions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions)
}

// FillKeys creates n keys of one agent that nobody can use.
func FillKeys(ctx context.Context, store *kg.Store, n int) error {
	return systemgraph.Update(ctx, store, kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
		for i := range n {
			key := Key{Agent: "agent://filler", Mode: Live, hash: "x", Created: tx.Time()}
			if err := systemgraph.Write(tx, kg.SystemGraph, subjectOf(fmt.Sprintf("%012d", i)), key.toRecord()); err != nil {
				return err
			}
		}
		return nil
	})
}
