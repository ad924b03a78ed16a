package kg_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// An index that grew with its store, one made from the log alone, and one made
// from a checkpoint and the log behind it are the same: every key and value with
// the dictionary's numbers, and the export of the present and of older
// revisions byte for byte.
func TestRebuildIsIdentical(t *testing.T) {
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
			if r, err := s.Checkpoint(within(t)); err != nil || r != s.Head().Revision {
				t.Fatalf("Checkpoint: %d, %v", r, err)
			}
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
					if diff := cmp.Diff(want, imageOf(t, s, at)); diff != "" {
						t.Errorf("the rebuilt index differs (-grown +rebuilt):\n%s", diff)
					}
					mustCheck(t, s)
				})
			}
		})
	}
}

// image is what an index holds and what is exported from it.
type image struct {
	Rows    []string
	Exports map[kg.Revision]string
}

func imageOf(t *testing.T, s *kg.Store, at []kg.Revision) image {
	t.Helper()
	rows, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	m := image{rows, make(map[kg.Revision]string)}
	for _, r := range at {
		m.Exports[r] = strings.Join(statements(t, s, r), "\n")
	}
	return m
}
