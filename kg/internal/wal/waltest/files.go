// Package waltest provides a file system for tests of a log. It can fail on demand, counts
// syncs, and reproduces the directory after a power cut.
//
//	files := waltest.New()
//	l, _ := wal.Open(dir, wal.Options{Files: files})
//	files.FailSync(3)                         // the third sync from now fails
//	… append until an append fails …
//	for keep := 0; keep <= files.Unsynced(); keep++ {
//		cut := t.TempDir()
//		files.PowerCut(dir, cut, keep)    // the state after a power cut
//		l, err := wal.Open(cut, wal.Options{})
//		…
//	}
//
// It works on real files, so that a directory can also be opened, copied (Copy) and
// corrupted (Flip) without it. Syncs and failures concern segment files only, except for
// FailOperation; a power cut concerns all files.
package waltest

import (
	"errors"
	"io"
	iofs "io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
)

var (
	// ErrSync is the error of a failed sync.
	ErrSync = errors.New("waltest: sync failed")
	// ErrFull is the error of a write to a full volume.
	ErrFull error = syscall.ENOSPC
)

// Files is a types.VFS over the real file system. It is safe for concurrent use, and for
// several logs one after the other.
type Files struct {
	types.VFS

	mu       sync.Mutex // guards the fields below; held while files change
	changes  []change   // unsynced, in write order
	unlinked map[string]bool
	syncs    int
	failAt   int // sync that fails, 0 for none
	full     bool

	operations int // of any file
	breakAt    int // operation that fails, 0 for none
	failure    Failure
}

// Failure is the way in which a volume fails.
type Failure int

const (
	// Once fails one operation; later ones succeed.
	Once Failure = iota
	// Dead fails the operation and all later ones.
	Dead
	// Lying is Dead except for a sync: it reports success without making anything
	// durable, as a volume that is about to fail may do.
	Lying
)

// ErrIO is the error of operations on a failed volume, wrapped in a PathError.
var ErrIO error = syscall.EIO

// Operations returns the number of file creations, writes and syncs so far.
func (f *Files) Operations() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.operations
}

// FailOperation makes the volume fail at the n-th operation from now, as counted by
// Operations; 1 is the next one.
func (f *Files) FailOperation(n int, how Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.breakAt, f.failure = f.operations+n, how
}

// countOperation counts an operation on a file and returns its injected error. Callers hold mu.
func (f *Files) countOperation(path string) error {
	f.operations++
	if f.operations == f.breakAt || f.breakAt > 0 && f.operations > f.breakAt && f.failure != Once {
		return &iofs.PathError{Op: "write", Path: path, Err: ErrIO}
	}
	return nil
}

// change is an unsynced write.
type change struct {
	path    string
	off     int64
	old     []byte // previous bytes, shorter at the end of the file
	written int
	lost    bool // a sync failed: later syncs do not cover it either
}

// New returns a file system without failures.
func New() *Files {
	return &Files{VFS: fs.New(), unlinked: make(map[string]bool)}
}

// Syncs returns the number of syncs of segment files so far.
func (f *Files) Syncs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// FailSync makes the n-th sync of a segment file from now fail once; 1 is the next one. As on
// Linux, the data stays visible but never becomes durable.
func (f *Files) FailSync(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt = f.syncs + n
}

// SetFull makes the volume full, or frees space. A write to a segment file on a full volume
// stores half of its bytes and fails with ErrFull.
func (f *Files) SetFull(full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = full
}

// Unsynced returns the number of unsynced bytes of segment files.
func (f *Files) Unsynced() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.changes {
		if isSegment(c.path) {
			n += c.written
		}
	}
	return n
}

func isSegment(path string) bool { return strings.HasSuffix(path, ".wal") }

// Create creates a file with a directory entry that is not durable before its first sync.
func (f *Files) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.countOperation(filepath.Join(dir, name)); err != nil {
		return nil, err
	}
	w, err := f.VFS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	f.unlinked[path] = true
	return &file{w, f, path}, nil
}

// OpenWriter opens an existing file.
func (f *Files) OpenWriter(dir, name string) (types.WritableFile, error) {
	w, err := f.VFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return &file{w, f, filepath.Join(dir, name)}, nil
}

// Delete removes a file durably.
func (f *Files) Delete(dir, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.VFS.Delete(dir, name); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	delete(f.unlinked, path)
	f.dropChanges(func(c change) bool { return c.path == path })
	return nil
}

// dropChanges removes the changes that match. Callers hold mu.
func (f *Files) dropChanges(match func(change) bool) {
	kept := f.changes[:0]
	for _, c := range f.changes {
		if !match(c) {
			kept = append(kept, c)
		}
	}
	f.changes = kept
}

type file struct {
	types.WritableFile
	owner *Files
	path  string
}

func (w *file) WriteAt(b []byte, off int64) (int, error) {
	f := w.owner
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.countOperation(w.path); err != nil {
		return 0, err
	}
	refuse := f.full && isSegment(w.path)
	if refuse {
		b = b[:len(b)/2]
	}
	old := make([]byte, len(b))
	n, err := w.ReadAt(old, off)
	if err != nil && err != io.EOF {
		return 0, err
	}
	f.recordChange(change{path: w.path, off: off, old: old[:n], written: len(b)})
	n, err = w.WritableFile.WriteAt(b, off)
	if err == nil && refuse {
		err = ErrFull
	}
	return n, err
}

// recordChange records a change, unless it repeats the last one of its file in place, as
// the mark does. Callers hold mu.
func (f *Files) recordChange(c change) {
	for i := len(f.changes) - 1; i >= 0; i-- {
		if before := f.changes[i]; before.path == c.path {
			if before.off == c.off && before.written == c.written && !before.lost && !isSegment(c.path) {
				return
			}
			break
		}
	}
	f.changes = append(f.changes, c)
}

// Sync does not sync: PowerCut undoes the changes that were not synced.
func (w *file) Sync() error {
	f := w.owner
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.countOperation(w.path); err != nil {
		f.markLost(w.path)
		if f.operations == f.breakAt && f.failure == Lying {
			return nil
		}
		return err
	}
	if isSegment(w.path) {
		f.syncs++
		if f.syncs == f.failAt {
			f.markLost(w.path)
			return ErrSync
		}
	}
	delete(f.unlinked, w.path)
	f.dropChanges(func(c change) bool { return c.path == w.path && !c.lost })
	return nil
}

// markLost records that no later sync covers the writes to a file. Callers hold mu.
func (f *Files) markLost(path string) {
	for i := range f.changes {
		f.changes[i].lost = f.changes[i].lost || f.changes[i].path == path
	}
}
