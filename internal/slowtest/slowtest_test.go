package slowtest_test

import (
	"fmt"
	"runtime"
	"testing"

	"koine/internal/slowtest"
)

// recorder notes how a test was skipped.
type recorder struct {
	testing.TB
	skipped string
}

func (r *recorder) Helper() {}

func (r *recorder) Name() string { return "TestLong" }

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A skipped test names the command that runs it.
func TestLong(t *testing.T) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		slowtest.Long(r)
	}()
	<-done
	want := ""
	if testing.Short() {
		want = "NOT TESTED with -short: takes long; run go test -run '^TestLong$' ./internal/slowtest"
	}
	if r.skipped != want {
		t.Errorf("got %q, want %q", r.skipped, want)
	}
}
