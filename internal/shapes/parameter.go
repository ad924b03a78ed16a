package shapes

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"koine/internal/pacedregexp"
	"koine/kg"
)

// parameter is a constraint parameter.
type parameter struct {
	many    bool // each value is a separate constraint
	onPath  bool // property shapes only
	compile compileFunc
}

// compileFunc compiles a value of a parameter.
type compileFunc func(c *compiler, s *shape, value kg.Term, depth int) ([]constraint, error)

// forIRI compiles a value that must be an IRI.
func forIRI(newConstraint func(iri kg.Term) constraint) compileFunc {
	return func(_ *compiler, _ *shape, value kg.Term, _ int) ([]constraint, error) {
		return []constraint{newConstraint(value)}, onlyIRIs([]kg.Term{value})
	}
}

// forCount compiles a value that must be a non-negative integer.
func forCount(newConstraint func(n int) constraint) compileFunc {
	return func(_ *compiler, _ *shape, value kg.Term, _ int) ([]constraint, error) {
		n, err := parseCount(value)
		return []constraint{newConstraint(n)}, err
	}
}

// coreParameters returns the parameters of SHACL core (SHACL, section 4).
func coreParameters() map[string]parameter {
	return map[string]parameter{
		"class":        {many: true, compile: forIRI(func(iri kg.Term) constraint { return classConstraint{"Class", iri} })},
		"datatype":     {compile: forIRI(func(iri kg.Term) constraint { return datatypeConstraint{own{"Datatype"}, iri.Value()} })},
		"nodeKind":     {compile: makeNodeKind},
		"minCount":     {onPath: true, compile: forCount(func(n int) constraint { return countConstraint{own{"MinCount"}, true, n} })},
		"maxCount":     {onPath: true, compile: forCount(func(n int) constraint { return countConstraint{own{"MaxCount"}, false, n} })},
		"minExclusive": {compile: makeRange("MinExclusive", "greater than", func(c int) bool { return c > 0 })},
		"minInclusive": {compile: makeRange("MinInclusive", "at least", func(c int) bool { return c >= 0 })},
		"maxExclusive": {compile: makeRange("MaxExclusive", "less than", func(c int) bool { return c < 0 })},
		"maxInclusive": {compile: makeRange("MaxInclusive", "at most", func(c int) bool { return c <= 0 })},
		"minLength":    {compile: forCount(func(n int) constraint { return lengthConstraint{own{"MinLength"}, true, n} })},
		"maxLength":    {compile: forCount(func(n int) constraint { return lengthConstraint{own{"MaxLength"}, false, n} })},
		"pattern":      {compile: makePattern},
		"languageIn":   {compile: makeLanguageIn},
		"uniqueLang":   {onPath: true, compile: makeUniqueLang},
		"equals":       {many: true, compile: forIRI(func(iri kg.Term) constraint { return equalsConstraint{comparison{"Equals", link{predicate: iri}}} })},
		"disjoint":     {many: true, compile: forIRI(func(iri kg.Term) constraint { return disjointConstraint{comparison{"Disjoint", link{predicate: iri}}} })},
		"lessThan": {many: true, onPath: true, compile: forIRI(func(iri kg.Term) constraint {
			return lessThanConstraint{comparison{"LessThan", link{predicate: iri}}, false}
		})},
		"lessThanOrEquals": {many: true, onPath: true, compile: forIRI(func(iri kg.Term) constraint {
			return lessThanConstraint{comparison{"LessThanOrEquals", link{predicate: iri}}, true}
		})},
		"hasValue": {many: true, compile: makeHasValue},
		"in":       {compile: makeIn},
		"closed":   {compile: makeClosed},
		"property": {many: true, compile: makeProperty},
		"node":     {many: true, compile: makeOne("Node", gradedByEach, "does not conform to ", func(n, _ int) bool { return n == 1 })},
		"not":      {many: true, compile: makeOne("Not", ungraded, "conforms to ", func(n, _ int) bool { return n == 0 })},
		"and":      {many: true, compile: makeSeveral("And", gradedByEach, "does not conform to all of ", func(n, total int) bool { return n == total })},
		"or":       {many: true, compile: makeSeveral("Or", gradedByAll, "conforms to none of ", func(n, _ int) bool { return n > 0 })},
		"xone":     {many: true, compile: makeSeveral("Xone", gradedByAll, "does not conform to exactly one of ", func(n, _ int) bool { return n == 1 })},

		"qualifiedValueShape": {many: true, onPath: true, compile: makeQualified},
	}
}

func makeNodeKind(_ *compiler, _ *shape, value kg.Term, _ int) ([]constraint, error) {
	kind := strings.TrimPrefix(value.Value(), sh)
	kinds := []string{"IRI", "BlankNode", "Literal", "BlankNodeOrIRI", "BlankNodeOrLiteral", "IRIOrLiteral"}
	if !slices.Contains(kinds, kind) {
		return nil, invalid("%s is none of sh:%s", value, strings.Join(kinds, ", sh:"))
	}
	return []constraint{nodeKindConstraint{own{"NodeKind"}, kind}}, nil
}

// parseCount parses a non-negative integer.
func parseCount(value kg.Term) (int, error) {
	n, err := strconv.Atoi(value.Value())
	if err != nil || value.Datatype() != kg.XSDInteger || n < 0 {
		return 0, invalid("%s is not a non-negative integer", value)
	}
	return n, nil
}

func makeRange(name named, message string, holds func(int) bool) compileFunc {
	return func(_ *compiler, _ *shape, value kg.Term, _ int) ([]constraint, error) {
		if _, ok := compareLiterals(value, value); !ok {
			return nil, invalid("%s is not an ordered value", value)
		}
		return []constraint{rangeConstraint{own{name}, value, holds, message}}, nil
	}
}

// Limits of a regular expression. RE2 runs in time proportional to the text and to the
// number of instructions.
const (
	MaxPatternBytes        = 1_000
	MaxPatternInstructions = 2_000
)

func makePattern(c *compiler, s *shape, value kg.Term, _ int) ([]constraint, error) {
	if !value.IsLiteral() {
		return nil, invalid("%s is not a string", value)
	}
	if !isText(value) {
		c.recordIssue(s.id, shTerm("pattern"), invalid("%s is not an xsd:string: it is treated as one", clipText(formatPrefix(value))))
	}
	text := value.Value()
	if len(text) > MaxPatternBytes {
		return nil, tooMuch("%d bytes exceed the limit of %d", len(text), MaxPatternBytes)
	}
	flags, err := c.patternFlags(s)
	if err != nil {
		return nil, err
	}
	source := flags(text)
	re, err := pacedregexp.Compile(source, MaxPatternInstructions)
	if long := (*pacedregexp.TooLongError)(nil); errors.As(err, &long) {
		return nil, tooMuch("%q compiles to %d instructions; the limit is %d", clipText(text), long.Instructions, long.Max)
	}
	if err != nil {
		e := invalid("%q is not a valid regular expression: %v", clipText(text), err)
		e.Hint = "The syntax is RE2's: no backreferences and no lookaround."
		return nil, e
	}
	return []constraint{patternConstraint{own{"Pattern"}, re, text}}, nil
}

// patternFlags compiles sh:flags of a pattern (XPath functions, section 5.6.2).
func (c *compiler) patternFlags(s *shape) (func(string) string, error) {
	values := c.doc.sortedObjects(s.id, shTerm("flags"))
	if err := requireSingle(values); err != nil {
		return nil, err
	}
	all := ""
	if len(values) == 1 {
		if all = values[0].Value(); !isText(values[0]) {
			c.recordIssue(s.id, shTerm("flags"), invalid("%s is not an xsd:string: it is treated as one", values[0]))
		}
	}
	group := ""
	for _, r := range all {
		switch r {
		case 'i', 's', 'm':
			group += string(r)
		case 'x', 'q':
		default:
			return nil, invalid("sh:flags has an unknown %q", r)
		}
	}
	return func(text string) string {
		switch {
		case strings.Contains(all, "q"):
			text = regexp.QuoteMeta(text)
		case strings.Contains(all, "x"):
			text = strings.NewReplacer(" ", "", "\t", "", "\n", "", "\r", "").Replace(text)
		}
		if group != "" {
			text = "(?" + group + ")" + text
		}
		return text
	}, nil
}

func makeLanguageIn(c *compiler, s *shape, value kg.Term, _ int) ([]constraint, error) {
	list, err := c.doc.readList(value)
	if err != nil {
		return nil, err
	}
	ranges := make([]string, len(list))
	for i, t := range list {
		if ranges[i] = strings.ToLower(t.Value()); !isText(t) {
			c.recordIssue(s.id, shTerm("languageIn"), invalid("%s is not an xsd:string: it is treated as one", t))
		}
	}
	return []constraint{languageInConstraint{own{"LanguageIn"}, ranges}}, nil
}

func makeUniqueLang(_ *compiler, _ *shape, value kg.Term, _ int) ([]constraint, error) {
	on, err := parseFlag([]kg.Term{value})
	if !on || err != nil {
		return nil, err
	}
	return []constraint{uniqueLangConstraint{own{"UniqueLang"}}}, nil
}

func makeHasValue(_ *compiler, _ *shape, value kg.Term, _ int) ([]constraint, error) {
	return []constraint{hasValueConstraint{own{"HasValue"}, value}}, nil
}

func makeIn(c *compiler, _ *shape, value kg.Term, _ int) ([]constraint, error) {
	list, err := c.doc.readList(value)
	if err != nil {
		return nil, err
	}
	return []constraint{inConstraint{own{"In"}, setOf(list), joinFew(list)}}, nil
}

// joinFew returns the first names of a list.
func joinFew(list []kg.Term) string {
	const most = 5
	names := make([]string, 0, most)
	for _, t := range list[:min(len(list), most)] {
		names = append(names, clipText(t.Name()))
	}
	text := strings.Join(names, ", ")
	if len(list) > most {
		text += ", …"
	}
	return text
}

func makeClosed(c *compiler, s *shape, value kg.Term, _ int) ([]constraint, error) {
	on, err := parseFlag([]kg.Term{value})
	if !on || err != nil {
		return nil, err
	}
	allowed := map[kg.Term]bool{}
	for _, p := range c.doc[s.id][shTerm("property")] {
		for _, path := range c.doc[p][shTerm("path")] {
			if path.Kind() == kg.KindIRI {
				allowed[path] = true
			}
		}
	}
	ignored, err := c.ignoredProperties(s)
	if err != nil {
		return nil, err
	}
	for _, p := range ignored {
		allowed[p] = true
	}
	return []constraint{closedConstraint{"Closed", allowed}}, nil
}

func (c *compiler) ignoredProperties(s *shape) ([]kg.Term, error) {
	heads := c.doc.sortedObjects(s.id, shTerm("ignoredProperties"))
	if len(heads) == 0 {
		return nil, nil
	}
	if err := requireSingle(heads); err != nil {
		return nil, err
	}
	list, err := c.doc.readList(heads[0])
	return list, cmp.Or(err, onlyIRIs(list))
}

func makeProperty(c *compiler, _ *shape, value kg.Term, depth int) ([]constraint, error) {
	s, err := c.compileShape(value, depth+1)
	if err != nil {
		return nil, err
	}
	if s.path == nil && !s.invalid {
		return nil, invalid("%s has no sh:path", value)
	}
	return []constraint{propertyConstraint{parts{"Property", []*shape{s}}}}, nil
}

func makeOne(name named, grade grading, message string, holds func(int, int) bool) compileFunc {
	return func(c *compiler, outer *shape, value kg.Term, depth int) ([]constraint, error) {
		s, err := c.compileShape(value, depth+1)
		if err != nil {
			return nil, err
		}
		if name == "Node" && s.path != nil {
			c.recordIssue(outer.id, shTerm("node"), invalid("%s is not a node shape; it is validated with its path", shapeName(s)))
		}
		return []constraint{logicalConstraint{parts{name, []*shape{s}}, holds, grade, message + shapeName(s)}}, nil
	}
}

func makeSeveral(name named, grade grading, message string, holds func(int, int) bool) compileFunc {
	return func(c *compiler, _ *shape, value kg.Term, depth int) ([]constraint, error) {
		list, err := c.doc.readList(value)
		if err != nil {
			return nil, err
		}
		all := make([]*shape, len(list))
		for i, t := range list {
			if all[i], err = c.compileShape(t, depth+1); err != nil {
				return nil, err
			}
		}
		return []constraint{logicalConstraint{parts{name, all}, holds, grade, message + strconv.Itoa(len(all)) + " shapes"}}, nil
	}
}

// shapeName names a shape in messages; labels of blank nodes are meaningless.
func shapeName(s *shape) string {
	if s.id.Kind() == kg.KindIRI {
		return s.id.Value()
	}
	return "the shape"
}

func makeQualified(c *compiler, s *shape, value kg.Term, depth int) ([]constraint, error) {
	if len(c.doc[s.id][shTerm("qualifiedValueShape")]) > 1 {
		c.recordIssue(s.id, shTerm("qualifiedValueShape"), invalid("it must be given once; each value is validated"))
	}
	qualified, err := c.compileShape(value, depth+1)
	if err != nil {
		return nil, err
	}
	siblings, err := c.siblingShapes(s, value, depth)
	if err != nil {
		return nil, err
	}
	var out []constraint
	for _, bound := range []struct {
		property string
		name     named
		least    bool
	}{{"qualifiedMinCount", "QualifiedMinCount", true}, {"qualifiedMaxCount", "QualifiedMaxCount", false}} {
		for _, v := range c.doc.sortedObjects(s.id, shTerm(bound.property)) {
			n, err := parseCount(v)
			if err != nil {
				return nil, err
			}
			out = append(out, qualifiedConstraint{parts{bound.name, []*shape{qualified}}, siblings, bound.least, n})
		}
	}
	if out == nil {
		return nil, invalid("it needs an sh:qualifiedMinCount or an sh:qualifiedMaxCount")
	}
	return out, nil
}

// siblingShapes returns the shapes that a value must not conform to if the qualified shapes
// are disjoint (SHACL, section 4.7.3).
func (c *compiler) siblingShapes(s *shape, own kg.Term, depth int) ([]*shape, error) {
	disjoint := c.doc.sortedObjects(s.id, shTerm("qualifiedValueShapesDisjoint"))
	if len(disjoint) == 0 {
		return nil, nil
	}
	if on, err := parseFlag(disjoint); !on || err != nil {
		return nil, err
	}
	var found nodeSet
	for _, parent := range c.doc.sortedSubjects() {
		if !c.doc.has(parent, shTerm("property"), s.id) {
			continue
		}
		for _, p := range c.doc.sortedObjects(parent, shTerm("property")) {
			found.add(c.doc.sortedObjects(p, shTerm("qualifiedValueShape")))
		}
	}
	var out []*shape
	for _, id := range found.list {
		if id == own {
			continue
		}
		sibling, err := c.compileShape(id, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, sibling)
	}
	return out, nil
}
