package kg_test

import (
	"os"
	"testing"
)

// TestMain lets the test binary be the child process of TestKill.
func TestMain(m *testing.M) {
	if job := os.Getenv(childVariable); job != "" {
		beKilled(job)
	}
	os.Exit(m.Run())
}
