package kgtest

import "testing"

// size returns the size of a test: full, or quick with -short.
func size(full, quick int) int {
	if testing.Short() {
		return quick
	}
	return full
}

// long skips a part of the suite with -short, and says how to run it. What it proves is proved of
// less, or of other data, by another part.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skipf("NOT TESTED with -short: takes long; run go test -run '^%s$' ./kg", t.Name())
	}
}
