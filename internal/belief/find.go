package belief

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"koine/kg"
)

var rdfType = kg.IRI(kg.RDFType)

func subjectOf(q kg.Quad) kg.Term { return q.Subject }
func objectOf(q kg.Quad) kg.Term  { return q.Object }

// each calls fn for the properties that are declared to be of the class.
func (f *finder) each(class string, fn func(property kg.Term, id kg.ID) error) error {
	list, err := f.declared(kg.Pattern{Predicate: rdfType, Object: kg.IRI(class)})
	if err != nil {
		return err
	}
	for _, q := range list {
		id, known, err := f.s.ID(q.Subject)
		if err == nil && known {
			err = fn(q.Subject, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crowded calls fn for each end of a property's statements that has more than one
// other end, in the order of the ids.
func (f *finder) crowded(property kg.ID, ends func(*kg.Row) (of, value kg.ID), fn func(kg.ID) error) error {
	first := map[kg.ID]kg.ID{}
	var several []kg.ID
	for row, err := range f.s.MatchIDs(kg.IDPattern{Predicate: property}, nil) {
		if err == nil {
			err = f.see()
		}
		if err != nil {
			return err
		}
		of, value := ends(&row)
		if other, seen := first[of]; !seen {
			first[of] = value
		} else if other != value {
			several = append(several, of)
		}
	}
	slices.SortFunc(several, func(a, b kg.ID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range slices.Compact(several) {
		if err := fn(id); err != nil {
			return err
		}
	}
	return nil
}

// tell reads the sides of a contradiction and takes it into the page, if there
// are more than allowed different ones that hold at one time.
func (f *finder) tell(c Contradiction, allowed int, sides kg.Pattern, side func(kg.Quad) kg.Term) error {
	for st, err := range f.s.Match(sides) {
		if err == nil {
			err = f.see()
		}
		if err != nil {
			return err
		}
		c.Statements = append(c.Statements, st)
	}
	if !clash(c.Statements, allowed, side) {
		return nil
	}
	return f.take(c)
}

// take takes a contradiction into the page.
func (f *finder) take(c Contradiction) error {
	if f.skip > 0 {
		f.skip--
		return nil
	}
	if len(f.found.List) == f.most {
		return errEnough
	}
	c.Total = len(c.Statements)
	slices.SortFunc(c.Statements, func(a, b kg.Statement) int { return compareQuads(a.Quad, b.Quad) })
	c.Statements = c.Statements[:min(c.Total, MaxSides)]
	f.found.List = append(f.found.List, c)
	return nil
}

// clash tells whether at some time more than allowed different sides hold: at the
// beginning of some assertion's validity, if at any time.
func clash(list []kg.Statement, allowed int, side func(kg.Quad) kg.Term) bool {
	for _, st := range list {
		for _, a := range st.Assertions {
			at := map[kg.Term]bool{}
			for _, other := range list {
				if slices.ContainsFunc(other.Assertions, func(b kg.Assertion) bool { return b.Validity.Contains(a.Validity.From) }) {
					at[side(other.Quad)] = true
				}
			}
			if len(at) > allowed {
				return true
			}
		}
	}
	return false
}

// sameAndDifferent looks for pairs of which both is said, whichever way round.
func (f *finder) sameAndDifferent() error {
	list, err := f.declared(kg.Pattern{Predicate: kg.IRI(differentFrom)})
	if err != nil {
		return err
	}
	for _, q := range list {
		c := Contradiction{Kind: SameAndDifferent, About: q.Subject,
			Reason: fmt.Sprintf("%s and %s are owl:sameAs and owl:differentFrom each other", q.Subject.Name(), q.Object.Name())}
		if q.Subject == q.Object {
			c.Reason = q.Subject.Name() + " is owl:differentFrom itself"
		}
		different, same := kg.IRI(differentFrom), kg.IRI(sameAs)
		backwards := q.Object.Compare(q.Subject) < 0
		if known, err := f.add(&c, q.Object, different, q.Subject); err != nil {
			return err
		} else if known && backwards {
			continue // told with the other
		}
		if q.Subject != q.Object {
			if _, err := f.add(&c, q.Subject, different, q.Object); err != nil {
				return err
			}
		}
		before := len(c.Statements)
		if _, err := f.add(&c, q.Subject, same, q.Object); err != nil {
			return err
		}
		if q.Subject != q.Object {
			if _, err := f.add(&c, q.Object, same, q.Subject); err != nil {
				return err
			}
		}
		claimed := len(c.Statements) > before && clash(c.Statements, 1, func(q kg.Quad) kg.Term { return q.Predicate })
		if q.Subject == q.Object || claimed {
			if err := f.take(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds what the snapshot shows of a triple to the sides.
func (f *finder) add(c *Contradiction, s, p, o kg.Term) (shown bool, err error) {
	if !s.IsResource() {
		return false, nil
	}
	for st, err := range f.s.Match(kg.Pattern{Subject: s, Predicate: p, Object: o}) {
		if err == nil {
			err = f.see()
		}
		if err != nil {
			return shown, err
		}
		c.Statements, shown = append(c.Statements, st), true
	}
	return shown, nil
}

// disjoint looks for what is of both of two classes that are disjoint.
func (f *finder) disjoint() error {
	list, err := f.declared(kg.Pattern{Predicate: kg.IRI(disjointWith)})
	if err != nil {
		return err
	}
	for _, q := range list {
		a, b := q.Subject, q.Object
		if b.Compare(a) < 0 && slices.ContainsFunc(list, func(o kg.Quad) bool { return o.Subject == b && o.Object == a }) {
			continue // told with the other
		}
		reason := fmt.Sprintf("nothing is both %s and %s: they are owl:disjointWith each other", a.Name(), b.Name())
		var last kg.Term
		for st, err := range f.s.Match(kg.Pattern{Predicate: rdfType, Object: a}) {
			if err == nil {
				err = f.see()
			}
			if err != nil {
				return err
			}
			if st.Subject == last {
				continue // in another graph too
			}
			last = st.Subject
			c := Contradiction{Kind: Disjoint, About: st.Subject, Property: rdfType, Reason: reason}
			other, err := f.add(&c, st.Subject, rdfType, b)
			if err == nil && other {
				_, err = f.add(&c, st.Subject, rdfType, a)
			}
			if err == nil && other && clash(c.Statements, 1, objectOf) {
				err = f.take(c)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// limit is that a shape allows so many values of a property to the instances of a
// class.
type limit struct {
	class, property kg.Term
	most            int
}

// maxCounts looks for what has more values than a shape with a target class
// allows, where its path is one property.
func (f *finder) maxCounts(constraints *kg.Snapshot) error {
	limits, err := limitsOf(constraints)
	if err != nil {
		return err
	}
	for _, l := range limits {
		var last kg.Term
		for st, err := range f.s.Match(kg.Pattern{Predicate: rdfType, Object: l.class}) {
			if err == nil {
				err = f.see()
			}
			if err != nil {
				return err
			}
			if st.Subject == last {
				continue
			}
			last = st.Subject
			err = f.tell(Contradiction{Kind: MaxCount, About: st.Subject, Property: l.property,
				Reason: fmt.Sprintf("a %s has at most %d of %s, as a shape says", l.class.Name(), l.most, l.property.Name())},
				l.most, kg.Pattern{Subject: st.Subject, Predicate: l.property}, objectOf)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// limitsOf reads the limits of the shapes graph, in order.
func limitsOf(s *kg.Snapshot) (limits []limit, err error) {
	if s == nil {
		return nil, nil
	}
	read := func(p kg.Pattern) (list []kg.Quad) {
		p.Graph = kg.ShapesGraph
		for st, failed := range s.Match(p) {
			if failed != nil {
				err = failed
				break
			}
			if list = append(list, st.Quad); len(list) == MaxDeclarations {
				break
			}
		}
		return list
	}
	off := func(shape kg.Term) bool {
		return len(read(kg.Pattern{Subject: shape, Predicate: kg.IRI(sh + "deactivated"), Object: kg.Boolean(true)})) > 0
	}
	for _, count := range read(kg.Pattern{Predicate: kg.IRI(sh + "maxCount")}) {
		most, failed := strconv.Atoi(count.Object.Value())
		if failed != nil || off(count.Subject) {
			continue
		}
		for _, path := range read(kg.Pattern{Subject: count.Subject, Predicate: kg.IRI(sh + "path")}) {
			for _, owner := range read(kg.Pattern{Predicate: kg.IRI(sh + "property"), Object: count.Subject}) {
				for _, target := range read(kg.Pattern{Subject: owner.Subject, Predicate: kg.IRI(sh + "targetClass")}) {
					if path.Object.Kind() == kg.KindIRI && !off(owner.Subject) {
						limits = append(limits, limit{target.Object, path.Object, most})
					}
				}
			}
		}
	}
	slices.SortFunc(limits, func(a, b limit) int {
		if c := a.class.Compare(b.class); c != 0 {
			return c
		}
		if c := a.property.Compare(b.property); c != 0 {
			return c
		}
		return a.most - b.most
	})
	return slices.CompactFunc(limits, func(a, b limit) bool { return a.class == b.class && a.property == b.property }), err
}

func compareQuads(a, b kg.Quad) int {
	for _, c := range [...]int{a.Graph.Compare(b.Graph), a.Subject.Compare(b.Subject), a.Predicate.Compare(b.Predicate), a.Object.Compare(b.Object)} {
		if c != 0 {
			return c
		}
	}
	return 0
}
