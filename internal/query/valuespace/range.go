package valuespace

import (
	"math"
	"time"

	"koine/kg"
)

// The functions below return ranges of ids that cover the literals with values that compare with
// a value in one way. Ids of the dictionary have no order, so all of them are covered. The
// ranges are ordered and disjoint. They may cover other literals as well.

// IDsFrom covers the literals that are equal to v or greater.
func (v Value) IDsFrom() []kg.IDRange { return v.idsBetween(true, false) }

// IDsUpTo covers the literals that are equal to v or less.
func (v Value) IDsUpTo() []kg.IDRange { return v.idsBetween(false, true) }

// IDsEqual covers the literals that are equal to v.
func (v Value) IDsEqual() []kg.IDRange { return v.idsBetween(true, true) }

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
		least, most := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10_000, 1, 2, 0, 0, 0, 0, time.UTC)
		if from {
			least = v.Moment.at
		}
		if upTo {
			most = v.Moment.at
		}
		switch v.Moment.kind {
		case dateTime:
			add(kg.DateTimeIDs(least, most))
		case localDate:
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
	first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10_000, 1, 2, 0, 0, 0, 0, time.UTC)
	return []kg.IDRange{kg.DateTimeIDs(first, last), kg.DateIDs(first, last)}
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
