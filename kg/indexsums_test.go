package kg_test

import (
	"os"
	"path/filepath"
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
