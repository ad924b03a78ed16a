package kg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
)

// A store that is opened with Options.ReadOnly changes nothing in its directory:
//
//   - the lock is shared, and there is none where the directory has no LOCK,
//   - the log is checked as ever and not repaired,
//   - commits beyond the index are applied in memory, up to maxTailBytes,
//   - an index that cannot be used is built in a temporary directory, which goes when
//     the store is closed,
//   - nothing is committed, flushed, upgraded or taken away.

// maxTailBytes bounds the keys that a read-only store holds in memory. Beyond it the index is
// built in a temporary directory.
const maxTailBytes = 128 << 20

// temporaryIndexPrefix is the prefix of that directory's name.
const temporaryIndexPrefix = "koine-index-"

var errTailTooLong = errors.New("the log has more commits beyond it than fit in memory")

// Writable reports whether this process may write to a data directory. It returns true for a
// directory that does not exist.
func Writable(dir string) bool {
	for _, name := range [...]string{".", datadir.LockName, datadir.LogName, datadir.IndexName} {
		err := unix.Faccessat(unix.AT_FDCWD, filepath.Join(dir, name), unix.W_OK, unix.AT_EACCESS)
		if datadir.IsNotWritable(err) {
			return false
		}
	}
	return true
}

// ClosedInOrder reports whether the store of a data directory was closed in order, so that opening
// it read-only needs no other index.
func ClosedInOrder(dir string) bool {
	return datadir.Exists(filepath.Join(dir, datadir.IndexName, datadir.CleanName))
}

func errOpenedReadOnly() *Error {
	e := Errorf(CodeReadOnly, "the data directory was opened for reading only: updates are refused")
	e.Hint = "make the directory writable, or copy it to a writable place"
	return e
}

// openDirectoryReadOnly takes a shared lock on the directory and reads its small files.
func openDirectoryReadOnly(path string) (*datadir.Directory, error) {
	if _, err := datadir.HoldsStore(path, true); err != nil {
		return nil, err
	}
	d := &datadir.Directory{Path: path}
	lock, err := os.Open(d.Join(datadir.LockName))
	switch {
	case errors.Is(err, fs.ErrNotExist): // then no process writes either
	case err != nil:
		return nil, err
	default:
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
			_ = lock.Close()
			return nil, datadir.ErrInUse(path)
		}
		d.Lock = lock
	}
	if datadir.Exists(d.Join(datadir.ErasedName)) {
		e := Errorf(CodeReadOnly, "an interrupted erasure in %s continues when the directory is opened for writing", path)
		e.Hint = "make the directory writable, or copy it to a writable place, and run koine check --data on it"
		return nil, errors.Join(e, d.Close())
	}
	if err := d.Read(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// readsInPlace reports whether a read-only store reads the directory's own index, without changing
// it.
func (s *Store) readsInPlace() bool { return s.options.ReadOnly && s.temporaryIndex == "" }

// useTemporaryIndex builds the index of a read-only store in a temporary directory.
func (s *Store) useTemporaryIndex() error {
	if err := s.removeTemporaryIndex(); err != nil {
		return err
	}
	s.removeStaleIndexes()
	dir, err := os.MkdirTemp("", temporaryIndexPrefix+"*")
	if err == nil {
		s.temporaryIndexLock, err = lockTemporaryIndex(dir)
	}
	if err != nil {
		return fmt.Errorf("the index cannot be used, and there is no place to build it: %w", err)
	}
	s.temporaryIndex = dir
	return nil
}

func (s *Store) removeTemporaryIndex() error {
	if s.temporaryIndex == "" {
		return nil
	}
	dir, lock := s.temporaryIndex, s.temporaryIndexLock
	s.temporaryIndex, s.temporaryIndexLock = "", nil
	return errors.Join(os.RemoveAll(dir), lock.Close())
}

// lockTemporaryIndex locks a temporary directory until the returned file is closed.
func lockTemporaryIndex(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// temporaryIndexGrace is the age from which a temporary directory without a lock is removed: a process
// creates it before it locks it.
const temporaryIndexGrace = time.Minute

// removeStaleIndexes removes the temporary directories of processes that were killed.
func (s *Store) removeStaleIndexes() {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), temporaryIndexPrefix+"*"))
	if err != nil {
		return // the name of the directory makes the pattern malformed
	}
	for _, dir := range left {
		if st, err := os.Lstat(dir); err != nil || !st.IsDir() || time.Since(st.ModTime()) < temporaryIndexGrace {
			continue
		}
		lock, err := lockTemporaryIndex(dir)
		if err != nil {
			continue // in use, or owned by another user
		}
		s.log.Info("removing an index that a killed process left", "directory", dir)
		if err := errors.Join(os.RemoveAll(dir), lock.Close()); err != nil {
			s.log.Warn("an index that a killed process left", "error", err)
		}
	}
}

// keepTail makes the replayed commits visible from memory, over an unchanged index.
func (r *replayer) keepTail(h *head) {
	s := r.s
	r.w.Overlay.Put(string(index.MarkerKey), s.markerOf(h).Encode())
	s.mu.Lock()
	s.showFlushed(h.revision) // Badger may have keys of later revisions than its marker: the tail has them too
	s.mu.Unlock()
	s.apply(applied{head: h, overlay: r.w.Overlay})
}
