package kg_test

import (
	"path/filepath"
	"testing"

	"koine/kg"
	"koine/kg/internal/wal/waltest"
)

// Damage in an old part of the log, which opening does not read, ends updates although no
// reader needs that part.
func TestScrubFindsOldDamage(t *testing.T) {
	dir, want := small(t)
	segment := filesOf(t, filepath.Join(dir, "log", "*.wal"))[0]
	n, err := waltest.Written(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := waltest.Flip(segment, n/2, 1); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dir, tinyLog())
	defer s.Close()
	select { // opening has waited for it, but for a very slow machine
	case <-s.Scrubbed():
	case <-within(t).Done():
		t.Fatal("the log was not read through in time")
	}
	if code := kg.CodeOf(s.Ready()); code != kg.CodeLogDamaged {
		t.Errorf("Ready: got %q, want %s", code, kg.CodeLogDamaged)
	}
	want.agrees(t, s) // the content of the index is still correct
}
