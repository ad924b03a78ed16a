package wal

import (
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft-wal/types"
)

// segmentFiles is the file system for raft-wal's segments. It records how far each file is
// written (segments are preallocated, so their sizes are meaningless) and prevents changes
// in a read-only log.
type segmentFiles struct {
	types.VFS
	readOnly bool
	log      *slog.Logger

	mu        sync.Mutex // guards the fields below
	used      map[string]int64
	createErr error // error of the last creation of a segment
	spare     bool  // a spare segment exists
	beyond    int64 // allocated bytes behind the size of the newest segment

	unsupported bool // the file system cannot allocate; used by the appender only

	removals removals
}

// newestSegment returns the segment that is appended to, its written length, beyond, and spare.
func (s *segmentFiles) newestSegment() (name string, end, beyond int64, spare bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, used := range s.used {
		if n > name {
			name, end = n, used
		}
	}
	return name, end, s.beyond, s.spare
}

func (s *segmentFiles) setBeyond(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beyond = bytes
}

func (s *segmentFiles) setSpare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = true
}

func (s *segmentFiles) createError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.createErr
}

func (s *segmentFiles) recordWritten(name string, end int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[name] = max(s.used[name], end)
}

func (s *segmentFiles) totalUsed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := int64(0)
	for _, n := range s.used {
		sum += n
	}
	return sum
}

func (s *segmentFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if s.readOnly {
		return noFile{}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &countedFile{owner: s, name: name}
	var err error
	if files, ok := s.VFS.(renamer); ok && s.spare {
		f.dir = dir
		if err = files.rename(dir, spareName, name); err == nil {
			f.WritableFile, err = files.OpenWriter(dir, name)
		}
	} else {
		f.WritableFile, err = s.VFS.Create(dir, name, size)
	}
	s.createErr = err
	if err != nil {
		return nil, err
	}
	s.beyond, s.spare, s.used[name] = 0, false, 0
	return f, nil
}

func (s *segmentFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	if s.readOnly {
		f, err := s.OpenReader(dir, name)
		if err != nil {
			return nil, err
		}
		return readOnlyFile{f}, nil
	}
	f, err := s.VFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	return &countedFile{WritableFile: f, owner: s, name: name}, nil
}

// Delete removes a segment soon. raft-wal calls it with its locks held, or in the goroutine of
// the reader that was the last to use the segment, which may be the appender; removing a file of
// many megabytes and making that durable takes long. The metadata does not name the segment
// anymore: if the process ends before, the next open removes it.
func (s *segmentFiles) Delete(dir, name string) error {
	if s.readOnly {
		return nil
	}
	s.removals.add(func() {
		if err := s.VFS.Delete(dir, name); err != nil && !os.IsNotExist(err) {
			s.log.Warn("a segment of the log that is not needed anymore could not be removed", "file", name, "error", err)
			return
		}
		s.mu.Lock()
		delete(s.used, name)
		s.mu.Unlock()
	})
	return nil
}

// removals does work one after the other in a goroutine, which ends when there is no more. The
// zero value is ready.
type removals struct {
	mu   sync.Mutex
	list []func()
	idle chan struct{} // closed when the list was done; nil if runList does not run
}

func (r *removals) add(remove func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, remove)
	if r.idle == nil {
		r.idle = make(chan struct{})
		go r.runList()
	}
}

// runList removes what is on the list until nothing is left.
func (r *removals) runList() {
	for {
		r.mu.Lock()
		if len(r.list) == 0 {
			close(r.idle)
			r.idle = nil
			r.mu.Unlock()
			return
		}
		remove := r.list[0]
		r.list = r.list[1:]
		r.mu.Unlock()
		remove()
	}
}

// awaitIdle waits until all that was added is done.
func (r *removals) awaitIdle() {
	r.mu.Lock()
	idle := r.idle
	r.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

type countedFile struct {
	types.WritableFile
	owner *segmentFiles
	name  string
	// synced reports that the whole file was synced once, including its size and, for a
	// new file, its directory entry.
	synced atomic.Bool
	dir    string // directory to sync with the first sync; "" if not needed
}

// Sync makes written data durable.
func (f *countedFile) Sync() error {
	if f.synced.Load() {
		return dataSync(f.WritableFile)
	}
	err := f.WritableFile.Sync()
	if err == nil && f.dir != "" {
		err = syncDir(f.dir)
	}
	if err == nil {
		f.synced.Store(true)
	}
	return err
}

func (f *countedFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.WritableFile.WriteAt(b, off)
	f.owner.recordWritten(f.name, off+int64(n))
	return n, err
}

type readOnlyFile struct{ types.ReadableFile }

func (readOnlyFile) WriteAt([]byte, int64) (int, error) { return 0, ErrReadOnly }
func (readOnlyFile) Sync() error                        { return ErrReadOnly }

// noFiles is a file system without files.
type noFiles struct{}

func (noFiles) ListDir(string) ([]string, error) { return nil, nil }
func (noFiles) Delete(string, string) error      { return ErrReadOnly }
func (noFiles) Create(string, string, uint64) (types.WritableFile, error) {
	return nil, ErrReadOnly
}
func (noFiles) OpenReader(string, string) (types.ReadableFile, error) { return nil, os.ErrNotExist }
func (noFiles) OpenWriter(string, string) (types.WritableFile, error) { return nil, os.ErrNotExist }

// noFile stands for a segment that a read-only log would have to create.
type noFile struct{}

func (noFile) ReadAt([]byte, int64) (int, error)  { return 0, io.EOF }
func (noFile) WriteAt([]byte, int64) (int, error) { return 0, ErrReadOnly }
func (noFile) Sync() error                        { return ErrReadOnly }
func (noFile) Close() error                       { return nil }
