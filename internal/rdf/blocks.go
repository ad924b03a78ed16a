package rdf

import (
	"bufio"
	"errors"
	"io"
)

const (
	blockBytes = 256 << 10
	// blocksAhead is the number of blocks that are read ahead. Of blocks longer than
	// longBlock only one is: it is a line that may be many times blockBytes long.
	blocksAhead = 4
	longBlock   = 4 * blockBytes
)

// block is a run of whole lines, or the rest of the input.
type block struct {
	lines []byte
	// skipped is set for a line that is too long; lines is its beginning.
	skipped bool
	err     error // io.EOF after the last line
}

// blockReader splits an input into blocks in a goroutine of its own, so that reading and
// decompression run in parallel with parsing. close ends it and waits.
type blockReader struct {
	lineLimit int // largest length of a line in bytes
	blocks    chan block
	taken     chan struct{} // a long block was taken
	free      chan []byte
	stop      chan struct{}
	done      chan struct{}
}

func newBlockReader(r io.Reader, limit int) *blockReader {
	b := &blockReader{
		lineLimit: limit,
		taken:     make(chan struct{}),
		blocks:    make(chan block, blocksAhead),
		free:      make(chan []byte, blocksAhead+2),
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	go b.run(r)
	return b
}

// next returns the next block. Its lines belong to the caller until recycle.
func (b *blockReader) next() block {
	blk := <-b.blocks
	if blk.isLong() && blk.err == nil {
		<-b.taken
	}
	return blk
}

func (b *block) isLong() bool { return len(b.lines) > longBlock }

func (b *blockReader) recycleBuffer(lines []byte) {
	if cap(lines) > longBlock {
		return
	}
	select {
	case b.free <- lines:
	default:
	}
}

// close ends the goroutine. It waits for a running Read of the input.
func (b *blockReader) close() {
	close(b.stop)
	<-b.done
}

func (b *blockReader) run(r io.Reader) {
	defer close(b.done)
	in := bufio.NewReaderSize(r, blockBytes)
	for {
		blk := b.fillBlock(in)
		select {
		case b.blocks <- blk:
		case <-b.stop:
			return
		}
		if blk.err != nil {
			return
		}
		if blk.isLong() {
			select {
			case b.taken <- struct{}{}:
			case <-b.stop:
				return
			}
		}
	}
}

// fillBlock reads about blockBytes, up to the end of a line.
func (b *blockReader) fillBlock(in *bufio.Reader) block {
	var buf []byte
	select {
	case buf = <-b.free:
		buf = buf[:0]
	default:
		buf = make([]byte, 0, blockBytes+4<<10)
	}
	for len(buf) < blockBytes {
		// io.ReadFull would not do: its io.ErrUnexpectedEOF may be the reader's own.
		n, err := in.Read(buf[len(buf):blockBytes])
		if buf = buf[:len(buf)+n]; err != nil {
			return block{lines: buf, err: err}
		}
	}
	for {
		rest, err := in.ReadSlice('\n')
		buf = append(buf, rest...)
		switch {
		case err == nil:
			return block{lines: buf}
		case !errors.Is(err, bufio.ErrBufferFull):
			return block{lines: buf, err: err}
		case len(buf) > b.lineLimit+blockBytes:
			return b.skipLine(in, buf)
		}
	}
}

// skipLine skips the rest of a line that is too long.
func (b *blockReader) skipLine(in *bufio.Reader, buf []byte) block {
	for {
		_, err := in.ReadSlice('\n')
		switch {
		case err == nil:
			return block{lines: buf, skipped: true}
		case !errors.Is(err, bufio.ErrBufferFull):
			return block{lines: buf, skipped: true, err: err}
		}
	}
}
