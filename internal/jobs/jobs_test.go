package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// Deadlines are run at or after their times, the first ones first, and some in each call; what is
// scheduled again meanwhile is run again.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l := jobs.NewDeadlines[string](time.Now, time.Second)
		l.Schedule("a", began.Add(3*time.Second))
		l.Schedule("b", began.Add(2*time.Second))
		l.Schedule("c", began.Add(2*time.Second+1))
		l.Schedule("d", began.Add(time.Second))
		l.Schedule("d", time.Time{})
		l.ScheduleBy("a", began.Add(4*time.Second)) // is later
		l.ScheduleBy("c", began.Add(time.Second))
		l.ScheduleBy("e", began.Add(5*time.Second))
		if n := l.Len(); n != 4 {
			t.Errorf("%d are scheduled, want 4", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		failed := false
		err := l.Run(ctx, 1, func(_ context.Context, list []string) error {
			got = append(got, fmt.Sprintf("%v after %s", list, time.Since(began)))
			if list[0] == "a" && !failed {
				failed = true
				return errors.New("busy")
			}
			l.Schedule(list[0], time.Time{})
			if list[0] == "e" {
				cancel()
			}
			return nil
		})
		if want := []string{"[c] after 1s", "[b] after 2s", "[a] after 3s", "[a] after 4s", "[e] after 5s"}; !slices.Equal(got, want) || err != nil {
			t.Errorf("the runs are %q, want %q: %v", got, want, err)
		}
	})
}
