package graph

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"koine/kg"
)

// termTest tells whether a condition holds for a term.
type termTest func(kg.Term) bool

// allTerms holds when all the tests hold; nil tests are left out, and nil
// comes back when none is left.
func allTerms(tests ...termTest) termTest {
	var list []termTest
	for _, t := range tests {
		if t != nil {
			list = append(list, t)
		}
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return func(t kg.Term) bool {
		for _, test := range list {
			if !test(t) {
				return false
			}
		}
		return true
	}
}

// matchIRI compiles a condition on an IRI; nil holds always.
func matchIRI(f *IRIFilter) termTest {
	if f == nil {
		return nil
	}
	return allTerms(
		termEqual(f.Eq, true), termEqual(f.Ne, false), termAmong(f.In, true), termAmong(f.Nin, false),
		nameTest(f.Contains, strings.Contains), nameTest(f.StartsWith, strings.HasPrefix), nameTest(f.EndsWith, strings.HasSuffix),
	)
}

func termEqual(want *kg.Term, equal bool) termTest {
	if want == nil {
		return nil
	}
	w := *want
	return func(t kg.Term) bool { return (t == w) == equal }
}

func termAmong(want []kg.Term, among bool) termTest {
	if want == nil {
		return nil
	}
	set := make(map[kg.Term]bool, len(want))
	for _, t := range want {
		set[t] = true
	}
	return func(t kg.Term) bool { return set[t] == among }
}

func nameTest(part *string, test func(s, part string) bool) termTest {
	if part == nil {
		return nil
	}
	p := *part
	return func(t kg.Term) bool { return test(t.Name(), p) }
}

// matchGraph compiles a condition on the name of a graph.
func matchGraph(f *GraphFilter) termTest {
	if f == nil {
		return nil
	}
	var isDefault termTest
	if f.Default != nil {
		isDefault = termEqual(&kg.DefaultGraph, *f.Default)
	}
	return allTerms(termEqual(f.Eq, true), termEqual(f.Ne, false),
		termAmong(graphNames(f.In), true), termAmong(graphNames(f.Nin), false), isDefault)
}

// graphNames puts the default graph in the place of null.
func graphNames(list []*kg.Term) []kg.Term {
	if list == nil {
		return nil
	}
	out := make([]kg.Term, len(list))
	for i, t := range list {
		out[i] = kg.DefaultGraph
		if t != nil {
			out[i] = *t
		}
	}
	return out
}

// matchValue compiles a condition on a value, the object of a statement.
func matchValue(f *ValueFilter) (termTest, error) {
	if f == nil {
		return nil, nil
	}
	compared, err := matchComparisons(f)
	if err != nil {
		return nil, err
	}
	tests := []termTest{
		compared,
		textTest(f.Contains, strings.Contains), textTest(f.StartsWith, strings.HasPrefix), textTest(f.EndsWith, strings.HasSuffix),
	}
	if test := matchIRI(f.Iri); f.Iri != nil {
		tests = append(tests, func(t kg.Term) bool { return t.IsResource() && (test == nil || test(t)) })
	}
	if test := matchText(f.Language); f.Language != nil {
		tests = append(tests, func(t kg.Term) bool { return isText(t) && test(t.Lang(), t.Lang() != "") })
	}
	if test := matchIRI(f.Datatype); f.Datatype != nil {
		tests = append(tests, func(t kg.Term) bool { return t.IsLiteral() && (test == nil || test(kg.IRI(t.Datatype()))) })
	}
	return allTerms(tests...), nil
}

// comparison is one operator with its operand.
type comparison struct {
	operand
	holds func(c int) bool
	order bool // holds needs an order, not only equality
	not   bool // holds when it does not: also for what cannot be compared
}

func (c *comparison) test(v value) bool {
	n, ok, ordered := c.compare(v)
	return (ok && (ordered || !c.order) && c.holds(n)) != c.not
}

func isZero(c int) bool { return c == 0 }

func matchComparisons(f *ValueFilter) (termTest, error) {
	var all []comparison
	var firstErr error
	add := func(name string, raw json.RawMessage, order, not bool, holds func(int) bool) {
		if raw == nil || string(raw) == "null" {
			return
		}
		o, err := parseOperand(raw)
		if err != nil && firstErr == nil {
			firstErr = kg.AsError(err).At(name)
		}
		all = append(all, comparison{operand: o, holds: holds, order: order, not: not})
	}
	add("eq", f.Eq, false, false, isZero)
	add("ne", f.Ne, false, true, isZero)
	add("lt", f.Lt, true, false, func(c int) bool { return c < 0 })
	add("lte", f.Lte, true, false, func(c int) bool { return c <= 0 })
	add("gt", f.Gt, true, false, func(c int) bool { return c > 0 })
	add("gte", f.Gte, true, false, func(c int) bool { return c >= 0 })
	for i, raw := range f.Nin {
		add("nin["+strconv.Itoa(i)+"]", raw, false, true, isZero)
	}
	some := len(all)
	for i, raw := range f.In {
		add("in["+strconv.Itoa(i)+"]", raw, false, false, isZero)
	}
	if firstErr != nil || len(all) == 0 && f.In == nil {
		return nil, firstErr
	}
	every, among, limited := all[:some], all[some:], f.In != nil
	return func(t kg.Term) bool {
		v := valueOf(t)
		for i := range every {
			if !every[i].test(v) {
				return false
			}
		}
		for i := range among {
			if among[i].test(v) {
				return true
			}
		}
		return !limited
	}, nil
}

// textTest is about the characters of a text; other values do not fit.
func textTest(part *string, test func(s, part string) bool) termTest {
	if part == nil {
		return nil
	}
	p := *part
	return func(t kg.Term) bool { return isText(t) && test(t.Value(), p) }
}

func isText(t kg.Term) bool {
	return t.IsLiteral() && (t.Lang() != "" || t.Datatype() == kg.XSDString)
}

// textMatch tells whether a condition holds for a text that may be absent.
type textMatch func(text string, there bool) bool

// matchText compiles a condition on a text. Apart from exists: false no
// condition holds for what is absent. f may be nil: then any text fits.
func matchText(f *StringFilter) textMatch {
	if f == nil {
		return func(string, bool) bool { return true }
	}
	var tests []func(string) bool
	add := func(s *string, test func(text, s string) bool) {
		if s != nil {
			tests = append(tests, func(text string) bool { return test(text, *s) })
		}
	}
	add(f.Eq, func(a, b string) bool { return a == b })
	add(f.Ne, func(a, b string) bool { return a != b })
	add(f.Lt, func(a, b string) bool { return a < b })
	add(f.Lte, func(a, b string) bool { return a <= b })
	add(f.Gt, func(a, b string) bool { return a > b })
	add(f.Gte, func(a, b string) bool { return a >= b })
	add(f.Contains, strings.Contains)
	add(f.StartsWith, strings.HasPrefix)
	add(f.EndsWith, strings.HasSuffix)
	if f.In != nil {
		tests = append(tests, func(text string) bool { return slices.Contains(f.In, text) })
	}
	if f.Nin != nil {
		tests = append(tests, func(text string) bool { return !slices.Contains(f.Nin, text) })
	}
	return func(text string, there bool) bool {
		if f.Exists != nil && *f.Exists != there {
			return false
		}
		if !there {
			return len(tests) == 0
		}
		for _, test := range tests {
			if !test(text) {
				return false
			}
		}
		return true
	}
}
