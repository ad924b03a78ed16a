package shapes

import (
	"strings"

	"koine/kg"
)

// way is a property path. Only single steps are inverted.
type way interface {
	// from returns the end nodes of the path from any of the starts, each once.
	from(v *view, starts []kg.Term) ([]kg.Term, error)
	// back returns the inverse path.
	back() way
	// reads calls note for each link that is looked up, with the path before it.
	reads(before []way, note func(before []way, l link))
	String() string
}

type (
	link struct {
		predicate kg.Term
		inverse   bool
	}
	sequence    []way
	alternative []way
	// repeat repeats a path least times or more; least is 0 or 1.
	repeat struct {
		of    way
		least int
	}
	optional struct{ of way }
)

func (l link) from(v *view, starts []kg.Term) ([]kg.Term, error) {
	if len(starts) == 1 {
		return v.read(starts[0], l)
	}
	var out nodes
	for _, n := range starts {
		ends, err := v.read(n, l)
		if err != nil {
			return nil, err
		}
		out.add(ends)
	}
	return out.list, nil
}

func (s sequence) from(v *view, at []kg.Term) (_ []kg.Term, err error) {
	for _, w := range s {
		if at, err = w.from(v, at); err != nil {
			return nil, err
		}
	}
	return at, nil
}

func (a alternative) from(v *view, starts []kg.Term) ([]kg.Term, error) {
	var out nodes
	for _, w := range a {
		ends, err := w.from(v, starts)
		if err != nil {
			return nil, err
		}
		out.add(ends)
	}
	return out.list, nil
}

func (r repeat) from(v *view, starts []kg.Term) (_ []kg.Term, err error) {
	var out nodes
	level := starts
	if r.least > 0 {
		if level, err = r.of.from(v, starts); err != nil {
			return nil, err
		}
	}
	for level = out.add(level); len(level) > 0; level = out.add(level) {
		if level, err = r.of.from(v, level); err != nil {
			return nil, err
		}
	}
	return out.list, nil
}

func (o optional) from(v *view, starts []kg.Term) ([]kg.Term, error) {
	var out nodes
	out.add(starts)
	ends, err := o.of.from(v, starts)
	out.add(ends)
	return out.list, err
}

func (l link) back() way     { return link{l.predicate, !l.inverse} }
func (r repeat) back() way   { return repeat{r.of.back(), r.least} }
func (o optional) back() way { return optional{o.of.back()} }

func (s sequence) back() way {
	out := make(sequence, len(s))
	for i, w := range s {
		out[len(s)-1-i] = w.back()
	}
	return out
}

func (a alternative) back() way {
	out := make(alternative, len(a))
	for i, w := range a {
		out[i] = w.back()
	}
	return out
}

func (l link) reads(before []way, note func([]way, link)) { note(before, l) }

func (s sequence) reads(before []way, note func([]way, link)) {
	for _, w := range s {
		w.reads(before, note)
		before = then(before, w)
	}
}

func (a alternative) reads(before []way, note func([]way, link)) {
	for _, w := range a {
		w.reads(before, note)
	}
}

func (r repeat) reads(before []way, note func([]way, link)) {
	r.of.reads(then(before, repeat{r.of, 0}), note)
}

func (o optional) reads(before []way, note func([]way, link)) { o.of.reads(before, note) }

// then appends to a path without changing before.
func then(before []way, w ...way) []way {
	return append(before[:len(before):len(before)], w...)
}

// String returns the path in SPARQL syntax, a single step without brackets.
func (l link) String() string {
	if l.inverse {
		return "^" + l.predicate.Value()
	}
	return l.predicate.Value()
}

func (s sequence) String() string    { return joined(s, "/") }
func (a alternative) String() string { return joined(a, "|") }
func (o optional) String() string    { return "(" + o.of.String() + ")?" }

func (r repeat) String() string {
	if r.least > 0 {
		return "(" + r.of.String() + ")+"
	}
	return "(" + r.of.String() + ")*"
}

func joined(list []way, between string) string {
	parts := make([]string, len(list))
	for i, w := range list {
		l, single := w.(link)
		switch {
		case single && l.inverse:
			parts[i] = "^" + l.predicate.String()
		case single:
			parts[i] = l.predicate.String()
		default:
			parts[i] = "(" + w.String() + ")"
		}
	}
	return strings.Join(parts, between)
}

// nodes is a set of nodes in insertion order.
type nodes struct {
	list []kg.Term
	seen map[kg.Term]bool
}

// add returns the nodes that are new.
func (s *nodes) add(list []kg.Term) (fresh []kg.Term) {
	if s.seen == nil {
		s.seen = make(map[kg.Term]bool, len(list))
	}
	from := len(s.list)
	for _, n := range list {
		if !s.seen[n] {
			s.seen[n] = true
			s.list = append(s.list, n)
		}
	}
	return s.list[from:]
}
