// Package slowtest helps tests that are slow with the race detector.
//
// WithoutRace skips a test that takes minutes with the race detector. The tests part of
// .ci/run runs it without: it finds such tests by their first line, which calls
// WithoutRace. Slack extends the time limits of tests.
package slowtest

import (
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

// WithoutRace skips the test if the race detector is on.
func WithoutRace(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("NOT TESTED: takes minutes with the race detector, run it without")
	}
}
