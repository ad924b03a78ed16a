package wal

import (
	"bytes"
	"testing"
)

// TestWindowOfSealedSegment proves that a reader does not use what it read of a segment beyond the
// last durable entry, once the segment is sealed.
func TestWindowOfSealedSegment(t *testing.T) {
	t.Parallel()
	l, err := Open(t.TempDir(), Options{SegmentBytes: 128 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	appendOne := func(index uint64) {
		t.Helper()
		if err := l.Append(index, [][]byte{bytes.Repeat([]byte("payload "), 50)}); err != nil {
			t.Fatal(err)
		}
	}
	const before = 10
	for i := range uint64(before) {
		appendOne(i + 1)
	}
	r := l.newOrderedReader()
	defer r.Close()
	for i := range uint64(before) {
		if r.find(i+1) == nil {
			t.Fatalf("entry %d is not found", i+1)
		}
	}
	for len(l.meta.sealedSegments()) == 0 {
		appendOne(l.Last() + 1)
	}
	for index := uint64(before + 1); index <= l.meta.sealedSegments()[0].MaxIndex; index++ {
		if f, err := decodeFrame(r.find(index)); err != nil || f.index != index {
			t.Fatalf("entry %d at %d: %v", f.index, index, err)
		}
	}
}
