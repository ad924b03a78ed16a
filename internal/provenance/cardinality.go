package provenance

import (
	"cmp"
	"fmt"
	"slices"

	"koine/internal/shapes"
	"koine/internal/systemgraph"
	"koine/kg"
)

// cardinality is a cardinality limit: each member has at most this many values of a property
// or, if inverse, is the value of at most this many subjects.
type cardinality struct {
	property kg.Term
	inverse  bool
	limit    int
	members  members
	reason   string
}

// members selects the nodes that a limit applies to.
type members struct {
	sort sort
	term kg.Term
}

type sort uint8

const (
	theNode    sort = iota // the term
	instances              // of the class
	subjectsOf             // the property
	objectsOf              // the property
)

// listDeclared lists the distinct quads of a pattern, ignoring graphs, in the order of
// Term.Compare.
func (f *finder) listDeclared(p kg.Pattern) (list []kg.Quad, err error) {
	for st, err := range f.s.Match(p) {
		if err != nil {
			return nil, err
		}
		f.unread--
		if len(list) == MaxDeclarations {
			f.found.Complete = false
			break
		}
		st.Graph = kg.DefaultGraph
		list = append(list, st.Quad)
	}
	slices.SortFunc(list, compareQuads)
	return slices.Compact(list), nil
}

// checkPropertyClass checks the properties that are declared to be of the class.
func (f *finder) checkPropertyClass(class string, inverse bool) error {
	list, err := f.listDeclared(kg.Pattern{Predicate: rdfType, Object: kg.IRI(class)})
	if err != nil {
		return err
	}
	for nth, q := range list {
		c := cardinality{property: q.Subject, inverse: inverse, limit: 1, members: members{subjectsOf, q.Subject},
			reason: fmt.Sprintf("%s may have at most one value: it is an owl:FunctionalProperty", q.Subject.Name())}
		if inverse {
			c.members.sort = objectsOf
			c.reason = fmt.Sprintf("a value of %s may have at most one subject: it is an owl:InverseFunctionalProperty", q.Subject.Name())
		}
		if f.startDeclaration(nth) {
			continue
		}
		if err := f.checkCardinality(c, nil); err != nil {
			return err
		}
	}
	return nil
}

// checkShapeLimits checks the targets of shapes that limit a property.
func (f *finder) checkShapeLimits(limits []shapes.Limit) error {
	crowds, err := f.cardinalitiesOf(limits)
	if err != nil {
		return err
	}
	first := 0 // of the same property
	for nth := range crowds {
		if c := &crowds[nth]; c.property != crowds[first].property || c.inverse != crowds[first].inverse {
			first = nth
		}
		if f.startDeclaration(nth) {
			continue
		}
		if err := f.checkCardinality(crowds[nth], crowds[first:nth]); err != nil {
			return err
		}
	}
	return nil
}

// cardinalitiesOf lists the limits of shapes, those of one property in a row, the strictest
// first.
func (f *finder) cardinalitiesOf(limits []shapes.Limit) (list []cardinality, err error) {
	below := map[kg.Term][]kg.Term{}
	for _, l := range limits {
		c := cardinality{property: l.Property, inverse: l.Inverse, limit: l.Most,
			reason: fmt.Sprintf("the shape %s allows at most %d values of %s", l.Shape.Name(), l.Most, l.Property.Name())}
		if l.Inverse {
			c.reason = fmt.Sprintf("the shape %s allows at most %d subjects for a value of %s", l.Shape.Name(), l.Most, l.Property.Name())
		}
		var classes []kg.Term
		for _, class := range l.Classes {
			if _, known := below[class]; !known {
				if below[class], err = f.subclassesOf(class); err != nil {
					return nil, err
				}
			}
			classes = append(classes, below[class]...)
		}
		for i, terms := range [...][]kg.Term{theNode: l.Nodes, instances: classes, subjectsOf: l.SubjectsOf, objectsOf: l.ObjectsOf} {
			for _, t := range terms {
				c.members = members{sort(i), t}
				list = append(list, c)
			}
		}
		if len(list) > MaxDeclarations {
			f.found.Complete = false
			list = list[:MaxDeclarations]
			break
		}
	}
	slices.SortStableFunc(list, func(a, b cardinality) int {
		return cmp.Or(a.property.Compare(b.property), cmp.Compare(fmt.Sprint(a.inverse), fmt.Sprint(b.inverse)), cmp.Compare(a.limit, b.limit),
			cmp.Compare(a.members.sort, b.members.sort), a.members.term.Compare(b.members.term))
	})
	return slices.CompactFunc(list, func(a, b cardinality) bool {
		return a.property == b.property && a.inverse == b.inverse && a.members == b.members
	}), nil
}

// subclassesOf lists the class and all its subclasses.
func (f *finder) subclassesOf(class kg.Term) ([]kg.Term, error) {
	list, seen := []kg.Term{class}, map[kg.Term]bool{class: true}
	for i := 0; i < len(list) && len(list) < MaxDeclarations; i++ {
		for st, err := range f.s.Match(kg.Pattern{Predicate: subClassOf, Object: list[i]}) {
			if err != nil {
				return nil, err
			}
			if f.unread--; !seen[st.Subject] {
				seen[st.Subject] = true
				list = append(list, st.Subject)
			}
		}
	}
	return list, nil
}

// checkCardinality finds the members that exceed a limit and that none of the limits before
// covers.
func (f *finder) checkCardinality(c cardinality, before []cardinality) error {
	property, known, err := f.s.ID(c.property)
	if !known || err != nil {
		return err
	}
	term, known, err := f.s.ID(c.members.term)
	if !known || err != nil {
		return err
	}
	look := func(member kg.ID) error {
		several, err := f.exceedsLimit(c, property, member)
		if !several || err != nil {
			return err
		}
		return f.reportMember(c, before, member)
	}
	switch c.members.sort {
	case theNode:
		if err := f.countRead(); err != nil {
			return err
		}
		err := look(term)
		f.moved = f.moved || err == nil
		return err
	case instances:
		return f.scanInstances(term, look)
	case objectsOf:
		return f.scanRows(kg.IDPattern{Predicate: term}, func(row *kg.Row, last kg.IDQuad) error {
			if row.Object == last.Object {
				return nil
			}
			return look(row.Object)
		})
	}
	return f.scanRows(kg.IDPattern{Predicate: term}, func(row *kg.Row, _ kg.IDQuad) error {
		several, err := f.exceedsLimit(c, property, row.Subject)
		if !several || err != nil {
			return err
		}
		// Report it with the first of its values only.
		for first, err := range f.s.MatchIDs(kg.IDPattern{Subject: row.Subject, Predicate: term}, nil) {
			if first.IDQuad != row.IDQuad || err != nil {
				return err
			}
			break
		}
		return f.reportMember(c, before, row.Subject)
	})
}

func (f *finder) scanInstances(class kg.ID, fn func(kg.ID) error) error {
	typed, known, err := f.s.ID(rdfType)
	if !known || err != nil {
		return err
	}
	return f.scanRows(kg.IDPattern{Predicate: typed, Object: class}, func(row *kg.Row, last kg.IDQuad) error {
		if row.Subject == last.Subject { // in another graph too
			return nil
		}
		return fn(row.Subject)
	})
}

// exceedsLimit reports whether a member has more values than the limit allows.
func (f *finder) exceedsLimit(c cardinality, property, member kg.ID) (bool, error) {
	p := kg.IDPattern{Subject: member, Predicate: property}
	if c.inverse {
		p = kg.IDPattern{Object: member, Predicate: property}
	} else if !member.IsResource() {
		return false, nil
	}
	n, last := 0, kg.ID{}
	for f.sweep.Seek(p, nil); n <= c.limit && f.sweep.Next(); {
		f.unread--
		end := f.sweep.Row().Object
		if c.inverse {
			end = f.sweep.Row().Subject
		}
		if n == 0 || end != last {
			n, last = n+1, end
		}
	}
	return n > c.limit, f.sweep.Err()
}

// reportMember adds a member with too many values to the page, if the values are valid at the
// same time and no earlier limit covers the member.
func (f *finder) reportMember(c cardinality, before []cardinality, member kg.ID) error {
	about, err := f.s.Term(member)
	if err != nil {
		return err
	}
	for i := range before {
		if is, err := f.isMember(about, before[i].members); is || err != nil {
			return err
		}
	}
	out := Contradiction{Kind: f.at.kind, About: about, Property: c.property, Reason: c.reason}
	p, side := kg.Pattern{Subject: about, Predicate: c.property}, objectOf
	if c.inverse {
		p, side = kg.Pattern{Predicate: c.property, Object: about}, subjectOf
	}
	if _, err := f.addStatements(&out, p); err != nil || !conflictInTime(out.Statements, c.limit, side) {
		return err
	}
	return f.addResult(out)
}

func (f *finder) isMember(node kg.Term, m members) (bool, error) {
	var p kg.Pattern
	switch m.sort {
	case theNode:
		return node == m.term, nil
	case instances:
		p = kg.Pattern{Subject: node, Predicate: rdfType, Object: m.term}
	case subjectsOf:
		p = kg.Pattern{Subject: node, Predicate: m.term}
	case objectsOf:
		p = kg.Pattern{Predicate: m.term, Object: node}
	}
	if p.Subject.IsLiteral() {
		return false, nil
	}
	_, found, err := systemgraph.First(f.s.Match, p)
	if found {
		f.unread--
	}
	return found, err
}
