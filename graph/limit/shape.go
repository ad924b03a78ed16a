package limit

import (
	"github.com/vektah/gqlparser/v2/ast"
)

// shape is the size of a selection set with its fragments expanded. Numbers
// saturate at tooMuch: fragments that spread each other double at each step.
type shape struct{ depth, fields, aliases int }

const tooMuch = 1 << 30

func (s *shape) add(t shape) {
	s.depth = max(s.depth, t.depth)
	s.fields = min(s.fields+t.fields, tooMuch)
	s.aliases = min(s.aliases+t.aliases, tooMuch)
}

// shapeMeasurer computes the shape of a parsed document before validation: fragments
// may be missing or recursive.
type shapeMeasurer struct {
	fragments ast.FragmentDefinitionList
	known     map[string]shape // also those being measured, as a zero shape
}

func (m *shapeMeasurer) measureSet(set ast.SelectionSet) (s shape) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			inner := m.measureSet(sel.SelectionSet)
			inner.depth++
			inner.fields = min(inner.fields+1, tooMuch)
			if sel.Alias != sel.Name {
				inner.aliases = min(inner.aliases+1, tooMuch)
			}
			s.add(inner)
		case *ast.InlineFragment:
			s.add(m.measureSet(sel.SelectionSet))
		case *ast.FragmentSpread:
			s.add(m.measureFragment(sel.Name))
		}
	}
	return s
}

func (m *shapeMeasurer) measureFragment(name string) shape {
	if s, ok := m.known[name]; ok {
		return s
	}
	// A cycle counts once here. Validation reports it.
	m.known[name] = shape{}
	if f := m.fragments.ForName(name); f != nil {
		m.known[name] = m.measureSet(f.SelectionSet)
	}
	return m.known[name]
}

// CheckShape checks a document before validation.
func (l Limits) CheckShape(doc *ast.QueryDocument) *Error {
	m := &shapeMeasurer{fragments: doc.Fragments, known: map[string]shape{}}
	total := shape{}
	for _, op := range doc.Operations {
		total.add(m.measureSet(op.SelectionSet))
		if n := m.rootFields(op.SelectionSet, map[string]bool{}); n > l.RootFields {
			return Exceeded("rootFields", "the operation has more than %d root fields", l.RootFields).WithHint("Split it into several operations.")
		}
	}
	for _, f := range doc.Fragments { // validation reads unused ones too
		s := m.measureFragment(f.Name)
		total = shape{max(total.depth, s.depth), max(total.fields, s.fields), max(total.aliases, s.aliases)}
	}
	switch {
	case total.depth > l.Depth:
		return Exceeded("depth", "the query is %d fields deep; at most %d are allowed", total.depth, l.Depth).
			WithHint("Read the deeper parts in a second operation that starts from this one's results.")
	case total.fields > l.Fields:
		return Exceeded("fields", "the query has more than %d fields", l.Fields).WithHint("Split it into several operations.")
	case total.aliases > l.Aliases:
		return Exceeded("aliases", "the query has more than %d aliases", l.Aliases).
			WithHint("Use a filter such as iri: {in: […]} instead of aliases.")
	case m.hasRepeats(doc, l.Repeats):
		return Exceeded("repeats", "the query selects a field more than %d times in one selection set", l.Repeats).WithHint("Select the field once.")
	}
	return nil
}

// hasRepeats reports whether a selection set has a response name more than max
// times: validation compares each of them with each other. The number of
// fields is already bounded.
func (m *shapeMeasurer) hasRepeats(doc *ast.QueryDocument, max int) bool {
	for _, op := range doc.Operations {
		if m.setRepeats(op.SelectionSet, max) {
			return true
		}
	}
	for _, f := range doc.Fragments {
		if m.setRepeats(f.SelectionSet, max) {
			return true
		}
	}
	return false
}

func (m *shapeMeasurer) setRepeats(set ast.SelectionSet, max int) bool {
	counts := map[string]int{}
	return m.countRepeats(set, counts, map[string]bool{}, max)
}

func (m *shapeMeasurer) countRepeats(set ast.SelectionSet, counts map[string]int, seen map[string]bool, max int) bool {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if counts[sel.Alias]++; counts[sel.Alias] > max || len(sel.SelectionSet) > 0 && m.setRepeats(sel.SelectionSet, max) {
				return true
			}
		case *ast.InlineFragment:
			if m.countRepeats(sel.SelectionSet, counts, seen, max) {
				return true
			}
		case *ast.FragmentSpread:
			f := m.fragments.ForName(sel.Name)
			if f == nil || seen[sel.Name] {
				continue
			}
			seen[sel.Name] = true
			if m.countFlat(f.SelectionSet, counts, seen, max) {
				return true
			}
		}
	}
	return false
}

// countFlat counts the fields that a fragment adds to the set that spreads it.
// Inner sets are counted at the fragment's definition, so recursive fragments
// terminate.
func (m *shapeMeasurer) countFlat(set ast.SelectionSet, counts map[string]int, seen map[string]bool, max int) bool {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if counts[sel.Alias]++; counts[sel.Alias] > max {
				return true
			}
		case *ast.InlineFragment:
			if m.countFlat(sel.SelectionSet, counts, seen, max) {
				return true
			}
		case *ast.FragmentSpread:
			if f := m.fragments.ForName(sel.Name); f != nil && !seen[sel.Name] {
				seen[sel.Name] = true
				if m.countFlat(f.SelectionSet, counts, seen, max) {
					return true
				}
			}
		}
	}
	return false
}

// rootFields counts the root fields of an operation. A fragment counts once:
// spreading it again adds no field.
func (m *shapeMeasurer) rootFields(set ast.SelectionSet, seen map[string]bool) (n int) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			n++
		case *ast.InlineFragment:
			n += m.rootFields(sel.SelectionSet, seen)
		case *ast.FragmentSpread:
			if f := m.fragments.ForName(sel.Name); f != nil && !seen[sel.Name] {
				seen[sel.Name] = true
				n += m.rootFields(f.SelectionSet, seen)
			}
		}
	}
	return n
}
