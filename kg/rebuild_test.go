package kg_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// An index that grew with its store, one made from the log alone, and one made from a
// checkpoint and the log behind it are equal: every key and value with the dictionary's
// numbers, and the export of the present and of older revisions byte for byte.
func TestRebuildIsIdentical(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, s *kg.Store){
		"updates": func(*testing.T, *kg.Store) {},
		"bulk load first": func(t *testing.T, s *kg.Store) {
			report, err := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(10_050), kg.LoadOptions{})
			if err != nil || !report.Bulk || report.Commits != 2 {
				t.Fatalf("Load: %+v, %v", report, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, tinyLog())
			prepare(t, s)
			w := newWorker(12, "w")
			w.work(t, s, 30)
			at := []kg.Revision{1, s.Head().Revision}
			if r, err := s.Maintenance().Checkpoint(within(t)); err != nil || r != s.Head().Revision {
				t.Fatalf("Checkpoint: %d, %v", r, err)
			}
			mustHavePast(t, s)
			w.work(t, s, 20)
			at = append(at, s.Head().Revision-7, s.Head().Revision)
			want := imageOf(t, s, at)
			mustClose(t, s)
			for how, begin := range map[string]kg.Revision{"log alone": 1, "checkpoint and log": 1, "checkpoint and what follows": at[1] + 1} {
				t.Run(how, func(t *testing.T) {
					again := filepath.Join(t.TempDir(), "again")
					copyTree(t, dir, again, nil)
					if how == "log alone" {
						remove(t, again, "checkpoints")
					}
					cutLog(t, again, begin)
					o := tinyLog()
					o.Rebuild = true
					s := openStore(t, again, o)
					if got := s.Stats().ReplayedOpen; how != "log alone" && got != 20 {
						t.Errorf("%d commits were applied from the log, want 20", got)
					}
					want.equals(t, imageOf(t, s, at))
					mustCheck(t, s)
				})
			}
		})
	}
}

// mustHavePast fails the test when there is no past to be restored.
func mustHavePast(t *testing.T, s *kg.Store) {
	t.Helper()
	rows, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, "18") }) {
		t.Fatal("the store has no past")
	}
}

// image is the content of an index and its export.
type image struct {
	rows    []string
	exports map[kg.Revision][]string
}

func (m image) equals(t *testing.T, got image) {
	t.Helper()
	equalLines(t, "the index", m.rows, got.rows)
	for r, want := range m.exports {
		equalLines(t, fmt.Sprint("the export of revision ", r), want, got.exports[r])
	}
}

// equalLines shows where lists begin to differ that are too long for more.
func equalLines(t testing.TB, what string, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Errorf("%s has %d lines, want %d, and differs from line %d on:\n-%q\n+%q", what, len(got), len(want), i,
				want[min(i, len(want)):min(i+3, len(want))], got[min(i, len(got)):min(i+3, len(got))])
			return
		}
	}
}

func imageOf(t *testing.T, s *kg.Store, at []kg.Revision) image {
	t.Helper()
	rows, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	m := image{rows, make(map[kg.Revision][]string)}
	for _, r := range at {
		m.exports[r] = statements(t, s, r)
	}
	return m
}
