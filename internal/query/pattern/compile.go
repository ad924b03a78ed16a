package pattern

import (
	"fmt"
	"slices"

	"koine/kg"
)

// Pattern is a checked group. It is immutable and safe for concurrent use.
type Pattern struct {
	root   Group // with its paths expanded
	limits Limits
	names  []string // the variables of a row
	hidden []string // the variables that path expansion added
	texts  bool     // there is a text in some group
}

// Compile checks g against the limits and expands its paths. The error names the
// field, such as triples[1].subject.
func Compile(g Group, l Limits) (*Pattern, error) {
	p := &Pattern{limits: l.withDefaults(), names: scopeOf(&g)}
	c := checker{Pattern: p}
	if err := c.checkGroup(&g, 1); err != nil {
		return nil, err
	}
	p.texts = c.countedTexts > 0
	x := expander{maxSteps: p.limits.Steps}
	var err error
	if p.root, err = x.expandGroup(&g); err != nil {
		return nil, err
	}
	for _, name := range scopeOf(&p.root) {
		if !slices.Contains(p.names, name) {
			p.hidden = append(p.hidden, name)
		}
	}
	return p, nil
}

// HasTexts reports whether a group of the pattern has texts, so that an evaluation searches.
func (p *Pattern) HasTexts() bool { return p.texts }

// Names returns the variables of a row in the order of first mention. Variables
// that occur only in NotExists or in a filter are not part of a row.
func (p *Pattern) Names() []string { return p.names }

// Column returns the index of a variable in a row, -1 if rows do not have it.
func (p *Pattern) Column(name string) int { return slices.Index(p.names, name) }

// Star is a pattern of triples with one and the same variable as their subject, given predicates,
// and any graph, of which one has another variable as its object and the others have a term.
type Star struct {
	Subject, Object string // variables
	Predicate       kg.Term
	Tests           []StarTest
}

// StarTest is a statement that each subject of a star has.
type StarTest struct{ Predicate, Object kg.Term }

// Star returns the pattern as a star, false if it is not of that form.
func (p *Pattern) Star() (star Star, ok bool) {
	g := &p.root
	if len(g.Triples) == 0 || len(g.Texts)+len(g.Unions)+len(g.Optional)+len(g.Filters)+len(g.NotExists) > 0 {
		return star, false
	}
	star.Subject = g.Triples[0].Subject.name
	for i := range g.Triples {
		t := &g.Triples[i]
		if t.Path != nil || !t.Graph.isZero() || t.except != nil || len(t.Predicate.terms) != 1 || t.Subject.name == "" || t.Subject.name != star.Subject {
			return star, false
		}
		switch predicate := t.Predicate.terms[0]; {
		case len(t.Object.terms) == 1:
			star.Tests = append(star.Tests, StarTest{predicate, t.Object.terms[0]})
		case star.Object == "" && t.Object.name != "" && t.Object.name != star.Subject:
			star.Object, star.Predicate = t.Object.name, predicate
		default:
			return star, false
		}
	}
	return star, star.Object != ""
}

// checker validates a group and counts its parts against the limits.
type checker struct {
	*Pattern
	triples, groups int
	countedTexts    int
	variables       []string
}

func (c *checker) checkGroup(g *Group, depth int) error {
	if c.groups++; c.groups > c.limits.Groups {
		return tooMany("groups", c.limits.Groups)
	}
	if depth > c.limits.Depth {
		return tooMany("nested groups", c.limits.Depth)
	}
	for i := range g.Triples {
		if err := c.checkTriple(&g.Triples[i]); err != nil {
			return kg.AsError(err).At(fmt.Sprintf("triples[%d]", i))
		}
	}
	for i := range g.Texts {
		if err := c.checkText(&g.Texts[i]); err != nil {
			return kg.AsError(err).At(fmt.Sprintf("text[%d]", i))
		}
	}
	for i := range g.Filters {
		for _, name := range g.Filters[i].Vars {
			if err := c.countVariable(name); err != nil {
				return kg.AsError(err).At(fmt.Sprintf("filters[%d]", i))
			}
		}
	}
	return c.checkNested(g, depth)
}

func (c *checker) checkNested(g *Group, depth int) error {
	for i, union := range g.Unions {
		for k := range union {
			if err := c.checkGroup(&union[k], depth+1); err != nil {
				return kg.AsError(err).At(fmt.Sprintf("unions[%d][%d]", i, k))
			}
		}
	}
	for i := range g.Optional {
		if err := c.checkGroup(&g.Optional[i], depth+1); err != nil {
			return kg.AsError(err).At(fmt.Sprintf("optional[%d]", i))
		}
	}
	for i := range g.NotExists {
		if err := c.checkGroup(&g.NotExists[i], depth+1); err != nil {
			return kg.AsError(err).At(fmt.Sprintf("notExists[%d]", i))
		}
	}
	return nil
}

func (c *checker) checkTriple(t *Triple) error {
	if c.triples++; c.triples > c.limits.Triples {
		return tooMany("triples", c.limits.Triples)
	}
	for _, pos := range [...]struct {
		name     string
		node     Node
		optional bool
	}{{"subject", t.Subject, false}, {"predicate", t.Predicate, t.Path != nil}, {"object", t.Object, false}, {"graph", t.Graph, true}} {
		switch n := pos.node; {
		case n.isZero() && !pos.optional:
			return kg.Errorf(kg.CodeInvalid, "a variable or a term is missing").At(pos.name)
		case n.name == "" && len(n.terms) != 1 && pos.name != "object" && !n.isZero():
			return kg.Errorf(kg.CodeInvalid, "only an object can be one of several terms").At(pos.name)
		case len(n.terms) > c.limits.Terms:
			return tooMany("terms in one position", c.limits.Terms).At(pos.name)
		case n.name != "":
			if err := c.countVariable(n.name); err != nil {
				return kg.AsError(err).At(pos.name)
			}
		}
	}
	if t.Path != nil && (t.Graph.name != "" || !t.Predicate.isZero()) {
		return kg.Errorf(kg.CodeInvalid, "a triple with a path must not have a predicate or a variable as its graph")
	}
	return nil
}

func (c *checker) countVariable(name string) error {
	if slices.Contains(c.variables, name) {
		return nil
	}
	if c.variables = append(c.variables, name); len(c.variables) > c.limits.Variables {
		return tooMany("variables", c.limits.Variables)
	}
	return nil
}

// variableNames returns the distinct variables of the triple.
func (t *Triple) variableNames() (names []string) {
	for _, n := range [...]Node{t.Subject, t.Predicate, t.Object, t.Graph} {
		if n.name != "" && !slices.Contains(names, n.name) {
			names = append(names, n.name)
		}
	}
	return names
}

// scopeOf returns the variables in scope in a group: those that its solutions
// may bind (SPARQL 1.1, section 18.2.1).
func scopeOf(g *Group) (names []string) {
	add := func(more []string) {
		for _, name := range more {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for i := range g.Triples {
		add(g.Triples[i].variableNames())
	}
	for i := range g.Texts {
		add(g.Texts[i].variableNames())
	}
	for _, union := range g.Unions {
		for k := range union {
			add(scopeOf(&union[k]))
		}
	}
	for i := range g.Optional {
		add(scopeOf(&g.Optional[i]))
	}
	return names
}

// certainOf returns the variables that every solution of a group binds.
func certainOf(g *Group) (names []string) {
	for i := range g.Triples {
		names = append(names, g.Triples[i].variableNames()...)
	}
	for i := range g.Texts {
		names = append(names, g.Texts[i].variableNames()...)
	}
	for _, union := range g.Unions {
		names = append(names, certainOfUnion(union)...)
	}
	return names
}

func certainOfUnion(union []Group) []string {
	var all []string
	for k := range union {
		here := certainOf(&union[k])
		if k == 0 {
			all = here
			continue
		}
		all = slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(here, name) })
	}
	return all
}

// mentionedVars returns all variables of a group, including those in filters and in
// nested groups.
func mentionedVars(g *Group) (names []string) {
	names = scopeOf(g)
	for i := range g.Filters {
		names = append(names, g.Filters[i].Vars...)
	}
	for _, union := range g.Unions {
		for k := range union {
			names = append(names, mentionedVars(&union[k])...)
		}
	}
	for _, list := range [...][]Group{g.Optional, g.NotExists} {
		for i := range list {
			names = append(names, mentionedVars(&list[i])...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
