package query

import (
	"context"
	"slices"
	"time"

	"koine/kg"
)

// compile compiles the condition.
func (c AssertionFilter) compile(ctx context.Context) (statementTest, error) {
	if c == (AssertionFilter{}) {
		return nil, nil
	}
	by, err := matchText(ctx, canonicalAgents(c.AssertedBy))
	if err != nil {
		return nil, kg.AsError(err).At("assertedBy")
	}
	revision, recordedAt, certainty, age := testRevision(c.Revision), testTime(c.RecordedAt), c.Certainty.statementTest(), testLong(c.AgeSeconds)
	return func(f *testedStatement) (bool, error) {
		s, err := f.loadStatement()
		if err != nil {
			return false, err
		}
		if revision != nil && !revision(s.Revision()) || recordedAt != nil && !recordedAt(s.RecordedAt()) || certainty != nil && !certainty(s) {
			return false, nil
		}
		if c.AssertedBy != nil && !slices.ContainsFunc(s.Assertions, func(a kg.Assertion) bool { return by(string(a.Source), true) }) {
			return false, nil
		}
		if age == nil {
			return true, nil
		}
		now, err := f.evaluationTime()
		return err == nil && age(ageSeconds(now.Sub(s.RecordedAt()))), err
	}, nil
}

// ageSeconds returns an age in seconds, rounded up, so that age <= n s exactly
// if ageSeconds(age) <= n.
func ageSeconds(age time.Duration) int64 {
	seconds := int64(age / time.Second)
	if age > 0 && age%time.Second != 0 {
		seconds++
	}
	return seconds
}

// statementTest compiles the condition for the certainty of a statement, which
// is 1 if none is stated. A nil test always holds.
func (f *FloatFilter) statementTest() func(kg.Statement) bool {
	if f == nil {
		return nil
	}
	test := testFloat(f)
	return func(s kg.Statement) bool {
		certainty, stated := s.Certainty()
		return (f.Exists == nil || *f.Exists == stated) && test(certainty)
	}
}

// canonicalAgents returns the condition with its agents in canonical spelling,
// as they are stored.
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
