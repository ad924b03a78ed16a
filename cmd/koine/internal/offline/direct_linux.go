package offline

import (
	"os"

	"golang.org/x/sys/unix"
)

// openDirect opens a file for writes that bypass the page cache. It fails if the file system has
// no such writes.
func openDirect(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|unix.O_DIRECT, 0)
}
