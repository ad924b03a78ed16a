package provenance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"koine/kg"
)

// checkSameAndDifferent finds pairs that are both owl:sameAs and owl:differentFrom, in
// either direction.
func (f *finder) checkSameAndDifferent() error {
	if f.startDeclaration(0) {
		return nil
	}
	different, known, err := f.s.ID(kg.IRI(differentFrom))
	if !known || err != nil {
		return err
	}
	return f.scanRows(kg.IDPattern{Predicate: different}, func(row *kg.Row, last kg.IDQuad) error {
		if row.Subject == last.Subject && row.Object == last.Object {
			return nil // in another graph too
		}
		q, err := f.s.Quad(*row)
		if err != nil {
			return err
		}
		return f.checkPair(q.Subject, q.Object)
	})
}

// checkPair checks two nodes that are declared to be different.
func (f *finder) checkPair(a, b kg.Term) error {
	c := Contradiction{Kind: SameAndDifferent, About: a,
		Reason: fmt.Sprintf("%s and %s are owl:sameAs and owl:differentFrom each other", a.Name(), b.Name())}
	different, same := kg.IRI(differentFrom), kg.IRI(sameAs)
	if a == b {
		c.Reason = a.Name() + " is owl:differentFrom itself"
		for _, p := range [...]kg.Term{different, same} {
			if _, err := f.addStatements(&c, kg.Pattern{Subject: a, Predicate: p, Object: a}); err != nil {
				return err
			}
		}
		return f.addResult(c)
	}
	backwards, err := f.addStatements(&c, kg.Pattern{Subject: b, Predicate: different, Object: a})
	if err != nil || backwards && b.Compare(a) < 0 {
		return err // reported with the opposite statement
	}
	for _, p := range [...]kg.Pattern{
		{Subject: a, Predicate: different, Object: b}, {Subject: a, Predicate: same, Object: b}, {Subject: b, Predicate: same, Object: a},
	} {
		if _, err := f.addStatements(&c, p); err != nil {
			return err
		}
	}
	if !conflictInTime(c.Statements, 1, predicateOf) {
		return nil
	}
	return f.addResult(c)
}

// checkDisjoint finds nodes that have two disjoint classes.
func (f *finder) checkDisjoint() error {
	list, err := f.listDeclared(kg.Pattern{Predicate: kg.IRI(disjointWith)})
	if err != nil {
		return err
	}
	declared := make(map[kg.Quad]bool, len(list))
	for _, q := range list {
		declared[q] = true
	}
	for nth, q := range list {
		a, b := q.Subject, q.Object
		other := kg.Quad{Subject: b, Predicate: q.Predicate, Object: a, Graph: q.Graph}
		if f.startDeclaration(nth) || b.Compare(a) < 0 && declared[other] {
			continue // checked on an earlier page, or with the opposite declaration
		}
		class, known, err := f.s.ID(a)
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		err = f.scanInstances(class, func(id kg.ID) error {
			about, err := f.s.Term(id)
			if err != nil {
				return err
			}
			return f.checkClasses(about, a, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkClasses checks a node that has the first of two disjoint classes.
func (f *finder) checkClasses(about, a, b kg.Term) error {
	c := Contradiction{Kind: Disjoint, About: about, Property: rdfType,
		Reason: fmt.Sprintf("no node may have both classes %s and %s: they are owl:disjointWith each other", a.Name(), b.Name())}
	statements, err := f.addStatements(&c, kg.Pattern{Subject: about, Predicate: rdfType, Object: b})
	if !statements || err != nil {
		return err
	}
	if _, err := f.addStatements(&c, kg.Pattern{Subject: about, Predicate: rdfType, Object: a}); err != nil || !conflictInTime(c.Statements, 1, objectOf) {
		return err
	}
	return f.addResult(c)
}

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
		f.unread--
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
