package path

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"koine/kg"
)

// Path is a parsed property path. It is immutable and safe for concurrent use.
type Path struct {
	root expression
	// forward runs from the start to the end, backward from the end to the start.
	forward, backward *automaton
}

// expression is a part of a path in normal form: sequences and alternatives are
// flat, {1} and double inversion are removed.
type expression interface {
	// stepCount returns the number of single steps with repetitions expanded.
	stepCount() int
	// precedence returns the precedence of the operator.
	precedence() binding
	appendTo(b []byte) []byte
}

type binding uint8

const (
	bindAlternative binding = iota
	bindSequence
	bindInverse
	bindRepeat
	bindPrimary
)

type (
	// link matches a statement with the predicate.
	link struct{ predicate kg.Term }
	// negated matches a statement with none of the predicates, which are sorted.
	negated struct{ predicates []kg.Term }
	// inverse swaps the ends of an expression.
	inverse struct{ of expression }
	// sequence and alternative have two parts at least.
	sequence    []expression
	alternative []expression
	// repeat repeats an expression least to most times; most is many if there is
	// no upper bound.
	repeat struct {
		of          expression
		least, most int
	}
)

const many = -1

// String returns the path in canonical syntax, which Parse reads as the same path:
// full IRIs, no spaces, no redundant parentheses.
func (p *Path) String() string { return string(p.root.appendTo(nil)) }

// Single reports whether the path is one predicate, and whether it is inverted. The
// path then relates exactly the subjects and objects of the predicate's statements.
func (p *Path) Single() (predicate kg.Term, inverted, ok bool) {
	e := p.root
	if i, ok := e.(inverse); ok {
		e, inverted = i.of, true
	}
	if l, ok := e.(link); ok {
		return l.predicate, inverted, true
	}
	return kg.Term{}, false, false
}

// Nullable reports whether the path may have length zero, so that it relates every
// node to itself.
func (p *Path) Nullable() bool { return p.forward.states[0].accepts }

func (link) stepCount() int      { return 1 }
func (negated) stepCount() int   { return 1 }
func (i inverse) stepCount() int { return i.of.stepCount() }

func (s sequence) stepCount() int    { return sumSteps(s) }
func (a alternative) stepCount() int { return sumSteps(a) }

// stepCount cannot overflow: the parser has measured the operand. An empty repetition
// counts as one step, which bounds the nesting of empty repetitions.
func (r repeat) stepCount() int {
	if r.most == many {
		return r.of.stepCount() * max(r.least, 1)
	}
	return max(1, r.of.stepCount()*r.most)
}

func sumSteps(list []expression) (n int) {
	for _, e := range list {
		n += e.stepCount()
	}
	return n
}

func (link) precedence() binding        { return bindPrimary }
func (negated) precedence() binding     { return bindPrimary }
func (inverse) precedence() binding     { return bindInverse }
func (sequence) precedence() binding    { return bindSequence }
func (alternative) precedence() binding { return bindAlternative }
func (repeat) precedence() binding      { return bindRepeat }

// appendWithin appends an expression, in parentheses if its precedence is below
// least.
func appendWithin(b []byte, e expression, least binding) []byte {
	if e.precedence() >= least {
		return e.appendTo(b)
	}
	return append(e.appendTo(append(b, '(')), ')')
}

func (l link) appendTo(b []byte) []byte { return append(b, l.predicate.String()...) }

func (n negated) appendTo(b []byte) []byte {
	if len(n.predicates) == 1 {
		return append(append(b, '!'), n.predicates[0].String()...)
	}
	b = append(b, "!("...)
	for i, p := range n.predicates {
		if i > 0 {
			b = append(b, '|')
		}
		b = append(b, p.String()...)
	}
	return append(b, ')')
}

func (i inverse) appendTo(b []byte) []byte { return appendWithin(append(b, '^'), i.of, bindRepeat) }

func (s sequence) appendTo(b []byte) []byte    { return appendList(b, s, '/', bindInverse) }
func (a alternative) appendTo(b []byte) []byte { return appendList(b, a, '|', bindSequence) }

func appendList(b []byte, list []expression, between byte, least binding) []byte {
	for i, e := range list {
		if i > 0 {
			b = append(b, between)
		}
		b = appendWithin(b, e, least)
	}
	return b
}

func (r repeat) appendTo(b []byte) []byte {
	b = appendWithin(b, r.of, bindPrimary)
	switch {
	case r.least == 0 && r.most == many:
		return append(b, '*')
	case r.least == 1 && r.most == many:
		return append(b, '+')
	case r.least == 0 && r.most == 1:
		return append(b, '?')
	}
	b = strconv.AppendInt(append(b, '{'), int64(r.least), 10)
	if r.most != r.least {
		b = append(b, ',')
	}
	if r.most != r.least && r.most != many {
		b = strconv.AppendInt(b, int64(r.most), 10)
	}
	return append(b, '}')
}

// invertExpr swaps the ends of an expression. It removes a double inversion.
func invertExpr(e expression) expression {
	if i, ok := e.(inverse); ok {
		return i.of
	}
	return inverse{e}
}

// joinList returns a sequence or an alternative of the list. Nested parts of the same
// kind are flattened.
func joinList[L ~[]expression](list []expression) expression {
	if len(list) == 1 {
		return list[0]
	}
	var flat L
	for _, e := range list {
		if inner, ok := e.(L); ok {
			flat = append(flat, inner...)
		} else {
			flat = append(flat, e)
		}
	}
	return any(flat).(expression)
}

// newNegated returns a negated property set (SPARQL 1.1, section 18.2.2.1): forward,
// inverted, or an alternative of both.
func newNegated(along, against []kg.Term) expression {
	var list []expression
	if len(along) > 0 || len(against) == 0 {
		list = append(list, negated{sortTerms(along)})
	}
	if len(against) > 0 {
		list = append(list, inverse{negated{sortTerms(against)}})
	}
	return joinList[alternative](list)
}

func sortTerms(list []kg.Term) []kg.Term {
	slices.SortFunc(list, func(a, b kg.Term) int {
		return cmp.Or(strings.Compare(a.Value(), b.Value()), a.Compare(b))
	})
	return slices.Compact(list)
}
