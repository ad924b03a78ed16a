package path

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"koine/kg"
)

// Path is a property path that Parse has read. It never changes; it may be used
// concurrently.
type Path struct {
	root expression
	// forward leads from the start to the end, backward from the end to the start.
	forward, backward *automaton
}

// expression is a part of a path, in one form for each meaning as far as syntax
// goes: sequences and alternatives are flat, {1} and double inversion are gone.
type expression interface {
	// steps is the number of single steps that it is made of, repetitions
	// written out.
	steps() int
	// binding is how tightly its notation holds together.
	binding() binding
	append(b []byte) []byte
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
	// link is a statement with this predicate.
	link struct{ predicate kg.Term }
	// negated is a statement with none of these predicates, which are in order.
	negated struct{ predicates []kg.Term }
	// inverse goes against the direction.
	inverse struct{ of expression }
	// sequence is one after the other, alternative one or another; of two at least.
	sequence    []expression
	alternative []expression
	// repeat is least times at least, and most times at most; unbounded if most
	// is many.
	repeat struct {
		of          expression
		least, most int
	}
)

const many = -1

// String writes the path in the one form that Parse reads as the same path:
// IRIs in full, no spaces, no parentheses without need.
func (p *Path) String() string { return string(p.root.append(nil)) }

// Single tells whether the path is one predicate, or one against its direction:
// then it relates the subjects and objects of the statements with the predicate,
// and nothing else.
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

// Nullable tells whether the path may have no step at all, so that it relates
// every node with itself.
func (p *Path) Nullable() bool { return p.forward.states[0].accepts }

func (link) steps() int      { return 1 }
func (negated) steps() int   { return 1 }
func (i inverse) steps() int { return i.of.steps() }

func (s sequence) steps() int    { return sumSteps(s) }
func (a alternative) steps() int { return sumSteps(a) }

// steps never overflows: what a repetition is of was measured before. Even none
// counts as one, so that repetitions of nothing in each other have an end.
func (r repeat) steps() int {
	if r.most == many {
		return r.of.steps() * max(r.least, 1)
	}
	return max(1, r.of.steps()*r.most)
}

func sumSteps(list []expression) (n int) {
	for _, e := range list {
		n += e.steps()
	}
	return n
}

func (link) binding() binding        { return bindPrimary }
func (negated) binding() binding     { return bindPrimary }
func (inverse) binding() binding     { return bindInverse }
func (sequence) binding() binding    { return bindSequence }
func (alternative) binding() binding { return bindAlternative }
func (repeat) binding() binding      { return bindRepeat }

// appendWithin writes an expression where only what binds at least as tightly
// can stand without parentheses.
func appendWithin(b []byte, e expression, least binding) []byte {
	if e.binding() >= least {
		return e.append(b)
	}
	return append(e.append(append(b, '(')), ')')
}

func (l link) append(b []byte) []byte { return append(b, l.predicate.String()...) }

func (n negated) append(b []byte) []byte {
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

func (i inverse) append(b []byte) []byte { return appendWithin(append(b, '^'), i.of, bindRepeat) }

func (s sequence) append(b []byte) []byte    { return appendList(b, s, '/', bindInverse) }
func (a alternative) append(b []byte) []byte { return appendList(b, a, '|', bindSequence) }

func appendList(b []byte, list []expression, between byte, least binding) []byte {
	for i, e := range list {
		if i > 0 {
			b = append(b, between)
		}
		b = appendWithin(b, e, least)
	}
	return b
}

func (r repeat) append(b []byte) []byte {
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

// invert turns an expression around; twice is not at all.
func invert(e expression) expression {
	if i, ok := e.(inverse); ok {
		return i.of
	}
	return inverse{e}
}

// join makes a sequence or an alternative of a list, in which the parts of its
// own kind take their place.
func join[L ~[]expression](list []expression) expression {
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

// exclude makes a negated property set (SPARQL 1.1, section 18.2.2.1): those in
// their direction, those against it, or an alternative of both.
func exclude(along, against []kg.Term) expression {
	var list []expression
	if len(along) > 0 || len(against) == 0 {
		list = append(list, negated{sorted(along)})
	}
	if len(against) > 0 {
		list = append(list, inverse{negated{sorted(against)}})
	}
	return join[alternative](list)
}

func sorted(list []kg.Term) []kg.Term {
	slices.SortFunc(list, func(a, b kg.Term) int {
		return cmp.Or(strings.Compare(a.Value(), b.Value()), a.Compare(b))
	})
	return slices.Compact(list)
}
