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

// versionMerge goes through the versions of a pattern, from one triple to the next. What
// each generation holds is read in pieces, one generation after the other: so there are
// the iterators of one scan, however many generations the graph has.
type versionMerge struct {
	s       *Snapshot
	order   keys.Order
	after   []byte           // key of what it begins behind, nil for the beginning
	sources []*versionSource // one for each generation, or one for all graphs
	triple  []Version        // with the same subject, predicate and object
	err     error
}

// versionSource reads the versions of the pattern in one generation, or in all graphs. A
// piece ends behind the last version of a statement, and is twice as large as the one
// before.
type versionSource struct {
	pattern IDQuad
	after   *IDQuad   // behind which the next piece begins
	rows    []Version // that were read, and not taken yet
	size    int       // of the next piece
	ended   bool      // there is no next piece
}

// A piece of a source has minVersionPiece versions at first, and up to its share of
// versionsAhead, which are for all sources together: so about as much is read as is asked
// for.
const (
	minVersionPiece = 8
	versionsAhead   = 4096
)

func (s *Snapshot) newVersionMerge(p IDPattern, after *IDQuad) *versionMerge {
	m := &versionMerge{s: s, order: keys.Choose(IDQuad(p))}
	if keys.NeedsPredicates(IDQuad(p)) {
		m.order = keys.POSG
	}
	graphs := []ID{p.Graph}
	if !p.Graph.IsZero() {
		graphs = s.generations.idsBetween(p.Graph, s.floor(), s.position.Revision)
	}
	if after != nil {
		m.after = m.key(*after)
	}
	for _, graph := range graphs {
		source := &versionSource{pattern: IDQuad(p), size: minVersionPiece}
		source.pattern.Graph = graph
		if after != nil {
			from := *after
			from.Graph = graph // zero: the triple itself comes again, for its other graphs
			source.after = &from
		}
		m.sources = append(m.sources, source)
	}
	return m
}

// key is that by which statements are in order: as in a scan of the revision that is
// read.
func (m *versionMerge) key(q IDQuad) []byte {
	if graph, ok := m.s.toIndex(q.Graph); ok {
		q.Graph = graph
	}
	return m.order.Append(nil, q)
}

// head is the next version of a source, nil at its end and after an error.
func (m *versionMerge) head(source *versionSource) *Version {
	if len(source.rows) == 0 && !source.ended && m.err == nil {
		m.read(source)
	}
	if len(source.rows) == 0 || m.err != nil {
		return nil
	}
	return &source.rows[0]
}

// read reads the next piece of a source, of what counted at some time.
func (m *versionMerge) read(source *versionSource) {
	sc := &scanner{s: m.s, pattern: source.pattern, after: source.after, states: true, versions: true, indexed: true}
	sc.start()
	defer sc.close()
	var last IDQuad // with its graph by the id in the index
	source.rows, source.ended = source.rows[:0], true
	for sc.next() {
		at := sc.row.IDQuad
		at.Graph = sc.graph
		if len(source.rows) >= source.size && at != last {
			source.ended = false // it is read again, with what else there is of it
			break
		}
		last = at
		row, t := sc.row, sc.tenure
		row.from = max(row.from, t.from)
		if t.until != 0 && (row.to == 0 || row.to > t.until) {
			row.to = t.until
		}
		if row.from <= m.s.position.Revision && (row.to == 0 || row.from < row.to) {
			source.rows = append(source.rows, m.s.version(row))
		}
	}
	m.err = sc.err
	source.after = &last
	source.size = max(minVersionPiece, min(2*source.size, versionsAhead/len(m.sources)))
}

// next gathers what there is of the next triple.
func (m *versionMerge) next() bool {
	m.triple = m.triple[:0]
	var least []byte
	for _, source := range m.sources {
		if v := m.head(source); v != nil {
			if k := m.tripleKey(v); least == nil || bytes.Compare(k, least) < 0 {
				least = k
			}
		}
	}
	if least == nil || m.err != nil {
		return false
	}
	for _, source := range m.sources {
		for v := m.head(source); v != nil && bytes.Equal(m.tripleKey(v), least); v = m.head(source) {
			m.triple = append(m.triple, *v)
			source.rows = source.rows[1:]
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
