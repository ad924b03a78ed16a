// Package slowtest keeps tests that take minutes with the race detector out of runs with
// it. The tests part of .ci/run runs them without: it finds them by their first line,
// which calls WithoutRace.
package slowtest

import (
	"fmt"
	"os"
	"testing"
)

// WithoutRace skips a test that runs with the race detector, and says so on standard
// error, whatever go test shows.
func WithoutRace(t testing.TB) {
	t.Helper()
	if raceDetector {
		fmt.Fprintf(os.Stderr, "NOT TESTED with the race detector: %s, which takes minutes with it: run it without\n", t.Name())
		t.Skip("takes minutes with the race detector")
	}
}
