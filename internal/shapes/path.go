package shapes

import (
	"strings"

	"koine/kg"
)

// propertyPath is a property path. Only single steps are reversed.
type propertyPath interface {
	// endNodes returns the end nodes of the path from any of the starts, each once.
	endNodes(v *dataView, starts []kg.Term) ([]kg.Term, error)
	// reverse returns the inverse path.
	reverse() propertyPath
	// recordLinks calls note for each link that is looked up, with the path before it.
	recordLinks(before []propertyPath, note func(before []propertyPath, l link))
	String() string
}

type (
	link struct {
		predicate kg.Term
		inverse   bool
	}
	sequence    []propertyPath
	alternative []propertyPath
	// repeat repeats a path least times or more; least is 0 or 1.
	repeat struct {
		inner propertyPath
		least int
	}
	optional struct{ inner propertyPath }
)

func (l link) endNodes(v *dataView, starts []kg.Term) ([]kg.Term, error) {
	if len(starts) == 1 {
		return v.readLink(starts[0], l)
	}
	var out nodeSet
	for _, n := range starts {
		ends, err := v.readLink(n, l)
		if err != nil {
			return nil, err
		}
		out.add(ends)
	}
	return out.list, nil
}

func (s sequence) endNodes(v *dataView, at []kg.Term) (_ []kg.Term, err error) {
	for _, w := range s {
		if at, err = w.endNodes(v, at); err != nil {
			return nil, err
		}
	}
	return at, nil
}

func (a alternative) endNodes(v *dataView, starts []kg.Term) ([]kg.Term, error) {
	var out nodeSet
	for _, w := range a {
		ends, err := w.endNodes(v, starts)
		if err != nil {
			return nil, err
		}
		out.add(ends)
	}
	return out.list, nil
}

func (r repeat) endNodes(v *dataView, starts []kg.Term) (_ []kg.Term, err error) {
	var out nodeSet
	level := starts
	if r.least > 0 {
		if level, err = r.inner.endNodes(v, starts); err != nil {
			return nil, err
		}
	}
	for level = out.add(level); len(level) > 0; level = out.add(level) {
		if level, err = r.inner.endNodes(v, level); err != nil {
			return nil, err
		}
	}
	return out.list, nil
}

func (o optional) endNodes(v *dataView, starts []kg.Term) ([]kg.Term, error) {
	var out nodeSet
	out.add(starts)
	ends, err := o.inner.endNodes(v, starts)
	out.add(ends)
	return out.list, err
}

func (l link) reverse() propertyPath     { return link{l.predicate, !l.inverse} }
func (r repeat) reverse() propertyPath   { return repeat{r.inner.reverse(), r.least} }
func (o optional) reverse() propertyPath { return optional{o.inner.reverse()} }

func (s sequence) reverse() propertyPath {
	out := make(sequence, len(s))
	for i, w := range s {
		out[len(s)-1-i] = w.reverse()
	}
	return out
}

func (a alternative) reverse() propertyPath {
	out := make(alternative, len(a))
	for i, w := range a {
		out[i] = w.reverse()
	}
	return out
}

func (l link) recordLinks(before []propertyPath, note func([]propertyPath, link)) { note(before, l) }

func (s sequence) recordLinks(before []propertyPath, note func([]propertyPath, link)) {
	for _, w := range s {
		w.recordLinks(before, note)
		before = appendPath(before, w)
	}
}

func (a alternative) recordLinks(before []propertyPath, note func([]propertyPath, link)) {
	for _, w := range a {
		w.recordLinks(before, note)
	}
}

func (r repeat) recordLinks(before []propertyPath, note func([]propertyPath, link)) {
	r.inner.recordLinks(appendPath(before, repeat{r.inner, 0}), note)
}

func (o optional) recordLinks(before []propertyPath, note func([]propertyPath, link)) {
	o.inner.recordLinks(before, note)
}

// appendPath appends to a path without changing before.
func appendPath(before []propertyPath, w ...propertyPath) []propertyPath {
	return append(before[:len(before):len(before)], w...)
}

// String returns the path in SPARQL syntax, a single step without brackets.
func (l link) String() string {
	if l.inverse {
		return "^" + l.predicate.Value()
	}
	return l.predicate.Value()
}

func (s sequence) String() string    { return joinPaths(s, "/") }
func (a alternative) String() string { return joinPaths(a, "|") }
func (o optional) String() string    { return "(" + o.inner.String() + ")?" }

func (r repeat) String() string {
	if r.least > 0 {
		return "(" + r.inner.String() + ")+"
	}
	return "(" + r.inner.String() + ")*"
}

func joinPaths(list []propertyPath, between string) string {
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

// nodeSet is a set of nodes in insertion order.
type nodeSet struct {
	list []kg.Term
	seen map[kg.Term]bool
}

// add returns the nodes that are new.
func (s *nodeSet) add(list []kg.Term) (fresh []kg.Term) {
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
