package graph

import (
	"iter"
	"slices"

	"koine/kg"
)

// candidates yields the entities that may match, each once and in the order of
// their ids, behind after if that is set, with what the test needs of them.
func candidates(s *kg.Snapshot, m *entityMatch, after *kg.ID) iter.Seq2[*subject, error] {
	return func(yield func(*subject, error) bool) {
		w, err := resolve(m.wanted, s.ID)
		if err != nil {
			yield(nil, err)
			return
		}
		d, err := cheapest(s, m.drives)
		if err != nil {
			yield(nil, err)
			return
		}
		if d == nil {
			allSubjects(s, &w, after)(yield)
			return
		}
		for id, err := range d.ids(s, after) {
			c := &subject{snapshot: s, id: id}
			if err == nil {
				err = c.gatherRows(&w)
			}
			if err == nil && len(d.iris) > 0 {
				err = c.confirm()
			}
			if err == errNoSubject {
				continue
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

var errNoSubject = kg.Errorf(kg.CodeNotFound, "no statement has this subject")

// confirm tells whether the view shows a statement with this subject: that a
// term has an id does not mean so.
func (s *subject) confirm() error {
	for _, rows := range s.rows {
		if len(rows) > 0 {
			return nil
		}
	}
	for _, err := range s.snapshot.MatchIDs(kg.IDPattern{Subject: s.id}, nil) {
		return err
	}
	return errNoSubject
}

// cheapest is the drive that gives the fewest candidates, going by the
// catalogue; nil when all entities have to be looked at.
func cheapest(s *kg.Snapshot, drives []drive) (best *drive, err error) {
	var least uint64
	for i := range drives {
		d := &drives[i]
		if d.iris != nil {
			return d, nil
		}
		if len(drives) == 1 {
			return d, nil
		}
		n, err := d.estimate(s)
		if err != nil {
			return nil, err
		}
		if best == nil || n < least {
			best, least = d, n
		}
	}
	return best, nil
}

// estimate is about how many statements the drive reads.
func (d *drive) estimate(s *kg.Snapshot) (sum uint64, err error) {
	for _, predicate := range d.predicates {
		p := kg.Pattern{Predicate: predicate}
		if predicate == rdfType {
			p.Object = d.object // the catalogue counts classes as well
		}
		n, err := s.Count(p)
		if err != nil {
			return 0, err
		}
		if (!d.object.IsZero() || d.text != nil) && predicate != rdfType {
			n /= 16 // one object of many
		}
		sum += n
	}
	return sum, nil
}

// ids yields the ids of the entities that the drive gives, in order.
func (d *drive) ids(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	switch {
	case d.iris != nil:
		return d.named(s, after)
	case !d.object.IsZero():
		return d.subjectsOf(s, after)
	case d.text != nil:
		return d.worded(s, after)
	}
	return d.scanned(s, after)
}

func (d *drive) named(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		var ids []kg.ID
		for _, t := range d.iris {
			id, known, err := s.ID(t)
			if err != nil {
				yield(id, err)
				return
			}
			if known {
				ids = append(ids, id)
			}
		}
		yieldSorted(ids, after, yield)
	}
}

func yieldSorted(ids []kg.ID, after *kg.ID, yield func(kg.ID, error) bool) {
	slices.SortFunc(ids, compareIDs)
	for _, id := range slices.Compact(ids) {
		if after != nil && compareIDs(id, *after) <= 0 {
			continue
		}
		if !yield(id, nil) {
			return
		}
	}
}

// subjectsOf reads them from the index by predicate and object, which has them
// in order.
func (d *drive) subjectsOf(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		p, known, err := idPattern(s, kg.Pattern{Predicate: d.predicates[0], Object: d.object})
		if !known || err != nil {
			if err != nil {
				yield(kg.ID{}, err)
			}
			return
		}
		var from *kg.IDQuad
		if after != nil {
			from = &kg.IDQuad{Subject: *after, Predicate: p.Predicate, Object: p.Object, Graph: lastID}
		}
		var last kg.ID
		for row, err := range s.MatchIDs(p, from) {
			if err == nil && row.Subject == last {
				continue // in another graph too
			}
			last = row.Subject
			if !yield(row.Subject, err) || err != nil {
				return
			}
		}
	}
}

// worded looks the text up in every language and datatype that there is, unless
// there are too many.
func (d *drive) worded(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		literals, complete, err := s.Literals(*d.text)
		if err == nil && !complete {
			d.scanned(s, after)(yield)
			return
		}
		var ids []kg.ID
		for _, t := range literals {
			if d.fits == nil || d.fits(t) {
				ids, err = d.subjectsWith(s, t, ids)
			}
			if err != nil {
				break
			}
		}
		if err != nil {
			yield(kg.ID{}, err)
			return
		}
		yieldSorted(ids, after, yield)
	}
}

// subjectsWith adds the subjects that have the object for one of the predicates.
func (d *drive) subjectsWith(s *kg.Snapshot, object kg.Term, ids []kg.ID) (_ []kg.ID, err error) {
	for _, predicate := range d.predicates {
		if ids, err = subjects(s, kg.Pattern{Predicate: predicate, Object: object}, ids); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

// subjects adds the subjects of the statements that fit the pattern.
func subjects(s *kg.Snapshot, pattern kg.Pattern, ids []kg.ID) ([]kg.ID, error) {
	p, known, err := idPattern(s, pattern)
	if !known || err != nil {
		return ids, err
	}
	for row, err := range s.MatchIDs(p, nil) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, row.Subject)
	}
	return ids, nil
}

// scanned reads all statements with the predicates and keeps the subjects of
// those whose object fits.
func (d *drive) scanned(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		var ids []kg.ID
		for _, predicate := range d.predicates {
			var err error
			if ids, err = d.scan(s, predicate, ids); err != nil {
				yield(kg.ID{}, err)
				return
			}
		}
		yieldSorted(ids, after, yield)
	}
}

// scan adds the subjects of one predicate. The same object comes in a row: it is
// tested once.
func (d *drive) scan(s *kg.Snapshot, predicate kg.Term, ids []kg.ID) ([]kg.ID, error) {
	p, known, err := idPattern(s, kg.Pattern{Predicate: predicate})
	if !known || err != nil {
		return ids, err
	}
	var tested kg.ID
	fits := d.fits == nil
	for row, err := range s.MatchIDs(p, nil) {
		if err != nil {
			return ids, err
		}
		if d.fits != nil && row.Object != tested {
			t, err := s.Term(row.Object)
			if err != nil {
				return ids, err
			}
			tested, fits = row.Object, d.fits(t)
		}
		if fits {
			ids = append(ids, row.Subject)
		}
	}
	return ids, nil
}

// idPattern turns a pattern into ids; false when a term of it is not in the
// store, so that nothing matches.
func idPattern(s *kg.Snapshot, p kg.Pattern) (out kg.IDPattern, known bool, err error) {
	for _, part := range [...]struct {
		t  kg.Term
		id *kg.ID
	}{{p.Subject, &out.Subject}, {p.Predicate, &out.Predicate}, {p.Object, &out.Object}, {p.Graph, &out.Graph}} {
		if part.t.IsZero() {
			continue
		}
		if *part.id, known, err = s.ID(part.t); err != nil || !known {
			return out, false, err
		}
	}
	return out, true, nil
}
