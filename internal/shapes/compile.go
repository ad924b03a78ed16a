package shapes

import (
	"slices"
	"strings"

	"koine/kg"
)

// Bounds of what is compiled.
const (
	MaxShapes    = 10_000 // with those inside of others
	MaxNesting   = 32     // of shapes in each other, and of paths
	MaxReads     = 10_000 // different things that one shape with targets looks up
	MaxPathSteps = 1_000  // of paths that are more than a property
)

// set is all shapes, compiled. It never changes.
type set struct {
	roots   []*shape // those with targets that are not deactivated, in order
	all     []*shape // in order, without those inside of others that have no name
	index   index
	since   kg.Revision // from which on they are known to have been in force
	issues  []issue     // what is not judged, or is no SHACL
	leftOut []LeftOut   // the same for people
}

// compile makes shapes of the statements of the shapes graph. What cannot be judged
// is left out and among the issues; what passes a bound is an error.
//
// What is left out never makes a shape refuse more: what it would make stricter is
// left out as well (see leaveOutAround).
func compile(d document) (*set, error) {
	c := newCompiler(d)
	c.survey()
	out := &set{index: index{by: map[kg.Term][]*dependency{}, uses: map[*shape][]use{}}}
	for _, subject := range d.subjects() {
		if c.covered[subject] || !c.isShape(subject) {
			continue
		}
		s, err := c.top(subject)
		if err != nil {
			return nil, err
		}
		if subject.Kind() == kg.KindIRI || !s.targets.none() {
			out.all = append(out.all, s)
		}
	}
	c.leaveOutAround()
	for _, s := range out.all {
		if s.root = !s.targets.none() && !s.deactivated && !s.void; s.root {
			out.roots = append(out.roots, s)
		}
	}
	for _, s := range markRecursive(out.roots) {
		if !s.root && !s.recursive {
			continue
		}
		r, err := readsOf(s, s.root)
		if err != nil {
			return nil, err
		}
		out.index.add(r)
	}
	if out.issues = c.issues; len(c.issues) > 0 {
		out.leftOut = placesIn(d).list(c.issues)
	}
	return out, nil
}

// compileWhole is compile of what must not have anything that is left out.
func compileWhole(d document) (*set, error) {
	s, err := compile(d)
	if err == nil && len(s.issues) > 0 {
		return nil, placesIn(d).refuse(s.issues)
	}
	return s, err
}

type compiler struct {
	doc        document
	parameters map[string]parameter
	kinds      map[kg.Term][]kg.Term // of a class: what of SHACL and RDFS it is or is below
	custom     map[kg.Term]kg.Term   // parameters of constraint components to the component
	covered    map[kg.Term]bool      // parts of what is not judged
	shapes     map[kg.Term]*shape
	queue      []*shape // that have a name and are not built
	steps      int      // of paths that may still come
	noted      map[issueKey]bool
	issues     []issue
	over       error // a bound that was passed
}

func newCompiler(d document) *compiler {
	return &compiler{
		doc: d, parameters: parameters(), kinds: kindsOf(d), shapes: map[kg.Term]*shape{}, steps: MaxPathSteps,
		custom: map[kg.Term]kg.Term{}, covered: map[kg.Term]bool{}, noted: map[issueKey]bool{},
	}
}

// passed notes that a bound of all shapes was passed.
func (c *compiler) passed(format string, args ...any) error {
	if c.over == nil {
		c.over = tooMuch(format, args...)
	}
	return c.over
}

// isA tells whether the node is an instance of a class of SHACL or RDFS, by the
// classes of the document (SHACL, section 1.1).
func (c *compiler) isA(node, class kg.Term) bool {
	for _, t := range c.doc[node][rdfType] {
		if slices.Contains(c.kinds[t], class) {
			return true
		}
	}
	return false
}

// isShape tells whether the subject is meant as a shape by itself.
func (c *compiler) isShape(subject kg.Term) bool {
	for _, class := range []string{"NodeShape", "PropertyShape"} {
		if c.isA(subject, shTerm(class)) {
			return true
		}
	}
	for p := range c.doc[subject] {
		name, ours := strings.CutPrefix(p.Value(), sh)
		if ours && (strings.HasPrefix(name, "target") || c.parameters[name].make != nil || name == "property" || name == "path") {
			return true
		}
	}
	return false
}

// top compiles a shape that stands by itself, with those that it leads to.
func (c *compiler) top(id kg.Term) (*shape, error) {
	s, err := c.shape(id, 0)
	for len(c.queue) > 0 && c.over == nil {
		next := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		c.build(next, 0)
	}
	return s, cmpErr(c.over, err)
}

// shape compiles one shape once. One with a name is built later, so that depth is
// that of shapes without one in each other.
func (c *compiler) shape(id kg.Term, depth int) (*shape, error) {
	if s, begun := c.shapes[id]; begun {
		return s, nil
	}
	if depth > MaxNesting {
		return nil, c.passed("%s: shapes are more than %d deep in each other", id, MaxNesting)
	}
	if len(c.shapes) >= MaxShapes {
		return nil, c.passed("there are more than %d shapes", MaxShapes)
	}
	if !id.IsResource() {
		return nil, invalid("%s is no shape", id)
	}
	s := &shape{id: id, severity: Violation}
	c.shapes[id] = s
	if err := c.path(s); err != nil {
		s.void, s.weak = true, true
	}
	if id.Kind() == kg.KindIRI {
		c.queue = append(c.queue, s)
	} else {
		c.build(s, depth)
	}
	return s, c.over
}

// build compiles what the properties of a shape say.
func (c *compiler) build(s *shape, depth int) {
	for _, predicate := range c.doc.properties(s.id) {
		if c.over != nil {
			return
		}
		name, ours := strings.CutPrefix(predicate.Value(), sh)
		switch {
		case !ours:
			c.customConstraint(s, predicate)
		case described[name]:
		case ofPaths[name]:
			c.note(s.id, predicate, invalid("it is a property of paths, not of shapes"))
		case ofShapes[name]:
			c.property(s, name)
		case c.parameters[name].make != nil:
			c.constraint(s, name, depth)
		case unjudged[name] == "":
			c.note(s.id, predicate, errNoTerm)
			s.weak = true
		case !harmless[name]: // noted by survey
			s.weak = true
		}
	}
	c.implicitTarget(s)
	if s.void {
		s.constraints = nil
	}
}

// implicitTarget: a shape that is a class is for its instances (SHACL, section
// 2.1.3.3).
func (c *compiler) implicitTarget(s *shape) {
	if !c.isA(s.id, kg.IRI(rdfs+"Class")) && !c.isA(s.id, kg.IRI(owl+"Class")) || slices.Contains(s.targets.classes, s.id) {
		return
	}
	if s.id.Kind() != kg.KindIRI {
		c.note(s.id, kg.Term{}, invalid("a shape that is a class has a name"))
		return
	}
	s.targets.classes = append(s.targets.classes, s.id)
}

// path reads sh:path, which makes a property shape of a shape.
func (c *compiler) path(s *shape) error {
	values := c.doc.objects(s.id, shTerm("path"))
	err := func() error {
		switch {
		case len(values) == 0 && c.isA(s.id, shTerm("PropertyShape")):
			return invalid("a property shape needs an sh:path")
		case len(values) > 1:
			return invalid("a shape has one sh:path at most")
		case len(values) == 1 && c.isA(s.id, shTerm("NodeShape")):
			return invalid("a node shape has no sh:path")
		}
		return nil
	}()
	if err != nil {
		c.note(s.id, kg.Term{}, err)
		return err
	}
	if len(values) == 0 {
		return nil
	}
	if s.way, err = c.way(values[0], 0); err != nil {
		s.way = nil
		c.note(s.id, shTerm("path"), err)
	}
	return err
}

// property reads a property of a shape that is no constraint.
func (c *compiler) property(s *shape, name string) {
	values := c.doc.objects(s.id, shTerm(name))
	note := func(err error) {
		if err != nil {
			c.note(s.id, shTerm(name), err)
		}
	}
	switch name {
	case "targetNode":
		s.targets.nodes = values
		for _, v := range values {
			if v.Kind() == kg.KindBlank {
				note(invalid("a blank node is no target: no data can have it"))
			}
		}
	case "targetClass", "targetSubjectsOf", "targetObjectsOf":
		list := map[string]*[]kg.Term{"targetClass": &s.targets.classes, "targetSubjectsOf": &s.targets.subjectsOf, "targetObjectsOf": &s.targets.objectsOf}[name]
		for _, v := range values {
			if err := onlyIRIs([]kg.Term{v}); err != nil {
				note(err)
			} else if !slices.Contains(*list, v) {
				*list = append(*list, v)
			}
		}
	case "severity":
		if err := cmpErr(one(values), onlyIRIs(values)); err != nil {
			note(err)
			s.void, s.weak = true, true
			return
		}
		if s.severity = values[0]; strings.HasPrefix(s.severity.Value(), sh) && s.severity != Violation && s.severity != Warning && s.severity != Info {
			note(invalid("there is no severity %s: it counts as sh:Violation", qname(s.severity)))
		}
	case "deactivated":
		on, err := flag(values)
		if err != nil {
			note(err)
			s.void, s.weak = true, true
		} else if v := values[0].Value(); v != "true" && v != "false" {
			note(invalid("%s is written neither as true nor as false: it counts as false", values[0]))
		}
		s.deactivated = on
	case "message":
		s.message = preferred(values)
		for _, v := range values {
			if !isText(v) && v.Lang() == "" {
				note(invalid("%s is no text: it is told as it is", v))
			}
		}
	case "ignoredProperties":
		_, err := c.ignoredProperties(s)
		note(err)
	case "qualifiedMinCount", "qualifiedMaxCount":
		note(one(values))
	}
}

// isText tells whether the term is a literal of xsd:string.
func isText(t kg.Term) bool { return t.IsLiteral() && t.Datatype() == kg.XSDString }

// constraint compiles the constraints of a parameter.
func (c *compiler) constraint(s *shape, name string, depth int) {
	predicate, p := shTerm(name), c.parameters[name]
	values := c.doc.objects(s.id, predicate)
	lose := func(err error) {
		c.note(s.id, predicate, err)
		s.weak = true
	}
	switch {
	case p.onPath && s.way == nil:
		if !s.void {
			lose(invalid("only a property shape can have it"))
		}
		return
	case !p.many && len(values) > 1:
		lose(invalid("it can be given once only"))
		return
	}
	for _, value := range values {
		list, err := p.make(c, s, value, depth)
		if c.over != nil {
			return
		}
		if err != nil {
			lose(err)
			continue
		}
		s.constraints = append(s.constraints, list...)
	}
}

// customConstraint notes a constraint of a component that is not judged.
func (c *compiler) customConstraint(s *shape, predicate kg.Term) {
	if component, ok := c.custom[predicate]; ok {
		c.note(s.id, predicate, invalid("a constraint of %s, which is not judged", component))
		s.weak = true
	}
}

// preferred is the message for people who did not say their language.
func preferred(values []kg.Term) string {
	best := values[0]
	for _, v := range values {
		if v.Lang() == "" || v.Lang() == "en" && best.Lang() != "" {
			best = v
		}
	}
	return best.Value()
}

func one(values []kg.Term) error {
	if len(values) > 1 {
		return invalid("it can be given once only")
	}
	return nil
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func onlyIRIs(values []kg.Term) error {
	for _, v := range values {
		if v.Kind() != kg.KindIRI {
			return invalid("%s is no IRI", v)
		}
	}
	return nil
}

func flag(values []kg.Term) (bool, error) {
	if err := one(values); err != nil {
		return false, err
	}
	if values[0].Datatype() != kg.XSDBoolean {
		return false, invalid("%s is neither true nor false", values[0])
	}
	return values[0].Value() == "true", nil
}

// way compiles a path (SHACL, section 2.3.1).
func (c *compiler) way(at kg.Term, depth int) (way, error) {
	if at.Kind() == kg.KindIRI && at != rdfNil && depth == 0 {
		return link{predicate: at}, nil
	}
	if c.steps--; c.steps < 0 {
		return nil, c.passed("paths have more than %d steps", MaxPathSteps)
	}
	if depth > MaxNesting {
		return nil, c.passed("a path is more than %d deep", MaxNesting)
	}
	if at.Kind() == kg.KindIRI && at != rdfNil {
		return link{predicate: at}, nil
	}
	of := c.doc[at]
	if len(of[rdfFirst]) > 0 {
		list, err := c.ways(at, depth)
		return sequence(list), err
	}
	if len(of) != 1 {
		return nil, invalid("%s is no path", at)
	}
	for predicate, values := range of {
		name := strings.TrimPrefix(predicate.Value(), sh)
		if len(values) != 1 {
			return nil, invalid("sh:%s is of one path", name)
		}
		if name == "alternativePath" {
			list, err := c.ways(values[0], depth)
			return alternative(list), err
		}
		w, err := c.way(values[0], depth+1)
		if err != nil {
			return nil, err
		}
		switch name {
		case "inversePath":
			return w.back(), nil
		case "zeroOrMorePath":
			return repeat{w, 0}, nil
		case "oneOrMorePath":
			return repeat{w, 1}, nil
		case "zeroOrOnePath":
			return optional{w}, nil
		}
	}
	return nil, invalid("%s is no path", at)
}

func (c *compiler) ways(head kg.Term, depth int) ([]way, error) {
	list, err := c.doc.list(head)
	if err != nil {
		return nil, err
	}
	if len(list) < 2 {
		return nil, invalid("a sequence or an alternative has two parts at least")
	}
	out := make([]way, len(list))
	for i, t := range list {
		if out[i], err = c.way(t, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func tooMuch(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...)
}
