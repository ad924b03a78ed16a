// Package slowtest is for tests that the race detector slows down.
//
// Those that take minutes with it are kept out of runs with it by WithoutRace. The tests
// part of .ci/run runs them without: it finds them by their first line, which calls it.
// Those that measure a time ask Slack for what it may be.
package slowtest

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Slack is d, or ten times d with the race detector.
func Slack(d time.Duration) time.Duration {
	if raceDetector {
		return 10 * d
	}
	return d
}

// WithoutRace skips a test that runs with the race detector, and says so on standard
// error, whatever go test shows.
func WithoutRace(t testing.TB) {
	t.Helper()
	if raceDetector {
		fmt.Fprintf(os.Stderr, "NOT TESTED with the race detector: %s, which takes minutes with it: run it without\n", t.Name())
		t.Skip("takes minutes with the race detector")
	}
}
