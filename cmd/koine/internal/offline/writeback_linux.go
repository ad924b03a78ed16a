package offline

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// writeBack begins to write a range of a file to its volume. Unlike a sync it waits for no journal
// and makes nothing durable.
func writeBack(f *os.File, at, size int64) error {
	err := unix.SyncFileRange(int(f.Fd()), at, size, unix.SYNC_FILE_RANGE_WRITE)
	if errors.Is(err, unix.ENOSYS) {
		return f.Sync()
	}
	return err
}
