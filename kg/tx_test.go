package kg_test

import (
	"bytes"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// TestFailedPatchUndoesItsUpdate proves it for an update that passes over the
// error: half a patch is none.
func TestFailedPatchUndoesItsUpdate(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	bad := integer(2)
	bad.Subject = kg.String("no subject")
	receipt, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error {
		for _, q := range []kg.Quad{integer(1), bad, integer(3)} {
			_ = tx.Apply(kg.Patch{Op: kg.Add, Quad: q})
		}
		return nil
	})
	if kg.CodeOf(err) != kg.CodeInvalid || s.Head().Revision != 0 {
		t.Errorf("got %+v, %v at revision %d, want %s and no commit", receipt, err, s.Head().Revision, kg.CodeInvalid)
	}
}

// TestProvenanceIsTheStoresOwn proves that a caller may use its bytes again:
// watchers get a commit from memory.
func TestProvenanceIsTheStoresOwn(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	provenance := []byte(`{"page":1}`)
	want := bytes.Clone(provenance)
	_, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: integer(1), Provenance: provenance})
	})
	if err != nil {
		t.Fatal(err)
	}
	clear(provenance)
	events, err := kgtest.Watched(within(t), s, kg.Filter{}, s.Oldest(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := events[0].Statement.Assertions[0].Provenance; !bytes.Equal(got, want) {
		t.Errorf("a watcher sees the provenance %q, want %q", got, want)
	}
}
