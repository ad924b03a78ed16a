package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"koine/internal/jobs"
)

type lineWriter chan string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// TestGroup proves that a job which fails is logged once and ends no other, and that Stop ends all jobs and
// waits for them.
func TestGroup(t *testing.T) {
	lines := make(chan string, 2)
	g := jobs.NewGroup(slog.New(slog.NewTextHandler(lineWriter(lines), nil)))
	var ended atomic.Int64
	for range 3 {
		g.Start("works", func(ctx context.Context) error {
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		})
	}
	g.Start("fails", func(context.Context) error { return errors.New("broken") })
	if line := <-lines; !strings.Contains(line, "job=fails error=broken") {
		t.Errorf("logged: %s", line)
	}
	if n := ended.Load(); n != 0 {
		t.Errorf("%d jobs ended with the one that failed", n)
	}
	g.Stop()
	if n := ended.Load(); n != 3 {
		t.Errorf("%d jobs have ended, want 3", n)
	}
	if len(lines) > 0 {
		t.Errorf("logged as well: %s", <-lines)
	}
	g.Start("late", func(context.Context) error { t.Error("started after Stop"); return nil })
	g.Stop()
}
