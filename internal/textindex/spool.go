package textindex

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"koine/kg"
)

// spool is a file without a name for the columns of a segment that is being written: a merge of any
// size has only the ends of them in memory.
type spool struct {
	file *os.File
	size int64 // reserved
	err  error // the first of the file
}

// spoolPiece is how much of a column is in memory before it is written.
const spoolPiece = 64 << 10

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, "merge-")
	if err != nil {
		return nil, err
	}
	return &spool{file: f}, os.Remove(f.Name())
}

func (s *spool) close() error { return errors.Join(s.err, s.file.Close()) }

// columnWriter appends to a column, of which a spool has all but the end; without one all of it is
// in memory.
type columnWriter struct {
	column
	count    int
	spool    *spool
	from, to int64 // in the spool
}

// reserve makes room for numbers of a width, which none may exceed.
func (c *columnWriter) reserve(n, width int, sp *spool) {
	if c.spool = sp; sp == nil {
		c.column = reservedColumn(n, width)
		return
	}
	c.column = column{width, make([]byte, 0, spoolPiece+8)}
	c.from, c.to = sp.size, sp.size
	sp.size += int64(n) * int64(width)
}

func (c *columnWriter) appendValue(n uint64) {
	c.column.appendValue(n)
	c.count++
	if c.spool != nil && len(c.data) >= spoolPiece {
		c.flush()
	}
}

// flush writes the end to the spool.
func (c *columnWriter) flush() {
	if c.spool.err == nil {
		_, c.spool.err = c.spool.file.WriteAt(c.data, c.to)
	}
	c.to += int64(len(c.data))
	c.data = c.data[:0]
}

// writeTo puts the column into an image.
func (c *columnWriter) writeTo(out *imageWriter) {
	if c.spool == nil {
		out.putColumn(c.column)
		return
	}
	c.flush()
	out.putNumber(uint64(c.width))
	out.putNumber(uint64(c.to - c.from))
	if c.spool.err != nil {
		return
	}
	_, c.spool.err = io.CopyBuffer(partWriter{out}, io.NewSectionReader(c.spool.file, c.from, c.to-c.from), make([]byte, spoolPiece))
}

// partWriter appends to a part of an image, whose own error ends the segment.
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
