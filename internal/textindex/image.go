package textindex

import (
	"bytes"
	"encoding/binary"
	"io"

	"koine/internal/sealed"
)

// imageWriter writes a file: its parts, then a footer with the numbers and the lengths of the
// parts, the length of the footer, and a checksum of all.
type imageWriter struct {
	out    io.Writer
	sum    uint32
	size   uint64
	footer []byte
	err    error // the first of out
}

// appendPart writes a piece of a part whose end is not known yet.
func (w *imageWriter) appendPart(piece []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(piece)
	}
	w.sum = sealed.Checksum(w.sum, piece)
	w.size += uint64(len(piece))
}

func (w *imageWriter) putBytes(part []byte) {
	w.putNumber(uint64(len(part)))
	w.appendPart(part)
}

func (w *imageWriter) putNumber(n uint64) { w.footer = binary.AppendUvarint(w.footer, n) }

func (w *imageWriter) putColumn(c column) {
	w.putNumber(uint64(c.width))
	w.putBytes(c.data)
}

// sealImage ends the file.
func (w *imageWriter) sealImage() error {
	w.appendPart(binary.BigEndian.AppendUint32(w.footer, uint32(len(w.footer))))
	w.appendPart(binary.BigEndian.AppendUint32(nil, w.sum))
	return w.err
}

// imageOf returns a file that is written by a function.
func imageOf(write func(w *imageWriter)) []byte {
	var b bytes.Buffer
	w := &imageWriter{out: &b}
	write(w)
	_ = w.sealImage() // a buffer takes everything
	return b.Bytes()
}

// imageReader reads the numbers and parts of a file in the order in which an imageWriter
// put them. The parts share the memory of the image.
type imageReader struct {
	parts, footer []byte
	bad           bool
}

// readImage returns the reader of a file whose checksum is not compared.
func readImage(image []byte) (*imageReader, error) {
	n := len(image) - sealed.Size - 4
	if n < 0 {
		return nil, sealed.ErrDamaged
	}
	size := int(binary.BigEndian.Uint32(image[n:]))
	if size > n {
		return nil, sealed.ErrDamaged
	}
	return &imageReader{parts: image[:n-size], footer: image[n-size : n]}, nil
}

// openImage returns the reader of a file, or sealed.ErrDamaged.
func openImage(image []byte) (*imageReader, error) {
	if _, err := sealed.Open(image); err != nil {
		return nil, err
	}
	return readImage(image)
}

func (r *imageReader) readNumber() uint64 {
	n, size := binary.Uvarint(r.footer)
	if size <= 0 {
		r.bad, r.footer = true, nil
		return 0
	}
	r.footer = r.footer[size:]
	return n
}

func (r *imageReader) readBytes() []byte {
	n := r.readNumber()
	if n > uint64(len(r.parts)) {
		r.bad, r.parts = true, nil
		return nil
	}
	part := r.parts[:n:n]
	r.parts = r.parts[n:]
	return part
}

func (r *imageReader) readColumn() column {
	c := column{width: int(r.readNumber()), data: r.readBytes()}
	if c.width < 0 || c.width > 8 || c.width > 0 && len(c.data)%c.width != 0 {
		r.bad = true
	}
	return c
}

func (r *imageReader) readIDs() ids { return ids{tags: r.readBytes(), values: r.readColumn()} }
