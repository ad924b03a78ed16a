package kg_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/internal/wal/waltest"
)

var flips = flag.Int("kg.flips", 24, "how many bytes of the log, and of the index, the tests of the store let go bad in turn (0: every one)")

// spots picks bytes of the files, all of them or the number of the flag, spread evenly.
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

// A byte of the log is corrupted anywhere, with the index present and with the index lost.
// Then either everything is present and consistent, or the store returns LOG_DAMAGED,
// accepts no updates, and its answers are correct.
func TestFlippedByteOfTheLog(t *testing.T) {
	slowtest.Long(t)
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
	report, err := s.Maintenance().Check(within(t), kg.CheckOptions{})
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

// A requested rebuild over a log with a corrupted byte in the middle is refused: it would
// discard content that only the index still has.
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
	if report, err := s.Maintenance().Check(within(t), kg.CheckOptions{}); err != nil || report.Clean() {
		t.Errorf("Check: %+v, %v; want problems", report, err)
	}
	refused(t, s, kg.CodeLogDamaged, want)
}

// A byte of any file of the index is corrupted while the store is closed. Regardless of its
// effect in Badger, everything is present again.
func TestFlippedByteOfTheIndex(t *testing.T) {
	slowtest.Long(t)
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

// A byte of a table is corrupted while the store is open: Check reports it, and opening
// with a rebuild rebuilds the index.
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
	report, err := s.Maintenance().Check(within(t), kg.CheckOptions{})
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
