package wal

import (
	"errors"

	"golang.org/x/sys/unix"
)

// allocate allocates blocks for a file from off on and keeps its size. The error is
// errors.ErrUnsupported if the file system cannot.
func allocate(f interface{ Fd() uintptr }, off, bytes int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, bytes)
		if !errors.Is(err, unix.EINTR) {
			return err // EOPNOTSUPP and ENOSYS are errors.ErrUnsupported
		}
	}
}
