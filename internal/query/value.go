package query

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// termTest reports whether a condition holds for a term.
type termTest func(kg.Term) bool

// allTerms holds if all tests hold. nil tests are ignored. It returns nil if
// no test is left.
func allTerms(tests ...termTest) termTest {
	tests = slices.DeleteFunc(tests, func(t termTest) bool { return t == nil })
	switch len(tests) {
	case 0:
		return nil
	case 1:
		return tests[0]
	}
	return func(t kg.Term) bool { return holdAll(tests, t) }
}

// holdAll reports whether all tests hold.
func holdAll[T any, F ~func(T) bool](tests []F, v T) bool {
	for _, test := range tests {
		if !test(v) {
			return false
		}
	}
	return true
}

// matchValue compiles a condition on a value, the object of a statement.
func matchValue(ctx context.Context, f *ValueFilter) (termTest, error) {
	if f == nil {
		return nil, nil
	}
	compared, err := matchComparisons(&f.Comparisons)
	if err != nil {
		return nil, err
	}
	text, err := f.Substring.compileFor(ctx, func(t kg.Term) (string, bool) { return t.Value(), isText(t) })
	if err != nil {
		return nil, err
	}
	iri, err := matchPart(ctx, f.IRI, kg.Term.IsResource, func(t kg.Term) kg.Term { return t })
	if err != nil {
		return nil, kg.AsError(err).At("iri")
	}
	language, err := valueLanguage(ctx, f.Language)
	if err != nil {
		return nil, kg.AsError(err).At("language")
	}
	datatype, err := matchPart(ctx, f.Datatype, kg.Term.IsLiteral, func(t kg.Term) kg.Term { return kg.IRI(t.Datatype()) })
	if err != nil {
		return nil, kg.AsError(err).At("datatype")
	}
	return allTerms(iri, datatype, compared, language, text), nil
}

// matchPart compiles a condition on an IRI that a term may have: a resource its
// own, a literal that of its datatype.
func matchPart(ctx context.Context, f *IRIFilter, has func(kg.Term) bool, iri func(kg.Term) kg.Term) (termTest, error) {
	if f == nil {
		return nil, nil
	}
	test, err := matchIRI(ctx, f)
	absent := f.requiresOnlyAbsence()
	return func(t kg.Term) bool {
		if !has(t) {
			return absent
		}
		return test == nil || test(iri(t))
	}, err
}

// valueLanguage compiles a condition on the language of a text. Only `exists:
// false` holds for a text without one.
func valueLanguage(ctx context.Context, f *StringFilter) (termTest, error) {
	if f == nil {
		return nil, nil
	}
	test, err := matchText(ctx, f.toLower())
	return func(t kg.Term) bool { return isText(t) && test(t.LangKey(), t.LangKey() != "") }, err
}

// comparison is one operator with its operand.
type comparison struct {
	operand
	holds func(c int) bool
	order bool // needs an order, not only equality
	not   bool // negated: holds also for values of another kind
}

func (c *comparison) testValue(v valuespace.Value) bool {
	if c.not && c.isUndetermined(v) {
		return false
	}
	n, ok, ordered := c.compare(v)
	return (ok && (ordered || !c.order) && c.holds(n)) != c.not
}

func isZero(c int) bool { return c == 0 }

func matchComparisons(f *Comparisons) (termTest, error) {
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
	among, err := parseOperands("in", f.In)
	if firstErr == nil {
		firstErr = err
	}
	except, err := parseOperands("nin", f.Nin)
	if firstErr == nil {
		firstErr = err
	}
	if firstErr != nil || len(all) == 0 && among == nil && except == nil {
		return nil, firstErr
	}
	return func(t kg.Term) bool {
		v := valuespace.Of(t)
		for i := range all {
			if !all[i].testValue(v) {
				return false
			}
		}
		return (among == nil || among.contains(v)) && (except == nil || !except.contains(v) && !except.isUndetermined(v))
	}, nil
}

// parseOperands parses a list of operands and ignores null in it. It returns
// nil for no list.
func parseOperands(name string, list []json.RawMessage) (*operandSet, error) {
	if list == nil {
		return nil, nil
	}
	operands := make([]operand, 0, len(list))
	for i, raw := range list {
		if raw == nil || string(raw) == "null" {
			continue
		}
		o, err := parseOperand(raw)
		if err != nil {
			return nil, kg.AsError(err).At(name + "[" + strconv.Itoa(i) + "]")
		}
		operands = append(operands, o)
	}
	return newOperandSet(operands), nil
}
