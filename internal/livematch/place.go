package livematch

import (
	"slices"

	"koine/internal/pattern"
	"koine/kg"
)

// place is a triple of a pattern and the binding that a changed statement yields for
// it.
type place struct {
	triple *pattern.Triple
	// usable are the variables that every changed solution binds.
	usable []string
	// whole reports that a match yields no binding: the statement is one step of a
	// longer path.
	whole    bool
	patterns []kg.Pattern // of matching statements
}

// placesOf returns the triples of a group and of its nested groups. usable are the
// variables that every enclosing group binds.
func placesOf(g *pattern.Group, usable []string) (list []place) {
	for i := range g.Triples {
		list = append(list, placeOf(&g.Triples[i], usable))
	}
	for _, union := range g.Unions {
		for k := range union {
			list = append(list, placesOf(&union[k], both(usable, union[k].Certain()))...)
		}
	}
	for i := range g.Optional {
		list = append(list, placesOf(&g.Optional[i], both(usable, g.Optional[i].Certain()))...)
	}
	for i := range g.NotExists {
		list = append(list, absentPlaces(&g.NotExists[i], usable)...)
	}
	return list
}

// absentPlaces returns the triples of a negated group: outer bindings apply in all of
// it.
func absentPlaces(g *pattern.Group, usable []string) (list []place) {
	for i := range g.Triples {
		list = append(list, placeOf(&g.Triples[i], usable))
	}
	groups := append(slices.Clone(g.Optional), g.NotExists...)
	for _, union := range g.Unions {
		groups = append(groups, union...)
	}
	for i := range groups {
		list = append(list, absentPlaces(&groups[i], usable)...)
	}
	return list
}

func both(a, b []string) (names []string) {
	for _, name := range a {
		if slices.Contains(b, name) {
			names = append(names, name)
		}
	}
	return names
}

func placeOf(t *pattern.Triple, usable []string) place {
	p := place{triple: t, whole: t.Path != nil}
	for _, n := range nodes(t) {
		if name, _ := n.Parts(); name != "" && slices.Contains(usable, name) && !slices.Contains(p.usable, name) {
			p.usable = append(p.usable, name)
		}
	}
	fixed := kg.Pattern{Graph: only(t.Graph)}
	if t.Path == nil {
		fixed.Subject, fixed.Predicate, fixed.Object = only(t.Subject), only(t.Predicate), only(t.Object)
		p.patterns = []kg.Pattern{fixed}
		return p
	}
	predicates, every := t.Path.Mentions()
	if every {
		p.patterns = []kg.Pattern{fixed}
		return p
	}
	for _, predicate := range predicates {
		fixed.Predicate = predicate
		p.patterns = append(p.patterns, fixed)
	}
	return p
}

func nodes(t *pattern.Triple) [4]pattern.Node {
	return [...]pattern.Node{t.Subject, t.Predicate, t.Object, t.Graph}
}

// only returns the node's term if it has exactly one, else the zero Term.
func only(n pattern.Node) kg.Term {
	if _, terms := n.Parts(); len(terms) == 1 {
		return terms[0]
	}
	return kg.Term{}
}

// fits reports whether the statement may match the triple or be a step of its path.
func (p *place) fits(q kg.Quad) bool {
	return slices.ContainsFunc(p.patterns, func(f kg.Pattern) bool { return f.Matches(q) })
}

// binding returns the binding that a changed statement yields. It reports false if the
// statement does not match. An empty binding covers all solutions.
func (p *place) binding(q kg.Quad, id func(kg.Term) (kg.ID, error)) (binding, bool, error) {
	if !p.fits(q) {
		return nil, false, nil
	}
	if p.whole {
		return binding{}, true, nil
	}
	terms := [...]kg.Term{q.Subject, q.Predicate, q.Object, q.Graph}
	found := map[string]kg.Term{}
	for i, n := range nodes(p.triple) {
		name, oneOf := n.Parts()
		if name == "" {
			if len(oneOf) > 1 && !slices.Contains(oneOf, terms[i]) {
				return nil, false, nil
			}
			continue
		}
		if other, twice := found[name]; twice && other != terms[i] {
			return nil, false, nil
		}
		found[name] = terms[i]
	}
	b := make(binding, len(p.usable))
	for _, name := range p.usable {
		var err error
		if b[name], err = id(found[name]); err != nil {
			return nil, false, err
		}
	}
	return b, true, nil
}
