package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"koine/kg/base"
	"koine/kg/internal/wal"
)

// newStoreBytes is the free space that a new store needs: the first segment of the log,
// which is allocated as a whole, and the small files.
const newStoreBytes = wal.DefaultSegmentBytes + 1<<20

// NewStore is a store that is being created. If that fails it is removed, so that the next
// start does not find a partial store. Its methods do nothing on nil.
type NewStore struct {
	Path   string
	before []string // the names in the directory before anything but the lock was made
	lock   bool     // the lock was made
	Dirs   []string // the directories made for it, the innermost first
}

// namesOf lists the names in a directory.
func namesOf(path string) (names []string, err error) {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// MissingDirs lists the directories that os.MkdirAll makes for path, the innermost first.
func MissingDirs(path string) (dirs []string) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return dirs
		}
		dirs = append(dirs, path)
	}
}

// Remove removes the files of the store and the directories created for it. Files that
// existed before and files that do not belong to a store stay. The caller holds the lock.
func (n *NewStore) Remove() (err error) {
	if n == nil {
		return nil
	}
	// The lock is removed last, so that no other process creates a store meanwhile.
	for _, name := range []string{FormatName, FormatName + ".tmp", SecretName, SecretName + ".tmp", LogName, IndexName, BuildingName, CheckpointName} {
		if !slices.Contains(n.before, name) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(n.Path, name)))
		}
	}
	if n.lock {
		err = errors.Join(err, RemoveFile(filepath.Join(n.Path, LockName)))
	}
	return errors.Join(err, n.RemoveDirs())
}

// RemoveDirs removes the empty directories that were created for the store.
func (n *NewStore) RemoveDirs() error {
	for _, dir := range n.Dirs {
		err := os.Remove(dir)
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			break // another process uses it
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	n.Dirs = nil
	return nil
}

// WrapError returns the error of creating the store. If the volume is full, it tells the
// space that a store needs.
func (n *NewStore) WrapError(cause error) error {
	if n == nil || !IsNoSpace(cause) {
		return cause
	}
	free := ""
	if bytes, err := FreeBytes(n.Path); err == nil {
		free = fmt.Sprintf(", and %d MiB are free", bytes>>20)
	}
	e := base.Errorf(base.CodeDiskFull, "no store was made in %s: it needs at least %d MiB of free space%s", n.Path, newStoreBytes>>20, free)
	e.Err = cause
	e.Hint = "make room on the volume, or choose a directory on a larger one; updates need the reserve of free space as well"
	return e
}
