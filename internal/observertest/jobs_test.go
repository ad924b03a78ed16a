package observertest

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"koine/kg"
)

// TestNothingRunsAfterClose proves that the observers of a server end all that they run in the background.
func TestNothingRunsAfterClose(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer()
	if err := s.load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	awaitGoroutines(t, "koine/internal/jobs", true)
	s.close()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	awaitGoroutines(t, "koine/", false)
}

// awaitGoroutines waits until other goroutines are in a function whose name contains the text, or none is.
func awaitGoroutines(t *testing.T, text string, want bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); strings.Contains(goroutines(), text) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("goroutines in %s: want %t; there are\n%s", text, want, goroutines())
		}
	}
}

// goroutines returns the stacks of all other goroutines.
func goroutines() string {
	buf := make([]byte, 1<<20)
	_, others, _ := strings.Cut(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	return others
}
