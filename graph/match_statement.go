package graph

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"koine/kg"
)

// factTest tells whether a condition holds for a statement.
type factTest func(*fact) (bool, error)

// statementMatch is a compiled StatementFilter: what an index can look up, and
// what has to be tested then.
type statementMatch struct {
	pattern kg.Pattern
	test    factTest // nil holds always
}

// matchStatement compiles a condition on statements; f may be nil.
func matchStatement(f *StatementFilter) (m statementMatch, err error) {
	if f == nil {
		return m, nil
	}
	bindPattern(&m.pattern, f)
	m.test, err = testStatement(f)
	if f.bound() {
		m.test = nil // the pattern says all of it
	}
	return m, err
}

// bindPattern takes over the terms that a condition fixes for all it holds for.
func bindPattern(p *kg.Pattern, f *StatementFilter) {
	bind := func(part *kg.Term, t *kg.Term) {
		if part.IsZero() && t != nil {
			*part = *t
		}
	}
	bind(&p.Subject, onlyIRI(f.Subject))
	bind(&p.Predicate, onlyIRI(f.Predicate))
	if f.Object != nil {
		bind(&p.Object, onlyIRI(f.Object.Iri))
	}
	bind(&p.Graph, onlyGraph(f.Graph))
	for i := range f.And {
		bindPattern(p, &f.And[i])
	}
}

// onlyIRI is the one IRI that a condition leaves, or nil.
func onlyIRI(f *IRIFilter) *kg.Term {
	switch {
	case f == nil:
		return nil
	case f.Eq != nil:
		return f.Eq
	case len(f.In) == 1:
		return &f.In[0]
	}
	return nil
}

func onlyGraph(f *GraphFilter) *kg.Term {
	switch {
	case f == nil:
		return nil
	case f.Eq != nil:
		return f.Eq
	case f.Default != nil && *f.Default:
		return &kg.DefaultGraph
	case len(f.In) == 1:
		return &graphNames(f.In)[0]
	}
	return nil
}

// bound tells whether the condition is nothing but equalities, so that the
// pattern says all of it.
func (f *StatementFilter) bound() bool {
	iri := func(f *IRIFilter) bool {
		return f == nil || f.Ne == nil && f.In == nil && f.Nin == nil && f.Contains == nil && f.StartsWith == nil && f.EndsWith == nil
	}
	g := f.Graph
	return f.And == nil && f.Or == nil && f.Not == nil && f.Certainty == nil && f.AssertedBy == nil && f.RecordedAt == nil && f.Revision == nil &&
		iri(f.Subject) && iri(f.Predicate) && (g == nil || g.Ne == nil && g.In == nil && g.Nin == nil && g.Default == nil) && f.Object == nil
}

// testStatement compiles the whole condition into a test; nil holds always.
func testStatement(f *StatementFilter) (factTest, error) {
	object, err := matchValue(f.Object)
	if err != nil {
		return nil, kg.AsError(err).At("object")
	}
	tests := []factTest{
		termFact((*fact).predicate, matchIRI(f.Predicate)),
		termFact((*fact).subject, matchIRI(f.Subject)),
		termFact((*fact).graph, matchGraph(f.Graph)),
		termFact((*fact).object, object),
		assertionFact(f),
	}
	all, err := testStatements(f.And)
	if err != nil {
		return nil, kg.AsError(err).At("and")
	}
	tests = append(tests, all...)
	some, err := testStatements(f.Or)
	if err != nil {
		return nil, kg.AsError(err).At("or")
	}
	if f.Or != nil {
		tests = append(tests, anyFact(some))
	}
	if f.Not != nil {
		not, err := testStatement(f.Not)
		if err != nil {
			return nil, kg.AsError(err).At("not")
		}
		tests = append(tests, notFact(not))
	}
	return allFacts(tests), nil
}

func testStatements(list []StatementFilter) ([]factTest, error) {
	out := make([]factTest, len(list))
	for i := range list {
		test, err := testStatement(&list[i])
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		if test == nil {
			test = func(*fact) (bool, error) { return true, nil }
		}
		out[i] = test
	}
	return out, nil
}

func termFact(part func(*fact) (kg.Term, error), test termTest) factTest {
	if test == nil {
		return nil
	}
	return func(f *fact) (bool, error) {
		t, err := part(f)
		return err == nil && test(t), err
	}
}

func allFacts(tests []factTest) factTest {
	tests = slices.DeleteFunc(tests, func(t factTest) bool { return t == nil })
	if len(tests) == 0 {
		return nil
	}
	return func(f *fact) (bool, error) {
		for _, test := range tests {
			if ok, err := test(f); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
}

func anyFact(tests []factTest) factTest {
	return func(f *fact) (bool, error) {
		for _, test := range tests {
			if ok, err := test(f); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
}

func notFact(test factTest) factTest {
	return func(f *fact) (bool, error) {
		if test == nil {
			return false, nil
		}
		ok, err := test(f)
		return err == nil && !ok, err
	}
}

// assertionFact is what a condition says of the assertions.
func assertionFact(f *StatementFilter) factTest {
	var tests []func(kg.Statement) bool
	if c := f.Certainty; c != nil {
		tests = append(tests, func(s kg.Statement) bool { return matchCertainty(c, s) })
	}
	if by := matchText(canonicalAgents(f.AssertedBy)); f.AssertedBy != nil {
		tests = append(tests, func(s kg.Statement) bool {
			return slices.ContainsFunc(s.Assertions, func(a kg.Assertion) bool { return by(string(a.Source), true) })
		})
	}
	if r := f.RecordedAt; r != nil {
		within := matchOrdered(time.Time.Compare, r.Eq, r.Ne, r.Lt, r.Lte, r.Gt, r.Gte)
		tests = append(tests, func(s kg.Statement) bool { return within(s.RecordedAt()) })
	}
	if r := f.Revision; r != nil {
		within := matchOrdered(cmp.Compare[kg.Revision], r.Eq, r.Ne, r.Lt, r.Lte, r.Gt, r.Gte)
		tests = append(tests, func(s kg.Statement) bool { return within(s.Revision()) })
	}
	if len(tests) == 0 {
		return nil
	}
	return func(f *fact) (bool, error) {
		s, err := f.statement()
		if err != nil {
			return false, err
		}
		for _, test := range tests {
			if !test(s) {
				return false, nil
			}
		}
		return true, nil
	}
}

func matchCertainty(f *FloatFilter, s kg.Statement) bool {
	certainty, known := s.Certainty()
	if f.Exists != nil && *f.Exists != known {
		return false
	}
	if f.In != nil && !slices.Contains(f.In, certainty) || slices.Contains(f.Nin, certainty) {
		return false
	}
	return matchOrdered(cmp.Compare[float64], f.Eq, f.Ne, f.Lt, f.Lte, f.Gt, f.Gte)(certainty)
}

// matchOrdered is the six comparisons; those that are nil hold.
func matchOrdered[T any](compare func(a, b T) int, eq, ne, lt, lte, gt, gte *T) func(T) bool {
	return func(v T) bool {
		return (eq == nil || compare(v, *eq) == 0) && (ne == nil || compare(v, *ne) != 0) &&
			(lt == nil || compare(v, *lt) < 0) && (lte == nil || compare(v, *lte) <= 0) &&
			(gt == nil || compare(v, *gt) > 0) && (gte == nil || compare(v, *gte) >= 0)
	}
}

// canonicalAgents spells the agents of a condition as they are stored.
func canonicalAgents(f *StringFilter) *StringFilter {
	if f == nil {
		return nil
	}
	canonical := func(s *string) *string {
		if s == nil {
			return nil
		}
		c := string(kg.CanonicalAgent(*s))
		return &c
	}
	list := func(in []string) []string {
		if in == nil {
			return nil
		}
		out := make([]string, len(in))
		for i := range in {
			out[i] = *canonical(&in[i])
		}
		return out
	}
	c := *f
	c.Eq, c.Ne, c.In, c.Nin = canonical(f.Eq), canonical(f.Ne), list(f.In), list(f.Nin)
	return &c
}
