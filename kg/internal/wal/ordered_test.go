package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft-wal/types"

	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

// readCounter counts the bytes that are read from segments.
type readCounter struct {
	types.VFS
	bytes, calls, open atomic.Int64
}

func (c *readCounter) OpenReader(dir, name string) (types.ReadableFile, error) {
	f, err := c.VFS.OpenReader(dir, name)
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	return &countedReader{f, c}, nil
}

type countedReader struct {
	types.ReadableFile
	to *readCounter
}

func (r *countedReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.ReadableFile.ReadAt(b, off)
	r.to.bytes.Add(int64(n))
	r.to.calls.Add(1)
	return n, err
}

func (r *countedReader) Close() error {
	r.to.open.Add(-1)
	return r.ReadableFile.Close()
}

// Reading entries in order reads about as many bytes as the segments have, and not a buffer for
// each entry. It leaves no file open.
func TestEntriesAreReadInWindows(t *testing.T) {
	t.Parallel()
	files := &readCounter{VFS: waltest.New()}
	const segment, entries = 512 << 10, 3000
	dir := t.TempDir()
	l := open(t, dir, wal.Options{Files: files, SegmentBytes: segment})
	text := bytes.Repeat([]byte("x"), 700)
	for i := uint64(1); i <= entries; i += 100 {
		batch := make([][]byte, 100)
		for j := range batch {
			batch[j] = fmt.Appendf(nil, "%d %s", i+uint64(j), text)
		}
		if err := l.Append(i, batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, wal.Options{Files: files, SegmentBytes: segment}) // raft-wal opens readers of the closed segments
	for name, read := range map[string]func() error{
		"entries": func() error {
			next := uint64(1)
			for e, err := range l.Entries(1, 0) {
				if err != nil || e.Index != next || !bytes.HasPrefix(e.Payload, fmt.Appendf(nil, "%d xx", next)) {
					return fmt.Errorf("entry %d at %d: %.20s, %w", e.Index, next, e.Payload, err)
				}
				next++
			}
			if next != entries+1 {
				return fmt.Errorf("ended before %d", next)
			}
			return nil
		},
		"frames": func() error {
			for f, err := range l.Frames(1, entries) {
				if err != nil || f.Index == 0 {
					return err
				}
			}
			return nil
		},
		"part of the frames": func() error {
			for _, err := range l.Frames(1, entries) {
				return err // the loop is left
			}
			return errors.New("no frame")
		},
		"verify": func() error { return l.Verify(t.Context(), nil) },
		"part": func() error {
			for _, err := range l.Entries(1, entries/2) {
				return err // the loop is left
			}
			return errors.New("no entry")
		},
	} {
		bytesBefore, callsBefore, openBefore := files.bytes.Load(), files.calls.Load(), files.open.Load()
		if err := read(); err != nil {
			t.Fatal(name, err)
		}
		used := l.UsedBytes()
		if n := files.bytes.Load() - bytesBefore; n > 2*used {
			t.Errorf("%s: %d bytes were read of a log of %d", name, n, used)
		}
		if n := files.calls.Load() - callsBefore; n > entries/10 {
			t.Errorf("%s: %d reads for %d entries", name, n, entries)
		}
		if files.open.Load() != openBefore {
			t.Errorf("%s: %d files are still open", name, files.open.Load()-openBefore)
		}
	}
}

// A reader that the front of the log overtakes ends with ErrNotFound, also within an open segment.
func TestTruncationOvertakesAReader(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), wal.Options{})
	fill(t, l, 300)
	for e, err := range l.Entries(1, 0) {
		switch e.Index {
		case 5:
			if err := l.TruncateFront(20); err != nil {
				t.Fatal(err)
			}
		case 6:
			if !errors.Is(err, wal.ErrNotFound) {
				t.Fatalf("entry 6 after the truncation to 20: %v", err)
			}
		default:
			if err != nil {
				t.Fatal(e.Index, err)
			}
		}
	}
	expect(t, l, 20, 300)
}
