package kg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/internal/wal/waltest"
)

// faulty is a store over a file system that fails on request.
type faulty struct {
	*kg.Store
	t     *testing.T
	dir   string
	files *waltest.Files
	o     kg.Options
}

func newFaulty(t *testing.T) *faulty {
	f := &faulty{t: t, dir: t.TempDir(), files: waltest.New()}
	f.o = smallLog(kg.Faults{LogFiles: f.files})
	f.Store = openStore(t, f.dir, f.o)
	return f
}

// powerCut is the directory that a power cut would leave now, with the first
// keep bytes of those that no sync has covered.
func (f *faulty) powerCut(keep int) (dir string) {
	f.t.Helper()
	dir = filepath.Join(f.t.TempDir(), "cut")
	copyTree(f.t, f.dir, dir, func(path string) bool { return strings.HasPrefix(path, "log/") })
	if err := f.files.PowerCut(filepath.Join(f.dir, "log"), filepath.Join(dir, "log"), keep); err != nil {
		f.t.Fatal(err)
	}
	return dir
}

// Power cuts between updates, with the index as it is, older, and without its
// memtable files.
func TestPowerCutBetweenUpdates(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	f := newFaulty(t)
	w := newWorker(4, "w")
	older := filepath.Join(t.TempDir(), "older")
	for i := range 6 {
		w.work(t, f.Store, 3)
		if i == 2 {
			copyTree(t, filepath.Join(f.dir, "index"), older, nil)
		}
		want := recordOf(t, f.Store)
		for name, spoil := range map[string]func(dir string){
			"index as it is":   func(string) {},
			"an earlier form":  func(dir string) { addIndexLogs(t, dir) },
			"index lost":       func(dir string) { remove(t, dir, "index") },
			"index set back":   func(dir string) { remove(t, dir, "index"); copyTree(t, older, filepath.Join(dir, "index"), nil) },
			"small files torn": func(dir string) { remove(t, dir, "log/mark", "log/meta-a") },
		} {
			if name == "index set back" && i < 2 {
				continue
			}
			t.Run(fmt.Sprint(i, " ", name), func(t *testing.T) {
				dir := f.powerCut(0)
				spoil(dir)
				want.restored(t, openStore(t, dir, smallLog(kg.Faults{})))
			})
		}
	}
}

// The index is set back to older copies, taken while the store ran and while it
// was closed, while the log is complete.
func TestIndexSetBack(t *testing.T) {
	t.Parallel()
	dir, copies := t.TempDir(), t.TempDir()
	o := smallLog(kg.Faults{})
	w := newWorker(1, "w")
	var taken []string
	take := func(when string) {
		to := filepath.Join(copies, fmt.Sprintf("%02d %s", len(taken), when))
		copyTree(t, filepath.Join(dir, "index"), to, nil)
		taken = append(taken, to)
	}
	for range 3 {
		s := openStore(t, dir, o)
		take("running")
		w.work(t, s, 5)
		take("running")
		mustClose(t, s)
		take("closed")
	}
	s := openStore(t, dir, o)
	w.work(t, s, 5)
	want := recordOf(t, s)
	take("running")
	mustClose(t, s)
	for _, older := range append(taken, "none") {
		t.Run(filepath.Base(older), func(t *testing.T) {
			again := filepath.Join(t.TempDir(), "again")
			copyTree(t, dir, again, inIndex)
			if _, err := os.Stat(older); err == nil {
				copyTree(t, older, filepath.Join(again, "index"), nil)
			}
			want.restored(t, openStore(t, again, o))
		})
	}
}

// addIndexLogs adds the files that indexes of earlier formats had beside tables. Their
// content is in the log, or irrelevant.
func addIndexLogs(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"00001.mem", "00002.mem", "000001.vlog", "DISCARD"} {
		if err := os.WriteFile(filepath.Join(dir, "index", name), []byte("not to be read"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The logs of an index of an earlier form are not read, and go.
func TestIndexLogsAreDropped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := smallLog(kg.Faults{})
	s := openStore(t, dir, o)
	newWorker(2, "w").work(t, s, 5)
	want := recordOf(t, s)
	again := filepath.Join(t.TempDir(), "again") // as a kill leaves it
	copyTree(t, dir, again, nil)
	addIndexLogs(t, again)
	want.restored(t, openStore(t, again, o))
	for _, pattern := range []string{"*.mem", "*.vlog", "DISCARD"} {
		if left, _ := filepath.Glob(filepath.Join(again, "index", pattern)); len(left) > 0 {
			t.Errorf("%s are still there", left)
		}
	}
}

// The index has some of the keys of the last commits, but not how far it came: a
// group was being written when the process ended. Badger takes keys in order, in
// several pieces.
func TestApplyCutShort(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	t.Parallel()
	w := newWorker(14, "w")
	applyCutShort(t, smallLog(kg.Faults{}), 12, func(s *kg.Store) { w.work(t, s, 40) }, func(s *kg.Store) { w.work(t, s, 30) })
}

// TestApplyCutShortBeyondAReplacement shows that commits from before the replacement of a
// graph are applied again to the content of their time, also if the index has the record of
// the new content already: the record is of a later revision than the marker.
func TestApplyCutShortBeyondAReplacement(t *testing.T) {
	slowtest.WithoutRace(t)
	t.Parallel()
	exchanges := func(s *kg.Store, whole bool, list ...exchange) {
		t.Helper()
		for _, e := range list {
			if r, err := e.replace(within(t), s); err != nil || r.Whole != whole {
				t.Fatalf("%s: %+v, %v", e.task, r, err)
			}
		}
	}
	applyCutShort(t, smallLog(kg.Faults{WholeFrom: 20, WholeCommit: 12}), 1, func(s *kg.Store) {
		exchanges(s, false, exchange{"a.replace/1/5", 1, 5})
		exchanges(s, true, exchange{"a.replace/2/40", 2, 40})
	}, func(s *kg.Store) {
		exchanges(s, false, exchange{"a.replace/3/15", 3, 15})
		exchanges(s, true, exchange{"a.replace/5/60", 5, 60}, exchange{"a.replace/4/30", 4, 30})
		_, err := s.Update(within(t), kg.Meta{Principal: tester}, apply(patchesOf(exchange{"", 7, 9}.quads())))
		if err != nil {
			t.Fatal(err)
		}
		exchanges(s, true, exchange{"a.replace/9/50", 9, 50})
	})
}

func patchesOf(quads []kg.Quad) (out []kg.Patch) {
	for _, q := range quads {
		out = append(out, kg.Patch{Op: kg.Add, Quad: q})
	}
	return out
}

// applyCutShort proves that an index which has the commits of first, and any part of the keys
// of those of then, gets those of all of them. It is cut in so many parts, and before each kind
// of keys.
func applyCutShort(t *testing.T, o kg.Options, parts int, first, then func(*kg.Store)) {
	t.Helper()
	dir, early := t.TempDir(), filepath.Join(t.TempDir(), "early")
	s := openStore(t, dir, o)
	first(s)
	before, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	copyTree(t, filepath.Join(dir, "index"), early, nil)
	s = openStore(t, dir, o)
	then(s)
	want := recordOf(t, s)
	after, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	gone := rowsWithout(before, after, func(row string) string { key, _, _ := strings.Cut(row, " = "); return key })
	written := rowsWithout(after, before, func(row string) string { return row })
	if len(written) < 100 {
		t.Fatalf("%d rows went and %d came", len(gone), len(written))
	}
	for i, n := range cutsOf(written, parts) {
		for _, deleted := range [][]string{nil, gone} {
			compacted := (i+len(deleted))%2 == 0
			t.Run(fmt.Sprintf("%d of %d, %d of %d, compacted %t", n, len(written), len(deleted), len(gone), compacted), func(t *testing.T) {
				again := filepath.Join(t.TempDir(), "again")
				copyTree(t, dir, again, inIndex)
				copyTree(t, early, filepath.Join(again, "index"), nil)
				if err := kg.ApplyRows(again, o, written[:n], deleted, want.head); err != nil {
					t.Fatal(err)
				}
				if compacted {
					if err := kg.DropOldVersions(again, o, want.head); err != nil {
						t.Fatal(err)
					}
				}
				s := openStore(t, again, readOnly(o))
				rows, err := s.IndexRows()
				if err != nil {
					t.Fatal(err)
				}
				equalLines(t, "the index, opened to read", after, rows)
				if text := checkText(t, s); !strings.Contains(text, "Total:0") {
					t.Errorf("the check, opened to read, says %s", text)
				}
				mustClose(t, s)
				s = openStore(t, again, o)
				if rows, err = s.IndexRows(); err != nil {
					t.Fatal(err)
				}
				equalLines(t, "the index", after, rows)
				want.restored(t, s)
			})
		}
	}
}

// cutsOf lists numbers of rows: those before each kind of keys, and so many parts of all.
func cutsOf(rows []string, parts int) (cuts []int) {
	for n := range rows {
		if n == 0 || rows[n][:2] != rows[n-1][:2] {
			cuts = append(cuts, n)
		}
	}
	for i := range parts {
		cuts = append(cuts, (i+1)*len(rows)/parts)
	}
	return cuts
}

// rowsWithout lists the rows of a that are not in b, compared by part.
func rowsWithout(a, b []string, part func(string) string) (rows []string) {
	in := make(map[string]bool, len(b))
	for _, row := range b {
		in[part(row)] = true
	}
	for _, row := range a {
		if !in[part(row)] {
			rows = append(rows, row)
		}
	}
	return rows
}
