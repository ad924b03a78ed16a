package offline

import (
	"os"

	"golang.org/x/sys/unix"
)

// setDirect sets whether writes to a file bypass the page cache. It fails if the file system has
// no such writes.
func setDirect(f *os.File, direct bool) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		var flags int
		if flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil {
			return
		}
		flags &^= unix.O_DIRECT
		if direct {
			flags |= unix.O_DIRECT
		}
		_, err = unix.FcntlInt(fd, unix.F_SETFL, flags)
	})
	if failed != nil {
		return failed
	}
	return err
}
