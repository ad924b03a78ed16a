package sse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// blockReader passes a stream on in whole blocks, with "\n" for each of the three line
// ends that Server-Sent Events allow.
//
// The library's reader takes the rest of the input at its end for an event. After a
// broken connection that is half an event, and trusting its id would lose the whole
// one. The reader also searches all of its buffer again after each read, which is
// quadratic in the size of an event that comes in pieces.
type blockReader struct {
	body  io.ReadCloser
	in    *bufio.Reader
	limit int
	touch func() // called when something came

	block []byte // the last whole block
	rest  []byte // the unread part of block
	cr    bool   // the last byte was a carriage return, so a line feed is part of it
	begun bool   // the first line is over
}

func newBlockReader(body io.ReadCloser, limit int, touch func()) *blockReader {
	r := &blockReader{body: body, limit: limit, touch: touch}
	r.in = bufio.NewReaderSize(readerFunc(r.readBody), 4<<10)
	return r
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (r *blockReader) readBody(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if n > 0 {
		r.touch()
	}
	return n, err
}

// Read returns at most the rest of one block.
func (r *blockReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if err := r.readBlock(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *blockReader) Close() error { return r.body.Close() }

// maxPooledBlock is the largest buffer that is kept.
const maxPooledBlock = 64 << 10

// readBlock reads a block with its empty line. It drops a block that the end of the input
// cuts off.
func (r *blockReader) readBlock() error {
	if cap(r.block) > maxPooledBlock {
		r.block = nil
	}
	r.block = r.block[:0]
	for {
		line, err := r.readLine()
		if err != nil {
			return err
		}
		switch {
		case line > 0: // one more line
		case len(r.block) > 1:
			r.rest = r.block
			return nil
		default: // an empty line between blocks
			r.block = r.block[:0]
		}
	}
}

var byteOrderMark = []byte("\ufeff")

// readLine appends a line to the block and returns its length without the end.
func (r *blockReader) readLine() (int, error) {
	start := len(r.block)
	for {
		chunk, err := r.peekBuffered()
		if err != nil {
			return 0, err
		}
		end := bytes.IndexAny(chunk, "\r\n")
		if end < 0 {
			end = len(chunk) // the line continues
		}
		whole := min(end+1, len(chunk))
		if len(r.block)+whole > r.limit {
			return 0, fmt.Errorf("%w: more than %d bytes", ErrEventTooLarge, r.limit)
		}
		r.block = append(r.block, chunk[:end]...)
		if end < len(chunk) {
			r.cr = chunk[end] == '\r'
			r.block = append(r.block, '\n')
		}
		if _, err := r.in.Discard(whole); err != nil {
			return 0, err
		}
		if end == len(chunk) {
			continue
		}
		if !r.begun {
			r.begun = true
			r.block = bytes.TrimPrefix(r.block, byteOrderMark)
		}
		return len(r.block) - start - 1, nil
	}
}

// peekBuffered returns what has come, at least one byte, without the line feed that
// belongs to the carriage return before it.
func (r *blockReader) peekBuffered() ([]byte, error) {
	for {
		first, err := r.in.Peek(1)
		if err != nil {
			return nil, err
		}
		feed := r.cr && first[0] == '\n'
		r.cr = false
		if !feed {
			return r.in.Peek(r.in.Buffered())
		}
		if _, err := r.in.Discard(1); err != nil {
			return nil, err
		}
	}
}
