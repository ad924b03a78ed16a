package graph

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"koine/internal/query/valuespace"
	"koine/kg"
)

// entityMatch is a compiled EntityFilter: its test, the predicates that the
// test reads, and the lookups that an index can do.
type entityMatch struct {
	ctx    context.Context // cancels long regular expression matches
	engine *Engine
	depth  int // of nesting in path conditions
	// wanted are the predicates whose statements the test and the order need.
	// Tests refer to them by index.
	wanted []kg.Term
	test   entityTest // nil always holds
	drives []drive
	class  kg.Term // set if the filter asks for this class and nothing else
	paths  map[*PathFilter]*pathMatch
	trails int // the number of trails
	// statements compiles the conditions on single statements.
	statements statementCompiler
}

// entityTest reports whether a condition holds for an entity.
type entityTest func(*subject) (bool, error)

// drive is a necessary condition by which an index can enumerate the
// candidates: a list of IRIs, a statement with one of the predicates and a
// matching object, or a path.
type drive struct {
	iris       []kg.Term
	predicates []kg.Term
	object     kg.Term    // zero: any that fits; set with a single predicate only
	text       *string    // set: only literals with this text fit
	fits       termTest   // nil: any
	path       *pathMatch // set: the entities from which the path reaches an end that may fit
}

var rdfType = kg.IRI(kg.RDFType)

// matchEntity compiles a condition on entities found by candidates. f may be
// nil.
func (e *Engine) matchEntity(ctx context.Context, f *EntityFilter) (*entityMatch, error) {
	if f == nil {
		return e.matchEntityAt(ctx, f, 0)
	}
	if f.Type != nil && f.Type.Eq != nil && reflect.DeepEqual(*f, EntityFilter{Type: &IRIFilter{Eq: f.Type.Eq}}) {
		// The index by class returns exactly the matches: no test is needed.
		m := &entityMatch{ctx: ctx, engine: e, class: *f.Type.Eq}
		return m, m.collectDrives(f)
	}
	return e.matchEntityAt(ctx, f, 0)
}

// matchEntityAt compiles a condition on entities that were found otherwise,
// such as the ends of a path, at a nesting depth. f may be nil.
func (e *Engine) matchEntityAt(ctx context.Context, f *EntityFilter, depth int) (*entityMatch, error) {
	m := &entityMatch{ctx: ctx, engine: e, depth: depth, statements: statementCompiler{ctx: ctx}}
	if f == nil {
		return m, nil
	}
	test, err := m.compile(f)
	if err != nil {
		return nil, err
	}
	m.test = test
	return m, m.collectDrives(f)
}

// matchesObjects reports whether a match need not be the subject of a statement.
func (m *entityMatch) matchesObjects() bool { return m.depth > 0 }

// wantPredicate returns the index of a predicate in wanted.
func (m *entityMatch) wantPredicate(predicate kg.Term) int {
	if i := slices.Index(m.wanted, predicate); i >= 0 {
		return i
	}
	m.wanted = append(m.wanted, predicate)
	return len(m.wanted) - 1
}

// compile combines the whole condition into one test. Parts that need only the
// entity's own statements come first.
func (m *entityMatch) compile(f *EntityFilter) (entityTest, error) {
	var tests []entityTest
	for _, part := range []struct {
		name    string
		compile func() (entityTest, error)
	}{
		{"iri", func() (entityTest, error) { return iriTest(m.ctx, f.Iri) }},
		{"type", func() (entityTest, error) { return m.typeTest(f.Type) }},
		{"label", func() (entityTest, error) { return m.labelTest(f.Label) }},
		{"property", func() (entityTest, error) { return m.compileProperties(f.Property) }},
		{"path", func() (entityTest, error) { return m.pathFilters(f.Path) }},
		{"and", func() (entityTest, error) { return m.compileAnd(f.And) }},
		{"or", func() (entityTest, error) { return m.compileOr(f.Or) }},
		{"not", func() (entityTest, error) { return m.compileNot(f.Not) }},
	} {
		test, err := part.compile()
		if err != nil {
			return nil, kg.AsError(err).At(part.name)
		}
		if test != nil {
			tests = append(tests, test)
		}
	}
	return allEntities(tests), nil
}

func (m *entityMatch) compileEach(list []EntityFilter) ([]entityTest, error) {
	tests := make([]entityTest, len(list))
	for i := range list {
		test, err := m.compile(&list[i])
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		tests[i] = test
	}
	return tests, nil
}

func (m *entityMatch) compileAnd(list []EntityFilter) (entityTest, error) {
	tests, err := m.compileEach(list)
	return allEntities(tests), err
}

func (m *entityMatch) compileOr(list []EntityFilter) (entityTest, error) {
	if list == nil {
		return nil, nil
	}
	tests, err := m.compileEach(list)
	return anyEntity(tests), err
}

func (m *entityMatch) compileNot(f *EntityFilter) (entityTest, error) {
	if f == nil {
		return nil, nil
	}
	test, err := m.compile(f)
	return notEntity(test), err
}

func notEntity(test entityTest) entityTest {
	return func(s *subject) (bool, error) {
		ok, err := test(s)
		return err == nil && !ok, err
	}
}

func anyEntity(tests []entityTest) entityTest {
	return func(s *subject) (bool, error) {
		for _, test := range tests {
			if ok, err := test(s); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
}

func allEntities(tests []entityTest) entityTest {
	return func(s *subject) (bool, error) {
		for _, test := range tests {
			if ok, err := test(s); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
}

// someValue holds if the predicate has a value that fits. A nil test fits all
// values.
func (m *entityMatch) someValue(predicate kg.Term, test termTest) entityTest {
	i := m.wantPredicate(predicate)
	return func(s *subject) (bool, error) {
		for _, row := range s.rows[i] {
			if test == nil {
				return true, nil
			}
			if err := s.snapshot.Err(); err != nil { // a test may take long
				return false, err
			}
			t, err := s.snapshot.Term(row.Object)
			if err != nil {
				return false, err
			}
			if test(t) {
				return true, nil
			}
		}
		return false, nil
	}
}

// someStatement holds if a statement with the predicate fits.
func (m *entityMatch) someStatement(predicate kg.Term, test statementTest) entityTest {
	i := m.wantPredicate(predicate)
	return func(s *subject) (bool, error) {
		f := &s.scan.fact
		for _, row := range s.rows[i] {
			f.moveTo(row)
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

func (m *entityMatch) typeTest(f *IRIFilter) (entityTest, error) {
	if f == nil {
		return nil, nil
	}
	if f.requiresAbsence() {
		return m.absenceTest(rdfType, kg.Term.IsResource, f.requiresOnlyAbsence()), nil
	}
	fits, err := classFits(m.ctx, f)
	return m.someValue(rdfType, fits), err
}

// classFits is the condition on one class.
func classFits(ctx context.Context, f *IRIFilter) (termTest, error) {
	test, err := matchIRI(ctx, f)
	return func(t kg.Term) bool { return t.IsResource() && (test == nil || test(t)) }, err
}

// absenceTest holds if the predicate has no value for which counts holds. It never
// holds if possible is false.
func (m *entityMatch) absenceTest(predicate kg.Term, counts termTest, possible bool) entityTest {
	there := m.someValue(predicate, counts)
	return func(s *subject) (bool, error) {
		ok, err := there(s)
		return err == nil && !ok && possible, err
	}
}

func (m *entityMatch) labelTest(f *StringFilter) (entityTest, error) {
	if f == nil {
		return nil, nil
	}
	fits, onlyAbsent, err := labelFits(m.ctx, f)
	if err != nil {
		return nil, err
	}
	some := make([]entityTest, len(m.engine.labels))
	for i, l := range m.engine.labels {
		some[i] = m.someValue(l, fits)
	}
	absent := f.Exists != nil && !*f.Exists
	return func(s *subject) (bool, error) {
		for _, test := range some {
			if ok, err := test(s); ok || err != nil {
				return ok && !absent, err
			}
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

// valueFilter returns the part of a property condition that is about a single
// value.
func (f *PropertyFilter) valueFilter() *ValueFilter {
	return &ValueFilter{
		Eq: f.Eq, Ne: f.Ne, In: f.In, Nin: f.Nin, Lt: f.Lt, Lte: f.Lte, Gt: f.Gt, Gte: f.Gte,
		Contains: f.Contains, StartsWith: f.StartsWith, EndsWith: f.EndsWith, Regex: f.Regex,
		Iri: f.Iri, Language: f.Language, Datatype: f.Datatype,
	}
}

func (m *entityMatch) compileProperties(list []PropertyFilter) (entityTest, error) {
	var tests []entityTest
	for i := range list {
		test, err := m.compileProperty(&list[i])
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		tests = append(tests, test)
	}
	return allEntities(tests), nil
}

func (m *entityMatch) compileProperty(f *PropertyFilter) (entityTest, error) {
	fits, err := matchValue(m.ctx, f.valueFilter())
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
	return m.someStatement(f.Predicate, allStatementTests([]statementTest{m.statements.cachedTest(partObject, fits), held})), nil
}

// compileStatementTest compiles the part of the condition that is about the value's
// statement: graph and assertions. nil means no such condition.
func (m *entityMatch) compileStatementTest(f *PropertyFilter) (statementTest, error) {
	graph, err := m.statements.compileGraph(f.Graph)
	if err != nil {
		return nil, kg.AsError(err).At("graph")
	}
	assertions, err := f.assertionFilter().compile(m.ctx)
	return allStatementTests([]statementTest{graph, assertions}), err
}

// collectDrives collects the lookups that the condition allows. A lookup must be
// necessary for a match, so branches of `or`, conditions under `not` and
// conditions of absence give none.
func (m *entityMatch) collectDrives(f *EntityFilter) error {
	if f.Iri != nil {
		if t := onlyIRI(f.Iri); t != nil {
			m.drives = append(m.drives, drive{iris: []kg.Term{*t}})
		} else if f.Iri.In != nil {
			m.drives = append(m.drives, drive{iris: f.Iri.In})
		}
	}
	if f.Type != nil && !f.Type.requiresAbsence() {
		d, err := typeDrive(m.ctx, f.Type)
		if err != nil {
			return err
		}
		m.drives = append(m.drives, d)
	}
	if f.Label != nil && (f.Label.Exists == nil || *f.Label.Exists) {
		fits, _, err := labelFits(m.ctx, f.Label)
		if err != nil {
			return err
		}
		m.drives = append(m.drives, drive{predicates: m.engine.labels, text: f.Label.Eq, fits: fits})
	}
	for i := range f.Property {
		p := &f.Property[i]
		if p.Exists != nil && !*p.Exists {
			continue
		}
		fits, err := matchValue(m.ctx, p.valueFilter())
		if err != nil {
			return err
		}
		m.drives = append(m.drives, drive{predicates: []kg.Term{p.Predicate}, object: p.onlyObject(), text: p.onlyText(), fits: fits})
	}
	for i := range f.Path {
		if d, ok := m.paths[&f.Path[i]].lookupDrive(); ok {
			m.drives = append(m.drives, d)
		}
	}
	for i := range f.And {
		if err := m.collectDrives(&f.And[i]); err != nil {
			return err
		}
	}
	return nil
}

// onlyObject returns the only term that meets the condition, the zero Term if
// there may be several: a plain value may occur in any language or datatype.
func (f *PropertyFilter) onlyObject() (t kg.Term) {
	if t := onlyIRI(f.Iri); t != nil {
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
func (f *PropertyFilter) onlyText() *string { return onlyText(f.Eq) }

func onlyText(eq json.RawMessage) *string {
	o, err := parseOperand(eq)
	if err != nil || o.Kind != valuespace.KindText || o.hasMoment {
		return nil
	}
	return &o.Text
}

func typeDrive(ctx context.Context, f *IRIFilter) (drive, error) {
	fits, err := classFits(ctx, f)
	d := drive{predicates: []kg.Term{rdfType}, fits: fits}
	if t := onlyIRI(f); t != nil {
		d.object = *t
	}
	return d, err
}
