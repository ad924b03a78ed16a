package kg

import (
	"errors"
	"testing"
)

// A graph is dropped only if it did not change after the expected revision, and takes no
// changes until it is decided whether it is.
func TestDropUnchangedGraph(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	m := Meta{Principal: SystemPrincipal()}
	replaceWith(t, s, m, wholeQuads(0, 3))
	add := func(i int) error {
		_, err := s.Update(t.Context(), m, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: wholeQuad(i)}) })
		return err
	}
	expected := s.Head().Revision
	if err := add(3); err != nil {
		t.Fatal(err)
	}
	m.HasExpected, m.ExpectedRevision = true, expected
	called := false
	_, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{Bury: func() error { called = true; return nil }})
	if CodeOf(err) != CodeRevisionConflict || called {
		t.Errorf("a graph that changed: %v, buried: %v", err, called)
	}
	m.ExpectedRevision = s.Head().Revision
	no := errors.New("no")
	_, err = s.DropGraph(t.Context(), m, wholeGraph, DropOptions{Bury: func() error {
		m := Meta{Principal: SystemPrincipal()}
		_, err := s.Update(t.Context(), m, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: wholeQuad(9)}) })
		if CodeOf(err) != CodeOverloaded {
			t.Errorf("a change meanwhile: %v", err)
		}
		return no
	}})
	if !errors.Is(err, no) {
		t.Errorf("one that is not buried: %v", err)
	}
	if got := holdsAt(t, s, s.Head().Revision); len(got) != 4 {
		t.Errorf("the graph holds %v", got)
	}
	if d, err := s.DropGraph(t.Context(), Meta{Principal: SystemPrincipal()}, wholeGraph, DropOptions{Still: func() bool { return false }}); err != nil || d.Removed != 0 {
		t.Errorf("one that is in use again: %+v, %v", d, err)
	}
	m.ExpectedRevision = s.Head().Revision
	d, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{Bury: func() error { return nil }})
	if err != nil || d.Removed != 4 {
		t.Errorf("one that did not change: %+v, %v", d, err)
	}
	m.ExpectedRevision = s.Head().Revision
	if d, err = s.DropGraph(t.Context(), m, IRI("urn:never"), DropOptions{Bury: func() error { return nil }}); err != nil || d.Removed != 0 {
		t.Errorf("one that nothing was written to: %+v, %v", d, err)
	}
	mustBeClean(t, s)
}
