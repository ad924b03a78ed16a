package wal

import (
	"errors"

	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"
)

// dataSync makes written data durable, with the metadata needed to read it, but without
// the modification time: fsync includes that, which costs a commit of the journal.
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
