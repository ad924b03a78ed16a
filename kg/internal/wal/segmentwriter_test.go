package wal_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"koine/kg/internal/wal"
)

// A full segment costs no memory: raft-wal keeps the writer of each until the log is closed.
func TestFullSegmentsTakeNoMemory(t *testing.T) {
	const segments, most = 100, 16 << 10
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentBytes: 64 << 10})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools are emptied by the second
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	next := uint64(1)
	write := func(segments int) {
		for range 4 * segments {
			if err := l.Append(next, [][]byte{noise(20 << 10)}); err != nil {
				t.Fatal(err)
			}
			next++
		}
	}
	write(2)
	before := heap()
	write(segments)
	if files, err := filepath.Glob(filepath.Join(dir, "*.wal")); err != nil || len(files) < segments {
		t.Fatalf("%d segments, want %d", len(files), segments)
	}
	if each := (heap() - before) / segments; each > most {
		t.Errorf("a full segment takes %d bytes, more than %d", each, most)
	} else {
		t.Logf("a full segment takes %d bytes", each)
	}
	for index := uint64(1); index < next; index++ {
		if b, err := l.Read(index); err != nil || len(b) != 20<<10 {
			t.Fatalf("entry %d: %d bytes, %v", index, len(b), err)
		}
	}
}
