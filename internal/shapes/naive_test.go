package shapes_test

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"

	"koine/kg"
)

// naive validates whole graphs directly by the text of SHACL, with lists and loops. It
// supports the features of the random shapes.
type naive struct {
	shapes, data triples
	validating   []openPair
	comparing    []openPair
	validations  int // number of validations of a node by a shape
}

// maxValidations is the limit at which the evaluator gives up: recursive shapes can make it
// follow every path through the data.
const maxValidations = 5_000

func (n *naive) gaveUp() bool { return n.validations > maxValidations }

type openPair struct{ node, shape kg.Term }

type triple struct{ s, p, o kg.Term }

type triples []triple

func triplesOf(quads []kg.Quad) (out triples) {
	for _, q := range quads {
		if t := (triple{q.Subject, q.Predicate, q.Object}); !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func (g triples) objects(s, p kg.Term) (out []kg.Term) {
	for _, t := range g {
		if t.s == s && t.p == p {
			out = append(out, t.o)
		}
	}
	return out
}

func (g triples) subjects(p, o kg.Term) (out []kg.Term) {
	for _, t := range g {
		if t.p == p && t.o == o {
			out = append(out, t.s)
		}
	}
	return out
}

func (g triples) list(head kg.Term) (out []kg.Term) {
	for head != kg.IRI(kg.RDF+"nil") {
		out = append(out, g.objects(head, kg.IRI(kg.RDF+"first"))[0])
		head = g.objects(head, kg.IRI(kg.RDF+"rest"))[0]
	}
	return out
}

func sh(name string) kg.Term { return kg.IRI("http://www.w3.org/ns/shacl#" + name) }

var (
	typeOf     = kg.IRI(kg.RDFType)
	subClassOf = kg.IRI("http://www.w3.org/2000/01/rdf-schema#subClassOf")
)

func distinct(list []kg.Term) (out []kg.Term) {
	for _, t := range list {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// path evaluates a path from one node.
func (n *naive) path(from, path kg.Term) []kg.Term {
	if path.Kind() == kg.KindIRI {
		return n.data.objects(from, path)
	}
	one := func(name string) (kg.Term, bool) {
		list := n.shapes.objects(path, sh(name))
		if len(list) == 0 {
			return kg.Term{}, false
		}
		return list[0], true
	}
	closure := func(at []kg.Term, inner kg.Term) []kg.Term {
		for i := 0; i < len(at); i++ {
			at = distinct(append(at, n.path(at[i], inner)...))
		}
		return at
	}
	if inner, ok := one("inversePath"); ok {
		if inner.Kind() != kg.KindIRI {
			// Try all nodes as starts.
			var out []kg.Term
			for _, x := range n.nodes() {
				if slices.Contains(n.path(x, inner), from) {
					out = append(out, x)
				}
			}
			return out
		}
		return n.data.subjects(inner, from)
	}
	if inner, ok := one("zeroOrMorePath"); ok {
		return closure([]kg.Term{from}, inner)
	}
	if inner, ok := one("oneOrMorePath"); ok {
		return closure(distinct(n.path(from, inner)), inner)
	}
	if inner, ok := one("zeroOrOnePath"); ok {
		return distinct(append([]kg.Term{from}, n.path(from, inner)...))
	}
	if head, ok := one("alternativePath"); ok {
		var out []kg.Term
		for _, inner := range n.shapes.list(head) {
			out = append(out, n.path(from, inner)...)
		}
		return distinct(out)
	}
	at := []kg.Term{from}
	for _, inner := range n.shapes.list(path) {
		var next []kg.Term
		for _, x := range at {
			next = append(next, n.path(x, inner)...)
		}
		at = distinct(next)
	}
	return at
}

func (n *naive) nodes() (out []kg.Term) {
	for _, t := range n.data {
		out = append(out, t.s, t.o)
	}
	return distinct(out)
}

func (n *naive) isA(node, class kg.Term) bool {
	classes := n.data.objects(node, typeOf)
	for i := 0; i < len(classes); i++ {
		classes = distinct(append(classes, n.data.objects(classes[i], subClassOf)...))
	}
	return slices.Contains(classes, class)
}

// fault is a violation of a shape.
type fault struct {
	id       string // equal before and after an update
	reported string // text in a report
	refuses  bool
	degree   int
	value    kg.Term
	each     []kg.Term // shapes that must all conform
	one      []kg.Term // shapes of which one must conform, and none does
}

// findings returns the violations of the shapes with targets.
func (n *naive) findings() map[string]fault {
	out := map[string]fault{}
	for _, t := range n.shapes {
		if t.s.Kind() != kg.KindIRI || t.p != typeOf {
			continue
		}
		for _, node := range append(n.nodes(), n.shapes.objects(t.s, sh("targetNode"))...) {
			if !n.isTarget(node, t.s) {
				continue
			}
			for _, f := range n.validate(node, t.s) {
				f.reported = fmt.Sprintf("%s %s %s", t.s, node, f.reported)
				out[fmt.Sprintf("%s %s %s", t.s, node, f.id)] = f
			}
		}
	}
	return out
}

// brings reports whether the fault is new in n, or worse than the fault with the same id in before.
func (n *naive) brings(f, old fault, found bool, before *naive) bool {
	if !found || f.degree > old.degree {
		return true
	}
	worse := func(shape kg.Term) bool {
		at := openPair{f.value, shape}
		if slices.Contains(n.comparing, at) {
			return false
		}
		n.comparing = append(n.comparing, at)
		defer func() { n.comparing = n.comparing[:len(n.comparing)-1] }()
		then := map[string]fault{}
		for _, f := range before.validate(f.value, shape) {
			then[f.id] = f
		}
		return slices.ContainsFunc(n.validate(f.value, shape), func(f fault) bool {
			old, found := then[f.id]
			return n.brings(f, old, found, before)
		})
	}
	return slices.ContainsFunc(f.each, worse) ||
		len(f.one) > 0 && !slices.ContainsFunc(f.one, func(s kg.Term) bool { return !worse(s) })
}

func (n *naive) isTarget(node, shape kg.Term) bool {
	if slices.Contains(n.shapes.objects(shape, sh("targetNode")), node) {
		return true
	}
	for _, c := range n.shapes.objects(shape, sh("targetClass")) {
		if n.isA(node, c) {
			return true
		}
	}
	for _, p := range n.shapes.objects(shape, sh("targetSubjectsOf")) {
		if len(n.data.objects(node, p)) > 0 {
			return true
		}
	}
	for _, p := range n.shapes.objects(shape, sh("targetObjectsOf")) {
		if len(n.data.subjects(p, node)) > 0 {
			return true
		}
	}
	return false
}

func (n *naive) conforms(node, shape kg.Term) bool { return len(n.validate(node, shape)) == 0 }

func (n *naive) count(list []kg.Term, holds func(kg.Term) bool) (count int) {
	for _, t := range list {
		if holds(t) {
			count++
		}
	}
	return count
}

// validate returns the findings for one focus node.
//
// A node that is being validated by a shape counts as conforming to it.
func (n *naive) validate(focus, shape kg.Term) (out []fault) {
	at := openPair{focus, shape}
	if n.validations++; slices.Contains(n.validating, at) || n.gaveUp() {
		return nil
	}
	n.validating = append(n.validating, at)
	defer func() { n.validating = n.validating[:len(n.validating)-1] }()
	get := func(name string) []kg.Term { return n.shapes.objects(shape, sh(name)) }
	if on := get("deactivated"); len(on) > 0 && on[0] == kg.Boolean(true) {
		return nil
	}
	values := []kg.Term{focus}
	if path := get("path"); len(path) > 0 {
		values = n.path(focus, path[0])
	}
	severity := sh("Violation")
	if s := get("severity"); len(s) > 0 {
		severity = s[0]
	}
	// parameter has the shape's values for the component: there may be several.
	say := func(component string, parameter, value kg.Term, aspect string, degree int) *fault {
		out = append(out, fault{
			id:       fmt.Sprintf("%s %s %s %s %s %s", focus, shape, component, parameter, value, aspect),
			reported: fmt.Sprintf("%s %s http://www.w3.org/ns/shacl#%sConstraintComponent %s", focus, severity, component, value),
			refuses:  severity == sh("Violation"), degree: degree, value: value,
		})
		return &out[len(out)-1]
	}
	each := func(component string, parameter kg.Term, holds func(v kg.Term) bool) {
		for _, v := range values {
			if !holds(v) {
				say(component, parameter, v, "", 0)
			}
		}
	}
	number := func(t kg.Term) int { i, _ := strconv.Atoi(t.Value()); return i }
	for _, c := range get("class") {
		each("Class", c, func(v kg.Term) bool { return n.isA(v, c) })
	}
	for _, c := range get("datatype") {
		each("Datatype", c, func(v kg.Term) bool { return v.Datatype() == c.Value() && v.FitsDatatype() })
	}
	for _, c := range get("nodeKind") {
		each("NodeKind", c, func(v kg.Term) bool { return (c == sh("IRI")) == (v.Kind() == kg.KindIRI) })
	}
	for _, c := range get("minCount") {
		if len(values) < number(c) {
			say("MinCount", c, kg.Term{}, "", number(c)-len(values))
		}
	}
	for _, c := range get("maxCount") {
		if len(values) > number(c) {
			say("MaxCount", c, kg.Term{}, "", len(values)-number(c))
		}
	}
	for _, c := range get("minInclusive") {
		each("MinInclusive", c, func(v kg.Term) bool { o, ok := naiveCompare(v, c); return ok && o >= 0 })
	}
	for _, c := range get("pattern") {
		each("Pattern", c, func(v kg.Term) bool { return regexp.MustCompile(c.Value()).MatchString(v.Value()) })
	}
	for _, c := range get("in") {
		each("In", c, func(v kg.Term) bool { return slices.Contains(n.shapes.list(c), v) })
	}
	for _, c := range get("hasValue") {
		if !slices.Contains(values, c) {
			say("HasValue", c, kg.Term{}, "", 0)
		}
	}
	for range get("uniqueLang") {
		seen := map[string]int{}
		for _, v := range values {
			seen[v.Lang()]++
		}
		for lang, n := range seen {
			if lang != "" && n > 1 {
				say("UniqueLang", kg.Term{}, kg.Term{}, lang, n)
			}
		}
	}
	for _, c := range get("equals") {
		others := n.data.objects(focus, c)
		each("Equals", c, func(v kg.Term) bool { return slices.Contains(others, v) })
		for _, o := range others {
			if !slices.Contains(values, o) {
				say("Equals", c, o, "", 0)
			}
		}
	}
	for _, c := range get("disjoint") {
		each("Disjoint", c, func(v kg.Term) bool { return !slices.Contains(n.data.objects(focus, c), v) })
	}
	for _, c := range get("lessThan") {
		for _, v := range values {
			above := n.count(n.data.objects(focus, c), func(o kg.Term) bool { r, ok := naiveCompare(v, o); return !ok || r >= 0 })
			if above > 0 {
				say("LessThan", c, v, "", above)
			}
		}
	}
	for range get("closed") {
		allowed := n.shapes.list(get("ignoredProperties")[0])
		for _, p := range get("property") {
			allowed = append(allowed, n.shapes.objects(p, sh("path"))...)
		}
		for _, v := range values {
			for _, t := range n.data {
				if t.s == v && !slices.Contains(allowed, t.p) {
					say("Closed", kg.Term{}, t.o, t.p.Value(), 0)
				}
			}
		}
	}
	for _, c := range get("property") {
		for _, v := range values {
			out = append(out, n.validate(v, c)...)
		}
	}
	for _, c := range get("node") {
		for _, v := range values {
			if !n.conforms(v, c) {
				say("Node", c, v, "", 0).each = []kg.Term{c}
			}
		}
	}
	for _, c := range get("not") {
		each("Not", c, func(v kg.Term) bool { return !n.conforms(v, c) })
	}
	for _, name := range []string{"and", "or", "xone"} {
		for _, head := range get(name) {
			parts := n.shapes.list(head)
			for _, v := range values {
				k := n.count(parts, func(s kg.Term) bool { return n.conforms(v, s) })
				switch {
				case name == "and" && k < len(parts):
					say("And", head, v, "", 0).each = parts
				case name == "or" && k == 0:
					say("Or", head, v, "", 0).one = parts
				case name == "xone" && k == 0:
					say("Xone", head, v, "none", 0).one = parts
				case name == "xone" && k > 1:
					say("Xone", head, v, "several", k)
				}
			}
		}
	}
	for _, c := range get("qualifiedValueShape") {
		k := n.count(values, func(v kg.Term) bool { return n.conforms(v, c) })
		for _, least := range get("qualifiedMinCount") {
			if k < number(least) {
				say("QualifiedMinCount", c, kg.Term{}, "", number(least)-k)
			}
		}
		for _, limit := range get("qualifiedMaxCount") {
			if k > number(limit) {
				say("QualifiedMaxCount", c, kg.Term{}, "", k-number(limit))
			}
		}
	}
	return out
}

// naiveCompare compares integers and plain strings.
func naiveCompare(a, b kg.Term) (int, bool) {
	switch {
	case a.Datatype() != b.Datatype():
		return 0, false
	case a.Datatype() == kg.XSDString:
		return cmp.Compare(a.Value(), b.Value()), true
	case a.Datatype() == kg.XSDInteger:
		x, _ := new(big.Int).SetString(a.Value(), 10)
		y, _ := new(big.Int).SetString(b.Value(), 10)
		return x.Cmp(y), true
	}
	return 0, false
}
