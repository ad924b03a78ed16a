package shapes

import (
	"slices"
	"strings"

	"koine/kg"
)

// kindsOf returns, for each class of a document, the SHACL and RDFS classes that it is or
// extends.
func kindsOf(d document) map[kg.Term][]kg.Term {
	below := map[kg.Term][]kg.Term{}
	roots := map[kg.Term]bool{kg.IRI(rdfs + "Class"): true, kg.IRI(owl + "Class"): true}
	for s, properties := range d {
		for _, class := range properties[subClassOf] {
			below[class] = append(below[class], s)
		}
		for _, class := range slices.Concat(properties[subClassOf], properties[rdfType]) {
			if strings.HasPrefix(class.Value(), sh) {
				roots[class] = true
			}
		}
	}
	kinds := map[kg.Term][]kg.Term{}
	for root := range roots {
		var reached nodeSet
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

// errNoTerm is the error for an unknown property.
var errNoTerm error = invalid("SHACL does not define this term")

// isData reports whether a subject is not a shape but described in another vocabulary:
// shapes and data may share a document.
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

// recordUnsupported records the unsupported terms of SHACL and its extensions in the document, and
// unknown terms of these vocabularies.
func (c *compiler) recordUnsupported() {
	subjects := c.doc.sortedSubjects()
	for _, s := range subjects {
		c.coverNode(s)
	}
	for _, s := range subjects {
		if c.covered[s] || strings.HasPrefix(s.Value(), sh) { // the vocabulary itself
			continue
		}
		class := c.recordUnsupportedClass(s)
		for _, p := range c.doc.sortedProperties(s) {
			if reason := c.unsupportedReason(p, class); reason != nil && (reason != errNoTerm || !c.isData(s)) {
				c.recordIssue(s, p, reason)
			}
		}
	}
}

// recordUnsupportedClass records that the subject is an instance of an unsupported or unknown
// class, and returns the class.
func (c *compiler) recordUnsupportedClass(s kg.Term) (found string) {
	for _, t := range c.doc.sortedObjects(s, rdfType) {
		for _, kind := range c.kinds[t] {
			name, ours := strings.CutPrefix(kind.Value(), sh)
			switch {
			case !ours || classes[name] || found != "":
			case unsupportedClasses[name] != "":
				c.recordIssue(s, kind, invalid("%s, which is not supported", unsupportedClasses[name]))
				found = name
			default:
				c.recordIssue(s, kind, invalid("SHACL does not define this class"))
				found = name
			}
		}
	}
	return found
}

// unsupportedReason returns the reason why a property is unsupported, nil for none. The
// properties of an instance of an unsupported class are not recorded again.
func (c *compiler) unsupportedReason(p kg.Term, class string) error {
	name, ours := strings.CutPrefix(p.Value(), sh)
	switch {
	case p == imports:
		return invalid("links to further shapes are not followed; put those shapes as well")
	case !ours || descriptiveProperties[name] || shapeProperties[name] || pathProperties[name] || c.parameters[name].compile != nil:
		return nil
	case unsupportedProperties[name] == "":
		return errNoTerm
	case class != "":
		return nil
	}
	return invalid("%s, which is not supported", unsupportedProperties[name])
}

// coverNode marks the parts of an unsupported node, so that it is recorded once, and collects
// the parameters of constraint components.
func (c *compiler) coverNode(s kg.Term) {
	component := c.isA(s, shTerm("ConstraintComponent"))
	for _, name := range []string{"validator", "nodeValidator", "propertyValidator"} {
		component = component || len(c.doc[s][shTerm(name)]) > 0
	}
	for p, values := range c.doc[s] {
		name, ours := strings.CutPrefix(p.Value(), sh)
		if !ours || unsupportedProperties[name] == "" || harmless[name] && name != "target" && name != "rule" {
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

// coverAll marks a node and the blank nodes that it references, except shapes of their
// own.
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

// leaveOutAround omits the constraints that would become stricter without an omitted
// nested part: sh:not, sh:xone and qualified shapes. All other constraints become weaker
// or stay the same when a part is omitted.
func (c *compiler) leaveOutAround() {
	around := map[*shape][]*shape{} // shapes by nested shape
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
	for _, id := range c.doc.sortedSubjects() {
		if s := c.shapes[id]; s != nil && s.weak {
			s.constraints = slices.DeleteFunc(s.constraints, func(x constraint) bool { return c.changesMeaning(s, x) })
		}
	}
}

// changesMeaning reports whether a constraint would become stricter because a nested shape is
// weak, and records it.
func (c *compiler) changesMeaning(s *shape, x constraint) bool {
	if isMonotone(x) || !slices.ContainsFunc(insideOf(x), func(inside *shape) bool { return inside.weak }) {
		return false
	}
	name := map[string]string{"NotConstraintComponent": "not", "XoneConstraintComponent": "xone"}[x.componentName()]
	if name == "" {
		name = "qualifiedValueShape"
	}
	c.recordIssue(s.id, shTerm(name), invalid("an omitted nested part would change its meaning"))
	return true
}

// insideOf returns the shapes for value nodes in a constraint.
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

// isMonotone reports whether a satisfied constraint stays satisfied when more nodes conform
// to its nested shapes.
func isMonotone(x constraint) bool {
	switch x := x.(type) {
	case logicalConstraint:
		return x.named != "Not" && x.named != "Xone"
	case qualifiedConstraint:
		return x.least && len(x.siblings) == 0
	}
	return true
}
