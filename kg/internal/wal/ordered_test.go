package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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

func (c *readCounter) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := c.VFS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	return &countedAppender{f, c}, nil
}

// countedAppender is a segment that is appended to, of which raft-wal reads too.
type countedAppender struct {
	types.WritableFile
	to *readCounter
}

func (f *countedAppender) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.WritableFile.ReadAt(b, off)
	f.to.bytes.Add(int64(n))
	f.to.calls.Add(1)
	return n, err
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

// The segment that is appended to is read in windows too, from its beginning at once, and from
// another entry after a few.
func TestOpenSegmentIsReadInWindows(t *testing.T) {
	t.Parallel()
	files := &readCounter{VFS: waltest.New()}
	const entries = 3000
	l := open(t, t.TempDir(), wal.Options{Files: files, SegmentBytes: 4 << 20})
	text := bytes.Repeat([]byte("x"), 700)
	batch := make([][]byte, entries)
	for i := range batch {
		batch[i] = fmt.Appendf(nil, "%d %s", i+1, text)
	}
	if err := l.Append(1, batch); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"all entries": func() error {
			next := uint64(1)
			for e, err := range l.Entries(1, 0) {
				if err != nil || !bytes.HasPrefix(e.Payload, fmt.Appendf(nil, "%d xx", next)) {
					return fmt.Errorf("entry %d: %.20s, %w", next, e.Payload, err)
				}
				next++
			}
			return nil
		},
		"frames": func() error {
			next := uint64(2000)
			for f, err := range l.Frames(next, entries) {
				if err != nil || f.Index != next {
					return fmt.Errorf("entry %d at %d: %w", f.Index, next, err)
				}
				next++
			}
			return nil
		},
		"verify": func() error { return l.Verify(t.Context(), nil) },
	} {
		before := files.calls.Load()
		if err := read(); err != nil {
			t.Fatal(name, err)
		}
		most := int64(20) // windows
		if name == "frames" {
			most = entries / 10
		}
		if n := files.calls.Load() - before; n > most {
			t.Errorf("%s: %d reads for %d entries", name, n, entries)
		}
	}
}

// Where the entries before it cannot be followed, an entry of the segment that is appended to is
// read through raft-wal, and the segment is not searched for each.
func TestDamageBeforePosition(t *testing.T) {
	t.Parallel()
	files := &readCounter{VFS: waltest.New()}
	const entries, damaged = 1000, 20
	dir := t.TempDir()
	l := open(t, dir, wal.Options{Files: files, SegmentBytes: 1 << 20})
	batch := make([][]byte, entries)
	for i := range batch {
		batch[i] = fmt.Appendf(nil, "entry %07d", i+1)
	}
	if err := l.Append(1, batch); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	all, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	all[bytes.Index(all, batch[damaged-1])-64-8] ^= 0xff // the kind in raft-wal's header
	if err := os.WriteFile(segments[0], all, 0o600); err != nil {
		t.Fatal(err)
	}
	before, next := files.bytes.Load(), uint64(damaged+1)
	for f, err := range l.Frames(next, entries) {
		if err != nil || f.Index != next {
			t.Fatalf("entry %d at %d: %v", f.Index, next, err)
		}
		next++
	}
	if n := (files.bytes.Load() - before) / entries; next != entries+1 || n > 128<<10 {
		t.Errorf("ended before %d, %d bytes were read for each entry", next, n)
	}
}

// Readers beside an appender read the acknowledged entries, in segments that are appended to and
// closed under them.
func TestReadersFollowAppends(t *testing.T) {
	t.Parallel()
	const entries = 4000
	l := open(t, t.TempDir(), wal.Options{SegmentBytes: 128 << 10})
	payload := func(i uint64) []byte {
		return bytes.Repeat(fmt.Appendf(nil, "%d ", i), 1+int(i*7919%150))
	}
	for i := uint64(1); i <= entries/4; i++ {
		if err := l.Append(i, [][]byte{payload(i)}); err != nil {
			t.Fatal(err)
		}
	}
	var appending sync.WaitGroup
	appending.Go(func() {
		for i := l.Last() + 1; i <= entries; i++ {
			if err := l.Append(i, [][]byte{payload(i)}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	read := func(round func(from uint64) (uint64, error)) {
		next := uint64(1)
		for next <= entries && !t.Failed() {
			var err error
			if next, err = round(next); err != nil {
				t.Error(err)
			}
		}
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		read(func(next uint64) (uint64, error) {
			for e, err := range l.Entries(next, 0) {
				if err != nil || !bytes.Equal(e.Payload, payload(next)) {
					return next, fmt.Errorf("entry %d: %.20s, %w", next, e.Payload, err)
				}
				next++
			}
			return next, nil
		})
	})
	reading.Go(func() {
		read(func(next uint64) (uint64, error) {
			for f, err := range l.Frames(next, l.Last()) {
				if err != nil {
					return next, fmt.Errorf("frame %d: %w", next, err)
				}
				if got, err := f.Payload(); f.Index != next || err != nil || !bytes.Equal(got, payload(next)) {
					return next, fmt.Errorf("frame %d at %d: %.20s, %w", f.Index, next, got, err)
				}
				next++
			}
			return next, nil
		})
	})
	appending.Wait()
	reading.Wait()
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
