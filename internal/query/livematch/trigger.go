package livematch

import (
	"slices"

	"koine/internal/query/pattern"
	"koine/kg"
)

// trigger is a triple of a pattern and the binding that a changed statement yields for
// it.
type trigger struct {
	triple *pattern.Triple
	// usable are the variables that every changed solution binds.
	usable []string
	// wholePattern reports that a match yields no binding: the statement is one step of a
	// longer path.
	wholePattern bool
	patterns     []kg.Pattern // of matching statements
}

// triggersOf returns the triples of a group and of its nested groups. usable are the
// variables that every enclosing group binds.
func triggersOf(g *pattern.Group, usable []string) (list []trigger) {
	for i := range g.Triples {
		list = append(list, newTrigger(&g.Triples[i], usable))
	}
	for _, union := range g.Unions {
		for k := range union {
			list = append(list, triggersOf(&union[k], intersectNames(usable, union[k].Certain()))...)
		}
	}
	for i := range g.Optional {
		list = append(list, triggersOf(&g.Optional[i], intersectNames(usable, g.Optional[i].Certain()))...)
	}
	for i := range g.NotExists {
		list = append(list, negatedTriggers(&g.NotExists[i], usable)...)
	}
	return list
}

// negatedTriggers returns the triples of a negated group: outer bindings apply in all of
// it.
func negatedTriggers(g *pattern.Group, usable []string) (list []trigger) {
	for i := range g.Triples {
		list = append(list, newTrigger(&g.Triples[i], usable))
	}
	groups := append(slices.Clone(g.Optional), g.NotExists...)
	for _, union := range g.Unions {
		groups = append(groups, union...)
	}
	for i := range groups {
		list = append(list, negatedTriggers(&groups[i], usable)...)
	}
	return list
}

func intersectNames(a, b []string) (names []string) {
	for _, name := range a {
		if slices.Contains(b, name) {
			names = append(names, name)
		}
	}
	return names
}

func newTrigger(t *pattern.Triple, usable []string) trigger {
	p := trigger{triple: t, wholePattern: t.Path != nil}
	for _, n := range tripleNodes(t) {
		if name, _ := n.Parts(); name != "" && slices.Contains(usable, name) && !slices.Contains(p.usable, name) {
			p.usable = append(p.usable, name)
		}
	}
	fixed := kg.Pattern{Graph: singleTerm(t.Graph)}
	if t.Path == nil {
		fixed.Subject, fixed.Predicate, fixed.Object = singleTerm(t.Subject), singleTerm(t.Predicate), singleTerm(t.Object)
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

func tripleNodes(t *pattern.Triple) [4]pattern.Node {
	return [...]pattern.Node{t.Subject, t.Predicate, t.Object, t.Graph}
}

// singleTerm returns the node's term if it has exactly one, else the zero Term.
func singleTerm(n pattern.Node) kg.Term {
	if _, terms := n.Parts(); len(terms) == 1 {
		return terms[0]
	}
	return kg.Term{}
}

// matchesQuad reports whether the statement may match the triple or be a step of its path.
func (p *trigger) matchesQuad(q kg.Quad) bool {
	return slices.ContainsFunc(p.patterns, func(f kg.Pattern) bool { return f.Matches(q) })
}

// bindingFor returns the binding that a changed statement yields. It reports false if the
// statement does not match. An empty binding covers all solutions.
func (p *trigger) bindingFor(q kg.Quad, id func(kg.Term) (kg.ID, error)) (binding, bool, error) {
	if !p.matchesQuad(q) {
		return nil, false, nil
	}
	if p.wholePattern {
		return binding{}, true, nil
	}
	terms := [...]kg.Term{q.Subject, q.Predicate, q.Object, q.Graph}
	found := map[string]kg.Term{}
	for i, n := range tripleNodes(p.triple) {
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
