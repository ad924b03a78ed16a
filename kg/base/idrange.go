package base

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"koine/kg/internal/keys"
)

// IDRange is the ids from First to Last, both included, in the order of the index. It is empty
// if First is behind Last.
type IDRange struct{ First, Last ID }

// Contains reports whether the id is in the range.
func (r IDRange) Contains(id ID) bool {
	return bytes.Compare(r.First[:], id[:]) <= 0 && bytes.Compare(id[:], r.Last[:]) <= 0
}

// Before returns the greatest id before the range.
func (r IDRange) Before() ID {
	id := r.First
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]--; id[i] != 0xff {
			break
		}
	}
	return id
}

// ResourceIDs returns the range of the ids of IRIs and blank nodes.
func ResourceIDs() IDRange {
	return IDRange{keys.Numbered(keys.TagIRI, 0), keys.Numbered(keys.TagKnownIRI, math.MaxUint64)}
}

// NumberedLiteralIDs returns the range of the ids of literals in the dictionary, which are in the
// order in which the store met them. The ids of all other literals are in the order of their
// values.
func NumberedLiteralIDs() IDRange {
	return IDRange{keys.Numbered(keys.TagLiteral, 0), keys.Numbered(keys.TagLiteral, math.MaxUint64)}
}

// BooleanIDs returns the range of the ids of true and false.
func BooleanIDs() IDRange {
	return IDRange{keys.FromInt(keys.TagBoolean, 0), keys.FromInt(keys.TagBoolean, 1)}
}

// IntegerIDs returns the range of the ids of integers.
func IntegerIDs(first, last int64) IDRange {
	return IDRange{keys.FromInt(keys.TagInteger, first), keys.FromInt(keys.TagInteger, last)}
}

// DoubleIDs returns the range of the ids of doubles. Negative zero lies before zero.
func DoubleIDs(first, last float64) IDRange {
	return IDRange{keys.FromDouble(first), keys.FromDouble(last)}
}

// DateTimeIDs returns the range of the ids of times in UTC, between two that are rounded outwards
// to milliseconds.
func DateTimeIDs(first, last time.Time) IDRange {
	return IDRange{keys.FromInt(keys.TagDateTime, inlineMilli(first, 0)), keys.FromInt(keys.TagDateTime, inlineMilli(last, 1))}
}

// DateIDs returns the range of the ids of dates without a time zone, from the day of one moment to
// that of another.
func DateIDs(first, last time.Time) IDRange {
	const millisPerDay = secondsPerDay * 1000
	return IDRange{
		keys.FromInt(keys.TagDate, floorDiv(inlineMilli(first, 0), millisPerDay)),
		keys.FromInt(keys.TagDate, floorDiv(inlineMilli(last, 0), millisPerDay)),
	}
}

// inlineMilli returns the milliseconds of t, more of them if it lies between two, within the
// years that ids encode.
func inlineMilli(t time.Time, more int64) int64 {
	const past = secondsPerDay * 1000 // beyond the first and the last day
	switch {
	case t.Year() < 1:
		return minMilli - past
	case t.Year() > 9999:
		return maxMilli + 2*past
	}
	return t.UnixMilli() + more
}

// TextIDs returns the range of the ids of short strings between two strings. The bounds are cut
// to the length that an id encodes.
func TextIDs(first, last string) IDRange {
	r := IDRange{First: keys.FromString(cutInline(first)), Last: TextPrefixIDs(last).Last}
	if len(last) < keys.MaxInlineString {
		r.Last = keys.FromString(last)
	}
	return r
}

// TextPrefixIDs returns the range of the ids of short strings with a prefix, which is cut to the
// length that an id encodes.
func TextPrefixIDs(prefix string) IDRange {
	prefix = cutInline(prefix)
	last := ID(bytes.Repeat([]byte{0xff}, keys.IDSize))
	last[0] = keys.TagString
	copy(last[1:], prefix)
	return IDRange{keys.FromString(prefix), last}
}

func cutInline(text string) string { return text[:min(len(text), keys.MaxInlineString)] }

// IntersectIDs returns the ids that are in both lists of ordered and disjoint ranges.
func IntersectIDs(a, b []IDRange) (out []IDRange) {
	for len(a) > 0 && len(b) > 0 {
		r := IDRange{First: a[0].First, Last: a[0].Last}
		if b[0].First.Compare(r.First) > 0 {
			r.First = b[0].First
		}
		if b[0].Last.Compare(r.Last) < 0 {
			r.Last = b[0].Last
		}
		if r.First.Compare(r.Last) <= 0 {
			out = append(out, r)
		}
		if a[0].Last.Compare(b[0].Last) < 0 {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// UniteIDs returns the ids that are in any of the ranges, which need not be ordered, as ordered
// and disjoint ranges.
func UniteIDs(list []IDRange) []IDRange {
	slices.SortFunc(list, func(a, b IDRange) int { return a.First.Compare(b.First) })
	out := list[:0]
	for _, r := range list {
		switch n := len(out); {
		case n == 0 || out[n-1].Last.Compare(r.First) < 0:
			out = append(out, r)
		case out[n-1].Last.Compare(r.Last) < 0:
			out[n-1].Last = r.Last
		}
	}
	return out
}

// Objects selects the objects of statements: those with ids in Ranges, which are ordered and
// disjoint. With Prefix, the literals of the dictionary among them must have it, and with Values
// they must be among these. It has one of the two at most.
type Objects struct {
	Ranges []IDRange
	Prefix *TermPrefix
	Values *ValueSet
}

// Narrow returns the objects that are in both selections, and perhaps others of the dictionary. A
// nil selection has all objects.
func (o *Objects) Narrow(by *Objects) *Objects {
	if o == nil || by == nil {
		return cmp.Or(o, by)
	}
	both := &Objects{Ranges: append([]IDRange{}, IntersectIDs(o.Ranges, by.Ranges)...), Prefix: cmp.Or(o.Prefix, by.Prefix)}
	if both.Prefix == nil {
		both.Values = o.Values.intersect(by.Values)
	}
	return both
}

// Unite returns the objects that are in any of the selections, which have no prefixes. Those without
// values have all literals of the dictionary.
func Unite(list ...*Objects) *Objects {
	all := &Objects{Values: &ValueSet{}}
	for _, o := range list {
		all.Ranges = append(all.Ranges, o.Ranges...)
		if all.Values != nil && o.Values != nil {
			all.Values.Ranks = append(all.Values.Ranks, o.Values.Ranks...)
			all.Values.Others = all.Values.Others || o.Values.Others
		} else {
			all.Values = nil
		}
	}
	all.Ranges = UniteIDs(all.Ranges)
	if all.Values != nil {
		all.Values.Ranks = uniteRanks(all.Values.Ranks)
	}
	return all
}

// TermPrefix selects terms by the beginning of their text.
type TermPrefix struct {
	Of   PrefixKind
	Text string
}

// PrefixKind is a kind of terms that are selected by a prefix.
type PrefixKind byte

// The kinds of terms.
const (
	OfIRIs     PrefixKind = iota
	OfTexts               // strings, with a language or without
	OfLiterals            // of any datatype
)

// Fits reports whether a term is selected.
func (p TermPrefix) Fits(t Term) bool {
	switch p.Of {
	case OfIRIs:
		if t.kind != KindIRI {
			return false
		}
	case OfTexts:
		if t.kind != KindLiteral || t.ExplicitDatatype() != "" {
			return false
		}
	case OfLiterals:
		if t.kind != KindLiteral {
			return false
		}
	}
	return strings.HasPrefix(t.value, p.Text)
}
