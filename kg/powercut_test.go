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
	slowtest.Long(t)
	t.Parallel()
	dir, early := t.TempDir(), filepath.Join(t.TempDir(), "early")
	o := smallLog(kg.Faults{})
	s := openStore(t, dir, o)
	w := newWorker(14, "w")
	w.work(t, s, 40)
	before, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	copyTree(t, filepath.Join(dir, "index"), early, nil)
	s = openStore(t, dir, o)
	w.work(t, s, 30)
	want := recordOf(t, s)
	after, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	gone := rowsWithout(before, after, func(row string) string { key, _, _ := strings.Cut(row, " = "); return key })
	written := rowsWithout(after, before, func(row string) string { return row })
	if len(gone) == 0 || len(written) < 100 {
		t.Fatalf("%d rows went and %d came", len(gone), len(written))
	}
	const cuts = 12
	for i := range cuts + 1 {
		for _, deleted := range [][]string{nil, gone} {
			n := i * len(written) / cuts
			t.Run(fmt.Sprintf("%d of %d, %d of %d", n, len(written), len(deleted), len(gone)), func(t *testing.T) {
				again := filepath.Join(t.TempDir(), "again")
				copyTree(t, dir, again, inIndex)
				copyTree(t, early, filepath.Join(again, "index"), nil)
				if err := kg.ApplyRows(again, o, written[:n], deleted, want.head); err != nil {
					t.Fatal(err)
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
