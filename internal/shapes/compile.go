package shapes

import (
	"cmp"
	"slices"
	"strings"

	"koine/kg"
)

// Limits of the compiler.
const (
	MaxShapes    = 10_000 // including nested shapes
	MaxNesting   = 32     // of shapes and of paths
	MaxReads     = 10_000 // dependencies of one shape with targets
	MaxPathSteps = 1_000  // of paths longer than one property
)

// shapeSet is the compiled form of all shapes. It is immutable.
type shapeSet struct {
	roots   []*shape // active shapes with targets, sorted
	all     []*shape // sorted, without nested anonymous shapes
	index   index
	since   kg.Revision // first revision known to be validated by them
	issues  []issue     // unsupported or invalid parts
	leftOut []LeftOut   // issues in the form of LeftOut
}

// compileShapes compiles the shapes graph. Unsupported parts are omitted and recorded as
// issues; exceeding a limit is an error.
//
// Omitting a part never makes a shape stricter: constraints that would become stricter
// are omitted as well (see leaveOutAround).
func compileShapes(d document) (*shapeSet, error) {
	c := newCompiler(d)
	c.recordUnsupported()
	out := &shapeSet{index: index{by: map[kg.Term][]*dependency{}, uses: map[*shape][]use{}}}
	for _, subject := range d.sortedSubjects() {
		if c.covered[subject] || !c.isShape(subject) {
			continue
		}
		s, err := c.compileTop(subject)
		if err != nil {
			return nil, err
		}
		if subject.Kind() == kg.KindIRI || !s.targets.isEmpty() {
			out.all = append(out.all, s)
		}
	}
	c.leaveOutAround()
	for _, s := range out.all {
		if s.root = !s.targets.isEmpty() && !s.deactivated && !s.invalid; s.root {
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
		out.leftOut = newLocator(d).listIssues(c.issues)
	}
	return out, nil
}

// compileWhole is compile for shapes in which nothing may be omitted.
func compileWhole(d document) (*shapeSet, error) {
	s, err := compileShapes(d)
	if err == nil && len(s.issues) > 0 {
		return nil, newLocator(d).errorFor(s.issues)
	}
	return s, err
}

type compiler struct {
	doc        document
	parameters map[string]parameter
	kinds      map[kg.Term][]kg.Term // the SHACL and RDFS classes that each class is or extends
	custom     map[kg.Term]kg.Term   // parameters of constraint components to the component
	covered    map[kg.Term]bool      // parts of unsupported nodes
	shapes     map[kg.Term]*shape
	pending    []*shape // named shapes to build
	steps      int      // path steps left
	recorded   map[issueKey]bool
	issues     []issue
	limitErr   error // the first limit that was exceeded
}

func newCompiler(d document) *compiler {
	return &compiler{
		doc: d, parameters: coreParameters(), kinds: kindsOf(d), shapes: map[kg.Term]*shape{}, steps: MaxPathSteps,
		custom: map[kg.Term]kg.Term{}, covered: map[kg.Term]bool{}, recorded: map[issueKey]bool{},
	}
}

// recordLimit records that a limit on all shapes was exceeded.
func (c *compiler) recordLimit(format string, args ...any) error {
	if c.limitErr == nil {
		c.limitErr = tooMuch(format, args...)
	}
	return c.limitErr
}

// isA reports whether the node is an instance of a SHACL or RDFS class, by the class
// hierarchy of the document (SHACL, section 1.1).
func (c *compiler) isA(node, class kg.Term) bool {
	for _, t := range c.doc[node][rdfType] {
		if slices.Contains(c.kinds[t], class) {
			return true
		}
	}
	return false
}

// isShape reports whether the subject is a shape of its own.
func (c *compiler) isShape(subject kg.Term) bool {
	for _, class := range []string{"NodeShape", "PropertyShape"} {
		if c.isA(subject, shTerm(class)) {
			return true
		}
	}
	for p := range c.doc[subject] {
		name, ours := strings.CutPrefix(p.Value(), sh)
		if ours && (strings.HasPrefix(name, "target") || c.parameters[name].compile != nil || name == "property" || name == "path") {
			return true
		}
	}
	return false
}

// compileTop compiles a shape of its own and the shapes that it references.
func (c *compiler) compileTop(id kg.Term) (*shape, error) {
	s, err := c.compileShape(id, 0)
	for len(c.pending) > 0 && c.limitErr == nil {
		next := c.pending[len(c.pending)-1]
		c.pending = c.pending[:len(c.pending)-1]
		c.buildShape(next, 0)
	}
	return s, cmp.Or(c.limitErr, err)
}

// compileShape compiles a shape once. Named shapes are queued, so that depth counts nested
// anonymous shapes only.
func (c *compiler) compileShape(id kg.Term, depth int) (*shape, error) {
	if s, begun := c.shapes[id]; begun {
		return s, nil
	}
	if depth > MaxNesting {
		return nil, c.recordLimit("%s: shapes are nested more than %d deep", id, MaxNesting)
	}
	if len(c.shapes) >= MaxShapes {
		return nil, c.recordLimit("there are more than %d shapes", MaxShapes)
	}
	if !id.IsResource() {
		return nil, invalid("%s is not a shape", id)
	}
	s := &shape{id: id, severity: Violation}
	c.shapes[id] = s
	if err := c.compilePath(s); err != nil {
		s.invalid, s.weak = true, true
	}
	if id.Kind() == kg.KindIRI {
		c.pending = append(c.pending, s)
	} else {
		c.buildShape(s, depth)
	}
	return s, c.limitErr
}

// buildShape compiles the properties of a shape.
func (c *compiler) buildShape(s *shape, depth int) {
	for _, predicate := range c.doc.sortedProperties(s.id) {
		if c.limitErr != nil {
			return
		}
		name, ours := strings.CutPrefix(predicate.Value(), sh)
		switch {
		case !ours:
			c.customConstraint(s, predicate)
		case descriptiveProperties[name]:
		case pathProperties[name]:
			c.recordIssue(s.id, predicate, invalid("it is a property of paths, not of shapes"))
		case shapeProperties[name]:
			c.compileProperty(s, name)
		case c.parameters[name].compile != nil:
			c.compileConstraint(s, name, depth)
		case unsupportedProperties[name] == "":
			c.recordIssue(s.id, predicate, errNoTerm)
			s.weak = true
		case !harmless[name]: // recorded by survey
			s.weak = true
		}
	}
	c.implicitTarget(s)
	if s.invalid {
		s.constraints = nil
	}
}

// implicitTarget makes a shape that is a class target the instances of the class
// (SHACL, section 2.1.3.3).
func (c *compiler) implicitTarget(s *shape) {
	if !c.isA(s.id, kg.IRI(rdfs+"Class")) && !c.isA(s.id, kg.IRI(owl+"Class")) || slices.Contains(s.targets.classes, s.id) {
		return
	}
	if s.id.Kind() != kg.KindIRI {
		c.recordIssue(s.id, kg.Term{}, invalid("a shape that is a class must have an IRI"))
		return
	}
	s.targets.classes = append(s.targets.classes, s.id)
}

// compilePath compiles sh:path, which makes the shape a property shape.
func (c *compiler) compilePath(s *shape) error {
	values := c.doc.sortedObjects(s.id, shTerm("path"))
	err := func() error {
		switch {
		case len(values) == 0 && c.isA(s.id, shTerm("PropertyShape")):
			return invalid("a property shape needs an sh:path")
		case len(values) > 1:
			return invalid("a shape has at most one sh:path")
		case len(values) == 1 && c.isA(s.id, shTerm("NodeShape")):
			return invalid("a node shape must not have an sh:path")
		}
		return nil
	}()
	if err != nil {
		c.recordIssue(s.id, kg.Term{}, err)
		return err
	}
	if len(values) == 0 {
		return nil
	}
	if s.path, err = c.parsePath(values[0], 0); err != nil {
		s.path = nil
		c.recordIssue(s.id, shTerm("path"), err)
	}
	return err
}

// compileProperty compiles a property of a shape that is not a constraint.
func (c *compiler) compileProperty(s *shape, name string) {
	values := c.doc.sortedObjects(s.id, shTerm(name))
	note := func(err error) {
		if err != nil {
			c.recordIssue(s.id, shTerm(name), err)
		}
	}
	switch name {
	case "targetNode":
		s.targets.nodes = values
		for _, v := range values {
			if v.Kind() == kg.KindBlank {
				note(invalid("a blank node cannot be a target"))
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
		if err := cmp.Or(requireSingle(values), onlyIRIs(values)); err != nil {
			note(err)
			s.invalid, s.weak = true, true
			return
		}
		if s.severity = values[0]; strings.HasPrefix(s.severity.Value(), sh) && s.severity != Violation && s.severity != Warning && s.severity != Info {
			note(invalid("severity %s is unknown: it is treated as sh:Violation", shortName(s.severity)))
		}
	case "deactivated":
		on, err := parseFlag(values)
		if err != nil {
			note(err)
			s.invalid, s.weak = true, true
		} else if v := values[0].Value(); v != "true" && v != "false" {
			note(invalid("%s is neither true nor false; it is treated as false", values[0]))
		}
		s.deactivated = on
	case "message":
		s.message = preferredMessage(values)
		for _, v := range values {
			if !isText(v) && v.Lang() == "" {
				note(invalid("%s is not a string; it is used as written", v))
			}
		}
	case "ignoredProperties":
		_, err := c.ignoredProperties(s)
		note(err)
	case "qualifiedMinCount", "qualifiedMaxCount":
		note(requireSingle(values))
	}
}

func isText(t kg.Term) bool { return t.IsLiteral() && t.Datatype() == kg.XSDString }

func (c *compiler) compileConstraint(s *shape, name string, depth int) {
	predicate, p := shTerm(name), c.parameters[name]
	values := c.doc.sortedObjects(s.id, predicate)
	lose := func(err error) {
		c.recordIssue(s.id, predicate, err)
		s.weak = true
	}
	switch {
	case p.onPath && s.path == nil:
		if !s.invalid {
			lose(invalid("only a property shape can have it"))
		}
		return
	case !p.many && len(values) > 1:
		lose(invalid("it must be given once"))
		return
	}
	for _, value := range values {
		list, err := p.compile(c, s, value, depth)
		if c.limitErr != nil {
			return
		}
		if err != nil {
			lose(err)
			continue
		}
		s.constraints = append(s.constraints, list...)
	}
}

// customConstraint records a constraint of an unsupported component.
func (c *compiler) customConstraint(s *shape, predicate kg.Term) {
	if component, ok := c.custom[predicate]; ok {
		c.recordIssue(s.id, predicate, invalid("a constraint of %s, which is not supported", component))
		s.weak = true
	}
}

// preferredMessage returns the message for clients that state no language.
func preferredMessage(values []kg.Term) string {
	best := values[0]
	for _, v := range values {
		if v.Lang() == "" || v.Lang() == "en" && best.Lang() != "" {
			best = v
		}
	}
	return best.Value()
}

func requireSingle(values []kg.Term) error {
	if len(values) > 1 {
		return invalid("it must be given once")
	}
	return nil
}

func onlyIRIs(values []kg.Term) error {
	for _, v := range values {
		if v.Kind() != kg.KindIRI {
			return invalid("%s is not an IRI", v)
		}
	}
	return nil
}

func parseFlag(values []kg.Term) (bool, error) {
	if err := requireSingle(values); err != nil {
		return false, err
	}
	if values[0].Datatype() != kg.XSDBoolean {
		return false, invalid("%s is neither true nor false", values[0])
	}
	return values[0].Value() == "true", nil
}

// parsePath compiles a path (SHACL, section 2.3.1).
func (c *compiler) parsePath(at kg.Term, depth int) (propertyPath, error) {
	if at.Kind() == kg.KindIRI && at != rdfNil && depth == 0 {
		return link{predicate: at}, nil
	}
	if c.steps--; c.steps < 0 {
		return nil, c.recordLimit("the paths have more than %d steps", MaxPathSteps)
	}
	if depth > MaxNesting {
		return nil, c.recordLimit("a path is more than %d deep", MaxNesting)
	}
	if at.Kind() == kg.KindIRI && at != rdfNil {
		return link{predicate: at}, nil
	}
	properties := c.doc[at]
	if len(properties[rdfFirst]) > 0 {
		list, err := c.parsePathList(at, depth)
		return sequence(list), err
	}
	if len(properties) != 1 {
		return nil, invalid("%s is not a path", at)
	}
	for predicate, values := range properties {
		name := strings.TrimPrefix(predicate.Value(), sh)
		if len(values) != 1 {
			return nil, invalid("sh:%s takes one path", name)
		}
		if name == "alternativePath" {
			list, err := c.parsePathList(values[0], depth)
			return alternative(list), err
		}
		w, err := c.parsePath(values[0], depth+1)
		if err != nil {
			return nil, err
		}
		switch name {
		case "inversePath":
			return w.reverse(), nil
		case "zeroOrMorePath":
			return repeat{w, 0}, nil
		case "oneOrMorePath":
			return repeat{w, 1}, nil
		case "zeroOrOnePath":
			return optional{w}, nil
		}
	}
	return nil, invalid("%s is not a path", at)
}

func (c *compiler) parsePathList(head kg.Term, depth int) ([]propertyPath, error) {
	list, err := c.doc.readList(head)
	if err != nil {
		return nil, err
	}
	if len(list) < 2 {
		return nil, invalid("a sequence or an alternative needs at least two parts")
	}
	out := make([]propertyPath, len(list))
	for i, t := range list {
		if out[i], err = c.parsePath(t, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func tooMuch(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeLimitExceeded, format, args...)
}
