// Package codec reads and writes the small binary encodings of the store.
// Reading never panics and never allocates more than the input is long.
package codec

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrMalformed says that the bytes are not what they should be.
var ErrMalformed = errors.New("malformed encoding")

// AppendBytes appends a length and the bytes.
func AppendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// AppendString appends a length and the string.
func AppendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendFloat appends a float64 in eight bytes.
func AppendFloat(dst []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
}

// Reader takes values off the front of a byte slice. After the first failure
// every value is zero and Err says ErrMalformed.
type Reader struct {
	b   []byte
	bad bool
}

// NewReader reads from b, which must not change meanwhile.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err is ErrMalformed after a failure.
func (r *Reader) Err() error {
	if r.bad {
		return ErrMalformed
	}
	return nil
}

// Close is Err, and ErrMalformed if something is left over.
func (r *Reader) Close() error {
	if len(r.b) > 0 {
		r.Fail()
	}
	return r.Err()
}

// Len is the number of bytes left.
func (r *Reader) Len() int { return len(r.b) }

// Fail makes every further value zero.
func (r *Reader) Fail() { r.bad, r.b = true, nil }

// padded tells whether a number takes more bytes than it must. None is written
// like that, and a number in two forms would let one thing have two keys.
func padded(number []byte) bool { return len(number) > 1 && number[len(number)-1] == 0 }

// Uvarint takes an unsigned number.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || padded(r.b[:n]) {
		r.Fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Varint takes a signed number.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 || padded(r.b[:n]) {
		r.Fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Count takes the length of a list whose elements take at least size bytes
// each, so that a forged length cannot make the reader allocate.
func (r *Reader) Count(size int) int {
	n := r.Uvarint()
	if n > uint64(len(r.b)/size) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Byte takes one byte.
func (r *Reader) Byte() byte {
	b := r.Take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// Float takes a float64.
func (r *Reader) Float() float64 {
	b := r.Take(8)
	if b == nil {
		return 0
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// Bytes takes what AppendBytes appended; the result is a part of the input.
func (r *Reader) Bytes() []byte { return r.Take(r.Count(1)) }

// String takes what AppendString appended.
func (r *Reader) String() string { return string(r.Bytes()) }

// Take takes n bytes, nil if there are not as many.
func (r *Reader) Take(n int) []byte {
	if n > len(r.b) || n < 0 {
		r.Fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// Rest takes all that is left.
func (r *Reader) Rest() []byte { return r.Take(len(r.b)) }
