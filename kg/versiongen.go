package kg

import (
	"bytes"
	"cmp"
	"iter"
	"slices"

	"koine/kg/internal/keys"
)

// versionsOfGenerations is Versions where graphs have generations: what the index has
// of one statement is then under several ids, each of which counts for a while.
func (s *Snapshot) versionsOfGenerations(p IDPattern, after *IDQuad) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		m := s.newVersionMerge(p, after)
		defer m.close()
		for m.next() {
			for _, v := range m.statements() {
				if !yield(v, nil) {
					return
				}
			}
		}
		if m.err != nil {
			yield(Version{}, m.err)
		}
	}
}

// versionMerge goes through the versions of a pattern, from one triple to the next.
type versionMerge struct {
	s        *Snapshot
	order    keys.Order
	after    []byte     // key of what it begins behind, nil for the beginning
	scanners []*scanner // of one generation each, or one of all graphs
	heads    []Version  // the next of each; a zero From at its end
	triple   []Version  // with the same subject, predicate and object
	err      error
}

func (s *Snapshot) newVersionMerge(p IDPattern, after *IDQuad) *versionMerge {
	m := &versionMerge{s: s, order: keys.Choose(IDQuad(p))}
	if keys.NeedsPredicates(IDQuad(p)) {
		m.order = keys.POSG
	}
	graphs := []ID{p.Graph}
	if !p.Graph.IsZero() {
		graphs = s.generations.ids(p.Graph)
	}
	if after != nil {
		m.after = m.key(*after)
	}
	for _, graph := range graphs {
		sc := &scanner{s: s, pattern: IDQuad(p), states: true, versions: true, indexed: true}
		sc.pattern.Graph = graph
		if after != nil {
			from := *after
			from.Graph = graph // zero: the triple itself comes again, for its other graphs
			sc.after = &from
		}
		sc.start()
		m.scanners = append(m.scanners, sc)
		m.heads = append(m.heads, Version{})
	}
	for i := range m.heads {
		m.advance(i)
	}
	return m
}

func (m *versionMerge) close() {
	for _, sc := range m.scanners {
		sc.close()
	}
}

// key is that by which statements are in order: as in a scan of the revision that is
// read.
func (m *versionMerge) key(q IDQuad) []byte {
	if graph, ok := m.s.toIndex(q.Graph); ok {
		q.Graph = graph
	}
	return m.order.Append(nil, q)
}

// advance moves on to the next version of one scanner that counted at some time.
func (m *versionMerge) advance(i int) {
	sc := m.scanners[i]
	for sc.next() {
		row := sc.row
		t := sc.tenure
		row.from = max(row.from, t.from)
		if t.until != 0 && (row.to == 0 || row.to > t.until) {
			row.to = t.until
		}
		if row.from > m.s.position.Revision || row.to != 0 && row.from >= row.to {
			continue
		}
		m.heads[i] = m.s.version(row)
		return
	}
	m.heads[i] = Version{}
	if sc.err != nil {
		m.err = sc.err
	}
}

// next gathers what there is of the next triple.
func (m *versionMerge) next() bool {
	m.triple = m.triple[:0]
	var least []byte
	for i := range m.heads {
		if m.heads[i].From != 0 {
			if k := m.tripleKey(&m.heads[i]); least == nil || bytes.Compare(k, least) < 0 {
				least = k
			}
		}
	}
	if least == nil || m.err != nil {
		return false
	}
	for i := range m.heads {
		for m.heads[i].From != 0 && bytes.Equal(m.tripleKey(&m.heads[i]), least) && m.err == nil {
			m.triple = append(m.triple, m.heads[i])
			m.advance(i)
		}
	}
	return m.err == nil
}

func (m *versionMerge) tripleKey(v *Version) []byte {
	q := v.IDQuad
	q.Graph = ID{}
	return m.order.Append(nil, q)
}

// statements are the versions of the triple that are behind after, those of one graph
// together and joined where nothing changed between.
func (m *versionMerge) statements() []Version {
	byKey := make([]struct {
		key []byte
		Version
	}, 0, len(m.triple))
	for _, v := range m.triple {
		if k := m.key(v.IDQuad); m.after == nil || bytes.Compare(k, m.after) > 0 {
			byKey = append(byKey, struct {
				key []byte
				Version
			}{k, v})
		}
	}
	slices.SortStableFunc(byKey, func(a, b struct {
		key []byte
		Version
	}) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(a.From, b.From))
	})
	var out []Version
	for i := range byKey {
		v := byKey[i].Version
		if n := len(out); n > 0 && out[n-1].continues(&v) {
			out[n-1].To = v.To
			continue
		}
		out = append(out, v)
	}
	return out
}
