package main

import (
	"context"
	"errors"
	"fmt"

	"koine/internal/rdf"
	"koine/internal/social"
	"koine/kg"
)

// maxBenchStatements bounds --statements.
const maxBenchStatements = 1_000_000_000

// writeSocialNetwork writes a synthetic social network as N-Quads. Its content depends on
// --statements only.
func (c *benchCommand) writeSocialNetwork(ctx context.Context, t terminal) error {
	if c.Statements < 1 || c.Statements > maxBenchStatements {
		return usageError{fmt.Errorf("--statements must be between 1 and %d", maxBenchStatements)}
	}
	w := rdf.NewWriter(t.out, rdf.NQuads, rdf.WriteOptions{})
	for q := range social.Statements(c.Statements, kg.DefaultGraph) {
		err := ctx.Err()
		if err == nil {
			err = w.Write(q)
		}
		if err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}
