package pattern

import (
	"fmt"

	"koine/internal/query/path"
	"koine/kg"
)

// expander translates property paths as SPARQL 1.1, section 18.2.2.4, defines: a
// sequence becomes a join on a fresh variable, an alternative becomes a union.
// Closures remain paths.
type expander struct {
	steps, maxSteps int
	fresh           int
}

// maxElements is the largest number of triples and unions in one group after
// expansion: a cursor stores the index of an element in one byte.
const maxElements = 255

// hiddenPrefix begins the names of the variables that expansion adds. The
// leading space keeps them apart from the names that a client can write.
const hiddenPrefix = " path"

// expandGroup returns a copy of g with its paths expanded.
func (x *expander) expandGroup(g *Group) (Group, error) {
	out := Group{Filters: g.Filters, Texts: g.Texts}
	if x.steps += len(g.Texts); len(g.Texts) > maxElements {
		return out, tooMany("texts in one group", maxElements)
	}
	for i := range g.Triples {
		if err := x.expandTriple(&out, g.Triples[i]); err != nil {
			return out, kg.AsError(err).At(fmt.Sprintf("triples[%d]", i))
		}
	}
	for i := range g.Unions {
		union, err := x.expandGroups(g.Unions[i], fmt.Sprintf("unions[%d]", i))
		if err != nil {
			return out, err
		}
		out.Unions = append(out.Unions, union)
	}
	var err error
	if out.Optional, err = x.expandGroups(g.Optional, "optional"); err == nil {
		out.NotExists, err = x.expandGroups(g.NotExists, "notExists")
	}
	return out, err
}

func (x *expander) expandGroups(list []Group, field string) ([]Group, error) {
	out := make([]Group, len(list))
	for i := range list {
		var err error
		if out[i], err = x.expandGroup(&list[i]); err != nil {
			return nil, kg.AsError(err).At(fmt.Sprintf("%s[%d]", field, i))
		}
	}
	return out, nil
}

// expandTriple adds a triple to a group and expands its path.
func (x *expander) expandTriple(g *Group, t Triple) error {
	if t.Path == nil {
		return x.addTriple(g, t)
	}
	switch f := t.Path.Form(); f.Kind {
	case path.Statement:
		return x.addStatement(g, t, f)
	case path.Sequence:
		for i, part := range f.Parts {
			step := t
			step.Path = part
			if i < len(f.Parts)-1 {
				t.Subject = x.freshVar()
				step.Object = t.Subject
			}
			if err := x.expandTriple(g, step); err != nil {
				return err
			}
		}
		return nil
	case path.Alternative:
		union := make([]Group, len(f.Parts))
		for i, part := range f.Parts {
			step := t
			step.Path = part
			if err := x.expandTriple(&union[i], step); err != nil {
				return err
			}
		}
		g.Unions = append(g.Unions, union)
		return x.countElement(g)
	}
	return x.addTriple(g, t)
}

// addStatement adds the triple that stands for a path of a single step.
func (x *expander) addStatement(g *Group, t Triple, f path.Form) error {
	t.Path = nil
	if f.Predicate.IsZero() {
		t.Predicate, t.except = x.freshVar(), f.Except
	} else {
		t.Predicate = Term(f.Predicate)
	}
	if !f.Inverted {
		return x.addTriple(g, t)
	}
	t.Subject, t.Object = t.Object, t.Subject
	if t.Subject.name != "" || len(t.Subject.terms) == 1 {
		return x.addTriple(g, t)
	}
	// Only an object can be one of several terms; of these, few are resources.
	var union []Group
	seen := map[kg.Term]bool{} // the terms are a set
	for _, term := range t.Subject.terms {
		if !term.IsResource() || seen[term] {
			continue
		}
		seen[term] = true
		one := t
		one.Subject = Term(term)
		var alternative Group
		if err := x.addTriple(&alternative, one); err != nil {
			return err
		}
		union = append(union, alternative)
	}
	g.Unions = append(g.Unions, union)
	return x.countElement(g)
}

func (x *expander) addTriple(g *Group, t Triple) error {
	g.Triples = append(g.Triples, t)
	return x.countElement(g)
}

// countElement counts one more triple or union against the limits.
func (x *expander) countElement(g *Group) error {
	if x.steps++; x.steps > x.maxSteps {
		return tooMany("triples after its paths are expanded", x.maxSteps)
	}
	if len(g.Triples)+len(g.Unions)+len(g.Texts) > maxElements {
		return tooMany("triples in one group after its paths are expanded", maxElements)
	}
	return nil
}

func (x *expander) freshVar() Node {
	x.fresh++
	return Var(fmt.Sprintf("%s%d", hiddenPrefix, x.fresh))
}
