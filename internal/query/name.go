package query

import (
	"context"

	"koine/kg"
)

// matchIRI compiles a condition on a present IRI. A nil test always holds.
func matchIRI(ctx context.Context, f *IRIFilter) (termTest, error) {
	if f == nil {
		return nil, nil
	}
	name, err := f.Substring.compileFor(ctx, func(t kg.Term) (string, bool) { return t.Name(), true })
	return allTerms(existsTest(f.Exists), termEqual(f.Eq, true), termEqual(f.Ne, false), termAmong(f.In, true), termAmong(f.Nin, false), name), err
}

// existsTest compiles `exists` for a present value.
func existsTest(f *bool) termTest {
	if f == nil || *f {
		return nil
	}
	return func(kg.Term) bool { return false }
}

// requiresAbsence reports whether the condition requires absence.
func (f *IRIFilter) requiresAbsence() bool { return f.Exists != nil && !*f.Exists }

// requiresOnlyAbsence reports whether the condition requires absence and nothing else.
func (f *IRIFilter) requiresOnlyAbsence() bool {
	return f.requiresAbsence() && f.Eq == nil && f.Ne == nil && f.In == nil && f.Nin == nil && f.Substring == (Substring{})
}

// isEquality reports whether the condition has no operator but eq.
func (f *IRIFilter) isEquality() bool {
	return f == nil || f.Exists == nil && f.Ne == nil && f.In == nil && f.Nin == nil && f.Substring == (Substring{})
}

// matchGraph compiles a condition on a graph's name. A nil test always holds.
func matchGraph(ctx context.Context, f *GraphFilter) (termTest, error) {
	if f == nil {
		return nil, nil
	}
	name, err := f.Substring.compileFor(ctx, func(t kg.Term) (string, bool) { return t.Name(), t != kg.DefaultGraph })
	var isDefault termTest
	if f.Default != nil {
		isDefault = termEqual(&kg.DefaultGraph, *f.Default)
	}
	return allTerms(termEqual(f.Eq, true), termEqual(f.Ne, false), termAmong(graphNames(f.In), true), termAmong(graphNames(f.Nin), false), isDefault, name), err
}

// isEquality reports whether the condition has no operator but eq.
func (f *GraphFilter) isEquality() bool {
	return f == nil || f.Ne == nil && f.In == nil && f.Nin == nil && f.Default == nil && f.Substring == (Substring{})
}

// graphNames replaces null by the default graph.
func graphNames(list []*kg.Term) []kg.Term {
	if list == nil {
		return nil
	}
	out := make([]kg.Term, len(list))
	for i, t := range list {
		out[i] = kg.DefaultGraph
		if t != nil {
			out[i] = *t
		}
	}
	return out
}

func termEqual(want *kg.Term, equal bool) termTest {
	if want == nil {
		return nil
	}
	w := *want
	return func(t kg.Term) bool { return (t == w) == equal }
}

func termAmong(want []kg.Term, among bool) termTest {
	if want == nil {
		return nil
	}
	set := make(map[kg.Term]bool, len(want))
	for _, t := range want {
		set[t] = true
	}
	return func(t kg.Term) bool { return set[t] == among }
}
