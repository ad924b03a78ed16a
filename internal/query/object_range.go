package query

import (
	"encoding/json"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// objects returns a selection of objects that has all that may meet the condition; nil is all.
func (f *ValueFilter) objects() (all *kg.Objects) {
	for _, c := range [...]struct {
		raw   json.RawMessage
		cover func(valuespace.Value) *kg.Objects
	}{
		{f.Eq, valuespace.Value.Equal},
		{f.Lt, valuespace.Value.UpTo}, {f.Lte, valuespace.Value.UpTo},
		{f.Gt, valuespace.Value.From}, {f.Gte, valuespace.Value.From},
	} {
		if o, err := parseOperand(c.raw); err == nil {
			all = all.Narrow(o.coverBy(c.cover))
		}
	}
	if f.In != nil && len(f.In) <= maxRangedOperands {
		var among []*kg.Objects
		for _, raw := range f.In {
			if o, err := parseOperand(raw); err == nil {
				among = append(among, o.coverBy(valuespace.Value.Equal))
			}
		}
		all = all.Narrow(kg.Unite(among...))
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

// coverBy returns the values that an operand may compare with.
func (o *operand) coverBy(by func(valuespace.Value) *kg.Objects) *kg.Objects {
	if o.Kind != valuespace.KindText || !o.hasMoment {
		return by(o.Value)
	}
	texts := by(o.Value)
	texts.Values = &kg.ValueSet{Others: true}
	return kg.Unite(texts, by(valuespace.Value{Kind: valuespace.KindMoment, Moment: o.Moment}))
}
