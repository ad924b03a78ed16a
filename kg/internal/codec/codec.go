// Package codec implements the small binary encodings of the store. Decoding never panics and
// never allocates more than the length of the input.
package codec

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrMalformed reports malformed input.
var ErrMalformed = errors.New("malformed encoding")

// AppendBytes appends the length and the bytes.
func AppendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// AppendString appends the length and the string.
func AppendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendFloat appends a float64 in eight bytes.
func AppendFloat(dst []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
}

// Reader decodes values from the front of a byte slice. After the first failure all values are
// zero and Err returns ErrMalformed.
type Reader struct {
	b   []byte
	bad bool
}

// NewReader returns a Reader of b, which must not change meanwhile.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err returns ErrMalformed after a failure.
func (r *Reader) Err() error {
	if r.bad {
		return ErrMalformed
	}
	return nil
}

// Close returns Err, and ErrMalformed if input is left over.
func (r *Reader) Close() error {
	if len(r.b) > 0 {
		r.Fail()
	}
	return r.Err()
}

// Len returns the number of bytes left.
func (r *Reader) Len() int { return len(r.b) }

// Fail makes the Reader fail: all further values are zero.
func (r *Reader) Fail() { r.bad, r.b = true, nil }

// isPadded reports whether a number has redundant bytes. Encoders never write such numbers, and
// accepting a second form would give one value two keys.
func isPadded(number []byte) bool { return len(number) > 1 && number[len(number)-1] == 0 }

// Uvarint decodes an unsigned number.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || isPadded(r.b[:n]) {
		r.Fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Varint decodes a signed number.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 || isPadded(r.b[:n]) {
		r.Fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Count decodes the length of a list with elements of at least size bytes. It fails if the input
// is too short for them, so that a forged length cannot cause a large allocation.
func (r *Reader) Count(size int) int {
	n := r.Uvarint()
	if n > uint64(len(r.b)/size) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Byte decodes one byte.
func (r *Reader) Byte() byte {
	b := r.Take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// Float decodes a float64.
func (r *Reader) Float() float64 {
	b := r.Take(8)
	if b == nil {
		return 0
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// Bytes decodes bytes written by AppendBytes; the result aliases the input.
func (r *Reader) Bytes() []byte { return r.Take(r.Count(1)) }

// String decodes a string written by AppendString.
func (r *Reader) String() string { return string(r.Bytes()) }

// Take returns the next n bytes. It fails and returns nil if there are not as many.
func (r *Reader) Take(n int) []byte {
	if n > len(r.b) || n < 0 {
		r.Fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// Rest returns all bytes that are left.
func (r *Reader) Rest() []byte { return r.Take(len(r.b)) }
