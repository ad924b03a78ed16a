package base

import (
	"bytes"
	"encoding/binary"
	"time"

	"koine/kg/internal/codec"
)

// SameContent reports whether two assertions of one source have the same certainty,
// validity, provenance and embedding.
func (a Assertion) SameContent(b Assertion) bool {
	return a.HasCertainty == b.HasCertainty && a.Certainty == b.Certainty && a.Validity.Equal(b.Validity) && bytes.Equal(a.Provenance, b.Provenance) &&
		a.Embedding.Equal(b.Embedding)
}

// EqualAssertions reports whether two lists are equal in all fields.
func EqualAssertions(a, b []Assertion) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Source != b[i].Source || !a[i].SameContent(b[i]) || a[i].Revision != b[i].Revision || !a[i].Time.Equal(b[i].Time) {
			return false
		}
	}
	return true
}

// IsPlain reports whether the assertion has only a source and a time.
func (a *Assertion) IsPlain() bool {
	return !a.HasCertainty && a.Provenance == nil && a.Validity.IsZero() && a.Embedding == nil
}

// ContentBytes returns the size of the parts of an assertion that have no fixed size.
func (a *Assertion) ContentBytes() int { return len(a.Provenance) + a.Embedding.Bytes() }

// WithAssertion returns a copy of the list with a added, or in the place of the previous
// assertion of its source.
func WithAssertion(list []Assertion, a Assertion) []Assertion {
	out := make([]Assertion, 0, len(list)+1)
	found := false
	for _, b := range list {
		if b.Source == a.Source {
			b, found = a, true
		}
		out = append(out, b)
	}
	if !found {
		out = append(out, a)
	}
	return out
}

// WithoutSource returns a copy of the list without the source's assertion.
func WithoutSource(list []Assertion, source AgentID) []Assertion {
	var out []Assertion
	for _, b := range list {
		if b.Source != source {
			out = append(out, b)
		}
	}
	return out
}

// FindSource returns the source's assertion in the list.
func FindSource(list []Assertion, source AgentID) (Assertion, bool) {
	for _, a := range list {
		if a.Source == source {
			return a, true
		}
	}
	return Assertion{}, false
}

const (
	flagCertainty  = 1 << 0
	flagProvenance = 1 << 1
	flagValidFrom  = 1 << 2
	flagValidTo    = 1 << 3
	flagEmbedding  = 1 << 4
	flagsKnown     = flagCertainty | flagProvenance | flagValidFrom | flagValidTo | flagEmbedding
)

// AppendAssertion appends the encoding of an assertion without its source, which log and
// index encode differently. The first byte has a flag for each optional part. A new
// optional part gets a new flag, so that existing encodings stay valid.
func AppendAssertion(dst []byte, a Assertion) []byte {
	var flags byte
	if a.HasCertainty {
		flags |= flagCertainty
	}
	if a.Provenance != nil {
		flags |= flagProvenance
	}
	if !a.Validity.From.IsZero() {
		flags |= flagValidFrom
	}
	if !a.Validity.Until.IsZero() {
		flags |= flagValidTo
	}
	if a.Embedding != nil {
		flags |= flagEmbedding
	}
	dst = append(dst, flags)
	if a.HasCertainty {
		dst = codec.AppendFloat(dst, a.Certainty)
	}
	dst = binary.AppendVarint(dst, a.Time.UnixMilli())
	dst = binary.AppendUvarint(dst, uint64(a.Revision))
	if a.Provenance != nil {
		dst = codec.AppendBytes(dst, a.Provenance)
	}
	if flags&flagValidFrom != 0 {
		dst = binary.AppendVarint(dst, a.Validity.From.UnixMilli())
	}
	if flags&flagValidTo != 0 {
		dst = binary.AppendVarint(dst, a.Validity.Until.UnixMilli())
	}
	if a.Embedding != nil {
		dst = a.Embedding.append(dst)
	}
	return dst
}

// ReadAssertion decodes an assertion without its source.
func ReadAssertion(r *codec.Reader) Assertion {
	var a Assertion
	flags := r.Byte()
	if flags&^flagsKnown != 0 {
		r.Fail()
	}
	if flags&flagCertainty != 0 {
		a.Certainty, a.HasCertainty = r.Float(), true
	}
	a.Time = time.UnixMilli(r.Varint()).UTC()
	a.Revision = Revision(r.Uvarint())
	if flags&flagProvenance != 0 {
		a.Provenance = bytes.Clone(r.Bytes())
		if a.Provenance == nil {
			a.Provenance = []byte{}
		}
	}
	if flags&flagValidFrom != 0 {
		a.Validity.From = readEnd(r)
	}
	if flags&flagValidTo != 0 {
		a.Validity.Until = readEnd(r)
	}
	if flags&flagEmbedding != 0 {
		a.Embedding = readEmbedding(r)
	}
	return a
}

// readEnd reads an end of a validity. The zero time is malformed, because an open end has
// no bytes.
func readEnd(r *codec.Reader) time.Time {
	t := time.UnixMilli(r.Varint()).UTC()
	if t.IsZero() {
		r.Fail()
	}
	return t
}

// MinAssertionBytes is the minimum size of an encoded assertion, including its source.
const MinAssertionBytes = 4

// State is the value of a statement in the SPOG order: the revision from which on it has
// this state, and its assertions.
type State struct {
	Since      Revision
	Assertions []Assertion
}

// StateVersion is the version of the encoding of State.
const StateVersion = 1

// AppendState encodes a state for the index. number returns the dictionary number of a
// source.
func AppendState(dst []byte, s State, number func(AgentID) uint64) []byte {
	dst = append(dst, StateVersion)
	dst = binary.AppendUvarint(dst, uint64(s.Since))
	dst = binary.AppendUvarint(dst, uint64(len(s.Assertions)))
	for _, a := range s.Assertions {
		dst = binary.AppendUvarint(dst, number(a.Source))
		dst = AppendAssertion(dst, a)
	}
	return dst
}

// ParseSince decodes only the revision of a state.
func ParseSince(value []byte) (Revision, error) {
	r := codec.NewReader(value)
	if r.Byte() != StateVersion {
		r.Fail()
	}
	since := Revision(r.Uvarint())
	return since, r.Err()
}

// ParseState decodes the output of AppendState. source returns the agent with a dictionary
// number.
func ParseState(value []byte, source func(uint64) (AgentID, error)) (State, error) {
	r := codec.NewReader(value)
	if r.Byte() != StateVersion {
		r.Fail()
	}
	s := State{Since: Revision(r.Uvarint())}
	n := r.Count(MinAssertionBytes)
	if n == 0 || n > MaxAssertions {
		r.Fail()
		return s, r.Err()
	}
	s.Assertions = make([]Assertion, n)
	for i := range s.Assertions {
		number := r.Uvarint()
		a := ReadAssertion(r)
		if r.Err() != nil {
			return s, r.Err()
		}
		agent, err := source(number)
		if err != nil {
			return s, err
		}
		a.Source = agent
		s.Assertions[i] = a
	}
	return s, r.Close()
}
