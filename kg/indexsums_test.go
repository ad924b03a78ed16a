package kg_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/internal/wal/waltest"
)

// A bad byte in an index that is too large to be read before it is opened is found in the
// background: updates end, and the next start rebuilds the index. Sums of tables are kept
// over starts.
func TestLargeIndexIsReadBehindTheStart(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	o := smallOptions().WithFaults(kg.Faults{SummedFirst: 1})
	s := openStore(t, dir, o)
	load := func() {
		t.Helper()
		if _, err := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(10_000), kg.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	load()
	mustClose(t, s)
	for range 2 { // closed in order, and opened again
		s = openStore(t, dir, o)
		mustCheck(t, s)
		mustClose(t, s)
	}
	largest := largestOf(t, filepath.Join(dir, "index", "*.sst"))
	if err := waltest.Flip(largest, 1000, 1); err != nil {
		t.Fatal(err)
	}
	s, err := kg.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); kg.CodeOf(s.Ready()) != kg.CodeReadOnly; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a table has changed, and the store says %v", s.Ready())
		}
	}
	mustClose(t, s)
	s = openStore(t, dir, o)
	if err := s.Ready(); err != nil || s.Stats().ReplayedOpen == 0 {
		t.Errorf("the index was not built anew: %v", err)
	}
	mustCheck(t, s)
	mustClose(t, s)
}

// Compaction may remove tables before they are read in the background: that is no damage, they are
// read nevertheless, and only if one of them was damaged the next start rebuilds the index.
func TestTablesAreRemovedBeforeTheyAreRead(t *testing.T) {
	slowtest.Long(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	o := smallOptions().WithFaults(kg.Faults{SummedFirst: 1})
	s := openStore(t, dir, o)
	next := 0
	// rewrite adds statements and compacts the index, so that its tables are removed.
	rewrite := func() {
		t.Helper()
		before, err := filepath.Glob(filepath.Join(dir, "index", "*.sst"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // tables that overlap the others
			next++
			if _, err := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(5_000+next), kg.LoadOptions{}); err != nil {
				t.Fatal(err)
			}
			s.Exclusive(func() {}) // with nothing left in memory
		}
		if err := s.FlattenIndex(); err != nil {
			t.Fatal(err)
		}
		after := filesOf(t, filepath.Join(dir, "index", "*.sst"))
		if len(before) > 0 && !slices.ContainsFunc(before, func(path string) bool { return !slices.Contains(after, path) }) {
			t.Fatalf("none of %v is removed", before)
		}
	}
	reopen := func() (rebuilt bool) {
		t.Helper()
		mustClose(t, s)
		s = openStore(t, dir, o)
		return s.Stats().ReplayedOpen != 0
	}
	rewrite()
	if reopen() {
		t.Fatal("the index was built anew after the first close")
	}

	rewrite() // before the check begins
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if err := s.Ready(); err != nil {
			t.Fatalf("tables were removed by a compaction, and the store says %v: %v", err, errors.Unwrap(err))
		}
		if _, err := os.Stat(filepath.Join(dir, "index", "UNCHECKED")); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the tables are not read")
		}
	}
	if reopen() {
		t.Error("the index was built anew after its tables had been read")
	}
	rewrite()
	if reopen() { // before the check begins
		t.Error("the index was built anew after tables were removed unread")
	}
	mustClose(t, s)

	clean := filepath.Join(dir, "index", "CLEAN")
	raw, err := os.ReadFile(clean)
	if err != nil {
		t.Fatal(err)
	}
	sum := regexp.MustCompile(`("[0-9]+\.sst":\{"bytes":[0-9]+,"crc32c":)[0-9]+`)
	write(t, dir, "index/CLEAN", sum.ReplaceAllString(string(raw), "${1}1"))
	s = openStore(t, dir, o)
	rewrite()
	if !reopen() {
		t.Error("the tables did not have their sums when they were removed, and the index was not built anew")
	}
	mustCheck(t, s)
	mustClose(t, s)
}

// largestOf is the largest of the files that fit a pattern.
func largestOf(t *testing.T, pattern string) (largest string) {
	t.Helper()
	size := int64(-1)
	for _, path := range filesOf(t, pattern) {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Size() > size {
			largest, size = path, st.Size()
		}
	}
	return largest
}

// A process that is killed before it has read all of its index leaves the sums to the next
// one, and one that finds an unread table missing rebuilds the index.
func TestUncheckedIndexAfterAKill(t *testing.T) {
	slowtest.Long(t)
	o := smallOptions().WithFaults(kg.Faults{SummedFirst: 1})
	dir := filepath.Join(t.TempDir(), "data")
	s := openStore(t, dir, o)
	if _, err := s.Load(within(t), kg.Meta{Principal: tester}, manyQuads(10_000), kg.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = openStore(t, dir, o)
	killed := func() string { // before the files were read
		t.Helper()
		copied := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		return copied
	}
	damaged, lacking := killed(), killed()
	mustClose(t, s)

	if err := waltest.Flip(largestOf(t, filepath.Join(damaged, "index", "*.sst")), 1000, 1); err != nil {
		t.Fatal(err)
	}
	s, err := kg.Open(damaged, o)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); kg.CodeOf(s.Ready()) != kg.CodeReadOnly; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a table has changed, and the store says %v", s.Ready())
		}
	}
	mustClose(t, s)

	raw, err := os.ReadFile(filepath.Join(lacking, "index", "UNCHECKED"))
	if err != nil {
		t.Fatal(err)
	}
	largest := filepath.Base(largestOf(t, filepath.Join(lacking, "index", "*.sst")))
	gone := strings.Replace(string(raw), largest, "999999.sst", 1)
	write(t, lacking, "index/UNCHECKED", gone)
	s = openStore(t, lacking, o)
	if err := s.Ready(); err != nil || s.Stats().ReplayedOpen == 0 {
		t.Errorf("the index was not built anew: %v", err)
	}
	mustCheck(t, s)
	mustClose(t, s)
	s = openStore(t, lacking, o)
	if s.Stats().ReplayedOpen != 0 {
		t.Error("the index was built once more")
	}
	mustClose(t, s)
}
