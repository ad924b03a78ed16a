package textindex

import (
	"encoding/binary"
	"math/bits"

	"koine/internal/sealed"
	"koine/kg"
)

// column is an array of numbers of one width in bytes, as it is in a file.
type column struct {
	width int
	data  []byte
}

func (c column) countValues() int {
	if c.width == 0 {
		return 0
	}
	return len(c.data) / c.width
}

func (c column) valueAt(i uint32) uint64 {
	b := c.data[int(i)*c.width:]
	switch c.width {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 3:
		return uint64(b[0])<<16 | uint64(b[1])<<8 | uint64(b[2])
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	var n uint64
	for _, x := range b[:c.width] {
		n = n<<8 | uint64(x)
	}
	return n
}

// newColumn packs numbers in the least width.
func newColumn[N uint32 | uint64](list []N) column {
	var most uint64
	for _, n := range list {
		most |= uint64(n)
	}
	c := column{width: max((bits.Len64(most)+7)/8, 1)}
	c.data = make([]byte, 0, len(list)*c.width)
	for _, n := range list {
		for shift := 8 * (c.width - 1); shift >= 0; shift -= 8 {
			c.data = append(c.data, byte(uint64(n)>>shift))
		}
	}
	return c
}

// ids is an array of term ids: their tags and, in a column, the rest.
type ids struct {
	tags   []byte // one for all, or one for each
	values column
}

func (x ids) idAt(i uint32) (id kg.ID) {
	if id[0] = x.tags[0]; len(x.tags) > 1 {
		id[0] = x.tags[i]
	}
	binary.BigEndian.PutUint64(id[1:], x.values.valueAt(i))
	return id
}

func newIDs(list []kg.ID) ids {
	x, values := ids{tags: make([]byte, 0, len(list))}, make([]uint64, 0, len(list))
	same := true
	for _, id := range list {
		x.tags = append(x.tags, id[0])
		same = same && id[0] == list[0][0]
		values = append(values, binary.BigEndian.Uint64(id[1:]))
	}
	if same && len(list) > 0 {
		x.tags = x.tags[:1:1]
	}
	x.values = newColumn(values)
	return x
}

// imageWriter writes the parts of a segment's image: each with its length, and behind all a
// checksum.
type imageWriter struct{ b []byte }

func (w *imageWriter) putBytes(part []byte) {
	w.b = binary.AppendUvarint(w.b, uint64(len(part)))
	w.b = append(w.b, part...)
}

func (w *imageWriter) putNumber(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

func (w *imageWriter) putColumn(c column) {
	w.putNumber(uint64(c.width))
	w.putBytes(c.data)
}

func (w *imageWriter) putIDs(x ids) {
	w.putBytes(x.tags)
	w.putColumn(x.values)
}

func (w *imageWriter) sealImage() []byte { return sealed.Seal(w.b) }

// openImage returns the reader of a sealed image, or sealed.ErrDamaged.
func openImage(image []byte) (*imageReader, error) {
	content, err := sealed.Open(image)
	if err != nil {
		return nil, err
	}
	return &imageReader{b: content}, nil
}

// imageReader reads the image of an imageWriter. Its parts share the memory of the image.
type imageReader struct {
	b   []byte
	bad bool
}

func (r *imageReader) readNumber() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *imageReader) readBytes() []byte {
	n := r.readNumber()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	part := r.b[:n:n]
	r.b = r.b[n:]
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
