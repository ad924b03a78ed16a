package kg

import (
	"bytes"
	"cmp"
	"iter"
	"slices"

	"koine/kg/internal/keys"
)

// Version is a statement over an interval of revisions in which its visible assertions did not
// change.
type Version struct {
	Row
	// From is the first revision of the interval. To is the first one after it; 0 if the
	// version is current at the snapshot's revision.
	From, To Revision
}

// StandsAt reports whether the version covers the revision, which must not be newer than the
// snapshot's.
func (v *Version) StandsAt(r Revision) bool { return v.From <= r && (v.To == 0 || r < v.To) }

// Versions yields the visible versions of the statements that match the pattern: those of one
// statement together, oldest first, and the statements in the order of MatchIDs; with after,
// from behind that statement on. Two changes in one commit leave no version in between. It
// reads the index of the past, not the log, and costs as much as it yields.
func (s *Snapshot) Versions(p IDPattern, after *IDQuad) iter.Seq2[Version, error] {
	if s.generations != nil {
		return s.versionsOfGenerations(p, after)
	}
	return func(yield func(Version, error) bool) {
		sc := newVersionScanner(s, IDQuad(p), after)
		defer sc.close()
		var held Version // may continue in the next row
		for sc.next() {
			v := s.versionOf(sc.row)
			if held.From != 0 && held.continuesAs(&v) {
				held.To = v.To
				continue
			}
			if held.From != 0 && !yield(held, nil) {
				return
			}
			held = v
		}
		if sc.err != nil {
			yield(Version{}, sc.err)
		} else if held.From != 0 {
			yield(held, nil)
		}
	}
}

// versionOf returns the version of a row of a version scanner. One that ended after the
// snapshot's revision is current.
func (s *Snapshot) versionOf(row Row) Version {
	v := Version{Row: row, From: row.from, To: row.to}
	if v.To > s.position.Revision {
		v.To = 0
	}
	return v
}

// continuesAs reports whether next continues v: the same statement with the same assertions,
// from where v ends. The change in between is hidden or was undone in the same commit.
func (v *Version) continuesAs(next *Version) bool {
	return v.IDQuad == next.IDQuad && v.To == next.From && sameAssertions(v.shown, next.shown)
}

// sameAssertions reports whether two versions of a statement have the same assertions.
func sameAssertions(a, b []Assertion) bool {
	return slices.EqualFunc(a, b, func(a, b Assertion) bool {
		return a.Source == b.Source && a.Revision == b.Revision
	})
}

// newVersionScanner walks all past intervals that began by the snapshot's revision, and the
// current statements.
func newVersionScanner(s *Snapshot, pattern IDQuad, after *IDQuad) *scanner {
	sc := &scanner{s: s, pattern: pattern, after: after, states: true, versions: true}
	sc.startScan()
	return sc
}

// takeVersion is takePast for a walk over versions.
func (sc *scanner) takeVersion(q IDQuad, from, to uint64) bool {
	if from > uint64(sc.s.position.Revision) || !keys.Matches(sc.pattern, q) || !sc.admitsRow(&q) || sc.isForgotten(sc.name, to) {
		return false
	}
	sc.row = Row{IDQuad: q, from: Revision(from), to: Revision(to)}
	return sc.decodeState(sc.past, sc.order == keys.SPOG) && sc.err == nil
}

// versionsOfGenerations is Versions for graphs with generations: the index then has a
// statement under several ids, each current for a while.
func (s *Snapshot) versionsOfGenerations(p IDPattern, after *IDQuad) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		m := s.newVersionMerge(p, after)
		for m.nextTriple() {
			for _, v := range m.mergedVersions() {
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

// versionMerge merges the versions of a pattern from all generations, triple by triple. It
// reads the generations in pieces, one after the other, so that it needs the iterators of one
// scan only.
type versionMerge struct {
	s       *Snapshot
	order   keys.Order
	after   []byte           // key of the statement to begin behind, nil for none
	sources []*versionSource // one for each generation, or one for all graphs
	triple  []Version        // with the same subject, predicate and object
	err     error
}

// versionSource reads the versions of the pattern in one generation or in all graphs. A piece
// ends behind the last version of a statement, and is twice as large as the one before.
type versionSource struct {
	pattern IDQuad
	after   *IDQuad   // the next piece begins behind it
	rows    []Version // read and not consumed yet
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
		graphs = s.generations.IDsBetween(p.Graph, s.oldestReadable(), s.position.Revision)
	}
	if after != nil {
		m.after = m.orderKey(*after)
	}
	for _, graph := range graphs {
		source := &versionSource{pattern: IDQuad(p), size: minVersionPiece}
		source.pattern.Graph = graph
		if after != nil {
			from := *after
			from.Graph = graph // zero: the triple comes again, with its other graphs
			source.after = &from
		}
		m.sources = append(m.sources, source)
	}
	return m
}

// orderKey returns the key by which statements are ordered: as in a scan of the snapshot's
// revision.
func (m *versionMerge) orderKey(q IDQuad) []byte {
	if graph, ok := m.s.toIndex(q.Graph); ok {
		q.Graph = graph
	}
	return m.order.Append(nil, q)
}

// peek returns the next version of a source, nil at its end and after an error.
func (m *versionMerge) peek(source *versionSource) *Version {
	if len(source.rows) == 0 && !source.ended && m.err == nil {
		m.readSource(source)
	}
	if len(source.rows) == 0 || m.err != nil {
		return nil
	}
	return &source.rows[0]
}

// readSource reads the next piece of a source.
func (m *versionMerge) readSource(source *versionSource) {
	sc := &scanner{s: m.s, pattern: source.pattern, after: source.after, states: true, versions: true, indexed: true}
	sc.startScan()
	defer sc.close()
	var last IDQuad // with its graph's id in the index
	source.rows, source.ended = source.rows[:0], true
	for sc.next() {
		at := sc.row.IDQuad
		at.Graph = sc.graph
		if len(source.rows) >= source.size && at != last {
			source.ended = false // it is read again, with its remaining versions
			break
		}
		last = at
		row, t := sc.row, sc.tenure
		row.from = max(row.from, t.From)
		if t.Until != 0 && (row.to == 0 || row.to > t.Until) {
			row.to = t.Until
		}
		if row.from <= m.s.position.Revision && (row.to == 0 || row.from < row.to) {
			source.rows = append(source.rows, m.s.versionOf(row))
		}
	}
	m.err = sc.err
	source.after = &last
	source.size = max(minVersionPiece, min(2*source.size, versionsAhead/len(m.sources)))
}

// nextTriple collects the versions of the next triple.
func (m *versionMerge) nextTriple() bool {
	m.triple = m.triple[:0]
	var least []byte
	for _, source := range m.sources {
		if v := m.peek(source); v != nil {
			if k := m.tripleKey(v); least == nil || bytes.Compare(k, least) < 0 {
				least = k
			}
		}
	}
	if least == nil || m.err != nil {
		return false
	}
	for _, source := range m.sources {
		for v := m.peek(source); v != nil && bytes.Equal(m.tripleKey(v), least); v = m.peek(source) {
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

// mergedVersions returns the versions of the triple that are behind after, those of one graph
// together and joined where nothing changed in between.
func (m *versionMerge) mergedVersions() []Version {
	byKey := make([]struct {
		key []byte
		Version
	}, 0, len(m.triple))
	for _, v := range m.triple {
		if k := m.orderKey(v.IDQuad); m.after == nil || bytes.Compare(k, m.after) > 0 {
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
		if n := len(out); n > 0 && out[n-1].continuesAs(&v) {
			out[n-1].To = v.To
			continue
		}
		out = append(out, v)
	}
	return out
}
