package graph

import (
	"encoding/json"
	"slices"
	"strconv"

	"koine/kg"
)

// entityMatch is a compiled EntityFilter: which predicates of an entity the
// test looks at, and what an index can look up.
type entityMatch struct {
	// wanted are the predicates whose statements the test (and the order) need;
	// a test refers to them by index.
	wanted []kg.Term
	test   entityTest // nil holds always
	drives []drive
}

// entityTest tells whether a condition holds for an entity.
type entityTest func(*subject) (bool, error)

// drive is a condition that all matches fulfil and that gives them: one of
// these iris, or a statement with one of the predicates and an object that fits.
type drive struct {
	iris       []kg.Term
	predicates []kg.Term
	object     kg.Term  // zero: any that fits; set only with one predicate
	text       *string  // set: the object is a literal with this text, and fits
	fits       termTest // nil: any
}

var rdfType = kg.IRI(kg.RDFType)

// matchEntity compiles a condition on entities; f may be nil. labels are the
// predicates that count as labels.
func matchEntity(f *EntityFilter, labels []kg.Term) (*entityMatch, error) {
	m := &entityMatch{}
	if f == nil {
		return m, nil
	}
	test, err := m.compile(f, labels)
	if err != nil {
		return nil, err
	}
	m.test = test
	return m, m.drive(f, labels)
}

// want is the index of a predicate in wanted.
func (m *entityMatch) want(predicate kg.Term) int {
	if i := slices.Index(m.wanted, predicate); i >= 0 {
		return i
	}
	m.wanted = append(m.wanted, predicate)
	return len(m.wanted) - 1
}

func (m *entityMatch) compile(f *EntityFilter, labels []kg.Term) (entityTest, error) {
	var tests []entityTest
	if test := matchIRI(f.Iri); test != nil {
		tests = append(tests, func(s *subject) (bool, error) {
			t, err := s.term()
			return err == nil && test(t), err
		})
	}
	if f.Type != nil {
		tests = append(tests, m.someValue(rdfType, matchIRI(f.Type)))
	}
	if f.Label != nil {
		tests = append(tests, m.labelTest(f.Label, labels))
	}
	for i := range f.Property {
		test, err := m.property(&f.Property[i])
		if err != nil {
			return nil, kg.AsError(err).At("property[" + strconv.Itoa(i) + "]")
		}
		tests = append(tests, test)
	}
	for i := range f.And {
		test, err := m.compile(&f.And[i], labels)
		if err != nil {
			return nil, kg.AsError(err).At("and[" + strconv.Itoa(i) + "]")
		}
		tests = append(tests, test)
	}
	if f.Or != nil {
		test, err := m.any(f.Or, labels)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	if f.Not != nil {
		test, err := m.compile(f.Not, labels)
		if err != nil {
			return nil, kg.AsError(err).At("not")
		}
		tests = append(tests, func(s *subject) (bool, error) {
			ok, err := test(s)
			return err == nil && !ok, err
		})
	}
	return allEntities(tests), nil
}

func (m *entityMatch) any(list []EntityFilter, labels []kg.Term) (entityTest, error) {
	tests := make([]entityTest, len(list))
	for i := range list {
		test, err := m.compile(&list[i], labels)
		if err != nil {
			return nil, kg.AsError(err).At("or[" + strconv.Itoa(i) + "]")
		}
		tests[i] = test
	}
	return func(s *subject) (bool, error) {
		for _, test := range tests {
			if ok, err := test(s); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}, nil
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

// someValue holds when the predicate has a value that fits; a nil test fits any.
func (m *entityMatch) someValue(predicate kg.Term, test termTest) entityTest {
	i := m.want(predicate)
	return func(s *subject) (bool, error) {
		for _, row := range s.rows[i] {
			if test == nil {
				return true, nil
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

func (m *entityMatch) labelTest(f *StringFilter, labels []kg.Term) entityTest {
	fits := labelFits(f)
	some := make([]entityTest, len(labels))
	for i, l := range labels {
		some[i] = m.someValue(l, fits)
	}
	absent := f.Exists != nil && !*f.Exists
	onlyAbsent := matchText(f)("", false)
	return func(s *subject) (bool, error) {
		for _, test := range some {
			if ok, err := test(s); ok || err != nil {
				return ok && !absent, err
			}
		}
		return absent && onlyAbsent, nil
	}
}

// labelFits is the condition on one label, whether or not there must be one.
func labelFits(f *StringFilter) termTest {
	text := *f
	text.Exists = nil
	fits := matchText(&text)
	return func(t kg.Term) bool { return t.IsLiteral() && fits(t.Value(), true) }
}

// values is the part of a condition on a property that is about one value.
func (f *PropertyFilter) values() *ValueFilter {
	return &ValueFilter{
		Eq: f.Eq, Ne: f.Ne, In: f.In, Nin: f.Nin, Lt: f.Lt, Lte: f.Lte, Gt: f.Gt, Gte: f.Gte,
		Contains: f.Contains, StartsWith: f.StartsWith, EndsWith: f.EndsWith,
		Iri: f.Iri, Language: f.Language, Datatype: f.Datatype,
	}
}

func (m *entityMatch) property(f *PropertyFilter) (entityTest, error) {
	fits, err := matchValue(f.values())
	if err != nil {
		return nil, err
	}
	some := m.someValue(f.Predicate, fits)
	if f.Exists == nil || *f.Exists {
		return some, nil
	}
	there := m.someValue(f.Predicate, nil)
	return func(s *subject) (bool, error) {
		ok, err := there(s)
		return err == nil && !ok && fits == nil, err
	}, nil
}

// drive collects what the condition lets an index look up. Only what must hold
// for all matches counts: not the branches of `or`, nothing under `not`.
func (m *entityMatch) drive(f *EntityFilter, labels []kg.Term) error {
	if f.Iri != nil {
		if t := onlyIRI(f.Iri); t != nil {
			m.drives = append(m.drives, drive{iris: []kg.Term{*t}})
		} else if f.Iri.In != nil {
			m.drives = append(m.drives, drive{iris: f.Iri.In})
		}
	}
	if f.Type != nil {
		m.drives = append(m.drives, typeDrive(f.Type))
	}
	if f.Label != nil && (f.Label.Exists == nil || *f.Label.Exists) {
		m.drives = append(m.drives, drive{predicates: labels, text: f.Label.Eq, fits: labelFits(f.Label)})
	}
	for i := range f.Property {
		p := &f.Property[i]
		if p.Exists != nil && !*p.Exists {
			continue
		}
		fits, err := matchValue(p.values())
		if err != nil {
			return err
		}
		m.drives = append(m.drives, drive{predicates: []kg.Term{p.Predicate}, object: p.onlyObject(), text: p.onlyText(), fits: fits})
	}
	for i := range f.And {
		if err := m.drive(&f.And[i], labels); err != nil {
			return err
		}
	}
	return nil
}

// onlyObject is the one term that a condition leaves, or the zero Term. A value
// alone leaves many: a text in any language, a number in any datatype.
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

// onlyText is the text that a condition leaves, or nil. One that reads as a date
// also fits values of that date that are written otherwise.
func (f *PropertyFilter) onlyText() *string {
	o, err := parseOperand(f.Eq)
	if err != nil || o.kind != textValue || o.hasMoment {
		return nil
	}
	return &o.text
}

func typeDrive(f *IRIFilter) drive {
	d := drive{predicates: []kg.Term{rdfType}, fits: matchIRI(f)}
	if t := onlyIRI(f); t != nil {
		d.object = *t
	}
	return d
}
