package wal

import (
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft-wal/types"
)

// segmentFiles is the file system as raft-wal sees it for its segments: it
// counts how far each file is written (they are preallocated, so their sizes say
// nothing), and it keeps raft-wal from changing anything in a read-only log.
type segmentFiles struct {
	types.VFS
	readOnly bool

	mu   sync.Mutex // guards used
	used map[string]int64
}

func (s *segmentFiles) grow(name string, end int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[name] = max(s.used[name], end)
}

func (s *segmentFiles) total() int64 {
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
	f, err := s.VFS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	return &countedFile{WritableFile: f, owner: s, name: name}, nil
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

func (s *segmentFiles) Delete(dir, name string) error {
	if s.readOnly {
		return nil
	}
	err := s.VFS.Delete(dir, name)
	if err == nil || os.IsNotExist(err) {
		s.mu.Lock()
		delete(s.used, name)
		s.mu.Unlock()
	}
	return err
}

type countedFile struct {
	types.WritableFile
	owner *segmentFiles
	name  string
	// synced tells that all of the file was once: its size and, for a new one, that it
	// is in its directory.
	synced atomic.Bool
}

// Sync makes what was written durable.
func (f *countedFile) Sync() error {
	if f.synced.Load() {
		return dataSync(f.WritableFile)
	}
	err := f.WritableFile.Sync()
	if err == nil {
		f.synced.Store(true)
	}
	return err
}

func (f *countedFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.WritableFile.WriteAt(b, off)
	f.owner.grow(f.name, off+int64(n))
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

// noFile stands for a segment that a read-only log would have to make.
type noFile struct{}

func (noFile) ReadAt([]byte, int64) (int, error)  { return 0, io.EOF }
func (noFile) WriteAt([]byte, int64) (int, error) { return 0, ErrReadOnly }
func (noFile) Sync() error                        { return ErrReadOnly }
func (noFile) Close() error                       { return nil }
