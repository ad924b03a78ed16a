package wal_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

// TestVolumeBreaks breaks the volume at every single write, sync and creation of a file
// that a few appends over several segments need, in each way that volumes break, and cuts
// the power afterwards. Acknowledged entries must be there, and after the first append that
// fails no other may succeed.
func TestVolumeBreaks(t *testing.T) {
	for name, how := range map[string]waltest.Failure{"once": waltest.Once, "dead": waltest.Dead, "lying": waltest.Lying} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				if !breakVolume(t, n, how) {
					if n < 50 {
						t.Fatalf("the appends need %d operations only", n)
					}
					return
				}
			}
		})
	}
}

// breakVolume breaks it at the n-th operation; false when there are not so many.
func breakVolume(t *testing.T, n int, how waltest.Failure) bool {
	t.Helper()
	files, dir := waltest.New(), filepath.Join(t.TempDir(), "log")
	l, err := wal.Open(dir, wal.Options{Files: files, SegmentBytes: 2 << 10})
	if err != nil {
		t.Fatal(err)
	}
	start := files.Operations()
	files.FailOperation(n, how)
	var failed error
	acknowledged := uint64(0)
	for range 16 {
		i := acknowledged + 1
		switch err := l.Append(i, [][]byte{payload(i)}); {
		case err == nil && failed != nil:
			t.Fatalf("operation %d: entry %d was appended after %v", n, i, failed)
		case err == nil:
			acknowledged = i
		case failed == nil:
			failed = err
			if l.Last() != acknowledged {
				t.Fatalf("operation %d: the log shows entry %d, and %d were acknowledged", n, l.Last(), acknowledged)
			}
		}
	}
	reached := files.Operations()-start >= n
	if how != waltest.Once && failed == nil && reached && files.Operations()-start > n {
		t.Fatalf("operation %d failed, and all appends succeeded", n)
	}
	if failed != nil && errors.Is(failed, wal.ErrDamaged) {
		t.Fatalf("operation %d: %v", n, failed)
	}
	_ = l.Close() // it may fail too
	for _, keep := range []int{0, files.Unsynced() / 2, files.Unsynced()} {
		cut := filepath.Join(t.TempDir(), fmt.Sprint("cut", keep))
		if err := files.PowerCut(dir, cut, keep); err != nil {
			t.Fatal(err)
		}
		l, err := wal.Open(cut, wal.Options{})
		if err != nil {
			t.Fatalf("operation %d, %d bytes kept: %v", n, keep, err)
		}
		if l.Last() < acknowledged {
			t.Fatalf("operation %d, %d bytes kept: %d entries are there, and %d were acknowledged", n, keep, l.Last(), acknowledged)
		}
		expect(t, l, min(l.Last(), 1), l.Last())
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return reached
}
