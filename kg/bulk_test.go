package kg_test

import (
	"path/filepath"
	"testing"

	"koine/kg"
)

// A bulk load is in the index for good when it is answered: a stop out of order
// right afterwards, which costs the memtables, applies none of it again.
func TestStopRightAfterBulkLoad(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, kg.Options{})
	own := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:o"), Graph: kg.SystemGraph}
	if _, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Add, Quad: own}) }); err != nil {
		t.Fatal(err)
	}
	report, err := s.Load(within(t), kg.Meta{}, manyQuads(30_000), kg.LoadOptions{})
	if err != nil || !report.Bulk {
		t.Fatalf("%+v, %v", report, err)
	}
	stopped := filepath.Join(t.TempDir(), "stopped")
	copyTree(t, dir, stopped, nil)
	again := openStore(t, stopped, kg.Options{})
	if n := again.Stats().ReplayedOpen; n != 0 {
		t.Errorf("%d commits were applied again, want none", n)
	}
	mustCheck(t, again)
}
