package vectorindex

import (
	"encoding/binary"
	"math"

	"koine/internal/textindex"
)

// Subject, Ref and Place are those of the index of texts.
type (
	Subject = textindex.Subject
	Ref     = textindex.Ref
	Place   = textindex.Place
)

// Key names a vector. Owner tells the vectors of one statement apart: it is a number that
// depends on names alone, and decides between equal scores of a subject.
type Key struct {
	Subject Subject
	Ref     Ref
	Owner   uint64
}

// codeUnit divides the width of a row of codes.
const codeUnit = 64

func strideOf(dimension int) int { return (dimension + codeUnit - 1) / codeUnit * codeUnit }

// maxCode is the largest code of a number.
const maxCode = 127

// bound describes the codes of a vector: codes times scale differ from it by a vector of at
// most the length error.
type bound struct{ scale, error, norm float32 }

// appendCodes appends the codes of a vector, in the width of a row.
func appendCodes(codes []byte, vector []float32) ([]byte, bound) {
	var most float32
	var squares float64
	for _, v := range vector {
		most = max(most, max(v, -v))
		squares += float64(v) * float64(v)
	}
	b := bound{scale: most / maxCode, norm: float32(min(math.Sqrt(squares), math.MaxFloat32))}
	var errors float64
	for _, v := range vector {
		var code float64
		if b.scale > 0 {
			code = min(max(math.RoundToEven(float64(v)/float64(b.scale)), -maxCode), maxCode)
		}
		d := float64(v) - code*float64(b.scale)
		errors += d * d
		codes = append(codes, byte(int8(code)))
	}
	b.error = math.Nextafter32(float32(min(math.Sqrt(errors)*(1+1e-6), math.MaxFloat32)), math.MaxFloat32)
	return append(codes, make([]byte, strideOf(len(vector))-len(vector))...), b
}

// query is a vector that others are compared with.
type query struct {
	vector []float32
	codes  []int16 // of strideOf numbers
	scale  float64
	error  float64 // the length of the difference to the codes
	norm   float64
}

// newQuery returns the query of a vector. Its codes are as large as the sum of a row's
// products allows in 32 bits.
func newQuery(vector []float32) *query {
	stride := strideOf(len(vector))
	q := &query{vector: vector, codes: make([]int16, stride)}
	var most, squares float64
	for _, v := range vector {
		most = max(most, math.Abs(float64(v)))
		squares += float64(v) * float64(v)
	}
	limit := float64(min(math.MaxInt16, math.MaxInt32/(maxCode*stride)))
	q.norm, q.scale = math.Sqrt(squares), most/limit
	var errors float64
	for i, v := range vector {
		if q.scale > 0 {
			q.codes[i] = int16(min(max(math.RoundToEven(float64(v)/q.scale), -limit), limit))
		}
		d := float64(v) - float64(q.codes[i])*q.scale
		errors += d * d
	}
	q.error = math.Sqrt(errors) * (1 + 1e-6)
	return q
}

// highestDot returns an upper bound of the dot product with a vector, from the dot product with
// its codes.
func (q *query) highestDot(codes int32, b bound) float64 {
	e := float64(b.error)
	slack := q.norm*e + q.error*(float64(b.norm)+e)
	return float64(codes)*q.scale*float64(b.scale) + slack + 1e-6*q.norm*float64(b.norm)
}

// exactScore returns the score of a vector as it is in a chunk.
func (q *query) exactScore(vector []byte, m Metric) float64 {
	var dot, squares float64
	for i, v := range q.vector {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(vector[4*i:])))
		dot += float64(float64(v) * x)
		squares += float64(x * x)
	}
	if m == Dot {
		return dot
	}
	return cosineOf(dot, q.norm*math.Sqrt(squares))
}

// cosineOf returns the cosine of the angle between two vectors, 0 if one of them has no length.
func cosineOf(dot, norms float64) float64 {
	if norms == 0 {
		return 0
	}
	return min(max(dot/norms, -1), 1)
}
