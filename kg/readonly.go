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
//   - what the log has beyond the index is kept in memory, up to maxTailBytes,
//   - an index that cannot be used is built in a temporary directory, which goes when
//     the store is closed,
//   - nothing is committed, flushed, upgraded or taken away.

// maxTailBytes bounds the keys that a read-only store keeps in memory. With more of them
// the index is built in a temporary directory.
const maxTailBytes = 128 << 20

// asideName begins the name of that directory.
const asideName = "koine-index-"

var errTailTooLong = errors.New("the log has more that it lacks than is kept in memory")

// Writable reports whether the process may write in a data directory, as an open
// without Options.ReadOnly does. It is true of one that is not there.
func Writable(dir string) bool {
	for _, name := range [...]string{".", datadir.LockName, datadir.LogName, datadir.IndexName} {
		err := unix.Faccessat(unix.AT_FDCWD, filepath.Join(dir, name), unix.W_OK, unix.AT_EACCESS)
		if datadir.IsNotWritable(err) {
			return false
		}
	}
	return true
}

func errOpenedReadOnly() *Error {
	e := Errorf(CodeReadOnly, "the data directory was opened for reading only: no updates are taken")
	e.Hint = "make the directory writable, or copy it to where it is"
	return e
}

// openDirectoryReadOnly locks the directory together with others who only read it, and
// reads its small files.
func openDirectoryReadOnly(path string) (*datadir.Directory, error) {
	if _, err := datadir.HoldsStore(path, true); err != nil {
		return nil, err
	}
	d := &datadir.Directory{Path: path}
	lock, err := os.Open(d.Join(datadir.LockName))
	switch {
	case errors.Is(err, fs.ErrNotExist): // then nobody writes either
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
		e := Errorf(CodeReadOnly, "an erasure in %s was cut short and is finished when the directory is opened for writing", path)
		e.Hint = "make the directory writable, or copy it to where it is, and run koine check --data on it"
		return nil, errors.Join(e, d.Close())
	}
	if err := d.Read(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// inPlace reports whether Badger reads the directory's own index, which stays as it is.
func (s *Store) inPlace() bool { return s.options.ReadOnly && s.aside == "" }

// setAside has the index of a read-only store built in a temporary directory.
func (s *Store) setAside() error {
	if err := s.removeAside(); err != nil {
		return err
	}
	s.removeLeftAside()
	dir, err := os.MkdirTemp("", asideName+"*")
	if err == nil {
		s.asideLock, err = lockAside(dir)
	}
	if err != nil {
		return fmt.Errorf("the index cannot be used, and there is no place to build it: %w", err)
	}
	s.aside = dir
	return nil
}

func (s *Store) removeAside() error {
	if s.aside == "" {
		return nil
	}
	dir, lock := s.aside, s.asideLock
	s.aside, s.asideLock = "", nil
	return errors.Join(os.RemoveAll(dir), lock.Close())
}

// lockAside locks a temporary directory, for as long as the file is open.
func lockAside(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// asideGrace is how old a temporary directory without a lock is before it is removed: a
// process that makes one locks it afterwards.
const asideGrace = time.Minute

// removeLeftAside removes the temporary directories of processes that were killed.
func (s *Store) removeLeftAside() {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), asideName+"*"))
	if err != nil {
		return // a pattern that is malformed, because of the directory's name
	}
	for _, dir := range left {
		if st, err := os.Lstat(dir); err != nil || !st.IsDir() || time.Since(st.ModTime()) < asideGrace {
			continue
		}
		lock, err := lockAside(dir)
		if err != nil {
			continue // in use, or another user's
		}
		s.log.Info("removing an index that a killed process left", "directory", dir)
		if err := errors.Join(os.RemoveAll(dir), lock.Close()); err != nil {
			s.log.Warn("an index that a killed process left", "error", err)
		}
	}
}

// keepTail shows readers what a replay gathered, over an index that stays as it is.
func (r *replayer) keepTail(m index.Marker) {
	s := r.s
	r.w.O.Put(string(index.MarkerKey), m.Encode())
	s.mu.Lock()
	defer s.mu.Unlock()
	// Badger may have keys of later revisions than its marker says: then the tail has
	// them too.
	s.showFlushed(r.last.Revision)
	s.layers.mem, s.layers.shared = r.w.O.Tree(), nil
	s.showHead(&head{r.last.Revision, r.last.Time, r.catalogue, r.w.Generations, m.NextNumber, m.Hash})
}
