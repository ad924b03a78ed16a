package textindex

import (
	"encoding/binary"
	"math/bits"

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

// appendValue adds a number. A column is as wide as its largest number.
func (c *column) appendValue(n uint64) {
	if need := widthOf(n); need > c.width {
		c.widenTo(need)
	}
	switch c.width {
	case 1:
		c.data = append(c.data, byte(n))
	case 4:
		c.data = binary.BigEndian.AppendUint32(c.data, uint32(n))
	default:
		for shift := 8 * (c.width - 1); shift >= 0; shift -= 8 {
			c.data = append(c.data, byte(n>>shift))
		}
	}
}

// widthOf returns the width of a column whose largest number is n.
func widthOf(n uint64) int { return max((bits.Len64(n)+7)/8, 1) }

// reservedColumn returns an empty column with room for numbers of a width.
func reservedColumn(n, width int) column { return column{width, make([]byte, 0, n*width)} }

func (c *column) widenTo(width int) {
	old := *c
	*c = column{width: width}
	n := old.countValues()
	c.data = make([]byte, 0, (n+n/4+16)*width)
	for i := range uint32(n) {
		c.appendValue(old.valueAt(i))
	}
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
