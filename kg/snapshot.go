package kg

import (
	"context"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"koine/kg/internal/keys"
)

// Snapshot is the store as one view shows it at one revision. Everything that
// belongs together is read from the same one. It is safe for concurrent use
// until Close, which must be called once all iterators have ended.
type Snapshot struct {
	// ctx is that of the operation that took the snapshot: scans end with it.
	ctx       context.Context
	kv        kv
	dict      dictionary
	access    Access
	catalogue *catalogue
	pending   *deltas // what an update under way adds to the catalogue
	// generations are those of the newest revision of kv.
	generations *generations
	view        View
	position    Position
	// past tells that the revision read is older than the one kv stands at.
	past bool
	// oldest is the oldest revision that can be read; nil in an update under way.
	oldest  *atomic.Uint64
	release func()
	// commit reads one of the log; nil in an update under way.
	commit func(Revision) (*Commit, error)

	read   atomic.Int64
	meter  *Meter // nil: none
	scans  atomic.Int64
	reader *reader  // keeps decisions beyond this read; nil: none
	graphs sync.Map // ID → bool: the decision per graph, where the reader does not keep it
	// hides tells which statements are hidden from the principal, nil if none is;
	// places keeps what it said.
	hides  func(predicate, graph Term) bool
	places sync.Map // [2]ID of predicate and graph → bool
	// forgets tells of which graphs the past is kept from the principal, nil if of
	// none (Forgetter); forgot keeps what it said. What went behind followed is seen.
	forgets  func(graph Term) bool
	forgot   sync.Map // ID → bool
	followed Revision
	mu       sync.Mutex
	sources  []AgentID // guarded by mu
	// local holds the terms of the ids that LocalID gave, guarded by mu.
	local map[ID]Term
}

// MaxSources bounds what Sources lists.
const MaxSources = 20

// Close lets the revision go.
func (s *Snapshot) Close() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// Revision is the one that is read.
func (s *Snapshot) Revision() Revision { return s.position.Revision }

// Position is behind all changes of the revision that is read: to follow from
// there is to miss nothing and to see nothing twice.
func (s *Snapshot) Position() Position { return s.position }

// View is what is shown, with the evaluation time filled in.
func (s *Snapshot) View() View { return s.view }

// Err is why the operation that took the snapshot is over, nil while it is not.
// Scans end with it by themselves; what takes long between two rows asks.
func (s *Snapshot) Err() error {
	if s.ctx == nil {
		return nil
	}
	return s.ctx.Err()
}

// StatementsRead counts the statements that were read and shown.
func (s *Snapshot) StatementsRead() int64 { return s.read.Load() }

// Scans counts the walks over the index that were begun: one for each Match,
// one for all of a Sweep in the same order.
func (s *Snapshot) Scans() int64 { return s.scans.Load() }

// Sources lists agents whose assertions were read, up to MaxSources.
func (s *Snapshot) Sources() []AgentID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sources)
}

func (s *Snapshot) noteSources(list []Assertion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range list {
		if len(s.sources) < MaxSources && !slices.Contains(s.sources, a.Source) {
			s.sources = append(s.sources, a.Source)
		}
	}
}

// ID is the id of a term, false when the store has none for it. That there is
// one does not mean that the view shows a statement with it.
func (s *Snapshot) ID(t Term) (ID, bool, error) { return s.dict.id(t) }

// Term is the term of an id that a scan or LocalID gave.
func (s *Snapshot) Term(id ID) (Term, error) {
	if IsLocal(id) {
		return s.localTerm(id)
	}
	return s.dict.term(id)
}

// Row is one statement of a scan, in ids.
type Row struct {
	IDQuad
	// from and to bound the interval of a statement of the past; to is 0 for
	// one that stands.
	from, to Revision
	// shown holds the assertions that the view admits, where the scan had to
	// decode them.
	shown []Assertion
}

// MatchIDs yields the quads that fit the pattern and that access and view
// admit, in the order of the index chosen for the pattern. With after, it
// starts behind that quad: the order depends on the pattern only, so pages of
// one revision fit together.
func (s *Snapshot) MatchIDs(p IDPattern, after *IDQuad) iter.Seq2[Row, error] {
	return s.matchRows(p, after, !s.view.admitsAll())
}

// MatchAsserted is MatchIDs for whoever asks for the Assertions of all rows, or
// of most: they are decoded on the way. That costs little where the pattern binds
// at most the subject, and otherwise a seek for each row.
func (s *Snapshot) MatchAsserted(p IDPattern, after *IDQuad) iter.Seq2[Row, error] {
	return s.matchRows(p, after, true)
}

func (s *Snapshot) matchRows(p IDPattern, after *IDQuad, states bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		sc := newScanner(s, IDQuad(p), after, states)
		defer sc.close()
		for sc.next() {
			if !yield(sc.row, nil) {
				return
			}
		}
		if sc.err != nil {
			yield(Row{}, sc.err)
		}
	}
}

// Match yields the statements that fit the pattern and that access and view
// admit, in the order of the index chosen for the pattern.
func (s *Snapshot) Match(p Pattern) iter.Seq2[Statement, error] {
	return func(yield func(Statement, error) bool) {
		ids, known, err := s.patternIDs(p)
		if err != nil {
			yield(Statement{}, err)
			return
		}
		if !known {
			return
		}
		sc := newScanner(s, IDQuad(ids), nil, true)
		defer sc.close()
		var d quadDecoder
		for sc.next() {
			q, err := d.decode(s, &sc.row.IDQuad)
			if !yield(Statement{Quad: q, Assertions: sc.row.shown}, err) || err != nil {
				return
			}
		}
		if sc.err != nil {
			yield(Statement{}, sc.err)
		}
	}
}

// patternIDs turns a pattern into ids; false when one of its terms is not in
// the store, so that nothing can match.
func (s *Snapshot) patternIDs(p Pattern) (ids IDPattern, known bool, err error) {
	for _, part := range [...]struct {
		t  Term
		id *ID
	}{{p.Subject, &ids.Subject}, {p.Predicate, &ids.Predicate}, {p.Object, &ids.Object}, {p.Graph, &ids.Graph}} {
		if part.t.IsZero() {
			continue
		}
		id, ok, err := s.dict.id(part.t)
		if !ok || err != nil {
			return ids, false, err
		}
		*part.id = id
	}
	return ids, true, nil
}

// Quad decodes the terms of a row.
func (s *Snapshot) Quad(row Row) (Quad, error) {
	var d quadDecoder
	return d.decode(s, &row.IDQuad)
}

// quadDecoder decodes the quads of one scan, most of whose parts are those of
// the quad before.
type quadDecoder struct {
	ids  IDQuad
	quad Quad
}

func (d *quadDecoder) decode(s *Snapshot, ids *IDQuad) (Quad, error) {
	old := quadParts(&d.quad, &d.ids)
	for i, part := range [...]*ID{&ids.Subject, &ids.Predicate, &ids.Object, &ids.Graph} {
		if *part == *old[i].id {
			continue
		}
		t, err := s.dict.term(*part)
		if err != nil {
			return Quad{}, err
		}
		*old[i].term, *old[i].id = t, *part
	}
	return d.quad, nil
}

// Assertions gives those that back the row's statement and that the view
// admits.
func (s *Snapshot) Assertions(row Row) ([]Assertion, error) {
	if row.shown != nil {
		return row.shown, nil
	}
	st, err := s.loadState(row)
	if err != nil {
		return nil, err
	}
	list := s.visible(row.Graph, st.assertions)
	s.noteSources(list)
	return list, nil
}

// Statement decodes a row with its assertions.
func (s *Snapshot) Statement(row Row) (Statement, error) {
	q, err := s.Quad(row)
	if err != nil {
		return Statement{}, err
	}
	list, err := s.Assertions(row)
	return Statement{Quad: q, Assertions: list}, err
}

// revision is up to which generations of graphs count.
func (s *Snapshot) revision() Revision {
	if s.past {
		return s.position.Revision
	}
	return math.MaxUint64
}

// toIndex puts the id in the place of a graph by which the index holds it at the
// revision that is read; false where it then held nothing. The zero ID stays.
func (s *Snapshot) toIndex(graph ID) (ID, bool) {
	if graph.IsZero() || s.generations == nil {
		return graph, true
	}
	return s.generations.idAt(graph, s.revision())
}

// counts tells whether what the index holds under an id is that of the graph at the
// revision that is read, and gives the id of the graph's name.
func (s *Snapshot) counts(graph ID) (name ID, is bool) {
	if s.generations == nil {
		return graph, true
	}
	t, ok := s.generations.tenureOf(graph)
	at := s.revision()
	return t.graph, ok && t.from <= at && (t.until == 0 || at < t.until)
}

// loadState reads the state of a row that the scan did not decode.
func (s *Snapshot) loadState(row Row) (st state, err error) {
	var ok bool
	if row.Graph, ok = s.toIndex(row.Graph); !ok {
		return st, Errorf(CodeInternal, "a row of a graph that is not there")
	}
	return s.loadIndexed(row)
}

// loadIndexed is loadState with the graph by its id in the index.
func (s *Snapshot) loadIndexed(row Row) (st state, err error) {
	key := keys.SPOG.Append(nil, row.IDQuad)
	if row.to != 0 {
		key = keys.SPOG.AppendPast(nil, row.IDQuad, uint64(row.from), uint64(row.to))
	}
	found, err := s.kv.get(key, func(v []byte) (err error) {
		st, err = parseState(v, s.dict.agent)
		return err
	})
	s.generations.settle(&st, row.Graph)
	if err == nil && !found && row.to != 0 && row.to <= s.floor() {
		return st, s.errGone(row.from) // was taken away meanwhile
	}
	if err == nil && !found {
		err = Errorf(CodeInternal, "an index order holds a quad that SPOG does not: %x", key)
	}
	return st, err
}

// floor is the oldest revision that can be read, 0 while all can.
func (s *Snapshot) floor() Revision {
	if s.oldest == nil {
		return 0
	}
	return Revision(s.oldest.Load())
}

func (s *Snapshot) errGone(r Revision) error {
	return errRevisionGone(r, Position{s.position.Epoch, s.floor(), EndOfCommit})
}

// admits tells whether the view shows anything of the graph. A graph whose name
// cannot be read is an error: to pass over it would look like one that is empty.
// Where policies change while this reads, the new ones decide from then on.
func (s *Snapshot) admits(graph ID) (bool, error) {
	if s.view.Graphs == nil {
		switch known := s.reader.find(graph); {
		case known == readable:
			return true, nil
		case known == unreadable, known == ownGraph && !s.view.AllGraphs && !s.view.IncludePending:
			return false, nil
		}
	}
	if d, ok := s.graphs.Load(graph); ok {
		return d.(bool), nil
	}
	t, err := s.dict.term(graph)
	if err != nil {
		return false, err
	}
	shown, kept := s.mayRead(graph, t)
	shown = shown && s.view.shows(t)
	if !kept || s.view.Graphs != nil {
		s.graphs.Store(graph, shown)
	}
	return shown, nil
}

// mayRead tells whether the principal reads the graph, and whether that is kept
// beyond this read.
func (s *Snapshot) mayRead(graph ID, t Term) (may, kept bool) {
	switch s.reader.find(graph) {
	case readable:
		return true, true
	case unreadable:
		return false, true
	}
	if IsOwnGraph(t) {
		s.reader.keep(graph, ownGraph)
		return s.access.Allowed(s.view.Principal, t, Read), false
	}
	may = s.access.Allowed(s.view.Principal, t, Read)
	known := unreadable
	if may {
		known = readable
	}
	return may, s.reader.keep(graph, known)
}

// admitsPlace tells whether the view shows statements with the predicate in the
// graph.
func (s *Snapshot) admitsPlace(predicate, graph ID) (bool, error) {
	shown, err := s.admits(graph)
	if !shown || err != nil || s.hides == nil {
		return shown, err
	}
	place := [2]ID{predicate, graph}
	if d, ok := s.places.Load(place); ok {
		return d.(bool), nil
	}
	p, err := s.dict.term(predicate)
	if err != nil {
		return false, err
	}
	g, err := s.dict.term(graph)
	if err != nil {
		return false, err
	}
	decision := !s.hides(p, g)
	s.places.Store(place, decision)
	return decision, nil
}
