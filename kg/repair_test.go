package kg_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/kg"
	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

func repair(t *testing.T, dir string) (kg.RepairReport, error) {
	t.Helper()
	return kg.Repair(within(t), dir, tinyLog(), kg.CheckOptions{})
}

// repaired fails the test unless a repair reports its actions, once, and all of the record
// is there afterwards.
func repaired(t *testing.T, dir string, want *record, said ...string) {
	t.Helper()
	r, err := repair(t, dir)
	if err != nil || r.Check == nil || !r.Check.Clean() || len(r.Done) != len(said) {
		t.Fatalf("Repair: %+v, %v; want it to say %q", r, err, said)
	}
	for i, part := range said {
		if !strings.Contains(r.Done[i], part) {
			t.Errorf("it says %q, want %q in it", r.Done[i], part)
		}
	}
	if r, err := repair(t, dir); err != nil || len(r.Done) != 0 || !r.Check.Clean() {
		t.Errorf("Repair again: %+v, %v", r, err)
	}
	s := openStore(t, dir, tinyLog())
	if report, err := s.Maintenance().Check(within(t), kg.CheckOptions{Checkpoints: true}); err != nil || !report.Clean() {
		t.Errorf("Check: %+v, %v", report, err)
	}
	want.restored(t, s)
}

func TestRepair(t *testing.T) {
	t.Parallel()
	dir, want := small(t)
	cut := filepath.Join(t.TempDir(), "cut")
	copyTree(t, dir, cut, nil)
	s := openStore(t, cut, tinyLog())
	if _, err := s.Maintenance().Checkpoint(within(t)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	cutLog(t, cut, 6)
	for name, row := range map[string]struct {
		dir   string
		spoil func(t *testing.T, dir string)
		said  []string
	}{
		"nothing wrong":     {dir, func(*testing.T, string) {}, nil},
		"rows missing":      {dir, spoilIndex, []string{"built again: it had"}},
		"index in ruins":    {dir, ruinIndex, []string{"built again: "}},
		"no index":          {dir, func(t *testing.T, dir string) { remove(t, dir, "index") }, nil},
		"bad checkpoint":    {cut, func(t *testing.T, dir string) { damage(t, checkpointOf(t, dir), "bit") }, []string{"was removed", "was written"}},
		"no checkpoint":     {cut, func(t *testing.T, dir string) { remove(t, dir, "checkpoints") }, []string{"was written"}},
		"half checkpoint":   {dir, func(t *testing.T, dir string) { addBadCheckpoint(t, cut, dir) }, []string{"was removed"}},
		"cut, rows missing": {cut, spoilIndex, []string{"built again"}},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := filepath.Join(t.TempDir(), "spoiled")
			copyTree(t, row.dir, spoiled, nil)
			row.spoil(t, spoiled)
			before := logBytes(t, spoiled)
			repaired(t, spoiled, want, row.said...)
			if row.said != nil && !strings.HasPrefix(logBytes(t, spoiled), before) {
				t.Error("the log is another one")
			}
		})
	}
}

func ruinIndex(t *testing.T, dir string) {
	for _, path := range filesOf(t, filepath.Join(dir, "index", "*")) {
		write(t, path, "", "ruins")
	}
}

func checkpointOf(t *testing.T, dir string) string {
	return filesOf(t, filepath.Join(dir, "checkpoints", "*"))[0]
}

func addBadCheckpoint(t *testing.T, from, dir string) {
	copyTree(t, filepath.Join(from, "checkpoints"), filepath.Join(dir, "checkpoints"), nil)
	damage(t, checkpointOf(t, dir), "half")
}

// logBytes is the content of a closed log.
func logBytes(t *testing.T, dir string) string {
	t.Helper()
	l, err := wal.Open(filepath.Join(dir, "log"), wal.Options{SegmentBytes: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all strings.Builder
	for e, err := range l.Entries(l.First(), l.Last()) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%d %x\n", e.Index, e.Payload)
	}
	return all.String()
}

// Damage outside of the derived parts is left alone and reported: a damaged log, a log that
// no index can be built from, changed files.
func TestRepairRefuses(t *testing.T) {
	t.Parallel()
	dir, _ := small(t)
	for name, row := range map[string]struct {
		spoil func(t *testing.T, dir string)
		code  kg.Code
	}{
		"bad byte in the log": {func(t *testing.T, dir string) {
			if err := waltest.Flip(filesOf(t, filepath.Join(dir, "log", "*.wal"))[1], 200, 1); err != nil {
				t.Fatal(err)
			}
		}, kg.CodeLogDamaged},
		"log gone": {func(t *testing.T, dir string) { remove(t, dir, "log") }, kg.CodeLogDamaged},
		"cut log, neither index nor checkpoint": {func(t *testing.T, dir string) {
			cutLog(t, dir, 6)
			remove(t, dir, "index")
		}, kg.CodeLogDamaged},
		"cut log, wrong index, no checkpoint": {func(t *testing.T, dir string) {
			spoilIndex(t, dir)
			cutLog(t, dir, 6)
		}, kg.CodeLogDamaged},
		"prefixes changed": {func(t *testing.T, dir string) {
			write(t, dir, "prefixes.json", `{"version":1,"prefixes":{"ex":"urn:x:"},"checksum":"00000000"}`)
		}, kg.CodeFormatUnknown},
		"no epoch": {func(t *testing.T, dir string) { write(t, dir, "koine.json", "{}") }, kg.CodeFormatUnknown},
	} {
		spoiled := filepath.Join(t.TempDir(), "spoiled")
		copyTree(t, dir, spoiled, nil)
		row.spoil(t, spoiled)
		names := func() []string {
			var out []string
			for _, p := range filesOf(t, filepath.Join(spoiled, "*")) {
				out = append(out, filepath.Base(p))
			}
			return out
		}
		before := names()
		if r, err := repair(t, spoiled); kg.CodeOf(err) != row.code {
			t.Errorf("%s: %+v, %v; want %s", name, r, err, row.code)
		}
		for _, file := range before {
			if !slices.Contains(names(), file) {
				t.Errorf("%s: %s is gone", name, file)
			}
		}
	}
}
