package kg

import (
	"context"
	"slices"
	"testing"

	"koine/kg/internal/keys"
)

// TestNobodyReadsALostIndex proves that a bulk load which fails while it writes
// the index, and so has dropped what was there, leaves nothing to be mistaken for
// the store, and that opening it again brings everything back.
func TestNobodyReadsALostIndex(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	quad := Quad{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: IRI("urn:o"), Graph: SystemGraph}
	if _, err := s.Update(ctx, Meta{}, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: quad}) }); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	s.exclusive <- func() { failed <- loadAndFail(s) }
	if err := <-failed; CodeOf(err) != CodeOutcomeUnknown {
		t.Fatalf("the load: got %v, want %s", err, CodeOutcomeUnknown)
	}
	if _, err := s.View(ctx, View{AllGraphs: true}); CodeOf(err) != CodeReadOnly {
		t.Errorf("View: got %v, want %s", err, CodeReadOnly)
	}
	if _, err := s.Update(ctx, Meta{DryRun: true}, func(*Tx) error { return nil }); CodeOf(err) != CodeReadOnly {
		t.Errorf("a dry run: got %v, want %s", err, CodeReadOnly)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	snap, err := s.View(ctx, View{AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	if n, err := snap.scanCount(IDPattern{}); n != 2 || err != nil {
		t.Errorf("opened again: %d statements, %v, want 2", n, err)
	}
}

// loadAndFail loads a statement in bulk and cannot write a key from before, which
// comes twice.
func loadAndFail(s *Store) error {
	l := &load{s: s, ctx: context.Background()}
	if err := l.meta.normalise(); err != nil {
		return err
	}
	kept, _, err := s.keptByBulk()
	if err != nil {
		return err
	}
	quad := slices.IndexFunc(kept, func(k keyValue) bool { return k.key[0] == byte(keys.SPOG) })
	b, err := newBulk(s, l.meta, slices.Insert(kept, quad, kept[quad]))
	if err != nil {
		return err
	}
	if _, err := b.add([]Quad{{Subject: IRI("urn:s"), Predicate: IRI("urn:p"), Object: IRI("urn:o"), Graph: DefaultGraph}}); err != nil {
		return err
	}
	return b.finish(l)
}
