package query

import (
	"fmt"
	"slices"

	"koine/internal/query/pattern"
	"koine/internal/query/valuespace"
	"koine/kg"
)

// variables are the distinct variables of a condition.
type variables struct {
	names  []string
	reader *patternReader
}

// indexOf returns the index of a variable among the terms passed to the condition.
func (v *variables) indexOf(name, field string) (int, error) {
	for i, n := range v.names {
		if n == name {
			return i, nil
		}
	}
	v.names = append(v.names, name)
	return len(v.names) - 1, v.reader.checkVariable(name, field)
}

// rowTest reports whether a condition holds for the values of the variables.
type rowTest func([]kg.Term) bool

func (r *patternReader) readFilter(in *VariableFilter) (pattern.Filter, error) {
	v := &variables{reader: r}
	test, err := v.compileCondition(in)
	f := pattern.Filter{Vars: v.names, Holds: test}
	if in.Value != nil {
		f.Objects = in.Value.objects()
	}
	return f, err
}

// compileCondition compiles a condition. A condition on the value does not hold for
// an unbound variable.
func (v *variables) compileCondition(in *VariableFilter) (rowTest, error) {
	self, err := v.indexOf(in.Var, "var")
	if err != nil {
		return nil, err
	}
	var all []rowTest
	if in.Exists != nil {
		exists := *in.Exists
		all = append(all, func(t []kg.Term) bool { return t[self].IsZero() != exists })
	}
	if in.Value != nil {
		test, err := matchValue(v.reader.Ctx, in.Value)
		if err != nil {
			return nil, kg.AsError(err).At("value")
		}
		all = append(all, func(t []kg.Term) bool { return !t[self].IsZero() && (test == nil || test(t[self])) })
	}
	compared, err := v.compileComparisons(in, self)
	if err != nil {
		return nil, err
	}
	all = append(all, compared...)
	if in.Not != nil {
		test, err := v.compileCondition(in.Not)
		if err != nil {
			return nil, kg.AsError(err).At("not")
		}
		all = append(all, func(t []kg.Term) bool { return !test(t) })
	}
	if in.Or != nil {
		some, err := v.compileOr(in.Or)
		if err != nil {
			return nil, err
		}
		all = append(all, some)
	}
	return func(t []kg.Term) bool { return holdAll(all, t) }, nil
}

func (v *variables) compileOr(list []VariableFilter) (rowTest, error) {
	tests := make([]rowTest, len(list))
	for i := range list {
		var err error
		if tests[i], err = v.compileCondition(&list[i]); err != nil {
			return nil, kg.AsError(err).At(fmt.Sprintf("or[%d]", i))
		}
	}
	return func(t []kg.Term) bool {
		return slices.ContainsFunc(tests, func(test rowTest) bool { return test(t) })
	}, nil
}

// compileComparisons compiles the comparisons of a variable with others, by value.
func (v *variables) compileComparisons(in *VariableFilter, self int) (all []rowTest, err error) {
	for _, c := range [...]struct {
		field string
		other *string
		order bool // needs an order, not only equality
		holds func(c int) bool
	}{
		{"eqVar", in.EqVar, false, isZero},
		{"neVar", in.NeVar, false, func(c int) bool { return c != 0 }},
		{"ltVar", in.LtVar, true, func(c int) bool { return c < 0 }},
		{"lteVar", in.LteVar, true, func(c int) bool { return c <= 0 }},
		{"gtVar", in.GtVar, true, func(c int) bool { return c > 0 }},
		{"gteVar", in.GteVar, true, func(c int) bool { return c >= 0 }},
	} {
		if c.other == nil {
			continue
		}
		other, err := v.indexOf(*c.other, c.field)
		if err != nil {
			return nil, err
		}
		all = append(all, func(t []kg.Term) bool {
			if t[self].IsZero() || t[other].IsZero() {
				return false
			}
			n, ordered, known := valuespace.CompareTerms(t[self], t[other])
			return known && (ordered || !c.order) && c.holds(n)
		})
	}
	return all, nil
}
