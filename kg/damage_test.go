package kg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// small is a store of few commits in a log of several files, closed.
func small(t *testing.T) (dir string, want *record) {
	dir = t.TempDir()
	s := openStore(t, dir, tinyLog())
	newWorker(7, "w").work(t, s, 12)
	want = recordOf(t, s)
	mustClose(t, s)
	return dir, want
}

// tinyLog has a few commits in each file of the log.
func tinyLog() kg.Options {
	return smallOptions().WithFaults(kg.Faults{LogSegmentBytes: 1 << 10})
}

func filesOf(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	return paths
}

// A file of the log is missing, or the log is an earlier version, or another one with the
// same epoch.
func TestLogIsNotTheOne(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	w := newWorker(8, "w")
	w.work(t, s, 6)
	mustClose(t, s)
	earlier := filepath.Join(t.TempDir(), "earlier")
	copyTree(t, dir, earlier, nil)
	other := filepath.Join(t.TempDir(), "other")
	copyTree(t, dir, other, nil)
	s = openStore(t, other, tinyLog())
	newWorker(9, "o").work(t, s, 8)
	mustClose(t, s)
	s = openStore(t, dir, tinyLog())
	w.work(t, s, 6)
	want := recordOf(t, s)
	mustClose(t, s)
	// A file is named by the revision of its first entry. The last one may have none yet.
	segments := slices.DeleteFunc(filesOf(t, filepath.Join(dir, "log", "*.wal")), func(path string) bool {
		return filepath.Base(path) > fmt.Sprintf("%020d~", want.head)
	})
	for name, spoil := range map[string]func(dir string){
		"an earlier log": func(dir string) {
			remove(t, dir, "log")
			copyTree(t, filepath.Join(earlier, "log"), filepath.Join(dir, "log"), nil)
		},
		"another log": func(dir string) {
			remove(t, dir, "log")
			copyTree(t, filepath.Join(other, "log"), filepath.Join(dir, "log"), nil)
		},
		"no log":          func(dir string) { remove(t, dir, "log") },
		"first file gone": func(dir string) { remove(t, dir, "log/"+filepath.Base(segments[0])) },
		"last file gone":  func(dir string) { remove(t, dir, "log/"+filepath.Base(segments[len(segments)-1])) },
		"metadata gone":   func(dir string) { remove(t, dir, "log/meta-a", "log/meta-b") },
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := filepath.Join(t.TempDir(), "spoiled")
			copyTree(t, dir, spoiled, nil)
			spoil(spoiled)
			for range 2 { // opening does not make it better
				s := openStore(t, spoiled, tinyLog())
				if got := kg.CodeOf(s.Ready()); got != kg.CodeLogDamaged {
					t.Errorf("Ready: %q (%v), want LOG_DAMAGED", got, s.Ready())
				}
				if got := s.Head().Revision; got != want.head {
					t.Errorf("at revision %d, want %d", got, want.head)
				}
				if got := statements(t, s, 0); !slices.Equal(got, want.statements[want.head]) {
					t.Errorf("the statements are %v, want %v", got, want.statements[want.head])
				}
				meta, patches := w.update()
				if _, err := s.Update(within(t), meta, apply(patches)); kg.CodeOf(err) != kg.CodeLogDamaged {
					t.Errorf("Update: %v, want LOG_DAMAGED", err)
				}
				if _, err := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(5), kg.LoadOptions{}); kg.CodeOf(err) != kg.CodeLogDamaged {
					t.Errorf("Load: %v, want LOG_DAMAGED", err)
				}
				if err := s.Maintenance().CutLog(within(t), 2); kg.CodeOf(err) != kg.CodeLogDamaged {
					t.Errorf("CutLog: %v, want LOG_DAMAGED", err)
				}
				mustClose(t, s)
			}
		})
	}
}

// Marks beside the index: with the mark of a bulk load or rebuild under way the index is
// rebuilt, also if it seems intact; without the mark of an orderly close the memtables do
// not count.
func TestSignsBesideTheIndex(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir, want := small(t)
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"building": func(t *testing.T, dir string) { write(t, dir, "index.building", "") },
		"building, index wrong": func(t *testing.T, dir string) {
			spoilIndex(t, dir)
			write(t, dir, "index.building", "")
		},
		"building, index in ruins": func(t *testing.T, dir string) {
			write(t, dir, "index.building", "")
			for _, path := range filesOf(t, filepath.Join(dir, "index", "*")) {
				write(t, path, "", "ruins")
			}
		},
		"index in ruins": func(t *testing.T, dir string) {
			for _, path := range filesOf(t, filepath.Join(dir, "index", "*")) {
				write(t, path, "", "ruins")
			}
		},
		"manifest gone":    func(t *testing.T, dir string) { remove(t, dir, "index/MANIFEST") },
		"not closed":       func(t *testing.T, dir string) { remove(t, dir, "index/CLEAN") },
		"a table gone":     func(t *testing.T, dir string) { remove(t, dir, tableOf(t, dir)) },
		"a table is empty": func(t *testing.T, dir string) { write(t, dir, tableOf(t, dir), "") },
		"index of another": func(t *testing.T, dir string) { replaceIndex(t, dir) },
		"remains of writing": func(t *testing.T, dir string) {
			write(t, dir, "koine.json.tmp", "{")
			write(t, dir, "index.building.tmp", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := filepath.Join(t.TempDir(), "spoiled")
			copyTree(t, dir, spoiled, nil)
			spoil(t, spoiled)
			s := openStore(t, spoiled, tinyLog())
			want.restored(t, s)
			mustClose(t, s)
			if _, err := os.Stat(filepath.Join(spoiled, "index.building")); !os.IsNotExist(err) {
				t.Errorf("index.building: %v, want it gone", err)
			}
			mustCheck(t, openStore(t, spoiled, tinyLog()))
		})
	}
}

// spoilIndex takes a fifth of the rows out of an index, which does not notice.
func spoilIndex(t *testing.T, dir string) {
	t.Helper()
	editRows(func(rows []string) (_, gone []string) {
		for i := 0; i < len(rows); i += 5 {
			gone = append(gone, rows[i])
		}
		return nil, gone
	})(t, dir)
}

func tableOf(t *testing.T, dir string) string {
	return "index/" + filepath.Base(filesOf(t, filepath.Join(dir, "index", "*.sst"))[0])
}

func replaceIndex(t *testing.T, dir string) {
	other, _ := small(t)
	remove(t, dir, "index")
	copyTree(t, filepath.Join(other, "index"), filepath.Join(dir, "index"), nil)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
