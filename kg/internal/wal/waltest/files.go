// Package waltest gives tests a file system for a log that fails when told to,
// counts syncs, and knows what a power cut would leave of the directory.
//
//	files := waltest.New()
//	l, _ := wal.Open(dir, wal.Options{Files: files})
//	files.FailSync(3)                         // the third sync from now fails
//	… append until an append fails …
//	for keep := 0; keep <= files.Unsynced(); keep++ {
//		cut := t.TempDir()
//		files.PowerCut(dir, cut, keep)    // what a power cut leaves now
//		l, err := wal.Open(cut, wal.Options{})
//		…
//	}
//
// It works on real files, so a directory can also be opened, copied (Copy) and
// spoiled (Flip) without it. Syncs and failures are those of segment files, but for
// FailOperation, which is about all files; a power cut treats all of them alike.
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
	// ErrSync is what a sync fails with.
	ErrSync = errors.New("waltest: sync failed")
	// ErrFull is what a write to a full volume fails with.
	ErrFull error = syscall.ENOSPC
)

// Files is a types.VFS over the real file system. It may be used concurrently,
// and by several logs one after the other.
type Files struct {
	types.VFS

	mu       sync.Mutex // guards what follows, and is held while files change
	changes  []change   // not synced, in the order of writing
	unlinked map[string]bool
	syncs    int
	failAt   int // the count of syncs at which one fails, 0 for never
	full     bool

	operations int // of any file
	breakAt    int // the count of operations at which the volume breaks, 0 for never
	failure    Failure
}

// Failure says how a volume breaks.
type Failure int

const (
	// Once lets one operation fail, and those that follow succeed.
	Once Failure = iota
	// Dead lets the operation fail and all that follow.
	Dead
	// Lying is Dead but for a sync: it reports success, and nothing that it should
	// have covered is durable. A volume that is just going away does that.
	Lying
)

// ErrIO is what the operations of a volume fail with that broke, as an error of the
// file, which tells its path.
var ErrIO error = syscall.EIO

// Operations is how many files were made and how many writes and syncs of any file
// were asked for so far.
func (f *Files) Operations() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.operations
}

// FailOperation lets the volume break at the n-th operation from now on, as counted by
// Operations; 1 is the next one.
func (f *Files) FailOperation(n int, how Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.breakAt, f.failure = f.operations+n, how
}

// operate counts an operation on a file and tells whether it fails. Callers hold mu.
func (f *Files) operate(path string) error {
	f.operations++
	if f.operations == f.breakAt || f.breakAt > 0 && f.operations > f.breakAt && f.failure != Once {
		return &iofs.PathError{Op: "write", Path: path, Err: ErrIO}
	}
	return nil
}

// change is one write that no sync has covered.
type change struct {
	path    string
	off     int64
	old     []byte // what was there, shorter where the file ended
	written int
	lost    bool // a sync failed: the kernel has forgotten it, no later sync covers it
}

// New returns a file system in which nothing fails.
func New() *Files {
	return &Files{VFS: fs.New(), unlinked: make(map[string]bool)}
}

// Syncs is how many syncs of segment files were asked for so far.
func (f *Files) Syncs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// FailSync lets the n-th sync of a segment file from now on fail, once; 1 is the
// next one. What it should have covered stays visible but is never durable, as
// on Linux.
func (f *Files) FailSync(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt = f.syncs + n
}

// SetFull makes the volume full, or gives it room again. A write to a segment
// file on a full volume stores half of its bytes and fails with ErrFull.
func (f *Files) SetFull(full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = full
}

// Unsynced is how many bytes of segment files were written and not synced.
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

// Create makes a file whose entry in the directory is not durable until its
// first sync.
func (f *Files) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.operate(filepath.Join(dir, name)); err != nil {
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
	f.drop(func(c change) bool { return c.path == path })
	return nil
}

// drop removes the changes that match. Callers hold mu.
func (f *Files) drop(match func(change) bool) {
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
	if err := f.operate(w.path); err != nil {
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
	f.record(change{path: w.path, off: off, old: old[:n], written: len(b)})
	n, err = w.WritableFile.WriteAt(b, off)
	if err == nil && refuse {
		err = ErrFull
	}
	return n, err
}

// record remembers a change; one that repeats the last of its file exactly in
// place (the mark does that) adds nothing. Callers hold mu.
func (f *Files) record(c change) {
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

// Sync does not sync: the plug is only pulled in PowerCut, which knows what was.
func (w *file) Sync() error {
	f := w.owner
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.operate(w.path); err != nil {
		f.lose(w.path)
		if f.operations == f.breakAt && f.failure == Lying {
			return nil
		}
		return err
	}
	if isSegment(w.path) {
		f.syncs++
		if f.syncs == f.failAt {
			f.lose(w.path)
			return ErrSync
		}
	}
	delete(f.unlinked, w.path)
	f.drop(func(c change) bool { return c.path == w.path && !c.lost })
	return nil
}

// lose notes that no later sync covers what was written to a file. Callers hold mu.
func (f *Files) lose(path string) {
	for i := range f.changes {
		f.changes[i].lost = f.changes[i].lost || f.changes[i].path == path
	}
}
