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
	MaxPathSteps = 1_000
)

// set is all shapes, compiled. It never changes.
type set struct {
	roots []*shape // those with targets that are not deactivated, in order
	all   []*shape // in order, without those inside of others that have no name
	index index
	since kg.Revision // from which on they are known to have been in force
}

// compile makes shapes of the statements of the shapes graph, or says what is
// wrong with the first that is none.
func compile(d document) (*set, error) {
	c := &compiler{doc: d, parameters: parameters(), done: map[kg.Term]*shape{}, steps: MaxPathSteps}
	out := &set{index: index{by: map[kg.Term][]*dependency{}}}
	for _, subject := range d.subjects() {
		if !c.isShape(subject) {
			continue
		}
		s, err := c.shape(subject, 0)
		if err != nil {
			return nil, err
		}
		if subject.Kind() == kg.KindIRI || !s.targets.none() {
			out.all = append(out.all, s)
		}
		if s.targets.none() || s.deactivated {
			continue
		}
		list, err := readsOf(s)
		if err != nil {
			return nil, err
		}
		out.roots = append(out.roots, s)
		out.index.add(list)
	}
	return out, nil
}

type compiler struct {
	doc        document
	parameters map[string]parameter
	done       map[kg.Term]*shape // nil while it is under way
	steps      int                // of paths that may still come
}

// isShape tells whether the subject is meant as a shape by itself.
func (c *compiler) isShape(subject kg.Term) bool {
	for _, class := range []string{"NodeShape", "PropertyShape"} {
		if c.doc.has(subject, rdfType, shTerm(class)) {
			return true
		}
	}
	for p := range c.doc[subject] {
		name, ok := strings.CutPrefix(p.Value(), sh)
		if ok && (strings.HasPrefix(name, "target") || c.parameters[name].make != nil || name == "property" || name == "path") {
			return true
		}
	}
	return false
}

// shape compiles one shape once.
func (c *compiler) shape(id kg.Term, depth int) (*shape, error) {
	if s, begun := c.done[id]; begun {
		if s == nil {
			return nil, invalid("shape %s leads back to itself: recursive shapes have no agreed meaning", id)
		}
		return s, nil
	}
	if depth > MaxNesting {
		return nil, tooMuch("shapes are more than %d deep in each other", MaxNesting)
	}
	if len(c.done) >= MaxShapes {
		return nil, tooMuch("there are more than %d shapes", MaxShapes)
	}
	if !id.IsResource() {
		return nil, invalid("%s is no shape", id)
	}
	c.done[id] = nil
	s, err := c.build(id, depth)
	if err != nil {
		return nil, c.at(id, err)
	}
	c.done[id] = s
	return s, nil
}

// at says in which shape an error is.
func (c *compiler) at(id kg.Term, err error) error {
	e := *kg.AsError(err)
	name := id.String()
	if paths := c.doc[id][shTerm("path")]; id.Kind() == kg.KindBlank && len(paths) == 1 {
		name = "property " + paths[0].String()
	}
	e.Message = name + ": " + e.Message
	return &e
}

func (c *compiler) build(id kg.Term, depth int) (*shape, error) {
	s := &shape{id: id, severity: Violation}
	if err := c.path(s); err != nil {
		return nil, err
	}
	for _, predicate := range c.doc.properties(id) {
		name, ours := strings.CutPrefix(predicate.Value(), sh)
		if !ours || described[name] {
			continue
		}
		if err := c.property(s, name, depth); err != nil {
			e := *kg.AsError(err)
			e.Message = "sh:" + name + ": " + e.Message
			return nil, &e
		}
	}
	for _, class := range []string{rdfs + "Class", owl + "Class"} { // SHACL, section 2.1.3.3
		if c.doc.has(id, rdfType, kg.IRI(class)) && !slices.Contains(s.targets.classes, id) {
			s.targets.classes = append(s.targets.classes, id)
		}
	}
	return s, nil
}

// path reads sh:path, which makes a property shape of a shape.
func (c *compiler) path(s *shape) error {
	values := c.doc.objects(s.id, shTerm("path"))
	if len(values) == 0 {
		if c.doc.has(s.id, rdfType, shTerm("PropertyShape")) {
			return invalid("a property shape needs an sh:path")
		}
		return nil
	}
	if len(values) > 1 {
		return invalid("a shape has one sh:path at most")
	}
	if c.doc.has(s.id, rdfType, shTerm("NodeShape")) {
		return invalid("a node shape has no sh:path")
	}
	w, err := c.way(values[0], 0)
	if err != nil {
		e := *kg.AsError(err)
		e.Message = "sh:path: " + e.Message
		return &e
	}
	s.way = w
	return nil
}

// property compiles what one property of a shape says.
func (c *compiler) property(s *shape, name string, depth int) error {
	values := c.doc.objects(s.id, shTerm(name))
	switch name {
	case "path", "flags", "ignoredProperties", "qualifiedMinCount", "qualifiedMaxCount", "qualifiedValueShapesDisjoint":
		return nil // read with what they belong to
	case "targetNode":
		s.targets.nodes = values
		return nil
	case "targetClass", "targetSubjectsOf", "targetObjectsOf":
		list := map[string]*[]kg.Term{"targetClass": &s.targets.classes, "targetSubjectsOf": &s.targets.subjectsOf, "targetObjectsOf": &s.targets.objectsOf}[name]
		*list = append(*list, values...)
		return onlyIRIs(values)
	case "severity":
		s.severity = values[0]
		return cmpErr(onlyIRIs(values), one(values))
	case "deactivated":
		on, err := flag(values)
		s.deactivated = on
		return err
	case "message":
		s.message = preferred(values)
		return nil
	}
	p := c.parameters[name]
	if p.make == nil {
		return invalid("this is not part of SHACL core, and is not judged")
	}
	if p.onPath && s.way == nil {
		return invalid("only a property shape can have it")
	}
	if !p.many && len(values) > 1 {
		return invalid("it can be given once only")
	}
	for _, value := range values {
		list, err := p.make(c, s, value, depth)
		if err != nil {
			return err
		}
		s.constraints = append(s.constraints, list...)
	}
	return nil
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
	if c.steps--; c.steps < 0 {
		return nil, tooMuch("paths have more than %d steps", MaxPathSteps)
	}
	if depth > MaxNesting {
		return nil, tooMuch("it is more than %d deep", MaxNesting)
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
