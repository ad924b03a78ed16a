package offline

import (
	"errors"
	"io"
	"syscall"
	"unsafe"
)

const (
	blockSize  = 4 << 20 // of one write to the volume
	blockAlign = 4 << 10 // of buffers and offsets; the largest that volumes ask for
)

// blockWriter writes a file from its beginning in blocks of blockSize. One block is written while
// the next is filled. It is for one goroutine.
//
// Blocks bypass the page cache if direct is set. The processor copies them once less, and
// the cached pages of a server beside it stay. Neither Write nor close makes the file durable.
type blockWriter struct {
	file   io.WriterAt // the file through the page cache
	direct io.WriterAt // the same file past the page cache; nil if the file system cannot

	block, spare []byte     // the block that is filled, and the one that is written or empty
	at           int64      // the offset of block in the file
	running      chan error // the result of the write of spare; nil before the first
}

func newBlockWriter(file, direct io.WriterAt) *blockWriter {
	return &blockWriter{file: file, direct: direct, block: alignedBlock(), spare: alignedBlock()}
}

// alignedBlock returns an empty slice with blockSize bytes from an address that direct writes take.
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
		if err := w.wait(); err != nil {
			return n, err
		}
		running, full, at := make(chan error, 1), w.block, w.at
		go func() { running <- w.writeBlock(full, at) }()
		w.running, w.block, w.spare, w.at = running, w.spare[:0], full, at+blockSize
	}
	return n, nil
}

// writeBlock writes a full block. It runs at most once at a time and alone uses direct.
func (w *blockWriter) writeBlock(b []byte, at int64) error {
	if w.direct != nil {
		_, err := w.direct.WriteAt(b, at)
		if !errors.Is(err, syscall.EINVAL) {
			return err
		}
		w.direct = nil // some file systems refuse the write and not the opening
	}
	_, err := w.file.WriteAt(b, at)
	return err
}

// wait waits for the block that is written. The volume may report an error only once, so each
// caller returns it.
func (w *blockWriter) wait() error {
	if w.running == nil {
		return nil
	}
	err := <-w.running
	w.running = nil
	return err
}

// close writes the last block, which has no full size, and waits for all of them. It closes
// no file.
func (w *blockWriter) close() error {
	if err := w.wait(); err != nil {
		return err
	}
	_, err := w.file.WriteAt(w.block, w.at)
	return err
}
