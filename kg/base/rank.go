package base

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// ValueKind is a kind of literals of the dictionary.
type ValueKind byte

// The kinds. They are part of the keys of the index.
const (
	OtherValues  ValueKind = iota // neither numbers nor moments; they have no ranks
	NumberValues                  // those of all numeric datatypes
	MomentValues                  // dates, times and dateTimes
)

// ValueKinds are all kinds.
var ValueKinds = [...]ValueKind{OtherValues, NumberValues, MomentValues}

// Rank places a number or a moment among all others of its kind: a lesser value never has a greater
// rank. Values that are as near as numbers that are equal as doubles, or moments within a
// microsecond, share one.
type Rank struct {
	Kind ValueKind
	At   uint64
}

// RankOf returns the rank of a literal. It reports false, and the kind OtherValues, for a term that is
// neither a number nor a moment, or not written as one.
func RankOf(t Term) (Rank, bool) {
	datatype := t.ExplicitDatatype()
	if t.kind != KindLiteral || datatype == "" {
		return Rank{}, false
	}
	if f, _, ok := ParseNumber(t.value, datatype); ok {
		return RankOfNumber(f), true
	}
	if m, ok := ParseTemporal(t.value, datatype); ok {
		return RankOfMoment(m.At), true
	}
	return Rank{}, false
}

// RankOfNumber returns the rank of all numbers that are equal as doubles. NaN is before all others,
// and the zeros are equal.
func RankOfNumber(f float64) Rank {
	switch {
	case math.IsNaN(f):
		return Rank{NumberValues, 0}
	case f == 0:
		f = 0 // negative zero
	}
	bits := math.Float64bits(f)
	if bits>>63 == 1 {
		return Rank{NumberValues, ^bits}
	}
	return Rank{NumberValues, bits | 1<<63}
}

// yearsRanked is the number of years before and after our era of which moments have ranks of
// their own.
const yearsRanked = 290_000

// RankOfMoment returns the rank of all moments within a microsecond.
func RankOfMoment(t time.Time) Rank {
	switch year := t.Year(); {
	case year < -yearsRanked:
		return Rank{MomentValues, 0}
	case year > yearsRanked:
		return Rank{MomentValues, math.MaxUint64}
	}
	return Rank{MomentValues, uint64(t.UnixMicro()) ^ 1<<63}
}

// RankRange is the ranks from First to Last of a kind, both included.
type RankRange struct {
	Kind        ValueKind
	First, Last uint64
}

// AllRanks returns the ranks of all values of a kind.
func AllRanks(kind ValueKind) RankRange { return RankRange{kind, 0, math.MaxUint64} }

// Contains reports whether the rank is in the range.
func (r RankRange) Contains(rank Rank) bool {
	return r.Kind == rank.Kind && r.First <= rank.At && rank.At <= r.Last
}

// ValueSet selects literals by their values: numbers and moments with ranks in Ranks, which are
// ordered and disjoint, and with Others all literals that are neither.
type ValueSet struct {
	Ranks  []RankRange
	Others bool
}

// Fits reports whether a term is selected.
func (v *ValueSet) Fits(t Term) bool {
	rank, ok := RankOf(t)
	if !ok {
		return v.Others
	}
	_, found := slices.BinarySearchFunc(v.Ranks, rank, func(r RankRange, at Rank) int {
		switch {
		case r.Contains(at):
			return 0
		case cmp.Or(cmp.Compare(r.Kind, at.Kind), cmp.Compare(r.First, at.At)) < 0:
			return -1
		}
		return 1
	})
	return found
}

// intersect returns the literals that are in both sets; nil has all.
func (v *ValueSet) intersect(by *ValueSet) *ValueSet {
	if v == nil || by == nil {
		return cmp.Or(v, by)
	}
	both := &ValueSet{Others: v.Others && by.Others}
	for _, a := range v.Ranks {
		for _, b := range by.Ranks {
			if r := (RankRange{a.Kind, max(a.First, b.First), min(a.Last, b.Last)}); a.Kind == b.Kind && r.First <= r.Last {
				both.Ranks = append(both.Ranks, r)
			}
		}
	}
	both.Ranks = uniteRanks(both.Ranks)
	return both
}

// uniteRanks orders ranges and joins those that overlap.
func uniteRanks(list []RankRange) []RankRange {
	slices.SortFunc(list, func(a, b RankRange) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.First, b.First)) })
	out := list[:0]
	for _, r := range list {
		if n := len(out); n > 0 && out[n-1].Kind == r.Kind && out[n-1].Last >= r.First {
			out[n-1].Last = max(out[n-1].Last, r.Last)
		} else {
			out = append(out, r)
		}
	}
	return out
}
