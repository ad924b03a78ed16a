package valuespace

import (
	"math"
	"time"

	"koine/kg"
)

// The functions below cover the literals with values that compare with a value in one way: by ranges
// of ids, and in the dictionary, where ids have no order, by ranks. They may cover other literals as
// well.

// From covers the literals that are equal to v or greater.
func (v Value) From() *kg.Objects {
	return &kg.Objects{Ranges: v.IDsFrom(), Values: v.ranksBetween(true, false)}
}

// UpTo covers the literals that are equal to v or less.
func (v Value) UpTo() *kg.Objects {
	return &kg.Objects{Ranges: v.IDsUpTo(), Values: v.ranksBetween(false, true)}
}

// Equal covers the literals that are equal to v.
func (v Value) Equal() *kg.Objects {
	return &kg.Objects{Ranges: v.IDsEqual(), Values: v.ranksBetween(true, true)}
}

// ranksBetween covers the literals of the dictionary of the kind of v, from v on and up to v. Texts
// have no ranks, so it returns nil for them, which is all literals.
func (v Value) ranksBetween(from, upTo bool) *kg.ValueSet {
	rank, ok := v.Rank()
	switch {
	case v.Kind == KindBoolean:
		return &kg.ValueSet{Others: true}
	case !ok:
		return nil
	}
	r := kg.AllRanks(rank.Kind)
	if from && !math.IsNaN(v.Number) {
		r.First = rank.At
	}
	if upTo && !math.IsNaN(v.Number) {
		r.Last = rank.At
	}
	return &kg.ValueSet{Ranks: []kg.RankRange{r}}
}

// Rank returns the rank of a number or a moment.
func (v Value) Rank() (kg.Rank, bool) {
	switch v.Kind {
	case KindNumber:
		return kg.RankOfNumber(v.Number), true
	case KindMoment:
		return kg.RankOfMoment(v.Moment.at), true
	}
	return kg.Rank{}, false
}

// The functions below return the ranges of ids alone, which are ordered and disjoint. All ids of the
// dictionary are covered.

// IDsFrom covers the literals that are equal to v or greater.
func (v Value) IDsFrom() []kg.IDRange { return v.idsBetween(true, false) }

// IDsUpTo covers the literals that are equal to v or less.
func (v Value) IDsUpTo() []kg.IDRange { return v.idsBetween(false, true) }

// IDsEqual covers the literals that are equal to v.
func (v Value) IDsEqual() []kg.IDRange { return v.idsBetween(true, true) }

// IDsBehind covers the literals of the kind of v that are equal to it in Order, or behind it in one
// direction. They need not compare with it, as a date does not with a time.
func (v Value) IDsBehind(descending bool) []kg.IDRange {
	switch {
	case v.Kind != KindMoment && descending:
		return v.IDsUpTo()
	case v.Kind != KindMoment:
		return v.IDsFrom()
	}
	least, most := firstMoment, lastMoment
	if descending {
		most = v.Moment.at
	} else {
		least = v.Moment.at
	}
	return kg.UniteIDs([]kg.IDRange{kg.NumberedLiteralIDs(), kg.DateTimeIDs(least, most), kg.DateIDs(least, most)})
}

// firstMoment and lastMoment are outside of the years that ids encode.
var firstMoment, lastMoment = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10_000, 1, 2, 0, 0, 0, 0, time.UTC)

// idsBetween covers the literals of the kind of v, from v on and up to v.
func (v Value) idsBetween(from, upTo bool) []kg.IDRange {
	out := []kg.IDRange{kg.NumberedLiteralIDs()}
	add := func(r kg.IDRange) {
		if r.First.Compare(r.Last) <= 0 {
			out = append(out, r)
		}
	}
	switch v.Kind {
	case KindBoolean:
		add(kg.BooleanIDs())
	case KindNumber:
		least, most := math.Inf(-1), math.Inf(1)
		if from && v.Number > least { // not NaN, which is before all numbers in Order
			least = v.Number
		}
		if upTo && v.Number < most {
			most = v.Number
		}
		if first, last, any := integersBetween(least, most); any {
			add(kg.IntegerIDs(first, last))
		}
		if least == 0 {
			least = math.Copysign(0, -1) // the two zeros are equal
		}
		if most == 0 {
			most = 0
		}
		add(kg.DoubleIDs(least, most))
	case KindMoment:
		least, most := firstMoment, lastMoment
		if from {
			least = v.Moment.at
		}
		if upTo {
			most = v.Moment.at
		}
		switch v.Moment.kind {
		case kg.DateTimeKind:
			add(kg.DateTimeIDs(least, most))
		case kg.LocalDateKind:
			add(kg.DateIDs(least, most))
		}
	case KindText:
		r := kg.TextPrefixIDs("")
		if from {
			r.First = kg.TextIDs(v.Text, v.Text).First
		}
		if upTo {
			r.Last = kg.TextIDs(v.Text, v.Text).Last
		}
		add(r)
	}
	return out
}

// NumberIDs returns the ranges of the ids of numbers, each in the order of the values. Negative
// zero, which equals zero, has a range of its own.
func NumberIDs() []kg.IDRange {
	zero := kg.DoubleIDs(math.Copysign(0, -1), math.Copysign(0, -1))
	return []kg.IDRange{
		kg.IntegerIDs(math.MinInt64, math.MaxInt64),
		{First: kg.DoubleIDs(math.Inf(-1), 0).First, Last: zero.Before()},
		zero, kg.DoubleIDs(0, math.Inf(1)),
	}
}

// MomentIDs returns the ranges of the ids of moments, each in the order of the values.
func MomentIDs() []kg.IDRange {
	return []kg.IDRange{kg.DateTimeIDs(firstMoment, lastMoment), kg.DateIDs(firstMoment, lastMoment)}
}

// exactIntegers is the number up to which doubles represent all integers.
const exactIntegers = 1 << 53

// integersBetween covers the integers of 64 bits that are within two numbers as doubles.
func integersBetween(least, most float64) (first, last int64, any bool) {
	const apart = 2048 // more than the distance of two doubles in this range
	least, most = math.Floor(least), math.Ceil(most)
	if math.Abs(least) >= exactIntegers {
		least -= apart
	}
	if math.Abs(most) >= exactIntegers {
		most += apart
	}
	if least >= 1<<63 || most < -1<<63 {
		return 0, 0, false
	}
	first, last = math.MinInt64, math.MaxInt64
	if least > -1<<63 {
		first = int64(least)
	}
	if most < 1<<63 {
		last = int64(most)
	}
	return first, last, true
}

// TextsWithPrefix covers the texts that begin with prefix: those of the kind in the dictionary, and
// strings that are in their ids.
func TextsWithPrefix(prefix string, kind kg.PrefixKind) *kg.Objects {
	out := []kg.IDRange{kg.NumberedLiteralIDs()}
	if r := kg.TextPrefixIDs(prefix); len(prefix) < len(r.First)-1 {
		out = append(out, r)
	}
	o := &kg.Objects{Ranges: out}
	if prefix != "" {
		o.Prefix = &kg.TermPrefix{Of: kind, Text: prefix}
	}
	return o
}
