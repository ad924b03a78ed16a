package wal_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"koine/internal/slowtest"
	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

// noise does not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// frameOverhead is the size of a frame without its payload.
const frameOverhead = 64

func TestEntrySizeBound(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{Files: waltest.New(), SegmentBytes: 1 << 20})
	largest := noise(wal.MaxEntryBytes - frameOverhead)
	if err := l.Append(1, [][]byte{payload(1), noise(len(largest) + 1)}); !errors.Is(err, wal.ErrTooLarge) {
		t.Fatalf("one byte more: %v, want ErrTooLarge", err)
	}
	expect(t, l, 0, 0)
	if err := l.Append(1, [][]byte{largest}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, wal.Options{Files: waltest.New()})
	if got, err := l.Read(1); err != nil || !bytes.Equal(got, largest) {
		t.Fatalf("Read: %d bytes, %v", len(got), err)
	}
	fill(t, l, 2)
}

func TestBatchSizeBound(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	l := open(t, t.TempDir(), wal.Options{Files: waltest.New()})
	const n = wal.MaxBatchBytes / wal.MaxEntryBytes
	one := noise(wal.MaxEntryBytes - frameOverhead)
	batch := make([][]byte, n)
	for i := range batch {
		batch[i] = one
	}
	if err := l.Append(1, append(batch, nil)); !errors.Is(err, wal.ErrTooLarge) {
		t.Fatalf("one entry more: %v, want ErrTooLarge", err)
	}
	if l.Last() != 0 {
		t.Fatalf("refused batch left %d entries", l.Last())
	}
	if err := l.Append(1, batch); err != nil || l.Last() != n {
		t.Fatalf("largest batch: %v, last %d", err, l.Last())
	}
	if got, err := l.Read(n); err != nil || !bytes.Equal(got, one) {
		t.Fatalf("Read: %d bytes, %v", len(got), err)
	}
}

func TestSegmentSizeBound(t *testing.T) {
	for _, n := range []int{-1, wal.MaxSegmentBytes + 1} {
		if l, err := wal.Open(t.TempDir(), wal.Options{SegmentBytes: n}); err == nil {
			t.Errorf("opened with segments of %d bytes", n)
			l.Close()
		}
	}
	l := open(t, t.TempDir(), wal.Options{SegmentBytes: wal.MaxSegmentBytes})
	fill(t, l, 3)
	expect(t, l, 1, 3)
}

func TestAppendMustFollow(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{})
	fill(t, l, 3)
	for _, first := range []uint64{0, 1, 3, 5} {
		if err := l.Append(first, [][]byte{nil}); !errors.Is(err, wal.ErrGap) {
			t.Errorf("Append(%d): %v, want ErrGap", first, err)
		}
	}
	if err := l.Append(4, nil); err != nil {
		t.Errorf("empty batch: %v", err)
	}
	expect(t, l, 1, 3)
	fill(t, l, 5) // a refused append does not poison
}

func TestTruncateFront(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentBytes: 4 << 10})
	fill(t, l, 100)
	before, used := checkpointHash(t, l, 59), l.UsedBytes()
	for _, index := range []uint64{0, 1, 60, 30} {
		if err := l.TruncateFront(index); err != nil {
			t.Fatalf("TruncateFront(%d): %v", index, err)
		}
	}
	if err := l.TruncateFront(101); !errors.Is(err, wal.ErrNotFound) {
		t.Errorf("above Last: %v, want ErrNotFound", err)
	}
	for range 2 {
		expect(t, l, 60, 100)
		if _, err := l.Read(59); !errors.Is(err, wal.ErrNotFound) {
			t.Errorf("Read below First: %v, want ErrNotFound", err)
		}
		for _, err := range l.Entries(59, 70) {
			if !errors.Is(err, wal.ErrNotFound) {
				t.Errorf("Entries below First: %v, want ErrNotFound", err)
			}
		}
		if got := checkpointHash(t, l, 59); got != before {
			t.Errorf("hash of the last truncated entry %x, was %x", got, before)
		}
		if _, err := l.Hash(58); !errors.Is(err, wal.ErrNotFound) {
			t.Errorf("Hash further below: %v, want ErrNotFound", err)
		}
		if l.UsedBytes() >= used {
			t.Errorf("%d bytes used after truncation, %d before", l.UsedBytes(), used)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open(t, dir, wal.Options{SegmentBytes: 4 << 10})
	}
	if err := l.TruncateFront(100); err != nil {
		t.Fatal(err)
	}
	expect(t, l, 100, 100)
	fill(t, l, 110)
	expect(t, l, 100, 110)
}

func checkpointHash(t *testing.T, l *wal.Log, index uint64) [32]byte {
	t.Helper()
	hash, err := l.Hash(index)
	if err != nil {
		t.Fatalf("Hash(%d): %v", index, err)
	}
	return hash
}

func TestUsedBytesSurviveReopening(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentBytes: 4 << 10})
	fill(t, l, 50)
	sum := int64(0)
	paths, err := waltest.Segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		n, err := waltest.Written(path)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	// Written ends before trailing zeros, of which a segment may have up to 7.
	if used := l.UsedBytes(); used < sum || used > sum+8*int64(len(paths)) {
		t.Errorf("%d bytes used, the files have %d", used, sum)
	}
	used := l.UsedBytes()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir, wal.Options{}).UsedBytes(); got != used {
		t.Errorf("%d bytes used after reopening, %d before", got, used)
	}
	if got := open(t, dir, wal.Options{ReadOnly: true}).UsedBytes(); got != used {
		t.Errorf("%d bytes used read-only, %d before", got, used)
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	files, dir := waltest.New(), t.TempDir()
	l := open(t, dir, wal.Options{Files: files})
	fill(t, l, 10)
	files.FailSync(1)
	if err := l.Append(11, [][]byte{payload(11), payload(12)}); err == nil {
		t.Fatal("append went through")
	}
	torn := filepath.Join(t.TempDir(), "torn")
	if err := files.PowerCut(dir, torn, files.Unsynced()/2); err != nil {
		t.Fatal(err)
	}
	before := contents(t, torn)
	checked := open(t, torn, wal.Options{ReadOnly: true, Checked: true})
	expect(t, checked, 1, 10)
	if err := checked.Close(); err != nil {
		t.Fatal(err)
	}
	r := open(t, torn, wal.Options{ReadOnly: true})
	expect(t, r, 1, 10)
	if err := r.Append(11, [][]byte{nil}); !errors.Is(err, wal.ErrReadOnly) {
		t.Errorf("Append: %v, want ErrReadOnly", err)
	}
	if err := r.TruncateFront(5); !errors.Is(err, wal.ErrReadOnly) {
		t.Errorf("TruncateFront: %v, want ErrReadOnly", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if after := contents(t, torn); after != before {
		t.Error("a file changed")
	}
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, name...), b...)
	}
	return string(all)
}

// Files that go missing are damage, but for the one case that a crash explains:
// a new segment that has no entries yet.
func TestMissingFiles(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentBytes: 2 << 10})
	fill(t, l, 30)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := waltest.Segments(dir)
	if err != nil || len(segments) < 3 {
		t.Fatalf("%v, %v", segments, err)
	}
	for name, gone := range map[string][]string{
		"first segment":    segments[:1],
		"middle segment":   segments[1:2],
		"last segment":     segments[len(segments)-1:],
		"all segments":     segments,
		"all metadata":     {"meta-a", "meta-b"},
		"all but the mark": append([]string{"meta-a", "meta-b"}, segments...),
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := filepath.Join(t.TempDir(), "spoiled")
			if err := waltest.Copy(dir, spoiled); err != nil {
				t.Fatal(err)
			}
			for _, path := range gone {
				if err := os.Remove(filepath.Join(spoiled, filepath.Base(path))); err != nil {
					t.Fatal(err)
				}
			}
			if l, err := wal.Open(spoiled, wal.Options{}); !errors.Is(err, wal.ErrDamaged) {
				t.Errorf("Open: %v, want ErrDamaged", err)
				if err == nil {
					l.Close()
				}
			}
		})
	}
	for _, name := range []string{"meta-a", "meta-b", "mark"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		l := open(t, dir, wal.Options{})
		expect(t, l, 1, 30)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s was not made again: %v", name, err)
		}
	}
}

// An entry of another log under the right index has a right checksum; the chain
// tells it.
func TestSegmentOfAnotherLog(t *testing.T) {
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		l := open(t, dir, wal.Options{SegmentBytes: 1 << 10})
		for n := uint64(1); n <= 30; n++ {
			if err := l.Append(n, [][]byte{bytes.Repeat([]byte{byte(i)}, 200)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	from, err := waltest.Segments(dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(from[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dirs[0], filepath.Base(from[1])), b, 0o644); err != nil {
		t.Fatal(err)
	}
	l := open(t, dirs[0], wal.Options{})
	if err := l.Verify(context.Background(), nil); !errors.Is(err, wal.ErrDamaged) {
		t.Errorf("Verify: %v, want ErrDamaged", err)
	}
	refused := 0
	for i := uint64(1); i <= 30; i++ {
		if _, err := l.Read(i); errors.Is(err, wal.ErrDamaged) {
			refused++
		} else if err != nil {
			t.Errorf("Read(%d): %v", i, err)
		}
	}
	if refused != 2 { // where the strange segment begins, and where the own ones go on
		t.Errorf("%d entries refused, want 2", refused)
	}
}

func TestClosed(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{})
	fill(t, l, 3)
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, readErr := l.Read(2)
	_, hashErr := l.Hash(2)
	for name, err := range map[string]error{
		"Read": readErr, "Hash": hashErr, "Append": l.Append(4, [][]byte{nil}),
		"TruncateFront": l.TruncateFront(2), "Verify": l.Verify(context.Background(), nil),
	} {
		if !errors.Is(err, wal.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}

func TestVerifyReportsProgressAndStops(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{})
	fill(t, l, 100)
	var done, total uint64
	if err := l.Verify(context.Background(), func(d, n uint64) { done, total = d, n }); err != nil || done != 100 || total != 100 {
		t.Errorf("verified %d of %d, %v", done, total, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Verify(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Readers see complete, correct entries up to Last during appends, rotations and
// truncations, and ErrNotFound or ErrClosed for removed ones.
func TestReadersDuringAppends(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{Files: waltest.New(), SegmentBytes: 4 << 10})
	fill(t, l, 1)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for e, err := range l.Entries(l.First(), 0) {
					if errors.Is(err, wal.ErrNotFound) || errors.Is(err, wal.ErrClosed) {
						break
					}
					if err != nil || !bytes.Equal(e.Payload, payload(e.Index)) {
						t.Errorf("entry %d: %v", e.Index, err)
						return
					}
				}
			}
		})
	}
	for to := uint64(20); to <= 400; to += 20 {
		fill(t, l, to)
		if err := l.TruncateFront(to - 15); err != nil {
			t.Error(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	close(stop)
	readers.Wait()
}
