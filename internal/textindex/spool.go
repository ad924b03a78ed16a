package textindex

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"koine/kg"
)

// spool is a file without a name for the columns of a segment that is being written, and behind them
// for the postings of one term: a merge of any size has only the ends of them in memory.
type spool struct {
	file  *os.File
	size  int64 // bytes reserved for columns
	err   error // the first error
	piece []byte
}

// spoolPiece is how much of a column, or of the postings of a term, is in memory before it is
// written.
const spoolPiece = 64 << 10

// newSpool makes a spool in a directory from which nothing is removed meanwhile.
func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, "merge-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &spool{file: f, piece: make([]byte, spoolPiece)}, nil
}

func (s *spool) writeAt(b []byte, at int64) {
	if s.err == nil {
		_, s.err = s.file.WriteAt(b, at)
	}
}

// copyTo appends a part of the spool to an image. After an error of the spool the image is of no
// use.
func (s *spool) copyTo(out *imageWriter, from, size int64) {
	if s.err != nil {
		return
	}
	n, err := io.CopyBuffer(partWriter{out}, io.NewSectionReader(s.file, from, size), s.piece)
	if s.err = err; err == nil && n < size {
		s.err = io.ErrUnexpectedEOF
	}
}

func (s *spool) close() error { return errors.Join(s.err, s.file.Close()) }

// columnWriter appends to a column, of which a spool has all but the tail; without one all of it is
// in memory.
type columnWriter struct {
	tail           column
	count          int
	spool          *spool
	from, next, to int64 // where it begins in the spool, the next write goes, and its room ends
}

var errSpool = errors.New("a column does not have the length that was reserved")

// reserve makes room for numbers of a width, which none may exceed.
func (c *columnWriter) reserve(n, width int, sp *spool) {
	if c.spool = sp; sp == nil {
		c.tail = reservedColumn(n, width)
		return
	}
	c.tail = column{width, make([]byte, 0, spoolPiece+8)}
	c.from, c.next = sp.size, sp.size
	sp.size += int64(n) * int64(width)
	c.to = sp.size
}

func (c *columnWriter) appendValue(n uint64) {
	c.tail.appendValue(n)
	c.count++
	if c.spool != nil && len(c.tail.data) >= spoolPiece {
		c.flush()
	}
}

// flush writes the tail to the spool.
func (c *columnWriter) flush() {
	if c.next+int64(len(c.tail.data)) > c.to {
		c.spool.err = errors.Join(c.spool.err, errSpool) // it would be written over the next column
	}
	c.spool.writeAt(c.tail.data, c.next)
	c.next += int64(len(c.tail.data))
	c.tail.data = c.tail.data[:0]
}

// writeTo puts the column into an image.
func (c *columnWriter) writeTo(out *imageWriter) {
	if c.spool == nil {
		out.putColumn(c.tail)
		return
	}
	c.flush()
	if c.next-c.from != int64(c.count)*int64(c.tail.width) {
		c.spool.err = errors.Join(c.spool.err, errSpool) // a number was wider than was reserved
	}
	out.putNumber(uint64(c.tail.width))
	out.putNumber(uint64(c.next - c.from))
	c.spool.copyTo(out, c.from, c.next-c.from)
}

// partWriter appends to a part of an image, which keeps its own error.
type partWriter struct{ out *imageWriter }

func (w partWriter) Write(b []byte) (int, error) {
	w.out.appendPart(b)
	return len(b), w.out.err
}

// idWriter appends to ids.
type idWriter struct {
	tags   []byte
	values columnWriter
}

func (w *idWriter) appendID(id kg.ID) {
	n := w.values.count
	switch {
	case n == 0:
		w.tags = append(w.tags, id[0])
	case len(w.tags) == n && n > 1 || id[0] != w.tags[0]:
		for len(w.tags) < n { // so far one stands for all
			w.tags = append(w.tags, w.tags[0])
		}
		w.tags = append(w.tags, id[0])
	}
	w.values.appendValue(binary.BigEndian.Uint64(id[1:]))
}

func (w *idWriter) writeTo(out *imageWriter) {
	out.putBytes(w.tags)
	w.values.writeTo(out)
}
