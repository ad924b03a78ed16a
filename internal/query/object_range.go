package query

import (
	"encoding/json"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// objectRanges returns ranges of ids that cover all objects that may meet the condition. bounded
// is false if any object may.
func (f *ValueFilter) objectRanges() (ranges []kg.IDRange, bounded bool) {
	narrow := func(to []kg.IDRange) {
		if bounded {
			to = kg.IntersectIDs(ranges, to)
		}
		ranges, bounded = append([]kg.IDRange{}, to...), true // not nil, which is any
	}
	for _, c := range [...]struct {
		raw   json.RawMessage
		cover func(valuespace.Value) []kg.IDRange
	}{
		{f.Eq, valuespace.Value.IDsEqual},
		{f.Lt, valuespace.Value.IDsUpTo}, {f.Lte, valuespace.Value.IDsUpTo},
		{f.Gt, valuespace.Value.IDsFrom}, {f.Gte, valuespace.Value.IDsFrom},
	} {
		if o, err := parseOperand(c.raw); err == nil {
			narrow(o.cover(c.cover))
		}
	}
	if f.In != nil && len(f.In) <= maxRangedOperands {
		var all []kg.IDRange
		for _, raw := range f.In {
			if o, err := parseOperand(raw); err == nil {
				all = append(all, o.cover(valuespace.Value.IDsEqual)...)
			}
		}
		narrow(kg.UniteIDs(all))
	}
	if f.StartsWith != nil {
		narrow(valuespace.IDsWithPrefix(*f.StartsWith))
	}
	return ranges, bounded
}

// labelRanges is objectRanges for labels, which may be literals of any datatype. nil means any.
func labelRanges(f *StringFilter) []kg.IDRange {
	if f.StartsWith == nil {
		return nil
	}
	typed := kg.IDRange{First: kg.BooleanIDs().First, Last: kg.TextPrefixIDs("").First}
	return kg.UniteIDs(append(valuespace.IDsWithPrefix(*f.StartsWith), kg.IDRange{First: typed.First, Last: typed.Last}))
}

// maxRangedOperands bounds the lists of operands that are looked up one by one. The values of
// longer ones are compared.
const maxRangedOperands = 1000

// cover returns ranges for the values that an operand may compare with.
func (o *operand) cover(by func(valuespace.Value) []kg.IDRange) []kg.IDRange {
	out := by(o.Value)
	if o.Kind == valuespace.KindText && o.hasMoment {
		out = kg.UniteIDs(append(out, by(valuespace.Value{Kind: valuespace.KindMoment, Moment: o.Moment})...))
	}
	return out
}
