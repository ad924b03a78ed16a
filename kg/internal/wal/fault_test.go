package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"koine/internal/slowtest"
	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

func TestOneSyncPerBatch(t *testing.T) {
	files := waltest.New()
	l := open(t, t.TempDir(), wal.Options{Files: files, SegmentBytes: 1 << 20})
	for i, size := range []int{1, 8, 64} {
		before := files.Syncs()
		if err := l.Append(l.Last()+1, make([][]byte, size)); err != nil {
			t.Fatal(err)
		}
		if got := files.Syncs() - before; got != 1 {
			t.Errorf("append %d of %d entries made %d syncs, want 1", i, size, got)
		}
	}
}

func TestPoisonedAfterFailure(t *testing.T) {
	for name, breakIt := range map[string]func(*waltest.Files){
		"sync": func(f *waltest.Files) { f.FailSync(1) },
		"full": func(f *waltest.Files) { f.SetFull(true) },
	} {
		t.Run(name, func(t *testing.T) {
			files := waltest.New()
			dir := t.TempDir()
			l := open(t, dir, wal.Options{Files: files})
			fill(t, l, 10)
			breakIt(files)
			first := l.Append(11, [][]byte{payload(11)})
			if !errors.Is(first, waltest.ErrSync) && !errors.Is(first, waltest.ErrFull) {
				t.Fatalf("append: %v", first)
			}
			files.SetFull(false)
			for name, err := range map[string]error{
				"Append": l.Append(11, [][]byte{payload(11)}), "TruncateFront": l.TruncateFront(5),
			} {
				if !errors.Is(err, errors.Unwrap(first)) {
					t.Errorf("%s afterwards: %v, want one that wraps %v", name, err, errors.Unwrap(first))
				}
			}
			expect(t, l, 1, 10)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = open(t, dir, wal.Options{})
			if last := l.Last(); last != 10 && last != 11 {
				t.Fatalf("reopened with %d entries", last)
			}
			expect(t, l, 1, l.Last())
			fill(t, l, 20)
			expect(t, l, 1, 20)
		})
	}
}

// A power cut keeps the synced bytes and any prefix of the others. At every cut: the log
// opens, has all acknowledged entries, has no other entry than possibly the unacknowledged
// batch, complete, and continues. The batch after that is shorter, and is cut too, so that
// remains of older batches are behind newer ones.
func TestPowerCutInsideABatch(t *testing.T) {
	for _, acknowledged := range []uint64{0, 1, 12} {
		t.Run(fmt.Sprint(acknowledged), func(t *testing.T) {
			files := waltest.New()
			dir := t.TempDir()
			l := open(t, dir, wal.Options{Files: files, SegmentBytes: 4 << 10})
			fill(t, l, acknowledged)
			files.FailSync(1)
			next := acknowledged + 1
			if err := l.Append(next, [][]byte{payload(next), payload(next + 1), payload(next + 2)}); err == nil {
				t.Fatal("append went through")
			}
			for keep := 0; keep <= files.Unsynced(); keep = nextCut(keep, files.Unsynced()) {
				cut := filepath.Join(t.TempDir(), "cut")
				if err := files.PowerCut(dir, cut, keep); err != nil {
					t.Fatal(err)
				}
				afterPowerCut(t, cut, acknowledged, keep == files.Unsynced())
			}
		})
	}
}

// nextCut goes through all the remainders that cuts can have at raft-wal's and
// our own structures, and ends with the whole batch.
func nextCut(keep, whole int) int {
	if keep < whole {
		return min(keep+slowtest.Size(37, 101), whole)
	}
	return whole + 1
}

func afterPowerCut(t *testing.T, dir string, acknowledged uint64, whole bool) {
	t.Helper()
	files := waltest.New()
	l := open(t, dir, wal.Options{Files: files})
	want := acknowledged
	if whole {
		want += 3
	}
	expect(t, l, min(want, 1), want)
	files.FailSync(2)
	if err := l.Append(want+1, [][]byte{payload(want + 1)}); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(want+2, [][]byte{payload(want + 2)}); err == nil {
		t.Fatal("append went through")
	}
	cut := filepath.Join(t.TempDir(), "second")
	if err := files.PowerCut(dir, cut, files.Unsynced()/2); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, cut, wal.Options{})
	expect(t, l, 1, want+1)
	fill(t, l, want+4)
	expect(t, l, 1, want+4)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Three batches that are torn one after the other, each shorter: without clearing
// the remains, the third log would continue with entries of the first batch.
func TestRemainsOfTornBatchesDoNotComeBack(t *testing.T) {
	dir := t.TempDir()
	sizes := []int{6, 4, 2}
	for _, n := range sizes {
		files := waltest.New()
		l := open(t, dir, wal.Options{Files: files})
		batch := make([][]byte, n)
		for i := range batch {
			batch[i] = bytes.Repeat([]byte{byte(n)}, 200)
		}
		files.FailSync(1)
		if err := l.Append(1, batch); err == nil {
			t.Fatal("append went through")
		}
		cut := filepath.Join(t.TempDir(), "cut")
		if err := files.PowerCut(dir, cut, files.Unsynced()-1); err != nil {
			t.Fatal(err)
		}
		dir = cut
	}
	l := open(t, dir, wal.Options{})
	expect(t, l, 0, 0)
	fill(t, l, 1)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, open(t, dir, wal.Options{}), 1, 1)
}

// Power cuts at arbitrary moments of the background work that changes segments.
func TestPowerCutDuringRotation(t *testing.T) {
	files := waltest.New()
	dir := t.TempDir()
	l := open(t, dir, wal.Options{Files: files, SegmentBytes: 2 << 10})
	for i := uint64(1); i <= 40; i++ {
		if err := l.Append(i, [][]byte{payload(i)}); err != nil {
			t.Fatal(err)
		}
		cut := filepath.Join(t.TempDir(), "cut")
		if err := files.PowerCut(dir, cut, 0); err != nil {
			t.Fatal(err)
		}
		expect(t, open(t, cut, wal.Options{}), 1, i)
	}
}
