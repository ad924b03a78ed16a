package assertions

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"time"

	"koine/kg"
)

// Records are sorted by their bytes. A text ends with 0 1, and a zero byte in it is encoded
// as 0 255, so that no text is a prefix of another and records with equal terms are
// adjacent.

var errRecord = errors.New("a temporary record of a statement is corrupt")

func appendText(dst []byte, text string) []byte {
	for {
		before, after, found := strings.Cut(text, "\x00")
		if dst = append(dst, before...); !found {
			return append(dst, 0, 1)
		}
		dst, text = append(dst, 0, 0xff), after
	}
}

// record decodes a record. The first error is sticky.
type record struct {
	rest []byte
	err  error
}

func (r *record) fail() {
	r.rest, r.err = nil, errRecord
}

func (r *record) readByte() byte {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *record) readText() string {
	var out []byte
	for {
		i := bytes.IndexByte(r.rest, 0)
		if i < 0 || i+1 >= len(r.rest) {
			r.fail()
			return ""
		}
		out = append(out, r.rest[:i]...)
		end := r.rest[i+1] == 1
		r.rest = r.rest[i+2:]
		if end {
			return string(out)
		}
		out = append(out, 0)
	}
}

func (r *record) readUvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *record) readVarint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func appendTerm(dst []byte, t kg.Term) []byte {
	dst = append(dst, byte(t.Kind()))
	switch t.Kind() {
	case kg.KindIRI, kg.KindBlank:
		return appendText(dst, t.Value())
	case kg.KindLiteral:
		dst = appendText(dst, t.Value())
		if t.Lang() != "" {
			return appendText(append(dst, 1), t.Lang())
		}
		return appendText(append(dst, 0), t.Datatype())
	}
	return dst
}

func (r *record) readTerm() kg.Term {
	switch kg.Kind(r.readByte()) {
	case kg.KindDefaultGraph:
		return kg.DefaultGraph
	case kg.KindIRI:
		return kg.IRI(r.readText())
	case kg.KindBlank:
		return kg.Blank(r.readText())
	case kg.KindLiteral:
		value := r.readText()
		if r.readByte() == 1 {
			return kg.LangString(value, r.readText())
		}
		return kg.Typed(value, r.readText())
	}
	r.fail()
	return kg.Term{}
}

const (
	hasCertainty = 1 << iota
	hasFrom
	hasUntil
	hasProvenance
	hasEmbedding
)

func appendAssertion(dst []byte, a *Assertion) []byte {
	dst = appendText(dst, string(a.Source))
	flags := byte(0)
	for i, has := range [...]bool{a.HasCertainty, !a.Validity.From.IsZero(), !a.Validity.Until.IsZero(), a.Provenance != nil, a.Embedding != nil} {
		if has {
			flags |= 1 << i
		}
	}
	dst = append(dst, flags)
	dst = binary.AppendVarint(dst, a.Time.UnixMilli())
	dst = binary.AppendUvarint(dst, uint64(a.Revision))
	dst = appendText(dst, a.Justification)
	if a.HasCertainty {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(a.Certainty))
	}
	if flags&hasFrom != 0 {
		dst = binary.AppendVarint(dst, a.Validity.From.UnixMilli())
	}
	if flags&hasUntil != 0 {
		dst = binary.AppendVarint(dst, a.Validity.Until.UnixMilli())
	}
	if flags&hasProvenance != 0 {
		dst = appendText(dst, string(a.Provenance))
	}
	if e := a.Embedding; e != nil {
		dst = binary.AppendUvarint(appendText(dst, e.Model), uint64(len(e.Vector)))
		for _, f := range e.Vector {
			dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(f))
		}
	}
	return dst
}

func (r *record) readEmbedding() *kg.Embedding {
	e := &kg.Embedding{Model: r.readText()}
	n := r.readUvarint()
	if n > kg.MaxEmbeddingNumbers || 4*int(n) > len(r.rest) {
		r.fail()
		return nil
	}
	e.Vector = make([]float32, n)
	for i := range e.Vector {
		e.Vector[i] = math.Float32frombits(binary.BigEndian.Uint32(r.rest[4*i:]))
	}
	r.rest = r.rest[4*n:]
	return e
}

func (r *record) readAssertion() (a Assertion) {
	a.Source = kg.AgentID(r.readText())
	flags := r.readByte()
	a.Time = time.UnixMilli(r.readVarint()).UTC()
	a.Revision = kg.Revision(r.readUvarint())
	a.Justification = r.readText()
	if flags&hasCertainty != 0 {
		if len(r.rest) < 8 {
			r.fail()
			return a
		}
		a.Certainty, a.HasCertainty = math.Float64frombits(binary.BigEndian.Uint64(r.rest)), true
		r.rest = r.rest[8:]
	}
	if flags&hasFrom != 0 {
		a.Validity.From = time.UnixMilli(r.readVarint()).UTC()
	}
	if flags&hasUntil != 0 {
		a.Validity.Until = time.UnixMilli(r.readVarint()).UTC()
	}
	if flags&hasProvenance != 0 {
		a.Provenance = []byte(r.readText())
	}
	if flags&hasEmbedding != 0 {
		a.Embedding = r.readEmbedding()
	}
	return a
}
