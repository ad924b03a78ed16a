package kg

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestBulkLoadIsBounded proves that what lies beyond the bounds of a bulk load, in
// statements or in the text of their terms, goes the way of all updates.
func TestBulkLoadIsBounded(t *testing.T) {
	const quads, each = 30_000, 100 // bytes of text at least: three commits of a bulk load
	source := func(yield func(Quad, error) bool) {
		for i := range quads {
			q := numbered(0)
			q.Object = String(fmt.Sprint(i, strings.Repeat("x", each)))
			if !yield(q, nil) {
				return
			}
		}
	}
	const online = DefaultLoadCommit / onlineCommitQuads // commits of a batch beyond
	for _, row := range []struct {
		name    string
		options Options
		commits uint64
	}{
		{"below", Options{}, 3},
		{"statements, at the bound", Options{bulkQuads: 2 * DefaultLoadCommit}, 2 + online},
		{"statements, past it", Options{bulkQuads: 2*DefaultLoadCommit + 1}, 3},
		{"text", Options{bulkTextBytes: each * DefaultLoadCommit}, 1 + 2*online},
		{"text, past it", Options{bulkTextBytes: 2 * each * quads}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := Open(t.TempDir(), row.options)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			report, err := s.Load(context.Background(), Meta{}, source, LoadOptions{})
			if err != nil || !report.Bulk || report.Statements != quads || report.Commits != row.commits {
				t.Errorf("got %+v, %v, want a bulk load of %d statements in %d commits", report, err, quads, row.commits)
			}
			check, err := s.Check(context.Background(), CheckOptions{})
			if err != nil || !check.Clean() {
				t.Errorf("Check: %+v, %v", check, err)
			}
		})
	}
}
