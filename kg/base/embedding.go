package base

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"koine/kg/internal/codec"
)

// Bounds of an embedding.
const (
	MaxEmbeddingNumbers    = 4096
	MaxEmbeddingModelBytes = 256
)

// Embedding is a vector that a model made of an assertion or a message. It belongs to that
// assertion and is no statement. It is read-only.
type Embedding struct {
	Model  string    `json:"model"`
	Vector []float32 `json:"vector"`
}

// Valid returns an error about an embedding that cannot be stored.
func (e *Embedding) Valid() error {
	switch n := len(e.Model); {
	case n == 0:
		return Errorf(CodeInvalid, "an embedding names its model").At("model")
	case n > MaxEmbeddingModelBytes:
		return Errorf(CodeLimitExceeded, "the name of a model has at most %d bytes, this one %d", MaxEmbeddingModelBytes, n).At("model")
	case !utf8.ValidString(e.Model):
		return Errorf(CodeInvalid, "the name of a model is not UTF-8").At("model")
	}
	for _, r := range e.Model {
		if unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			return Errorf(CodeInvalid, "the name of a model has no spaces and no control characters: %+q", Clip(e.Model)).At("model")
		}
	}
	switch n := len(e.Vector); {
	case n == 0:
		return Errorf(CodeInvalid, "an embedding has at least one number").At("vector")
	case n > MaxEmbeddingNumbers:
		return Errorf(CodeLimitExceeded, "an embedding has at most %d numbers, this one %d", MaxEmbeddingNumbers, n).At("vector")
	}
	zero := true
	for i, f := range e.Vector {
		if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
			return Errorf(CodeInvalid, "the number at index %d of an embedding is not finite in 32 bits", i).At("vector")
		}
		zero = zero && f == 0
	}
	if zero {
		return Errorf(CodeInvalid, "the numbers of an embedding are all 0: it has no direction").At("vector")
	}
	return nil
}

// ParseVector parses a JSON list of numbers. Longer ones than an embedding may have are refused
// before they are parsed.
func ParseVector(raw []byte) (vector []float32, err error) {
	if n := bytes.Count(raw, []byte{','}) + 1; n > MaxEmbeddingNumbers {
		return nil, Errorf(CodeLimitExceeded, "an embedding has at most %d numbers, this one %d", MaxEmbeddingNumbers, n)
	}
	if err = json.Unmarshal(raw, &vector); err != nil || vector == nil || bytes.Contains(raw, []byte("null")) {
		return nil, Errorf(CodeInvalid, "a vector is a list of numbers of 32 bits")
	}
	return vector, nil
}

// Equal reports whether both are nil, or have the same model and the same numbers.
func (e *Embedding) Equal(f *Embedding) bool {
	if e == nil || f == nil || e == f {
		return e == f
	}
	return e.Model == f.Model && slices.Equal(e.Vector, f.Vector)
}

// Clone returns a copy, nil for nil.
func (e *Embedding) Clone() *Embedding {
	if e == nil {
		return nil
	}
	return &Embedding{e.Model, slices.Clone(e.Vector)}
}

// String returns the model and the numbers.
func (e *Embedding) String() string { return fmt.Sprint(e.Model, e.Vector) }

// Dimension returns the number of numbers.
func (e *Embedding) Dimension() int { return len(e.Vector) }

// Bytes returns the size of the embedding, 0 for nil.
func (e *Embedding) Bytes() int {
	if e == nil {
		return 0
	}
	return len(e.Model) + 4*len(e.Vector)
}

// append appends the encoding: the model, the number of bytes of the vector, and the numbers
// in four bytes each.
func (e *Embedding) append(dst []byte) []byte {
	dst = codec.AppendString(dst, e.Model)
	dst = binary.AppendUvarint(dst, uint64(4*len(e.Vector)))
	dst = slices.Grow(dst, 4*len(e.Vector))
	for _, f := range e.Vector {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
	}
	return dst
}

// readEmbedding decodes the output of append.
func readEmbedding(r *codec.Reader) *Embedding {
	e := &Embedding{Model: r.String()}
	b := r.Bytes()
	if len(b) == 0 || len(b)%4 != 0 || len(b) > 4*MaxEmbeddingNumbers {
		r.Fail()
		return nil
	}
	const exponent = 0xff << 23 // that of infinities and NaN
	e.Vector = make([]float32, len(b)/4)
	for i := range e.Vector {
		bits := binary.LittleEndian.Uint32(b[4*i:])
		if bits&exponent == exponent { // not finite
			r.Fail()
			return nil
		}
		e.Vector[i] = math.Float32frombits(bits)
	}
	return e
}
