package offline

import (
	"errors"
	"io"
	"os"
	"syscall"
	"unsafe"
)

const (
	blockSize    = 4 << 20 // of one write to the volume
	blockAlign   = 4 << 10 // of its address; a volume that asks for more refuses direct writes
	syncInterval = 4       // blocks through the page cache between two syncs
)

// blockFile is a file as a blockWriter uses it.
type blockFile interface {
	io.WriterAt
	Sync() error
	// SetDirect sets whether writes bypass the page cache. The offset, size and address of
	// such a write must be multiples of blockAlign.
	SetDirect(direct bool) error
}

// osFile is a blockFile of the operating system.
type osFile struct{ *os.File }

func (f osFile) SetDirect(direct bool) error { return setDirect(f.File, direct) }

// blockWriter writes a file from its beginning in blocks of blockSize. One block is written while
// the next is filled. It is for one goroutine.
//
// Blocks bypass the page cache if the file system allows it: the kernel copies nothing, and pages
// of a server on the same machine stay cached. Other blocks are synced every syncInterval, so that
// little is left for the sync in the end. That sync is the caller's.
type blockWriter struct {
	file   blockFile
	direct bool

	block, spare []byte     // the block that is filled, and the one that is written or empty
	at           int64      // the offset of block in the file
	running      chan error // the result of the write of spare; nil if there is none
}

func newBlockWriter(file blockFile) *blockWriter {
	return &blockWriter{file: file, direct: file.SetDirect(true) == nil, block: alignedBlock(), spare: alignedBlock()}
}

// alignedBlock returns an empty slice with room for a block at an aligned address.
func alignedBlock() []byte {
	b := make([]byte, blockSize+blockAlign)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % blockAlign
	return b[skip : skip : skip+blockSize]
}

// Write returns the error of an earlier block as soon as it is known.
func (w *blockWriter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		k := min(len(b)-n, blockSize-len(w.block))
		w.block = append(w.block, b[n:n+k]...)
		if n += k; len(w.block) < blockSize {
			break
		}
		if err := w.awaitBlock(); err != nil {
			return n, err
		}
		running, full, at := make(chan error, 1), w.block, w.at
		go func() { running <- w.writeBlock(full, at) }()
		w.running, w.block, w.spare, w.at = running, w.spare[:0], full, at+blockSize
	}
	return n, nil
}

// writeBlock writes a full block. Only one call runs at a time.
func (w *blockWriter) writeBlock(b []byte, at int64) error {
	if w.direct {
		_, err := w.file.WriteAt(b, at)
		if !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		if err := w.endDirect(); err != nil { // the file system refuses the write, but not the flag
			return err
		}
	}
	if _, err := w.file.WriteAt(b, at); err != nil {
		return err
	}
	if (at/blockSize+1)%syncInterval == 0 {
		return w.file.Sync()
	}
	return nil
}

func (w *blockWriter) endDirect() error {
	if !w.direct {
		return nil
	}
	w.direct = false
	return w.file.SetDirect(false)
}

// awaitBlock waits for the block that is written. The volume may report an error only once, so each
// caller returns it.
func (w *blockWriter) awaitBlock() error {
	if w.running == nil {
		return nil
	}
	err := <-w.running
	w.running = nil
	return err
}

// writeLast waits for the blocks and writes the last one, which is not full.
func (w *blockWriter) writeLast() error {
	if err := w.awaitBlock(); err != nil {
		return err
	}
	if err := w.endDirect(); err != nil { // its size is not aligned
		return err
	}
	_, err := w.file.WriteAt(w.block, w.at)
	return err
}
