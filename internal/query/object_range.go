package query

import (
	"encoding/json"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// objects returns a selection of objects that has all that may meet the condition; nil is all.
func (f *ValueFilter) objects() (all *kg.Objects) {
	narrow := func(to []kg.IDRange) { all = all.Narrow(&kg.Objects{Ranges: to}) }
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
		all = all.Narrow(valuespace.TextsWithPrefix(*f.StartsWith, kg.OfTexts))
	}
	return all
}

// labelObjects is ValueFilter.objects for labels, which may be literals of any datatype.
func labelObjects(f *StringFilter) *kg.Objects {
	if f.StartsWith == nil {
		return nil
	}
	o := valuespace.TextsWithPrefix(*f.StartsWith, kg.OfLiterals)
	o.Ranges = kg.UniteIDs(append(o.Ranges, kg.IDRange{First: kg.BooleanIDs().First, Last: kg.TextPrefixIDs("").First}))
	return o
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
