package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"koine/kg/internal/wal"
)

const testSegmentBytes = 16 << 10

func open(t testing.TB, dir string, o wal.Options) *wal.Log {
	t.Helper()
	if o.SegmentBytes == 0 {
		o.SegmentBytes = testSegmentBytes
	}
	l, err := wal.Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// payload of entry i: its length and bytes depend on i, some compress.
func payload(i uint64) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("entry %d;", i)), int(i%7)*int(i%5)*40)
}

func fill(t testing.TB, l *wal.Log, to uint64) {
	t.Helper()
	for i := l.Last() + 1; i <= to; i = l.Last() + 1 {
		batch := [][]byte{payload(i)}
		if i%3 == 0 && i < to {
			batch = append(batch, payload(i+1))
		}
		if err := l.Append(i, batch); err != nil {
			t.Fatalf("Append(%d): %v", i, err)
		}
	}
}

func expect(t testing.TB, l *wal.Log, first, last uint64) {
	t.Helper()
	if l.First() != first || l.Last() != last {
		t.Fatalf("log holds %d to %d, want %d to %d", l.First(), l.Last(), first, last)
	}
	next := first
	for e, err := range l.Entries(first, 0) {
		if err != nil || e.Index != next || !bytes.Equal(e.Payload, payload(next)) {
			t.Fatalf("entry %d: index %d, %d bytes, error %v", next, e.Index, len(e.Payload), err)
		}
		next++
	}
	if last != 0 && next != last+1 {
		t.Fatalf("entries ended before %d, want %d", next, last+1)
	}
	if err := l.Verify(context.Background(), nil); err != nil {
		t.Fatalf("Verify: %v", err)
	}
}

func TestRoundTripAcrossSegmentsAndReopen(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{})
	expect(t, l, 0, 0)
	fill(t, l, 300)
	expect(t, l, 1, 300)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, wal.Options{})
	expect(t, l, 1, 300)
	fill(t, l, 310)
	expect(t, l, 1, 310)
}

// The sealing of a full segment and its rotation are two steps in raft-wal; a
// Close between them must not leave a log that refuses appends for ever.
func TestCloseRightAfterASegmentFilledUp(t *testing.T) {
	dir := t.TempDir()
	for i := uint64(1); i <= 20; i++ {
		l := open(t, dir, wal.Options{SegmentBytes: 256})
		if err := l.Append(i, [][]byte{make([]byte, 300)}); err != nil {
			t.Fatalf("Append(%d): %v", i, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadOutsideOfTheLog(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{})
	fill(t, l, 3)
	for _, index := range []uint64{0, 4, 1 << 63} {
		if _, err := l.Read(index); !errors.Is(err, wal.ErrNotFound) {
			t.Errorf("Read(%d): %v, want ErrNotFound", index, err)
		}
	}
}
