package provenance

import (
	"fmt"

	"koine/internal/shapes"
	"koine/kg"
)

// ContradictionsOf finds the contradictions that the given statements of a snapshot are part
// of, at most MaxContradictions. It reports false if it ended early.
func ContradictionsOf(s *kg.Snapshot, limits []shapes.Limit, statements []kg.Quad) (list []Contradiction, complete bool, err error) {
	f := &finder{s: s, sweep: s.Sweep(), limit: MaxContradictions, unread: MaxCompared, found: &Page{Complete: true}}
	defer f.sweep.Close()
	crowds, err := f.cardinalitiesOf(limits)
	if err != nil {
		return nil, false, err
	}
	c := &statementCheck{finder: f, crowds: crowds, checked: map[checkKey]bool{}}
	for i := range statements {
		switch err := c.check(&statements[i]); {
		case err == errEnough || err == errTooMany:
			return f.found.List, false, nil
		case err != nil:
			return nil, false, err
		}
	}
	return f.found.List, f.found.Complete, nil
}

// statementCheck checks statements. No question is asked twice.
type statementCheck struct {
	*finder
	crowds  []cardinality
	checked map[checkKey]bool
}

type checkKey struct {
	kind   Kind
	of, by kg.Term
}

// isFirst reports whether a check was not made before.
func (c *statementCheck) isFirst(kind Kind, of, by kg.Term) bool {
	key := checkKey{kind, of, by}
	first := !c.checked[key]
	c.checked[key] = true
	return first
}

func (c *statementCheck) check(q *kg.Quad) error {
	p := q.Predicate
	for _, d := range [...]struct {
		kind    Kind
		class   string
		member  kg.Term
		inverse bool
		reason  string
	}{
		{Functional, functional, q.Subject, false, "%s may have at most one value: it is an owl:FunctionalProperty"},
		{InverseFunctional, inverseFunctional, q.Object, true, "a value of %s may have at most one subject: it is an owl:InverseFunctionalProperty"},
	} {
		if !c.isFirst(d.kind, d.member, p) {
			continue
		}
		declared, err := c.isMember(p, members{instances, kg.IRI(d.class)})
		if err != nil {
			return err
		}
		if declared {
			if err := c.checkMember(d.kind, cardinality{property: p, inverse: d.inverse, limit: 1, reason: fmt.Sprintf(d.reason, p.Name())}, d.member); err != nil {
				return err
			}
		}
	}
	if err := c.checkShapes(q); err != nil {
		return err
	}
	switch p.Value() {
	case kg.RDFType:
		return c.checkDisjointClasses(q)
	case sameAs, differentFrom:
		a, b := q.Subject, q.Object
		if b.Compare(a) < 0 {
			a, b = b, a
		}
		if !c.isFirst(SameAndDifferent, a, b) || a == b && p.Value() == sameAs {
			return nil
		}
		return c.checkPair(a, b)
	}
	return nil
}

func (c *statementCheck) checkMember(kind Kind, of cardinality, member kg.Term) error {
	c.at.kind = kind
	of.members = members{theNode, member}
	return c.checkCardinality(of, nil)
}

// checkShapes checks the shapes about the predicate, and about the class that the statement
// gives.
func (c *statementCheck) checkShapes(q *kg.Quad) error {
	for _, crowd := range c.crowds {
		member := q.Subject
		switch {
		case crowd.property == q.Predicate && crowd.inverse:
			member = q.Object
		case crowd.property != q.Predicate && (q.Predicate != rdfType || crowd.members != members{instances, q.Object}):
			continue
		}
		if is, err := c.isMember(member, crowd.members); err != nil {
			return err
		} else if is && c.isFirst(MaxCount, member, crowd.property) {
			if err := c.checkMember(MaxCount, crowd, member); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *statementCheck) checkDisjointClasses(q *kg.Quad) error {
	disjoint := kg.IRI(disjointWith)
	for side, pattern := range [...]kg.Pattern{{Subject: q.Object, Predicate: disjoint}, {Predicate: disjoint, Object: q.Object}} {
		declared, err := c.listDeclared(pattern)
		if err != nil {
			return err
		}
		for _, d := range declared {
			other := d.Object
			if side == 1 {
				other = d.Subject
			}
			a, b := q.Object, other
			if b.Compare(a) < 0 {
				a, b = b, a
			}
			if !c.isFirst(Disjoint, q.Subject, kg.String(a.String()+" "+b.String())) {
				continue
			}
			if err := c.checkClasses(q.Subject, a, b); err != nil {
				return err
			}
		}
	}
	return nil
}
