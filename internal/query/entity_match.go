package query

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"koine/internal/query/pattern"
	"koine/internal/query/valuespace"
	"koine/kg"
)

// Compiler compiles conditions, orders and groups.
type Compiler struct {
	Ctx      context.Context // cancels long regular expression matches
	Labels   []kg.Term       // the predicates of labels, the best first
	Prefixes *kg.Prefixes    // of names in paths and patterns
	Texts    TextSources     // nil for patterns without texts
}

// TextSources returns the source of a text in a pattern.
type TextSources func(query string, predicates []kg.Term) (pattern.TextSource, error)

// EntityMatch is a compiled EntityFilter: its test, the predicates that the
// test reads, and the lookups that an index can do.
type EntityMatch struct {
	Compiler
	depth int // of nesting in path conditions
	// wanted are the predicates whose statements the test and the order need.
	// Tests refer to them by index.
	wanted      []kg.Term
	narrowed    []kg.Term  // for each, the only object that is needed; zero: all are
	valueTests  int        // the number of tests of values
	test        entityTest // nil always holds
	accessPaths []accessPath
	class       kg.Term // set if the filter asks for this class and nothing else
	paths       map[*PathFilter]*pathMatch
	trails      int // the number of trails
	// statements compiles the conditions on single statements.
	statements statementCompiler
}

type entityTest = test[*subject]

// accessPath is a necessary condition by which an index can enumerate the
// candidates: a list or a prefix of IRIs, a statement with one of the predicates and a
// matching object, or a path.
type accessPath struct {
	iris       []kg.Term
	prefix     string // set: the IRIs that begin with it
	predicates []kg.Term
	object     kg.Term     // zero: any that fits; set with a single predicate only
	text       *string     // set: only literals with this text fit
	fits       termTest    // nil: any
	objects    *kg.Objects // set: only these objects fit
	path       *pathMatch  // set: the entities from which the path reaches an end that may fit
}

// RDFType is rdf:type.
var RDFType = kg.IRI(kg.RDFType)

// Entities compiles a condition on the entities of an EntityList. f may be nil.
func (c Compiler) Entities(f *EntityFilter) (*EntityMatch, error) {
	if f != nil && f.Type != nil && f.Type.Eq != nil && reflect.DeepEqual(*f, EntityFilter{Type: &IRIFilter{Eq: f.Type.Eq}}) {
		// The index by class returns exactly the matches: no test is needed.
		m := &EntityMatch{Compiler: c, class: *f.Type.Eq}
		return m, m.collectAccessPaths(f)
	}
	return c.Ends(f)
}

// Ends compiles a condition on the ends of a path. f may be nil.
func (c Compiler) Ends(f *EntityFilter) (*EntityMatch, error) { return c.endsAt(f, 0) }

// endsAt compiles a condition on entities that were found otherwise, at a
// nesting depth.
func (c Compiler) endsAt(f *EntityFilter, depth int) (*EntityMatch, error) {
	m := &EntityMatch{Compiler: c, depth: depth, statements: statementCompiler{ctx: c.Ctx}}
	if f == nil {
		return m, nil
	}
	var err error
	if m.test, err = m.compile(f); err != nil {
		return nil, err
	}
	return m, m.collectAccessPaths(f)
}

// MatchesAll reports whether every entity matches.
func (m *EntityMatch) MatchesAll() bool { return m.test == nil }

// IsEmpty reports whether the match has no condition, and nothing of the request that it was
// compiled for.
func (m *EntityMatch) IsEmpty() bool {
	return m.test == nil && m.Ctx == nil && m.Texts == nil && len(m.wanted) == 0 && len(m.accessPaths) == 0 && m.class.IsZero()
}

// matchesObjects reports whether a match need not be the subject of a statement.
func (m *EntityMatch) matchesObjects() bool { return m.depth > 0 }

// wantPredicate returns the index of a predicate in wanted.
func (m *EntityMatch) wantPredicate(predicate kg.Term) int {
	i := slices.Index(m.wanted, predicate)
	if i < 0 {
		i = len(m.wanted)
		m.wanted, m.narrowed = append(m.wanted, predicate), append(m.narrowed, kg.Term{})
	}
	m.narrowed[i] = kg.Term{}
	return i
}

// compile compiles the whole condition. Parts that need only the entity's own
// statements come first.
func (m *EntityMatch) compile(f *EntityFilter) (entityTest, error) {
	return compileParts(
		part[*subject]{"iri", func() (entityTest, error) { return iriTest(m.Ctx, f.IRI) }},
		part[*subject]{"type", func() (entityTest, error) { return m.typeTest(f.Type) }},
		part[*subject]{"label", func() (entityTest, error) { return m.labelTest(f.Label) }},
		part[*subject]{"property", func() (entityTest, error) { return m.compileProperties(f.Property) }},
		part[*subject]{"path", func() (entityTest, error) { return m.pathFilters(f.Path) }},
		part[*subject]{"", func() (entityTest, error) { return compileLogic(f.And, f.Or, f.Not, m.compile) }},
	)
}

// someValue holds if the predicate has a value that fits. A nil test fits all
// values.
func (m *EntityMatch) someValue(predicate kg.Term, test termTest) entityTest {
	return m.valueTest(m.wantPredicate(predicate), test)
}

// valueTest is someValue for the wanted predicate with an index.
func (m *EntityMatch) valueTest(i int, test termTest) entityTest {
	number := m.valueTests
	m.valueTests++
	return func(s *subject) (bool, error) {
		for _, row := range s.rows[i] {
			if test == nil {
				return true, nil
			}
			if fits, err := s.valueFits(number, test, row.Object); fits || err != nil {
				return fits, err
			}
		}
		return false, nil
	}
}

// someStatement holds if a statement with the predicate fits.
func (m *EntityMatch) someStatement(predicate kg.Term, test statementTest) entityTest {
	i := m.wantPredicate(predicate)
	return func(s *subject) (bool, error) {
		f := &s.scan.fact
		for _, row := range s.rows[i] {
			f.moveTo(&row)
			if ok, err := test(f); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
}

func iriTest(ctx context.Context, f *IRIFilter) (entityTest, error) {
	test, err := matchIRI(ctx, f)
	if test == nil {
		return nil, err
	}
	return func(s *subject) (bool, error) {
		t, err := s.entityTerm()
		return err == nil && test(t), err
	}, nil
}

func (m *EntityMatch) typeTest(f *IRIFilter) (entityTest, error) {
	if f == nil {
		return nil, nil
	}
	if f.requiresAbsence() {
		return m.absenceTest(RDFType, kg.Term.IsResource, f.requiresOnlyAbsence()), nil
	}
	fits, err := classFits(m.Ctx, f)
	if only := onlyIRI(f); only != nil {
		return m.valueTest(m.onlyOf(RDFType, *only), fits), err
	}
	return m.someValue(RDFType, fits), err
}

// classFits is the condition on one class.
func classFits(ctx context.Context, f *IRIFilter) (termTest, error) {
	test, err := matchIRI(ctx, f)
	return func(t kg.Term) bool { return t.IsResource() && (test == nil || test(t)) }, err
}

// absenceTest holds if the predicate has no value for which counts holds. It never
// holds if possible is false.
func (m *EntityMatch) absenceTest(predicate kg.Term, counts termTest, possible bool) entityTest {
	absent := negate(m.someValue(predicate, counts))
	return func(s *subject) (bool, error) {
		ok, err := absent(s)
		return ok && possible, err
	}
}

func (m *EntityMatch) labelTest(f *StringFilter) (entityTest, error) {
	if f == nil {
		return nil, nil
	}
	fits, onlyAbsent, err := labelFits(m.Ctx, f)
	if err != nil {
		return nil, err
	}
	some := make([]entityTest, len(m.Labels))
	for i, l := range m.Labels {
		some[i] = m.someValue(l, fits)
	}
	absent := f.Exists != nil && !*f.Exists
	labelled := anyOf(some...)
	return func(s *subject) (bool, error) {
		if ok, err := labelled(s); ok || err != nil {
			return ok && !absent, err
		}
		return absent && onlyAbsent, nil
	}, nil
}

// labelFits is the condition on one label, regardless of exists. bare reports
// that the condition does not restrict the text.
func labelFits(ctx context.Context, f *StringFilter) (fits termTest, bare bool, err error) {
	text := *f
	text.Exists = nil
	match, err := matchText(ctx, &text)
	if err != nil {
		return nil, false, err
	}
	return func(t kg.Term) bool { return t.IsLiteral() && match(t.Value(), true) }, match("", false), nil
}

func (m *EntityMatch) compileProperties(list []PropertyFilter) (entityTest, error) {
	tests, err := compileEach(list, m.compileProperty)
	return allOf(tests...), err
}

func (m *EntityMatch) compileProperty(f *PropertyFilter) (entityTest, error) {
	fits, err := matchValue(m.Ctx, &f.ValueFilter)
	if err != nil {
		return nil, err
	}
	held, err := m.compileStatementTest(f)
	if err != nil {
		return nil, err
	}
	switch {
	case f.Exists != nil && !*f.Exists:
		return m.absenceTest(f.Predicate, nil, fits == nil && held == nil), nil
	case held == nil:
		return m.someValue(f.Predicate, fits), nil
	}
	return m.someStatement(f.Predicate, allOf(m.statements.cachedTest(partObject, fits), held)), nil
}

// compileStatementTest compiles the part of the condition that is about the value's
// statement: graph and assertions. nil means no such condition.
func (m *EntityMatch) compileStatementTest(f *PropertyFilter) (statementTest, error) {
	graph, err := m.statements.compileGraph(f.Graph)
	if err != nil {
		return nil, kg.AsError(err).At("graph")
	}
	assertions, err := f.AssertionFilter.compile(m.Ctx)
	return allOf(graph, assertions), err
}

// collectAccessPaths collects the lookups that the condition allows. A lookup must be
// necessary for a match, so branches of `or`, conditions under `not` and
// conditions of absence give none.
func (m *EntityMatch) collectAccessPaths(f *EntityFilter) error {
	if f.IRI != nil {
		if t := onlyIRI(f.IRI); t != nil {
			m.accessPaths = append(m.accessPaths, accessPath{iris: []kg.Term{*t}})
		} else if f.IRI.In != nil {
			m.accessPaths = append(m.accessPaths, accessPath{iris: f.IRI.In})
		} else if p := f.IRI.StartsWith; p != nil && *p != "" && (*p)[0] != '_' && !m.matchesObjects() { // "_:" begins blank nodes
			m.accessPaths = append(m.accessPaths, accessPath{prefix: *p})
		}
	}
	if f.Type != nil && !f.Type.requiresAbsence() {
		d, err := typeAccessPath(m.Ctx, f.Type)
		if err != nil {
			return err
		}
		m.accessPaths = append(m.accessPaths, d)
	}
	if f.Label != nil && (f.Label.Exists == nil || *f.Label.Exists) {
		fits, _, err := labelFits(m.Ctx, f.Label)
		if err != nil {
			return err
		}
		m.accessPaths = append(m.accessPaths, accessPath{predicates: m.Labels, text: f.Label.Eq, fits: fits, objects: labelObjects(f.Label)})
	}
	for i := range f.Property {
		p := &f.Property[i]
		if p.Exists != nil && !*p.Exists {
			continue
		}
		fits, err := matchValue(m.Ctx, &p.ValueFilter)
		if err != nil {
			return err
		}
		m.accessPaths = append(m.accessPaths, accessPath{predicates: []kg.Term{p.Predicate}, object: p.onlyObject(), text: p.onlyText(), fits: fits, objects: p.objects()})
	}
	for i := range f.Path {
		if d, ok := m.paths[&f.Path[i]].accessPath(); ok {
			m.accessPaths = append(m.accessPaths, d)
		}
	}
	for i := range f.And {
		if err := m.collectAccessPaths(&f.And[i]); err != nil {
			return err
		}
	}
	return nil
}

// onlyObject returns the only term that meets the condition, the zero Term if
// there may be several: a plain value may occur in any language or datatype.
func (f *ValueFilter) onlyObject() (t kg.Term) {
	if t := onlyIRI(f.IRI); t != nil {
		return *t
	}
	var text string
	if json.Unmarshal(f.Eq, &text) != nil || f.Eq == nil {
		return t
	}
	switch {
	case f.Language != nil && f.Language.Eq != nil:
		return kg.LangString(text, *f.Language.Eq)
	case f.Datatype != nil && f.Datatype.Eq != nil && f.Datatype.Eq.Value() == kg.XSDString:
		return kg.String(text)
	}
	return t
}

// onlyText returns the only text that meets the condition, or nil. A text that
// reads as a date also matches other spellings of that date.
func (f *ValueFilter) onlyText() *string {
	o, err := parseOperand(f.Eq)
	if err != nil || o.Kind != valuespace.KindText || o.hasMoment {
		return nil
	}
	return &o.Text
}

func typeAccessPath(ctx context.Context, f *IRIFilter) (accessPath, error) {
	fits, err := classFits(ctx, f)
	d := accessPath{predicates: []kg.Term{RDFType}, fits: fits}
	if t := onlyIRI(f); t != nil {
		d.object = *t
	}
	return d, err
}
