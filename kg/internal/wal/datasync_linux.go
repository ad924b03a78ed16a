package wal

import (
	"errors"

	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"
)

// dataSync makes what was written to a file durable with all that is needed to find
// it, and leaves out when it was written: fsync writes that too, and has a journaling
// file system commit for it.
func dataSync(f types.WritableFile) error {
	file, ok := f.(interface{ Fd() uintptr })
	if !ok {
		return f.Sync()
	}
	for {
		err := unix.Fdatasync(int(file.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
