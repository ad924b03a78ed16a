package query

import (
	"iter"
	"slices"

	"koine/kg"
)

// scanCandidates yields the entities that may match, each once, in id order and
// after the id `after` if it is set, together with the statements that the
// test needs. A subject is valid until the next one.
func scanCandidates(s *kg.Snapshot, m *EntityMatch, after *kg.ID) iter.Seq2[*subject, error] {
	return func(yield func(*subject, error) bool) {
		w, err := ResolveWanted(m.wanted, s.ID)
		if err != nil {
			yield(nil, err)
			return
		}
		d, ids, err := m.chooseDrive(s, after)
		if err != nil {
			yield(nil, err)
			return
		}
		scan := newEntityScan(s)
		defer scan.close()
		if d == nil {
			for c, err := range allSubjects(s, &w, after) {
				if err == nil {
					c.scan = scan
				}
				if !yield(c, err) || err != nil {
					return
				}
			}
			return
		}
		g := gatherSubjects(s, &w)
		defer g.Close()
		c := &subject{snapshot: s, scan: scan}
		for id, err := range ids {
			if err == nil {
				err = s.Err() // one entity's rows are too few for a scan to notice cancellation
			}
			if err == nil {
				err = g.next(c, id)
			}
			if err == nil && !m.matchesObjects() && (len(d.iris) > 0 || d.path != nil) {
				err = c.confirmShown()
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

// chooseDrive chooses a drive and starts reading its ids. It returns nil if all
// entities have to be scanned.
func (m *EntityMatch) chooseDrive(s *kg.Snapshot, after *kg.ID) (*drive, iter.Seq2[kg.ID, error], error) {
	if len(m.drives) == 1 && m.drives[0].path == nil {
		d := &m.drives[0]
		if ok, err := m.withinBudget(s, d); !ok {
			return nil, nil, err
		}
		return d, d.candidateIDs(s, after), nil
	}
	d, _, err := cheapestDrive(s, m.drives)
	if err != nil || d == nil {
		return nil, nil, err
	}
	if ok, err := m.withinBudget(s, d); !ok {
		return nil, nil, err
	}
	if d.path == nil {
		return d, d.candidateIDs(s, after), nil
	}
	ids, err := d.path.findSources(s)
	if kg.CodeOf(err) == kg.CodeLimitExceeded && !m.matchesObjects() { // scanning the entities reads less at a time
		rest := slices.DeleteFunc(slices.Clone(m.drives), func(d drive) bool { return d.path != nil })
		if d, _, err = cheapestDrive(s, rest); err != nil || d == nil {
			return nil, nil, err
		}
		return d, d.candidateIDs(s, after), nil
	}
	return d, func(yield func(kg.ID, error) bool) { yieldSorted(ids, after, yield) }, err
}

// withinBudget reports whether a drive that has to be read as a whole fits into the
// rest of the budget. If it does not, all entities are scanned instead: the
// scan can end after any entity and finds them in the same order.
func (m *EntityMatch) withinBudget(s *kg.Snapshot, d *drive) (bool, error) {
	left, limited := s.ReadsLeft()
	if !limited || m.matchesObjects() || d.path != nil || d.iris != nil || !d.object.IsZero() {
		return true, nil
	}
	n, err := d.estimateReads(s)
	if kg.CodeOf(err) == kg.CodeBudgetExceeded {
		return false, nil
	}
	return n <= uint64(left), err
}

var errNoSubject = kg.Errorf(kg.CodeNotFound, "no statement has this subject")

// confirmShown returns errNoSubject unless the view shows a statement with this
// subject: a term may have an id without one.
func (s *subject) confirmShown() error {
	for _, rows := range s.rows {
		if len(rows) > 0 {
			return nil
		}
	}
	shown, err := Shows(s.snapshot, kg.IDPattern{Subject: s.id})
	if err == nil && !shown {
		err = errNoSubject
	}
	return err
}

// cheapestDrive returns the drive with the fewest candidates according to the
// catalogue, and an estimate of the statements that it reads. It returns nil
// if scanning all entities is cheaper or there is no drive.
func cheapestDrive(s *kg.Snapshot, drives []drive) (best *drive, least uint64, err error) {
	for i := range drives {
		d := &drives[i]
		if d.iris != nil {
			return d, uint64(len(d.iris)), nil
		}
		n, err := d.estimateReads(s)
		if err != nil {
			return nil, 0, err
		}
		if best == nil || n < least {
			best, least = d, n
		}
	}
	if best != nil && best.path != nil { // a path may read more than a scan of all entities
		all, _, err := s.Estimate(kg.IDPattern{})
		if err != nil || least > all {
			return nil, all, err
		}
	}
	return best, least, nil
}

// estimateReads is an estimate of how many statements the drive reads.
func (d *drive) estimateReads(s *kg.Snapshot) (sum uint64, err error) {
	if d.path != nil {
		return d.path.estimateReads(s)
	}
	if n, known, err := d.peekCount(s); known || err != nil {
		return n, err
	}
	for _, predicate := range d.predicates {
		p := kg.Pattern{Predicate: predicate}
		if predicate == RDFType {
			p.Object = d.object // the catalogue counts classes as well
		}
		ids, known, err := ResolvePattern(s, p)
		if err != nil {
			return 0, err
		}
		if !known {
			continue
		}
		n, _, err := s.Estimate(ids)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// peekRows bounds the statements that peek counts.
const peekRows = 256

// peekCount counts the statements that a lookup finds. known is false if there are
// more than peekRows, if the drive is no lookup, or if the catalogue has the
// count.
func (d *drive) peekCount(s *kg.Snapshot) (n uint64, known bool, err error) {
	if len(d.predicates) == 0 || d.predicates[0] == RDFType {
		return 0, false, nil
	}
	objects := []kg.Term{d.object}
	if d.object.IsZero() {
		if d.text == nil {
			return 0, false, nil
		}
		var complete bool
		if objects, complete, err = s.Literals(*d.text); err != nil || !complete {
			return 0, false, err
		}
	}
	for _, object := range objects {
		for _, predicate := range d.predicates {
			p, there, err := ResolvePattern(s, kg.Pattern{Predicate: predicate, Object: object})
			if err != nil {
				return 0, false, err
			}
			if !there {
				continue
			}
			for _, err := range s.MatchIDs(p, nil) {
				if n++; err != nil || n > peekRows {
					return 0, false, err
				}
			}
		}
	}
	return n, true, nil
}

// candidateIDs yields the ids of the drive's entities in order.
func (d *drive) candidateIDs(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	switch {
	case d.iris != nil:
		return d.namedIDs(s, after)
	case !d.object.IsZero():
		return d.subjectsOf(s, after)
	case d.text != nil:
		return d.textSubjects(s, after)
	}
	return d.scannedSubjects(s, after)
}

func (d *drive) namedIDs(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
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
	slices.SortFunc(ids, CompareIDs)
	for _, id := range slices.Compact(ids) {
		if after != nil && CompareIDs(id, *after) <= 0 {
			continue
		}
		if !yield(id, nil) {
			return
		}
	}
}

// subjectsOf reads the subjects from the index by predicate and object, which
// is ordered by subject.
func (d *drive) subjectsOf(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		p, known, err := ResolvePattern(s, kg.Pattern{Predicate: d.predicates[0], Object: d.object})
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

// textSubjects looks the text up with every language and datatype in the dictionary.
// With too many of them it scans the predicates instead.
func (d *drive) textSubjects(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		literals, complete, err := s.Literals(*d.text)
		if err == nil && !complete {
			d.scannedSubjects(s, after)(yield)
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

// subjectsWith appends the subjects that have the object for one of the
// predicates.
func (d *drive) subjectsWith(s *kg.Snapshot, object kg.Term, ids []kg.ID) (_ []kg.ID, err error) {
	for _, predicate := range d.predicates {
		if ids, err = appendSubjects(s, kg.Pattern{Predicate: predicate, Object: object}, ids); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

// appendSubjects appends the subjects of the statements that match the pattern.
func appendSubjects(s *kg.Snapshot, pattern kg.Pattern, ids []kg.ID) ([]kg.ID, error) {
	p, known, err := ResolvePattern(s, pattern)
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

// scannedSubjects reads all statements with the predicates and keeps the subjects
// whose object fits.
func (d *drive) scannedSubjects(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		var ids []kg.ID
		for _, predicate := range d.predicates {
			var err error
			if ids, err = d.scanPredicate(s, predicate, ids); err != nil {
				yield(kg.ID{}, err)
				return
			}
		}
		yieldSorted(ids, after, yield)
	}
}

// scanPredicate appends the subjects of one predicate. Equal objects are adjacent, so
// each is tested once.
func (d *drive) scanPredicate(s *kg.Snapshot, predicate kg.Term, ids []kg.ID) ([]kg.ID, error) {
	p, known, err := ResolvePattern(s, kg.Pattern{Predicate: predicate})
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
			if err := s.Err(); err != nil { // a test may take long
				return ids, err
			}
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

// ResolvePattern converts a pattern to ids. known is false if one of its terms is
// not in the dictionary: then nothing matches.
func ResolvePattern(s *kg.Snapshot, p kg.Pattern) (out kg.IDPattern, known bool, err error) {
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

// Shows reports whether the view shows a statement of the pattern.
func Shows(s *kg.Snapshot, p kg.IDPattern) (bool, error) {
	for _, err := range s.MatchIDs(p, nil) {
		return err == nil, err
	}
	return false, nil
}
