package query

import (
	"slices"

	"koine/internal/query/path"
	"koine/kg"
)

// fanOut is the assumed number of results of a step if nothing is known.
const fanOut = 4

// Bounds of backward evaluation of paths.
const (
	backwardEnds  = 1024      // ends evaluated together
	backwardNodes = 1_000_000 // nodes held by one evaluation
)

// accessPath returns the index lookup that the condition allows: the ends that may
// fit, from which the path is evaluated backward, or all subjects of its only
// predicate. It returns false if the condition also holds for entities without
// any end, or if nothing can be looked up.
func (p *pathMatch) accessPath() (accessPath, bool) {
	switch {
	case !p.needsOne():
		return accessPath{}, false
	case p.where != nil && len(p.where.accessPaths) > 0 || !p.lookup.object.IsZero() || p.lookup.text != nil:
		return accessPath{path: p}, true
	case p.trail.wanted >= 0:
		predicate, _, _ := p.trail.path.Single()
		return accessPath{predicates: []kg.Term{predicate}, fits: p.value, objects: p.lookup.objects}, true
	}
	return accessPath{}, false
}

// estimateReads is an estimate of the statements read to find the ends and to go
// backward from them.
func (p *pathMatch) estimateReads(s *kg.Snapshot) (uint64, error) {
	ends := uint64(1)
	if p.where != nil && len(p.where.accessPaths) > 0 {
		d, n, err := cheapestAccessPath(s, p.where.accessPaths, true)
		if err != nil || d == nil {
			return tooMany, err
		}
		ends = n
	}
	fan := uint64(fanOut)
	if p.trail.wanted < 0 && p.trail.against.IsZero() {
		b, err := p.trail.path.Bind(s, path.Options{})
		if err != nil {
			return 0, err
		}
		if fan, err = b.Estimate(false, true); err != nil {
			return 0, err
		}
	}
	// A seek for each end, and one for each entity reached from it.
	return min(ends, tooMany)*2 + min(ends*min(fan, tooMany), tooMany)*2, nil
}

// tooMany exceeds any store and can be multiplied by itself.
const tooMany = 1 << 31

// findSources returns the entities from which the path reaches an end that may
// fit.
func (p *pathMatch) findSources(s *kg.Snapshot) ([]kg.ID, error) {
	ends, err := p.likelyEnds(s)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ends, kg.ID.Compare)
	ends = slices.Compact(ends)
	if predicate, inverted, single := p.trail.path.Single(); single {
		return stepBack(s, predicate, inverted, ends)
	}
	b, err := p.trail.path.Bind(s, path.Options{Nodes: backwardNodes, Statements: maxFollowed})
	if err != nil {
		return nil, err
	}
	var out []kg.ID
	for chunk := range slices.Chunk(ends, backwardEnds) {
		for end, err := range b.BackwardAll(chunk) {
			if err != nil {
				return nil, err
			}
			if end.ID.IsResource() {
				out = append(out, end.ID)
			}
		}
	}
	return out, nil
}

// stepBack goes one step backward from each of the ends, which are sorted.
func stepBack(s *kg.Snapshot, predicate kg.Term, inverted bool, ends []kg.ID) (out []kg.ID, err error) {
	id, known, err := s.ID(predicate)
	if err != nil || !known {
		return nil, err
	}
	sweep := s.Sweep()
	defer sweep.Close()
	for _, end := range ends {
		p := kg.IDPattern{Predicate: id, Object: end}
		if inverted {
			p = kg.IDPattern{Subject: end, Predicate: id}
		}
		for sweep.Seek(p, nil); sweep.Next(); {
			row := sweep.Row()
			source := row.Subject
			if inverted {
				source = row.Object
			}
			if source.IsResource() {
				out = append(out, source)
			}
		}
	}
	return out, sweep.Err()
}

// likelyEnds returns all ends that fit, and perhaps others.
func (p *pathMatch) likelyEnds(s *kg.Snapshot) (ids []kg.ID, err error) {
	if p.where != nil && len(p.where.accessPaths) > 0 {
		list := EntityList{Match: p.where}
		for id, err := range list.Scan(s, nil, nil) {
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	}
	terms := []kg.Term{p.lookup.object}
	if p.lookup.object.IsZero() {
		var complete bool
		if terms, complete, err = s.Literals(*p.lookup.text); err != nil {
			return nil, err
		}
		if !complete {
			return nil, errTooManyLiterals
		}
	}
	for _, t := range terms {
		id, known, err := s.ID(t)
		if err != nil {
			return nil, err
		}
		if known && p.value(t) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// errTooManyLiterals reports that a text cannot be looked up in all languages.
var errTooManyLiterals = kg.Errorf(kg.CodeLimitExceeded, "the text cannot be looked up in every language and datatype")
