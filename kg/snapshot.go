package kg

import (
	"context"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"koine/kg/internal/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// Snapshot is the store as one view shows it at one revision. Everything that
// belongs together is read from the same one. It is safe for concurrent use
// until Close, which must be called once all iterators have ended.
type Snapshot struct {
	// ctx is that of the operation that took the snapshot: scans end with it.
	ctx       context.Context
	kv        index.KV
	dict      index.Dictionary
	access    Access
	catalogue *index.Catalogue
	pending   *index.Deltas // what an update under way adds to the catalogue
	// generations are those of the newest revision of kv.
	generations *index.Generations
	view        View
	position    Position
	// past tells that the revision read is older than the one kv stands at.
	past bool
	// oldest is the oldest revision that can be read; nil in an update under way.
	oldest  *atomic.Uint64
	release func()
	// commit reads one of the log; nil in an update under way.
	commit func(Revision) (*Commit, error)

	read         atomic.Int64
	meter        *Meter // nil: none
	scans        atomic.Int64
	cachedReader *cachedReader // keeps decisions beyond this read; nil: none
	graphs       sync.Map      // ID → bool: the decision per graph, where the reader does not keep it
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
func (s *Snapshot) ID(t Term) (ID, bool, error) { return s.dict.ID(t) }

// Term is the term of an id that a scan or LocalID gave.
func (s *Snapshot) Term(id ID) (Term, error) {
	if IsLocal(id) {
		return s.localTerm(id)
	}
	return s.dict.Term(id)
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
	return s.matchRows(p, after, !s.view.AdmitsAll())
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
		id, ok, err := s.dict.ID(part.t)
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
	old := base.QuadParts(&d.quad, &d.ids)
	for i, part := range [...]*ID{&ids.Subject, &ids.Predicate, &ids.Object, &ids.Graph} {
		if *part == *old[i].ID {
			continue
		}
		t, err := s.dict.Term(*part)
		if err != nil {
			return Quad{}, err
		}
		*old[i].Term, *old[i].ID = t, *part
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
	list := s.visibleAssertions(row.Graph, st.Assertions)
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

// generationRevision is up to which generations of graphs count.
func (s *Snapshot) generationRevision() Revision {
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
	return s.generations.IDAt(graph, s.generationRevision())
}

// currentGraph tells whether what the index holds under an id is that of the graph at the
// revision that is read, and gives the id of the graph's name.
func (s *Snapshot) currentGraph(graph ID) (name ID, is bool) {
	if s.generations == nil {
		return graph, true
	}
	t, ok := s.generations.TenureOf(graph)
	at := s.generationRevision()
	return t.Graph, ok && t.From <= at && (t.Until == 0 || at < t.Until)
}

// loadState reads the state of a row that the scan did not decode.
func (s *Snapshot) loadState(row Row) (st base.State, err error) {
	var ok bool
	if row.Graph, ok = s.toIndex(row.Graph); !ok {
		return st, Errorf(CodeInternal, "a row of a graph that is not there")
	}
	return s.loadIndexed(row)
}

// loadIndexed is loadState with the graph by its id in the index.
func (s *Snapshot) loadIndexed(row Row) (st base.State, err error) {
	key := keys.SPOG.Append(nil, row.IDQuad)
	if row.to != 0 {
		key = keys.SPOG.AppendPast(nil, row.IDQuad, uint64(row.from), uint64(row.to))
	}
	found, err := s.kv.Get(key, func(v []byte) (err error) {
		st, err = base.ParseState(v, s.dict.Agent)
		return err
	})
	s.generations.Settle(&st, row.Graph)
	if err == nil && !found && row.to != 0 && row.to <= s.oldestReadable() {
		return st, s.errGone(row.from) // was taken away meanwhile
	}
	if err == nil && !found {
		err = Errorf(CodeInternal, "an index order holds a quad that SPOG does not: %x", key)
	}
	return st, err
}

// oldestReadable is the oldest revision that can be read, 0 while all can.
func (s *Snapshot) oldestReadable() Revision {
	if s.oldest == nil {
		return 0
	}
	return Revision(s.oldest.Load())
}

func (s *Snapshot) errGone(r Revision) error {
	return datadir.ErrRevisionGone(r, Position{s.position.Epoch, s.oldestReadable(), EndOfCommit})
}

// admitsGraph tells whether the view shows anything of the graph. A graph whose name
// cannot be read is an error: to pass over it would look like one that is empty.
// Where policies change while this reads, the new ones decide from then on.
func (s *Snapshot) admitsGraph(graph ID) (bool, error) {
	if s.view.Graphs == nil {
		switch known := s.cachedReader.lookupDecision(graph); {
		case known == readable:
			return true, nil
		case known == unreadable, known == ownGraph && !s.view.AllGraphs && !s.view.IncludePending:
			return false, nil
		}
	}
	if d, ok := s.graphs.Load(graph); ok {
		return d.(bool), nil
	}
	t, err := s.dict.Term(graph)
	if err != nil {
		return false, err
	}
	shown, kept := s.mayRead(graph, t)
	shown = shown && s.view.Shows(t)
	if !kept || s.view.Graphs != nil {
		s.graphs.Store(graph, shown)
	}
	return shown, nil
}

// mayRead tells whether the principal reads the graph, and whether that is kept
// beyond this read.
func (s *Snapshot) mayRead(graph ID, t Term) (may, kept bool) {
	switch s.cachedReader.lookupDecision(graph) {
	case readable:
		return true, true
	case unreadable:
		return false, true
	}
	if IsOwnGraph(t) {
		s.cachedReader.cacheDecision(graph, ownGraph)
		return s.access.Allowed(s.view.Principal, t, Read), false
	}
	may = s.access.Allowed(s.view.Principal, t, Read)
	known := unreadable
	if may {
		known = readable
	}
	return may, s.cachedReader.cacheDecision(graph, known)
}

// admitsPlace tells whether the view shows statements with the predicate in the
// graph.
func (s *Snapshot) admitsPlace(predicate, graph ID) (bool, error) {
	shown, err := s.admitsGraph(graph)
	if !shown || err != nil || s.hides == nil {
		return shown, err
	}
	place := [2]ID{predicate, graph}
	if d, ok := s.places.Load(place); ok {
		return d.(bool), nil
	}
	p, err := s.dict.Term(predicate)
	if err != nil {
		return false, err
	}
	g, err := s.dict.Term(graph)
	if err != nil {
		return false, err
	}
	decision := !s.hides(p, g)
	s.places.Store(place, decision)
	return decision, nil
}

// pinned is the newest revision, held readable.
type pinned struct {
	head *head
	kv   index.KV        // all layers
	base *index.BadgerKV // the lowest
	at   Revision        // of base
}

// pin holds the newest revision readable until unpin.
func (s *Store) pin(context.Context) (pinned, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return pinned{}, base.ErrClosed()
	}
	at := s.layers.flushed
	n, _ := s.pins.Get(at)
	s.pins.Set(at, n+1)
	s.users.Add(1)
	base := s.newKV(at)
	return pinned{s.head.Load(), s.layers.newKV(base, s.layers.readerMem()), base, at}, nil
}

func (s *Store) unpin(p pinned) {
	p.base.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, _ := s.pins.Get(p.at); n > 1 {
		s.pins.Set(p.at, n-1)
	} else {
		s.pins.Delete(p.at)
	}
	s.users.Done()
}

// publishHead shows a head whose keys Badger has.
func (s *Store) publishHead(h *head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showFlushed(h.revision)
	s.discardOld()
	s.showHead(h)
}

// showHead moves readers forward. Called with mu held.
func (s *Store) showHead(h *head) {
	s.head.Store(h)
	close(s.moved)
	s.moved = make(chan struct{})
}

// discardOld lets older versions of Badger's keys go that nobody reads any more.
// Called with mu held.
func (s *Store) discardOld() {
	oldest := s.layers.flushed
	if r, _, ok := s.pins.Min(); ok {
		oldest = min(oldest, r)
	}
	s.db.SetDiscardTs(uint64(oldest))
}

// LocalID gives a term an id on this snapshot only, which no statement has: it
// stands for a term that the store does not know, or that must look as if it did
// not. Term gives the term back. Two snapshots give a term the same local id
// unless their terms collide. A snapshot has at most MaxLocalTerms of them; one more is
// LIMIT_EXCEEDED.
func (s *Snapshot) LocalID(t Term) (ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := base.Hash16(base.AppendTerm(nil, t))
	for n := binary.BigEndian.Uint64(h[:8]) | base.LocalNumbers; ; n = (n + 1) | base.LocalNumbers {
		id := keys.Numbered(base.TagOf(t), n)
		switch had, taken := s.local[id]; {
		case taken && had == t:
			return id, nil
		case taken:
			continue
		case len(s.local) == MaxLocalTerms:
			e := Errorf(CodeLimitExceeded, "more than %d terms that are in no statement are named as ends of paths without a step", MaxLocalTerms)
			e.Limit, e.Hint = "localTerms", "Ask of fewer terms at a time, or by a path that takes a step (+ instead of *)."
			return ID{}, e
		}
		if s.local == nil {
			s.local = map[ID]Term{}
		}
		s.local[id] = t
		return id, nil
	}
}

// localTerm is the term of a local id.
func (s *Snapshot) localTerm(id ID) (Term, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.local[id]
	if !ok {
		return t, Errorf(CodeInternal, "a local id of another snapshot")
	}
	return t, nil
}

// Resolve is the revision of the moment: 0 before the first commit. A time
// before the oldest entry of a log whose head was cut is CodeRevisionGone.
func (s *Store) Resolve(ctx context.Context, m Moment) (Revision, error) {
	if m.Time.IsZero() {
		return m.Revision, nil
	}
	return s.RevisionAt(ctx, m.Time)
}

// ReadableAt is Resolve for a read, which needs a revision: before the first
// there is nothing to read, and that is CodeRevisionGone.
func (s *Store) ReadableAt(ctx context.Context, m Moment) (Revision, error) {
	r, err := s.Resolve(ctx, m)
	if r == 0 && err == nil {
		err = Errorf(CodeRevisionGone, "%s is before the first commit: there is nothing to read", m)
	}
	return r, err
}

// Numbered yields the statements of Sequence in the graph in the order of their
// numbers, from this number on. Getting to the first costs one seek, however
// many are before it.
func (s *Snapshot) Numbered(graph Term, from int64) iter.Seq2[Row, error] {
	return s.InOrder(graph, Sequence, max(1, from), ID{})
}

// InOrder yields the statements of Sequence, or of a property that is Ordered, in the
// graph, in the order of their numbers and then of their subjects' ids: those of this
// number with subjects behind the given one (the zero ID is before all), then those of
// greater numbers. Getting to the first costs one seek, however many are before it.
func (s *Snapshot) InOrder(graph, property Term, from int64, behind ID) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		ids, known, err := s.patternIDs(Pattern{Graph: graph, Predicate: property})
		if err != nil {
			yield(Row{}, err)
			return
		}
		if !known {
			return
		}
		for row, err := range s.MatchIDs(ids, base.Place(ids, from, behind)) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// MaxLiteralKinds is up to how many languages, and how many datatypes, a text is
// looked up in each of them.
const MaxLiteralKinds = 256

// Literals lists the literals with this text that the store knows, in whatever
// language and datatype: what a text without either may mean. That there is one
// does not mean that the view shows a statement with it. It is not complete when
// the store has too many languages or datatypes: then the values have to be
// read.
func (s *Snapshot) Literals(text string) (known []Term, complete bool, err error) {
	languages, datatypes := s.listSuffixes(keys.LanguagePrefix()), s.listSuffixes(keys.DatatypePrefix())
	if len(languages) > MaxLiteralKinds || len(datatypes) > MaxLiteralKinds {
		return nil, false, nil
	}
	candidates := []Term{String(text)}
	for _, lang := range languages {
		candidates = append(candidates, base.LiteralOfKind(text, base.Tagged(lang)))
	}
	for _, datatype := range base.InlineDatatypes {
		t := Typed(text, datatype)
		if _, inline := base.InlineID(t); inline {
			candidates = append(candidates, t)
		}
	}
	for _, datatype := range datatypes {
		t := Typed(text, datatype)
		if _, inline := base.InlineID(t); !inline {
			candidates = append(candidates, t)
		}
	}
	for _, t := range candidates {
		_, ok, err := s.dict.ID(t)
		if err != nil {
			return nil, false, err
		}
		if ok {
			known = append(known, t)
		}
	}
	return known, true, nil
}

// HasDatatype tells whether the store has a literal of the datatype, be it in what the
// view shows or not.
func (s *Snapshot) HasDatatype(iri string) (bool, error) {
	return s.dict.KV.Get(keys.Datatype(iri), func([]byte) error { return nil })
}

// HasLiteralOf tells whether the view shows a statement of the predicate whose object is
// a literal, by one look behind the resources.
func (s *Snapshot) HasLiteralOf(predicate ID) (bool, error) {
	last := ID{}
	for i := range last {
		last[i] = 0xff
	}
	resources := last
	resources[0] = keys.TagLiteral - 1
	for _, err := range s.MatchIDs(IDPattern{Predicate: predicate}, &IDQuad{Subject: last, Predicate: predicate, Object: resources, Graph: last}) {
		return err == nil, err
	}
	return false, nil
}

// listSuffixes gives what follows a prefix in the keys that begin with it, one more
// than MaxLiteralKinds at the most.
func (s *Snapshot) listSuffixes(prefix []byte) []string {
	c := s.kv.Scan(prefix)
	defer c.Close()
	var out []string
	for ; c.Valid() && len(out) <= MaxLiteralKinds; c.Next() {
		out = append(out, string(c.Key()[1:]))
	}
	return out
}
