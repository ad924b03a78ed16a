package provenance

import (
	"cmp"
	"slices"
	"time"

	"koine/kg"
)

func subjectOf(q kg.Quad) kg.Term   { return q.Subject }
func objectOf(q kg.Quad) kg.Term    { return q.Object }
func predicateOf(q kg.Quad) kg.Term { return q.Predicate }

// addStatements reads the statements that match the pattern into a contradiction.
func (f *finder) addStatements(c *Contradiction, p kg.Pattern) (shown bool, err error) {
	if p.Subject.IsLiteral() {
		return false, nil
	}
	for st, err := range f.s.Match(p) {
		if err != nil {
			return shown, err
		}
		f.left--
		c.Statements, shown = append(c.Statements, st), true
		if len(c.Statements) == MaxCountedSides {
			break
		}
	}
	return shown, nil
}

// conflictInTime reports whether more than the allowed number of different values are valid at
// the same time.
func conflictInTime(list []kg.Statement, allowed int, side func(kg.Quad) kg.Term) bool {
	type event struct {
		at    time.Time // zero: no lower bound
		step  int
		place kg.Term
	}
	var events []event
	for _, st := range list {
		for _, a := range st.Assertions {
			events = append(events, event{a.Validity.From, 1, side(st.Quad)})
			if end := a.Validity.Until; !end.IsZero() {
				events = append(events, event{end, -1, side(st.Quad)})
			}
		}
	}
	slices.SortFunc(events, func(a, b event) int { // at the same time, ends sort before beginnings
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step, b.step))
	})
	holding, sides := map[kg.Term]int{}, 0
	for _, e := range events {
		before := holding[e.place]
		holding[e.place] += e.step
		switch {
		case before == 0:
			sides++
		case before+e.step == 0:
			sides--
		}
		if sides > allowed {
			return true
		}
	}
	return false
}

func compareQuads(a, b kg.Quad) int {
	return cmp.Or(a.Graph.Compare(b.Graph), a.Subject.Compare(b.Subject), a.Predicate.Compare(b.Predicate), a.Object.Compare(b.Object))
}
