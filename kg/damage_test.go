package kg_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/kg"
	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

var flips = flag.Int("kg.flips", 24, "how many bytes of the log, and of the index, the tests of the store let go bad in turn (0: every one)")

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

// spots picks bytes of the files, all of them or as many as the flag says,
// spread evenly.
func spots(t *testing.T, paths []string, do func(path string, off int64)) {
	t.Helper()
	type spot struct {
		path string
		off  int64
	}
	var all []spot
	for _, path := range paths {
		n, err := waltest.Written(path)
		if err != nil {
			t.Fatal(err)
		}
		for off := range n {
			all = append(all, spot{path, off})
		}
	}
	if len(all) == 0 {
		t.Fatal("no bytes to go bad")
	}
	n := *flips
	if n == 0 || n > len(all) {
		n = len(all)
	}
	for i := range n {
		s := all[i*len(all)/n]
		do(s.path, s.off)
	}
}

func filesOf(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	return paths
}

// A byte of the log goes bad anywhere, with the index there and with the index
// lost. Then either all is there and everything agrees, or the store says
// LOG_DAMAGED, takes no updates, and what it still says is right.
func TestFlippedByteOfTheLog(t *testing.T) {
	t.Parallel()
	dir, want := small(t)
	if n := len(filesOf(t, filepath.Join(dir, "log", "*.wal"))); n < 3 {
		t.Fatalf("%d files of the log, want 3 or more", n)
	}
	outcomes := map[string]int{}
	spots(t, filesOf(t, filepath.Join(dir, "log", "*")), func(path string, off int64) {
		for _, lost := range []bool{false, true} {
			spoiled := filepath.Join(t.TempDir(), "spoiled")
			copyTree(t, dir, spoiled, nil)
			if lost {
				remove(t, spoiled, "index")
			}
			name := filepath.Base(path)
			if err := waltest.Flip(filepath.Join(spoiled, "log", name), off, 1<<(off%8)); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("byte %d of %s, index lost: %t", off, name, lost)
			outcomes[afterFlip(t, spoiled, what, want, lost)]++
			remove(t, spoiled, ".")
		}
	})
	t.Log(outcomes)
	if outcomes["whole"] == 0 || outcomes["damaged"] == 0 {
		t.Errorf("the outcomes are %v, want some of both kinds", outcomes)
	}
}

// A byte of any file of the index goes bad while the store is closed. Whatever
// Badger would make of it, everything is there again.
func TestFlippedByteOfTheIndex(t *testing.T) {
	t.Parallel()
	dir, want := small(t)
	outcomes := map[string]int{}
	spots(t, filesOf(t, filepath.Join(dir, "index", "*")), func(path string, off int64) {
		spoiled := filepath.Join(t.TempDir(), "spoiled")
		copyTree(t, dir, spoiled, nil)
		if err := waltest.Flip(filepath.Join(spoiled, "index", filepath.Base(path)), off, 1<<(off%8)); err != nil {
			t.Fatal(err)
		}
		s, err := kg.Open(spoiled, tinyLog())
		if err != nil {
			t.Fatalf("byte %d of %s: Open: %v", off, filepath.Base(path), err)
		}
		outcomes[fmt.Sprintf("%d commits applied anew", s.Stats().ReplayedOpen)]++
		mustCheck(t, s)
		want.agrees(t, s)
		if s.Head().Revision != want.head {
			t.Errorf("byte %d of %s: at revision %d, want %d", off, filepath.Base(path), s.Head().Revision, want.head)
		}
		mustClose(t, s)
		remove(t, spoiled, ".")
	})
	t.Log(outcomes)
}

// A byte of a table goes bad while the store is open: Check says so, and opening
// with a rebuild makes the index anew.
func TestCheckFindsDamagedTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, smallOptions())
	if _, err := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(10_000), kg.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = openStore(t, dir, smallOptions())
	mustCheck(t, s)
	mustClose(t, s)
	s = openStore(t, dir, smallOptions()) // with nothing in its cache
	var largest string
	var size int64
	for _, path := range filesOf(t, filepath.Join(dir, "index", "*.sst")) {
		if n, err := waltest.Written(path); err == nil && n > size {
			largest, size = path, n
		}
	}
	if err := waltest.Flip(largest, size/2, 1); err != nil {
		t.Fatal(err)
	}
	report, err := s.Check(within(t), kg.CheckOptions{})
	if err != nil || report.Clean() || !strings.Contains(report.Problems[0], "damaged") {
		t.Fatalf("Check: %+v, %v; want a damaged file", report, err)
	}
	if err := s.Close(); err != nil {
		t.Logf("Close: %v", err)
	}
	o := smallOptions()
	o.Rebuild = true
	s = openStore(t, dir, o)
	mustCheck(t, s)
	if n := s.Stats().Statements; n != 10_000 {
		t.Errorf("%d statements, want 10000", n)
	}
}

// A rebuild that is asked for over a log with a bad byte in the middle is refused:
// it would throw away what only the index still has.
func TestRebuildOverDamagedLog(t *testing.T) {
	dir, want := small(t)
	segment := filesOf(t, filepath.Join(dir, "log", "*.wal"))[1]
	n, err := waltest.Written(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := waltest.Flip(segment, n/2, 1); err != nil {
		t.Fatal(err)
	}
	o := tinyLog()
	o.Rebuild = true
	if _, err := kg.Open(dir, o); kg.CodeOf(err) != kg.CodeLogDamaged {
		t.Fatalf("Open with a rebuild: %v, want LOG_DAMAGED", err)
	}
	s := openStore(t, dir, tinyLog())
	if s.Head().Revision != want.head {
		t.Errorf("at revision %d, want %d", s.Head().Revision, want.head)
	}
	if report, err := s.Check(within(t), kg.CheckOptions{}); err != nil || report.Clean() {
		t.Errorf("Check: %+v, %v; want problems", report, err)
	}
	refused(t, s, kg.CodeLogDamaged, want)
}

func afterFlip(t *testing.T, dir, what string, want *record, lost bool) (outcome string) {
	t.Helper()
	s, err := kg.Open(dir, tinyLog())
	if lost && kg.CodeOf(err) == kg.CodeLogDamaged {
		return "nothing left"
	}
	if err != nil {
		t.Fatalf("%s: Open: %v", what, err)
	}
	defer s.Close()
	report, err := s.Check(within(t), kg.CheckOptions{})
	if err != nil {
		t.Fatalf("%s: Check: %v", what, err)
	}
	want.agrees(t, s)
	switch code := kg.CodeOf(s.Ready()); {
	case code == kg.CodeLogDamaged:
		if !lost && s.Head().Revision != want.head {
			t.Errorf("%s: at revision %d, though the index has %d", what, s.Head().Revision, want.head)
		}
		refused(t, s, kg.CodeLogDamaged, want)
		return "damaged"
	case code != "":
		t.Fatalf("%s: Ready: %v", what, s.Ready())
	case !report.Clean() || s.Head().Revision != want.head:
		t.Errorf("%s: takes updates at revision %d of %d, and Check says %v", what, s.Head().Revision, want.head, report.Problems)
	}
	return "whole"
}

// A file of the log is gone, or the log is that of an earlier moment, or another
// one with the same epoch.
func TestLogIsNotTheOne(t *testing.T) {
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
	segments := filesOf(t, filepath.Join(dir, "log", "*.wal"))
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
				if err := s.CutLog(within(t), 2); kg.CodeOf(err) != kg.CodeLogDamaged {
					t.Errorf("CutLog: %v, want LOG_DAMAGED", err)
				}
				mustClose(t, s)
			}
		})
	}
}

// Signs beside the index: the one that a bulk load or rebuild was under way
// means that the index is made anew, also when it seems fine; without the one
// that it was closed in order the memtables do not count.
func TestSignsBesideTheIndex(t *testing.T) {
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
	s := openStore(t, dir, tinyLog())
	rows, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	head := s.Head().Revision
	mustClose(t, s)
	var gone []string
	for i := 0; i < len(rows); i += 5 {
		gone = append(gone, rows[i])
	}
	if err := kg.ApplyRows(dir, tinyLog(), nil, gone, head); err != nil {
		t.Fatal(err)
	}
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

// The head of the log is cut, the index is lost, and checkpoints are damaged.
// What is left decides: the newest checkpoint, an older one from which the log
// still leads on, or a plain refusal.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	w := newWorker(10, "w")
	var cuts []kg.Revision
	for range 2 {
		w.work(t, s, 6)
		if r, err := s.Checkpoint(within(t)); err != nil || r != s.Head().Revision {
			t.Fatalf("Checkpoint: %d, %v", r, err)
		}
		cuts = append(cuts, s.Head().Revision)
	}
	w.work(t, s, 4)
	whole := filepath.Join(t.TempDir(), "whole")
	want := recordOf(t, s)
	mustClose(t, s)
	copyTree(t, dir, whole, nil)
	checkpoint := func(i int) string { return fmt.Sprintf("checkpoints/%020d.checkpoint", cuts[i]) }
	for _, c := range []struct {
		name string
		cut  kg.Revision // the log begins here
		bad  []int       // checkpoints that are damaged
		ok   bool
	}{
		{"all there", 1, nil, true},
		{"newest bad, log whole", 1, []int{1}, true},
		{"all bad, log whole", 1, []int{0, 1}, true},
		{"log cut", cuts[0] + 1, nil, true},
		{"log cut, older bad", cuts[0] + 1, []int{0}, true},
		{"log cut where the older one ends, newest bad", cuts[0] + 1, []int{1}, true},
		{"log cut where the newest ends", cuts[1] + 1, []int{0}, true},
		{"log cut behind the older one, newest bad", cuts[0] + 2, []int{1}, false},
		{"log cut, all bad", cuts[0] + 1, []int{0, 1}, false},
	} {
		for _, how := range []string{"bit", "half", "empty", "gone"} {
			if how != "bit" && c.bad == nil {
				continue
			}
			t.Run(c.name+" "+how, func(t *testing.T) {
				spoiled := filepath.Join(t.TempDir(), "spoiled")
				copyTree(t, whole, spoiled, nil)
				cutLog(t, spoiled, c.cut)
				for _, i := range c.bad {
					damage(t, filepath.Join(spoiled, checkpoint(i)), how)
				}
				afterCheckpointDamage(t, spoiled, want, c.ok)
			})
		}
	}
}

// cutLog cuts the log alone: CutLog would make a checkpoint.
func cutLog(t *testing.T, dir string, before kg.Revision) {
	t.Helper()
	l, err := wal.Open(filepath.Join(dir, "log"), wal.Options{SegmentBytes: 1 << 10})
	if err == nil {
		err = l.TruncateFront(uint64(before))
	}
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func damage(t *testing.T, path, how string) {
	t.Helper()
	st, err := os.Stat(path)
	if err == nil {
		switch how {
		case "bit":
			err = waltest.Flip(path, st.Size()/2, 4)
		case "half":
			err = os.Truncate(path, st.Size()/2)
		case "empty":
			err = os.Truncate(path, 0)
		case "gone":
			err = os.Remove(path)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// afterCheckpointDamage opens the directory with a rebuild, which must not throw
// away an index that it cannot make again, and without the index.
func afterCheckpointDamage(t *testing.T, dir string, want *record, ok bool) {
	rebuild := tinyLog()
	rebuild.Rebuild = true
	s, err := kg.Open(dir, rebuild)
	if !ok {
		if kg.CodeOf(err) != kg.CodeLogDamaged {
			t.Fatalf("a rebuild that is not possible: %v, want LOG_DAMAGED", err)
		}
		if s, err = kg.Open(dir, tinyLog()); err != nil {
			t.Fatalf("Open after a rebuild that was not possible: %v", err)
		}
	}
	if err != nil {
		t.Fatalf("Open with a rebuild: %v", err)
	}
	if s.Head().Revision != want.head {
		t.Errorf("at revision %d, want %d", s.Head().Revision, want.head)
	}
	mustCheck(t, s)
	want.agrees(t, s)
	mustClose(t, s)
	remove(t, dir, "index")
	if s, err = kg.Open(dir, tinyLog()); !ok {
		if kg.CodeOf(err) != kg.CodeLogDamaged {
			t.Fatalf("Open without an index: %v, want LOG_DAMAGED", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("Open without an index: %v", err)
	}
	defer s.Close()
	want.restored(t, s)
}

// Checkpoints may be asked for at the same time, beside updates, and each is
// whole.
func TestCheckpointsAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, tinyLog())
	w := newWorker(11, "w")
	w.work(t, s, 10)
	ctx, stop := context.WithCancel(within(t))
	ended := make(chan error, 3)
	for range cap(ended) {
		go func() {
			var err error
			for ctx.Err() == nil && err == nil {
				if _, err = s.Checkpoint(ctx); ctx.Err() != nil {
					err = nil
				}
			}
			ended <- err
		}()
	}
	for range 20 {
		w.work(t, s, 1)
	}
	stop()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Errorf("Checkpoint: %v", err)
		}
	}
	if err := s.CutLog(within(t), s.Head().Revision); err != nil {
		t.Fatal(err)
	}
	want := recordOf(t, s)
	mustClose(t, s)
	for _, name := range filesOf(t, filepath.Join(dir, "checkpoints", "*")) {
		if !strings.HasSuffix(name, ".checkpoint") {
			t.Errorf("%s is left over", name)
		}
	}
	remove(t, dir, "index")
	want.restored(t, openStore(t, dir, tinyLog()))
}
