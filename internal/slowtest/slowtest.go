// Package slowtest helps tests that are slow with the race detector.
//
// WithoutRace skips a test that takes long with the race detector, and in which little runs at
// once. The tests part of
// .ci/run runs it without: it finds such tests by their first line, which calls
// WithoutRace. Slack extends the time limits of tests; Context bounds calls that could
// hang.
//
// Long skips a test of more than about half a second with -short, which keeps
// make quick short. What such a test proves at length, a quicker one proves of less. Size makes a test
// quicker: it is smaller with -short.
package slowtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Slack returns d, or ten times d with the race detector.
func Slack(d time.Duration) time.Duration {
	if raceDetector {
		return 10 * d
	}
	return d
}

// Context returns a context for calls that end within two minutes unless they hang. It
// outlives t.Context, for the cleanup of the test.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Slack(2*time.Minute))
	t.Cleanup(cancel)
	return ctx
}

// WithoutRace skips the test if the race detector is on.
func WithoutRace(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("NOT TESTED: takes long with the race detector, run it without")
	}
}

// Long skips the test with -short, and says how to run it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skipf("NOT TESTED with -short: takes long; run go test -run '^%s$' %s", t.Name(), packageFolder())
	}
}

// Size returns the size of a test: full, or quick with -short.
func Size(full, quick int) int {
	if testing.Short() {
		return quick
	}
	return full
}

// packageFolder returns the folder of the package under test, relative to the module.
func packageFolder() string {
	here, err := os.Getwd()
	if err != nil {
		return "."
	}
	for root := here; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			if folder, err := filepath.Rel(root, here); err == nil {
				return "./" + filepath.ToSlash(folder)
			}
		}
		if root == filepath.Dir(root) {
			return "."
		}
	}
}
