package wal

import (
	"errors"

	"golang.org/x/sys/unix"
)

// allocate gives a file blocks from off on, and leaves its size as it is. The error is
// errors.ErrUnsupported where the file system cannot.
func allocate(f interface{ Fd() uintptr }, off, bytes int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, bytes)
		if !errors.Is(err, unix.EINTR) {
			return err // EOPNOTSUPP and ENOSYS are errors.ErrUnsupported
		}
	}
}
