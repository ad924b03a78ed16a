package shapes

import (
	"slices"
	"strings"

	"koine/kg"
)

// kindsOf lists for each class of a document which classes of SHACL and RDFS it is
// or is below.
func kindsOf(d document) map[kg.Term][]kg.Term {
	below := map[kg.Term][]kg.Term{}
	roots := map[kg.Term]bool{kg.IRI(rdfs + "Class"): true, kg.IRI(owl + "Class"): true}
	for s, of := range d {
		for _, class := range of[subClassOf] {
			below[class] = append(below[class], s)
		}
		for _, class := range slices.Concat(of[subClassOf], of[rdfType]) {
			if strings.HasPrefix(class.Value(), sh) {
				roots[class] = true
			}
		}
	}
	kinds := map[kg.Term][]kg.Term{}
	for root := range roots {
		var reached nodes
		for level := reached.add([]kg.Term{root}); len(level) > 0; {
			var next []kg.Term
			for _, class := range level {
				next = append(next, below[class]...)
			}
			level = reached.add(next)
		}
		for _, class := range reached.list {
			kinds[class] = append(kinds[class], root)
		}
	}
	return kinds
}

// errNoTerm is what is said of a property.
var errNoTerm error = invalid("there is no such term in SHACL")

// isData tells whether a subject is no shape and says something in another
// vocabulary: shapes and data may stand in one document.
func (c *compiler) isData(s kg.Term) bool {
	if c.isShape(s) {
		return false
	}
	for p := range c.doc[s] {
		if v := p.Value(); !strings.HasPrefix(v, sh) && !strings.HasPrefix(v, rdfs) && !strings.HasPrefix(v, kg.RDF) {
			return true
		}
	}
	return false
}

// survey notes what of the vocabulary of SHACL and its extensions stands in the
// document and is not judged, wherever it stands, and what is no term of it.
func (c *compiler) survey() {
	subjects := c.doc.subjects()
	for _, s := range subjects {
		c.cover(s)
	}
	for _, s := range subjects {
		if c.covered[s] || strings.HasPrefix(s.Value(), sh) { // the vocabulary's own description
			continue
		}
		class := c.unjudgedClass(s)
		for _, p := range c.doc.properties(s) {
			if reason := c.unjudgedProperty(p, class); reason != nil && (reason != errNoTerm || !c.isData(s)) {
				c.note(s, p, reason)
			}
		}
	}
}

// unjudgedClass notes that the subject is an instance of what is not judged, or of
// no class that there is, and gives that class.
func (c *compiler) unjudgedClass(s kg.Term) (found string) {
	for _, t := range c.doc.objects(s, rdfType) {
		for _, kind := range c.kinds[t] {
			name, ours := strings.CutPrefix(kind.Value(), sh)
			switch {
			case !ours || classes[name] || found != "":
			case unjudgedClasses[name] != "":
				c.note(s, kind, invalid("%s, which is not judged", unjudgedClasses[name]))
				found = name
			default:
				c.note(s, kind, invalid("there is no such class in SHACL"))
				found = name
			}
		}
	}
	return found
}

// unjudgedProperty gives the reason why a property is not judged, nil for none. What
// a subject has of a class that is not judged itself is not told again.
func (c *compiler) unjudgedProperty(p kg.Term, class string) error {
	name, ours := strings.CutPrefix(p.Value(), sh)
	switch {
	case p == imports:
		return invalid("a link to further shapes, which is not followed: put them too")
	case !ours || described[name] || ofShapes[name] || ofPaths[name] || c.parameters[name].make != nil:
		return nil
	case unjudged[name] == "":
		return errNoTerm
	case class != "":
		return nil
	}
	return invalid("%s, which is not judged", unjudged[name])
}

// cover marks what belongs to something that is not judged, so that it is told once,
// and collects the parameters of constraint components.
func (c *compiler) cover(s kg.Term) {
	component := c.isA(s, shTerm("ConstraintComponent"))
	for _, name := range []string{"validator", "nodeValidator", "propertyValidator"} {
		component = component || len(c.doc[s][shTerm(name)]) > 0
	}
	for p, values := range c.doc[s] {
		name, ours := strings.CutPrefix(p.Value(), sh)
		if !ours || unjudged[name] == "" || harmless[name] && name != "target" && name != "rule" {
			continue
		}
		for _, v := range values {
			if component && name == "parameter" && !c.doc.has(v, shTerm("optional"), kg.Boolean(true)) {
				for _, path := range c.doc[v][shTerm("path")] {
					c.custom[path] = s
				}
			}
			c.coverAll(v)
		}
	}
}

// coverAll marks a node and the blank nodes that it leads to. A shape that stands by
// itself is left.
func (c *compiler) coverAll(node kg.Term) {
	if c.covered[node] || !node.IsResource() || c.isA(node, shTerm("NodeShape")) || c.isA(node, shTerm("PropertyShape")) {
		return
	}
	c.covered[node] = true
	for _, values := range c.doc[node] {
		for _, v := range values {
			if v.Kind() == kg.KindBlank {
				c.coverAll(v)
			}
		}
	}
}

// leaveOutAround leaves out what would mean something else without what is left out
// inside of it: sh:not, sh:xone and qualified shapes. What is left of the other
// constraints refuses less than all of it, and what it refuses all of it does.
func (c *compiler) leaveOutAround() {
	around := map[*shape][]*shape{} // the shapes that have one inside
	var weak []*shape
	for _, s := range c.shapes {
		for _, x := range s.constraints {
			for _, inside := range insideOf(x) {
				around[inside] = append(around[inside], s)
			}
		}
		if s.weak {
			weak = append(weak, s)
		}
	}
	for len(weak) > 0 {
		s := weak[len(weak)-1]
		weak = weak[:len(weak)-1]
		for _, outer := range around[s] {
			if !outer.weak {
				outer.weak = true
				weak = append(weak, outer)
			}
		}
	}
	for _, id := range c.doc.subjects() {
		if s := c.shapes[id]; s != nil && s.weak {
			s.constraints = slices.DeleteFunc(s.constraints, func(x constraint) bool { return c.meansOther(s, x) })
		}
	}
}

// meansOther tells whether a constraint means something else because a shape inside
// of it is weak, and notes it.
func (c *compiler) meansOther(s *shape, x constraint) bool {
	if growing(x) || !slices.ContainsFunc(insideOf(x), func(inside *shape) bool { return inside.weak }) {
		return false
	}
	name := map[string]string{"NotConstraintComponent": "not", "XoneConstraintComponent": "xone"}[x.component()]
	if name == "" {
		name = "qualifiedValueShape"
	}
	c.note(s.id, shTerm(name), invalid("what is left out inside of it would change what it says"))
	return true
}

// insideOf lists the shapes for values that a constraint is made of.
func insideOf(x constraint) []*shape {
	switch x := x.(type) {
	case propertyConstraint:
		return x.shapes
	case logicalConstraint:
		return x.shapes
	case qualifiedConstraint:
		return slices.Concat(x.shapes, x.siblings)
	}
	return nil
}

// growing tells whether a constraint that holds still does when more nodes conform
// to the shapes inside of it.
func growing(x constraint) bool {
	switch x := x.(type) {
	case logicalConstraint:
		return x.named != "Not" && x.named != "Xone"
	case qualifiedConstraint:
		return x.least && len(x.siblings) == 0
	}
	return true
}
