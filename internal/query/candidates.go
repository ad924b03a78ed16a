package query

import (
	"iter"
	"slices"

	"koine/kg"
)

// scanCandidates yields the entities that may match, each once, in id order and
// after the id `after` if it is set, together with the statements that the
// test needs. A subject is valid until the next one. whole tells that the caller
// reads all of them.
func scanCandidates(s *kg.Snapshot, m *EntityMatch, after *kg.ID, whole bool) iter.Seq2[*subject, error] {
	return func(yield func(*subject, error) bool) {
		d, ids, err := m.chooseAccessPath(s, after, whole)
		if err == nil && d == nil {
			m.scanAll(s, after, yield)
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		m.readCandidates(s, d, ids, yield)
	}
}

// readCandidates yields the entities of an access path with the statements that the
// test needs.
func (m *EntityMatch) readCandidates(s *kg.Snapshot, d *accessPath, ids iter.Seq2[kg.ID, error], yield func(*subject, error) bool) {
	r, err := m.readSubjects(s)
	if err != nil {
		yield(nil, err)
		return
	}
	defer r.close()
	c := &r.subject
	for id, err := range ids {
		if err == nil {
			err = s.Err() // one entity's rows are too few for a scan to notice cancellation
		}
		if err == nil {
			c, err = r.read(id)
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

// chooseAccessPath chooses an access path and starts reading its ids. It returns nil if all
// entities have to be scanned.
func (m *EntityMatch) chooseAccessPath(s *kg.Snapshot, after *kg.ID, whole bool) (*accessPath, iter.Seq2[kg.ID, error], error) {
	var d *accessPath
	var err error
	if len(m.accessPaths) == 1 && m.accessPaths[0].path == nil {
		d = &m.accessPaths[0]
	} else if d, _, err = cheapestAccessPath(s, m.accessPaths, whole); err != nil || d == nil {
		return nil, nil, err
	}
	if ok, err := m.withinBudget(s, d); !ok {
		return nil, nil, err
	}
	if d.path != nil {
		ids, err := d.path.findSources(s)
		if kg.CodeOf(err) != kg.CodeLimitExceeded || m.matchesObjects() {
			return d, func(yield func(kg.ID, error) bool) { yieldSorted(ids, after, yield) }, err
		}
		// Scanning the entities reads less at a time.
		rest := slices.DeleteFunc(slices.Clone(m.accessPaths), func(d accessPath) bool { return d.path != nil })
		if d, _, err = cheapestAccessPath(s, rest, whole); err != nil || d == nil {
			return nil, nil, err
		}
	}
	return d, d.candidateIDs(s, after, whole), nil
}

// withinBudget reports whether an access path that has to be read as a whole fits into the
// rest of the budget. If it does not, all entities are scanned instead: the
// scan can end after any entity and finds them in the same order.
func (m *EntityMatch) withinBudget(s *kg.Snapshot, d *accessPath) (bool, error) {
	left, limited := s.ReadsLeft()
	if !limited || m.matchesObjects() || d.path != nil || d.iris != nil || d.prefix != "" || !d.object.IsZero() {
		return true, nil
	}
	n, err := d.estimateReads(s, false)
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

// cheapestAccessPath returns the access path with the fewest candidates according to the
// catalogue, and an estimate of the statements that it reads. It returns nil
// if scanning all entities is cheaper or there is no access path.
func cheapestAccessPath(s *kg.Snapshot, list []accessPath, whole bool) (best *accessPath, least uint64, err error) {
	for i := range list {
		d := &list[i]
		if d.iris != nil {
			return d, uint64(len(d.iris)), nil
		}
		n, err := d.estimateReads(s, whole)
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

// wideRange is the share of a predicate's statements that a range with more than peekRanged of
// them is taken to have, where all of them are read. Otherwise it counts as all of the
// predicate: another access path may yield its first entities sooner.
const wideRange = 4

// estimateReads is an estimate of how many statements the access path reads. whole tells that
// all of them are read.
func (d *accessPath) estimateReads(s *kg.Snapshot, whole bool) (sum uint64, err error) {
	switch {
	case d.path != nil:
		return d.path.estimateReads(s)
	case d.prefix != "":
		return d.estimateSubjects(s, whole)
	}
	if n, known, err := d.peekCount(s); known || err != nil {
		return n, err
	}
	for _, predicate := range d.predicates {
		p := kg.Pattern{Predicate: predicate}
		if predicate == RDFType {
			p.Object = d.object // the catalogue counts classes as well
		}
		ids, known, err := s.PatternIDs(p)
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
	if d.objects != nil && whole {
		sum /= wideRange
	}
	return sum, nil
}

// estimateSubjects is estimateReads for a prefix of IRIs.
func (d *accessPath) estimateSubjects(s *kg.Snapshot, whole bool) (n uint64, err error) {
	for _, err := range kg.SubjectsWith(s, d.prefix, nil, whole) {
		if n++; err != nil {
			return 0, err
		}
		if n > peekRanged {
			all, _, err := s.Estimate(kg.IDPattern{})
			if whole {
				all /= wideRange
			}
			return all, err
		}
	}
	return n, nil
}

// peekRows bounds the statements that peekCount counts, peekRanged those in ranges.
const (
	peekRows   = 256
	peekRanged = 4096
)

// peekCount counts the statements that a lookup finds. known is false if there are
// too many, if the access path is no lookup, or if the catalogue has the
// count.
func (d *accessPath) peekCount(s *kg.Snapshot) (n uint64, known bool, err error) {
	if len(d.predicates) == 0 || d.predicates[0] == RDFType {
		return 0, false, nil
	}
	objects := []kg.Term{d.object}
	if d.object.IsZero() {
		if d.text == nil {
			return d.peekRanges(s)
		}
		var complete bool
		if objects, complete, err = s.Literals(*d.text); err != nil || !complete {
			return 0, false, err
		}
	}
	for _, object := range objects {
		for _, predicate := range d.predicates {
			p, there, err := s.PatternIDs(kg.Pattern{Predicate: predicate, Object: object})
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

// peekRanges is peekCount for ranges of objects.
func (d *accessPath) peekRanges(s *kg.Snapshot) (n uint64, known bool, err error) {
	if _, limited := s.ReadsLeft(); d.objects == nil || limited { // counting reads them
		return 0, false, nil
	}
	for _, predicate := range d.predicates {
		id, there, err := s.ID(predicate)
		if err != nil {
			return 0, false, err
		}
		if !there {
			continue
		}
		w := s.Sweep()
		w.SeekObjects(kg.IDPattern{Predicate: id}, d.objects, nil)
		for n <= peekRanged && w.Next() {
			n++
		}
		w.Close()
		if err := w.Err(); err != nil || n > peekRanged {
			return 0, false, err
		}
	}
	return n, true, nil
}

// candidateIDs yields the ids of the access path's entities in order. whole tells that all are read.
func (d *accessPath) candidateIDs(s *kg.Snapshot, after *kg.ID, whole bool) iter.Seq2[kg.ID, error] {
	if d.prefix != "" {
		return kg.SubjectsWith(s, d.prefix, after, whole)
	}
	if d.iris == nil && !d.object.IsZero() {
		return d.subjectsOf(s, after)
	}
	return func(yield func(kg.ID, error) bool) {
		ids, err := d.collectIDs(s)
		if err != nil {
			yield(kg.ID{}, err)
			return
		}
		yieldSorted(ids, after, yield)
	}
}

// collectIDs returns the ids of the access path's entities. It looks a text up with
// every language and datatype in the dictionary. Without a text, or if there are
// too many of them, it reads all statements with the predicates.
func (d *accessPath) collectIDs(s *kg.Snapshot) (ids []kg.ID, err error) {
	for _, t := range d.iris {
		id, known, err := s.ID(t)
		if err != nil {
			return nil, err
		}
		if known {
			ids = append(ids, id)
		}
	}
	if d.iris != nil {
		return ids, nil
	}
	if d.text != nil {
		literals, complete, err := s.Literals(*d.text)
		for _, t := range literals {
			if !complete || d.fits != nil && !d.fits(t) {
				continue
			}
			for _, predicate := range d.predicates {
				if ids, err = appendSubjects(s, kg.Pattern{Predicate: predicate, Object: t}, ids); err != nil {
					return nil, err
				}
			}
		}
		if complete || err != nil {
			return ids, err
		}
	}
	for _, predicate := range d.predicates {
		if ids, err = d.appendFitting(s, predicate, ids); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func yieldSorted(ids []kg.ID, after *kg.ID, yield func(kg.ID, error) bool) {
	slices.SortFunc(ids, kg.ID.Compare)
	for _, id := range slices.Compact(ids) {
		if after != nil && id.Compare(*after) <= 0 {
			continue
		}
		if !yield(id, nil) {
			return
		}
	}
}

// subjectsOf reads the subjects from the index by predicate and object, which
// is ordered by subject.
func (d *accessPath) subjectsOf(s *kg.Snapshot, after *kg.ID) iter.Seq2[kg.ID, error] {
	return func(yield func(kg.ID, error) bool) {
		p, known, err := s.PatternIDs(kg.Pattern{Predicate: d.predicates[0], Object: d.object})
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

// appendSubjects appends the subjects of the pattern's statements.
func appendSubjects(s *kg.Snapshot, pattern kg.Pattern, ids []kg.ID) ([]kg.ID, error) {
	p, known, err := s.PatternIDs(pattern)
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

// appendFitting appends the subjects of the predicate's statements with an object that
// fits. Equal objects are adjacent, so each is tested once.
func (d *accessPath) appendFitting(s *kg.Snapshot, predicate kg.Term, ids []kg.ID) ([]kg.ID, error) {
	id, known, err := s.ID(predicate)
	if !known || err != nil {
		return ids, err
	}
	w := s.Sweep()
	defer w.Close()
	w.SeekObjects(kg.IDPattern{Predicate: id}, d.objects, nil)
	var tested kg.ID
	fits := d.fits == nil
	for w.Next() {
		row := w.Row()
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
	return ids, w.Err()
}

// Shows reports whether the view shows a statement of the pattern.
func Shows(s *kg.Snapshot, p kg.IDPattern) (bool, error) {
	for _, err := range s.MatchIDs(p, nil) {
		return err == nil, err
	}
	return false, nil
}
