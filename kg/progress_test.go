package kg_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"koine/kg"
)

// A start that applies the log for longer than a second logs about once a second how far
// it is, and at the end how long it took. A short one logs neither.
func TestReplayLogsItsProgress(t *testing.T) {
	t.Parallel()
	const commits = 20
	dir, killed := t.TempDir(), filepath.Join(t.TempDir(), "killed")
	s := openStore(t, dir, smallOptions())
	for i := range commits {
		q := kg.Quad{Subject: kg.IRI("https://example.org/s"), Predicate: kg.IRI("https://example.org/p"), Object: kg.Integer(int64(i))}
		if _, err := s.Update(within(t), kg.Meta{Principal: tester}, add(q)); err != nil {
			t.Fatal(err)
		}
	}
	copyTree(t, dir, killed, nil)
	mustClose(t, s)
	for _, row := range []struct {
		name  string
		entry time.Duration // how long one takes
		want  []string
	}{
		{"slow", 400 * time.Millisecond, []string{"done=3 of=20 seconds=1.2", "done=6 of=20 seconds=2.4", "done=18 of=20 seconds=7.2", `index: done" done=20 of=20 seconds=8.4`}},
		{"fast", 40 * time.Millisecond, nil},
	} {
		var log bytes.Buffer
		uptime := time.Duration(0)
		o := smallOptions()
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Uptime = func() time.Duration { uptime += row.entry; return uptime }
		dir := t.TempDir()
		copyTree(t, killed, dir, nil)
		s := openStore(t, dir, o)
		mustClose(t, s)
		for _, want := range row.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log lacks %s:\n%s", row.name, want, &log)
			}
		}
		if n := strings.Count(log.String(), " of=20 "); row.want == nil && n > 0 || n > 7 {
			t.Errorf("%s: %d lines of progress:\n%s", row.name, n, &log)
		}
		if got := s.Stats().ReplayedOpen; got != commits {
			t.Errorf("%s: %d commits were applied again, want %d", row.name, got, commits)
		}
	}
}
