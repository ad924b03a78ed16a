package query

import "koine/kg"

// MaxNestedPaths bounds the nesting of path conditions.
const MaxNestedPaths = 4

// pathMatch is a compiled PathFilter.
type pathMatch struct {
	quantification
	trail *trail
	ends  pathEnds
	where *EntityMatch // nil: any entity or literal
	value termTest     // nil: any
	// lookup is the index lookup that value allows.
	lookup accessPath
}

func (m *EntityMatch) pathFilters(list []PathFilter) (entityTest, error) {
	tests, err := compileEach(list, func(f *PathFilter) (entityTest, error) {
		p, err := m.pathFilter(f)
		if err != nil {
			return nil, err
		}
		if m.paths == nil {
			m.paths = map[*PathFilter]*pathMatch{}
		}
		m.paths[f] = p
		return p.testEntity, nil
	})
	return allOf(tests...), err
}

func (m *EntityMatch) pathFilter(f *PathFilter) (p *pathMatch, err error) {
	if m.depth == MaxNestedPaths {
		e := kg.Errorf(kg.CodeLimitExceeded, "path conditions are nested deeper than %d", MaxNestedPaths)
		e.Hint = "Write steps as one path, such as ex:directed/ex:country."
		return nil, e
	}
	p = &pathMatch{quantification: newQuantification(f)}
	if p.trail, err = m.compileTrail(f.Path); err != nil {
		return nil, kg.AsError(err).At("path")
	}
	p.ends = p.trail.endsFunc()
	if p.value, err = matchValue(m.Ctx, f.Value); err != nil {
		return nil, kg.AsError(err).At("value")
	}
	if f.Where != nil {
		if p.where, err = m.endsAt(f.Where, m.depth+1); err != nil {
			return nil, kg.AsError(err).At("where")
		}
	}
	if f.Value != nil {
		p.lookup = accessPath{object: f.Value.onlyObject(), text: f.Value.onlyText(), fits: p.value, objects: f.Value.objects()}
	}
	return p, nil
}

func (p *pathMatch) testEntity(s *subject) (bool, error) {
	return p.evaluate(p.ends(s), s.scan.endScanOf(p).endFits)
}

// endScan is the state of a scan for the ends of one path.
type endScan struct {
	match    *pathMatch
	snapshot *kg.Snapshot
	where    *subjectReader // nil until an end is tested
}

func (s *entityScan) endScanOf(p *pathMatch) *endScan {
	t := s.trailScanAt(p.trail.slot)
	if t.ends == nil {
		t.ends = &endScan{match: p, snapshot: s.fact.snapshot}
	}
	return t.ends
}

// endFits reports whether an end meets the condition.
func (e *endScan) endFits(id kg.ID) (bool, error) {
	if e.match.value != nil {
		if err := e.snapshot.Err(); err != nil { // a test may take long
			return false, err
		}
		t, err := e.snapshot.Term(id)
		if err != nil || !e.match.value(t) {
			return false, err
		}
	}
	if e.match.where == nil || !id.IsResource() {
		return e.match.where == nil, nil
	}
	if e.where == nil {
		var err error
		if e.where, err = e.match.where.readSubjects(e.snapshot); err != nil {
			return false, err
		}
	}
	return e.where.fits(id)
}

func (e *endScan) close() {
	if e.where != nil {
		e.where.close()
	}
}
