package kg

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"koine/kg/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// Snapshot reads the store under one view at one revision. All reads of one operation use the
// same snapshot. It is safe for concurrent use until Close, which is called once, after all
// iterators have ended.
type Snapshot struct {
	// ctx belongs to the operation that took the snapshot: scans end with it.
	ctx       context.Context
	kv        index.KV
	dict      index.Dictionary
	access    Access
	catalogue *index.Catalogue
	pending   *index.Deltas // changes of the catalogue by an update in progress
	// generations belong to the newest revision of kv.
	generations *index.Generations
	view        View
	position    Position
	// past means that the view's revision is older than the revision of kv.
	past bool
	// oldest is the oldest readable revision; nil within an update.
	oldest  *atomic.Uint64
	release func()
	// commit reads a commit of the log; nil within an update.
	commit func(Revision) (*Commit, error)

	read         atomic.Int64
	meter        *Meter // nil: no meter
	scans        atomic.Int64
	cachedReader *cachedReader // decisions kept beyond this snapshot; nil: none
	graphs       sync.Map      // ID → bool: decisions that cachedReader does not keep
	// hides reports statements hidden from the principal, nil for none; places caches its
	// answers.
	hides            func(predicate, graph Term) bool
	hiddenPredicates sync.Map // [2]ID of predicate and graph → bool
	// forgets reports graphs whose past is hidden from the principal, nil for none
	// (Forgetter); forgot caches its answers. Removals after followed are visible.
	forgets         func(graph Term) bool
	forgottenGraphs sync.Map // ID → bool
	followed        Revision
	mu              sync.Mutex
	sources         []AgentID // guarded by mu
	// local holds the terms behind the ids of LocalID, guarded by mu.
	local map[ID]Term
	// prefixes are the terms that were looked up by prefix, guarded by mu.
	prefixes map[TermPrefix]*foundTerms
	// ranked are the terms that were looked up by value, guarded by mu.
	ranked map[*ValueSet]*foundTerms
	// runs are decoded runs of the store, nil for none.
	runs *runCache
}

// MaxSources bounds the result of Sources.
const MaxSources = 20

// Close releases the revision.
func (s *Snapshot) Close() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// Revision returns the revision that the snapshot reads.
func (s *Snapshot) Revision() Revision { return s.position.Revision }

// Position returns the position behind all changes of the snapshot's revision. A watch from
// there misses no change and repeats none.
func (s *Snapshot) Position() Position { return s.position }

// View returns the view with its evaluation time filled in.
func (s *Snapshot) View() View { return s.view }

// Err returns the error that ends the snapshot's operation, or nil while it is under way.
// Scans check it themselves; long work between two rows should call it.
func (s *Snapshot) Err() error {
	if s.ctx == nil {
		return nil
	}
	return s.ctx.Err()
}

// StatementsRead returns the number of visible statements read so far.
func (s *Snapshot) StatementsRead() int64 { return s.read.Load() }

// Scans returns the number of index scans started: one for each Match, one for all parts of a
// Sweep in the same order.
func (s *Snapshot) Scans() int64 { return s.scans.Load() }

// Sources lists sources of the assertions read so far, at most MaxSources.
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

// ID returns the id of a term, or false if the store does not know the term. An id does not
// mean that a visible statement contains the term.
func (s *Snapshot) ID(t Term) (ID, bool, error) { return s.dict.ID(t) }

// Term returns the term of an id from a scan or from LocalID.
func (s *Snapshot) Term(id ID) (Term, error) {
	if IsLocal(id) {
		return s.localTerm(id)
	}
	return s.dict.Term(id)
}

// Row is a statement of a scan, in ids.
type Row struct {
	IDQuad
	// from and to bound the interval in which a past statement held; to is 0 for a current
	// one.
	from, to Revision
	// shown holds the visible assertions if the scan had to decode them.
	shown []Assertion
}

// MatchIDs yields the visible quads that match the pattern, in the order of the index chosen
// for it. With after, it starts behind that quad. The order depends on the pattern only, so
// pages of one revision fit together.
func (s *Snapshot) MatchIDs(p IDPattern, after *IDQuad) iter.Seq2[Row, error] {
	return s.matchRows(p, after, !s.view.AdmitsAll())
}

// MatchAsserted is MatchIDs for callers that call Assertions for most rows: the scan decodes
// them on the way. That is cheap if the pattern binds at most the subject, and costs a seek
// per row otherwise.
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

// Match yields the visible statements that match the pattern, in the order of the index chosen
// for it.
func (s *Snapshot) Match(p Pattern) iter.Seq2[Statement, error] {
	return func(yield func(Statement, error) bool) {
		ids, known, err := s.PatternIDs(p)
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

// PatternIDs translates a pattern into ids. It returns false if the store lacks one of the
// terms, so that nothing matches.
func (s *Snapshot) PatternIDs(p Pattern) (ids IDPattern, known bool, err error) {
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

// quadDecoder decodes the quads of a scan and reuses the terms of the quad before.
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

// Assertions returns the visible assertions of the row's statement.
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

// generationRevision returns the revision whose graph generations are current for the
// snapshot.
func (s *Snapshot) generationRevision() Revision {
	if s.past {
		return s.position.Revision
	}
	return math.MaxUint64
}

// toIndex translates the id of a graph into the id of its generation at the snapshot's
// revision, under which the index holds it. It returns false if the graph was empty then. The
// zero ID stays.
func (s *Snapshot) toIndex(graph ID) (ID, bool) {
	if graph.IsZero() || s.generations == nil {
		return graph, true
	}
	return s.generations.IDAt(graph, s.generationRevision())
}

// currentGraph returns the id of the graph's name for an id of the index, and false if that
// generation is not current at the snapshot's revision.
func (s *Snapshot) currentGraph(graph ID) (name ID, is bool) {
	if s.generations == nil {
		return graph, true
	}
	t, ok := s.generations.TenureOf(graph)
	at := s.generationRevision()
	return t.Graph, ok && t.From <= at && (t.Until == 0 || at < t.Until)
}

// loadState reads the state of a row if the scan did not decode it.
func (s *Snapshot) loadState(row Row) (st base.State, err error) {
	var ok bool
	if row.Graph, ok = s.toIndex(row.Graph); !ok {
		return st, Errorf(CodeInternal, "the row's graph does not exist")
	}
	return s.loadIndexed(row)
}

// loadIndexed is loadState for a row with the graph's id in the index.
func (s *Snapshot) loadIndexed(row Row) (st base.State, err error) {
	key := keys.SPOG.Append(nil, row.IDQuad)
	if row.to != 0 {
		key = keys.SPOG.AppendPast(nil, row.IDQuad, uint64(row.from), uint64(row.to))
	}
	found, err := s.kv.Get(key, func(v []byte) (err error) {
		st, err = base.ParseState(v, s.dict.Agent)
		return err
	})
	s.generations.SettleState(&st, row.Graph)
	if err == nil && !found && row.to != 0 && row.to <= s.oldestReadable() {
		return st, s.errGone(row.from) // retention removed it meanwhile
	}
	if err == nil && !found {
		err = Errorf(CodeInternal, "an index order holds a quad that SPOG does not: %x", key)
	}
	return st, err
}

// oldestReadable returns the oldest readable revision, 0 if all are.
func (s *Snapshot) oldestReadable() Revision {
	if s.oldest == nil {
		return 0
	}
	return Revision(s.oldest.Load())
}

func (s *Snapshot) errGone(r Revision) error {
	return datadir.ErrRevisionGone(r, Position{Epoch: s.position.Epoch, Revision: s.oldestReadable(), Index: EndOfCommit})
}

// admitsGraph reports whether the view admits the graph. An unreadable name is an error:
// skipping the graph would make it look empty. A policy that changes during the read applies
// from then on.
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

// mayRead reports whether the principal may read the graph, and whether the answer is cached
// beyond this snapshot.
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

// Admitted returns the predicate that reports whether the view of a snapshot admits the
// statements with a predicate in a graph, as far as these two decide: by the rights of the
// principal and the graphs of the view.
func Admitted(s *Snapshot) func(predicate, graph ID) (bool, error) { return s.admitsPredicate }

// admitsPredicate reports whether the view admits statements with the predicate in the graph.
func (s *Snapshot) admitsPredicate(predicate, graph ID) (bool, error) {
	shown, err := s.admitsGraph(graph)
	if !shown || err != nil || s.hides == nil {
		return shown, err
	}
	place := [2]ID{predicate, graph}
	if d, ok := s.hiddenPredicates.Load(place); ok {
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
	s.hiddenPredicates.Store(place, decision)
	return decision, nil
}

// pinned is the newest revision, kept readable.
type pinned struct {
	head *head
	kv   index.KV        // all layers
	base *index.BadgerKV // the lowest layer
	at   Revision        // revision of base
}

// pin keeps the newest revision readable until unpin.
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
	base := s.flushedKV.Load() // of this revision; replaced with mu held
	base.Hold()
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

// discardOld lets Badger drop older versions of keys that no reader needs. The caller holds
// mu.
func (s *Store) discardOld() {
	oldest := s.layers.flushed
	if r, _, ok := s.pins.Min(); ok {
		oldest = min(oldest, r)
	}
	s.db.SetDiscardTs(uint64(oldest))
}

// LocalID gives a term an id that is valid on this snapshot only and occurs in no statement.
// It stands for a term that the store does not know, or that must look unknown. Term returns
// the term. Two snapshots give a term the same local id unless terms collide. Beyond
// MaxLocalTerms it fails with CodeLimitExceeded.
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
			e := Errorf(CodeLimitExceeded, "more than %d unknown terms are ends of paths of length zero", MaxLocalTerms)
			e.Limit, e.Hint = "localTerms", "Query fewer terms at a time, or use + instead of *."
			return ID{}, e
		}
		if s.local == nil {
			s.local = map[ID]Term{}
		}
		s.local[id] = t
		return id, nil
	}
}

// localTerm returns the term of a local id.
func (s *Snapshot) localTerm(id ID) (Term, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.local[id]
	if !ok {
		return t, Errorf(CodeInternal, "the local id belongs to another snapshot")
	}
	return t, nil
}

// Resolve returns the revision of a moment: 0 before the first commit. A time before the
// oldest entry of a log that was cut fails with CodeRevisionGone.
func (s *Store) Resolve(ctx context.Context, m Moment) (Revision, error) {
	if m.Time.IsZero() {
		return m.Revision, nil
	}
	return s.revisionAt(ctx, m.Time)
}

// ReadableAt is Resolve for a read, which needs a revision: a moment before the first commit
// fails with CodeRevisionGone.
func (s *Store) ReadableAt(ctx context.Context, m Moment) (Revision, error) {
	r, err := s.Resolve(ctx, m)
	if r == 0 && err == nil {
		err = Errorf(CodeRevisionGone, "%s is before the first commit: there is nothing to read", m)
	}
	return r, err
}

// Numbered yields the statements of Sequence in the graph in the order of their numbers,
// starting at from. It reaches the first with one seek.
func (s *Snapshot) Numbered(graph Term, from int64) iter.Seq2[Row, error] {
	return s.InOrder(graph, Sequence, max(1, from), ID{})
}

// InOrder yields the statements of Sequence, or of an Ordered property, in the graph, in the
// order of their numbers and then of their subjects' ids. It starts at the number from, behind
// the subject given (the zero ID is before all), and reaches the first with one seek.
func (s *Snapshot) InOrder(graph, property Term, from int64, behind ID) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		ids, known, err := s.PatternIDs(Pattern{Graph: graph, Predicate: property})
		if err != nil {
			yield(Row{}, err)
			return
		}
		if !known {
			return
		}
		for row, err := range s.MatchIDs(ids, base.OrderedSeek(ids, from, behind)) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// MaxLiteralKinds bounds the languages, and the datatypes, that Literals tries for a text.
const MaxLiteralKinds = 256

// Literals lists the literals with this text that the store knows, in every language and
// datatype: the meanings of a text without either. It does not check whether the view shows a
// statement with them. complete is false if the store has too many languages or datatypes to
// try; the caller then reads the values.
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

// MaxPrefixed bounds the terms that are looked up for a prefix. With more, the values are read and
// compared: a walk over so many is as fast as looking them up one by one.
const MaxPrefixed = 1 << 14

// MaxPrefixedSubjects is MaxPrefixed for IRIs where all subjects would be read otherwise.
const MaxPrefixedSubjects = 1 << 17

// maxKeptLookups bounds the prefixes, and the sets of values, for which a snapshot keeps the terms.
const maxKeptLookups = 16

// foundTerms are the ids of the dictionary's terms with a prefix or among some values, in order.
// They are incomplete if there are more than most, or if the snapshot cannot tell.
type foundTerms struct {
	ids      []ID
	most     int
	complete bool
}

// idsWith looks the terms with a prefix up, visible or not, if there are at most so many. What the
// caller shows must not depend on whether they are complete.
func (s *Snapshot) idsWith(p TermPrefix, most int) (*foundTerms, error) {
	s.mu.Lock()
	found := s.prefixes[p]
	s.mu.Unlock()
	if found != nil && (found.complete || found.most >= most) {
		return found, nil
	}
	found, err := s.collectWith(p, most)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prefixes == nil {
		s.prefixes = map[TermPrefix]*foundTerms{}
	}
	if _, kept := s.prefixes[p]; kept || len(s.prefixes) < maxKeptLookups {
		s.prefixes[p] = found
	}
	return found, nil
}

func (s *Snapshot) collectWith(p TermPrefix, most int) (*foundTerms, error) {
	none := &foundTerms{most: most}
	records, complete := s.recordsWith(p)
	if !complete || s.dict.Fresh != nil || s.dict.HashedTerms {
		return none, nil
	}
	var ids []ID
	for _, record := range records {
		var failed error
		err := index.EachWith(s.kv, record, func(id ID) bool {
			if complete = len(ids) < most; !complete {
				return false
			}
			if ids = append(ids, id); len(ids)%index.PaceInterval == 0 {
				failed = s.waitForPace()
			}
			return failed == nil
		})
		if err == nil && failed == nil && len(record) > keys.MaxInlineRecord {
			ids, failed = s.withPrefix(ids, p)
		}
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
		if !complete {
			return none, nil
		}
	}
	slices.SortFunc(ids, ID.Compare)
	return &foundTerms{ids, most, true}, nil
}

// withPrefix returns those of the ids that have the prefix.
func (s *Snapshot) withPrefix(ids []ID, p TermPrefix) ([]ID, error) {
	var failed error
	ids = slices.DeleteFunc(ids, func(id ID) bool {
		if failed != nil {
			return false
		}
		t, err := s.dict.Term(id)
		failed = err
		return !p.Fits(t)
	})
	return ids, failed
}

// recordsWith lists the beginnings of the records of terms with a prefix. complete is false if
// there are too many.
func (s *Snapshot) recordsWith(p TermPrefix) (records [][]byte, complete bool) {
	if p.Of == OfIRIs {
		return [][]byte{base.AppendTerm(nil, IRI(p.Text))}, true
	}
	kinds := []string{""}
	languages := s.listSuffixes(keys.LanguagePrefix())
	for _, lang := range languages {
		kinds = append(kinds, base.Tagged(lang))
	}
	var datatypes []string
	if p.Of == OfLiterals {
		datatypes = s.listSuffixes(keys.DatatypePrefix())
		kinds = append(kinds, datatypes...)
	}
	for _, kind := range kinds {
		records = append(records, base.AppendTerm(nil, base.LiteralOfKind(p.Text, kind)))
	}
	return records, len(languages) <= MaxLiteralKinds && len(datatypes) <= MaxLiteralKinds
}

// idsAmong looks up the literals of the dictionary among some values, visible or not. They are
// complete if there are at most MaxPrefixed, and the predicate has no other literals that are
// selected. The caller's answer must not depend on it.
func (s *Snapshot) idsAmong(v *ValueSet, predicate ID) (*foundTerms, error) {
	if v.Others {
		if kinds, err := LiteralKinds(s, predicate); kinds[OtherValues] || err != nil {
			return &foundTerms{}, err
		}
	}
	s.mu.Lock()
	found := s.ranked[v]
	s.mu.Unlock()
	if found != nil {
		return found, nil
	}
	found = &foundTerms{complete: HasRanks(s)}
	for _, r := range v.Ranks {
		if !found.complete {
			break
		}
		list, more, err := RankedLiterals(s, r, MaxPrefixed-len(found.ids))
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			found.ids = append(found.ids, l.ID)
		}
		found.complete = !more
	}
	slices.SortFunc(found.ids, ID.Compare)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ranked == nil {
		s.ranked = map[*ValueSet]*foundTerms{}
	}
	if len(s.ranked) < maxKeptLookups {
		s.ranked[v] = found
	}
	return found, nil
}

// HasRanks reports whether RankedLiterals and LiteralKinds know all statements of the snapshot. An
// index of an older layout lacks their keys until it is upgraded.
func HasRanks(s *Snapshot) bool { return s.dict.Fresh == nil && !s.dict.Unranked }

// LiteralKinds reports, by ValueKind, whether a statement of the predicate, visible or not, may have a
// literal of the dictionary of that kind as its object.
func LiteralKinds(s *Snapshot, predicate ID) (kinds [len(base.ValueKinds)]bool, err error) {
	for _, kind := range base.ValueKinds {
		kinds[kind] = !HasRanks(s)
		if !kinds[kind] && err == nil {
			kinds[kind], err = s.kv.Get(keys.Values(predicate, byte(kind)), func([]byte) error { return nil })
		}
	}
	return kinds, err
}

// RankedLiteral is a number or a moment of the dictionary.
type RankedLiteral struct {
	At uint64 // its rank
	ID ID
}

// RankedLiterals lists at most so many literals of the dictionary with ranks in the range, in the
// order of the ranks, whether the view shows a statement with them or not. It reports whether there
// are more.
func RankedLiterals(s *Snapshot, r RankRange, most int) (list []RankedLiteral, more bool, err error) {
	c := s.kv.Scan(keys.RankedFrom(byte(r.Kind), 0)[:2])
	defer c.Close()
	for c.Seek(keys.RankedFrom(byte(r.Kind), r.First)); c.Valid(); c.Next() {
		_, at, number, ok := keys.ParseRanked(c.Key())
		if !ok || at > r.Last {
			break
		}
		if len(list) == most {
			return list, true, nil
		}
		if list = append(list, RankedLiteral{at, keys.Numbered(keys.TagLiteral, number)}); len(list)%index.PaceInterval == 0 {
			if err := s.waitForPace(); err != nil {
				return nil, false, err
			}
		}
	}
	return list, false, nil
}

// walkObjects prepares a walk over some objects of a predicate. Where the terms with the prefix, or
// among the values, are complete, the walk steps over all others; else it reads and compares them.
// Both return the same statements.
func (s *Snapshot) walkObjects(o *Objects, predicate ID) (w objectWalk, err error) {
	w = objectWalk{of: o, predicate: predicate, ranges: o.Ranges}
	var found *foundTerms
	switch {
	case o.Prefix != nil:
		found, err = s.idsWith(*o.Prefix, MaxPrefixed)
		w.test = o.Prefix.Fits
	case o.Values != nil:
		found, err = s.idsAmong(o.Values, predicate)
		w.test = o.Values.Fits
	}
	if err != nil || found == nil || !found.complete {
		return w, err
	}
	w.test = nil
	numbered := base.NumberedLiteralIDs()
	some := make([]IDRange, 0, len(found.ids)+2)
	some = append(some, IDRange{Last: numbered.Before()})
	for _, id := range found.ids {
		some = append(some, IDRange{First: id, Last: id})
	}
	some = append(some, IDRange{First: ID{numbered.Last.Tag() + 1}, Last: lastID})
	w.ranges = base.IntersectIDs(o.Ranges, some)
	return w, nil
}

// SubjectsWith yields the IRIs that begin with a text and are subjects of statements that the view
// shows, in the order of their ids, behind after if it is set. whole tells that the caller reads all
// of them. It does not count what it reads: that would tell of terms in statements that the view
// does not show.
func SubjectsWith(s *Snapshot, text string, after *ID, whole bool) iter.Seq2[ID, error] {
	return func(yield func(ID, error) bool) {
		prefix, most := TermPrefix{Of: OfIRIs, Text: text}, MaxPrefixed
		if whole {
			most = MaxPrefixedSubjects
		}
		found, err := s.idsWith(prefix, most)
		if err != nil {
			yield(ID{}, err)
			return
		}
		w := &Sweep{sc: scanner{s: s, states: !s.view.AdmitsAll(), quiet: true}}
		defer w.Close()
		if found.complete {
			w.subjectsAmong(append(slices.Clone(found.ids), knownWith(prefix)...), after, yield)
		} else {
			w.subjectsWith(prefix, after, yield)
		}
		if err := w.Err(); err != nil {
			yield(ID{}, err)
		}
	}
}

// subjectsAmong yields the subjects among ids, which are in order.
func (w *Sweep) subjectsAmong(ids []ID, after *ID, yield func(ID, error) bool) {
	if after != nil {
		i, there := slices.BinarySearchFunc(ids, *after, ID.Compare)
		if ids = ids[i:]; there {
			ids = ids[1:]
		}
	}
	for _, id := range ids {
		if w.Seek(IDPattern{Subject: id}, nil); w.Next() && !yield(id, nil) {
			return
		}
		if w.Err() != nil || w.sc.s.Err() != nil {
			w.sc.err = cmp.Or(w.sc.err, w.sc.s.Err())
			return
		}
	}
}

// subjectsWith yields the subjects with a prefix, in a walk over all.
func (w *Sweep) subjectsWith(prefix TermPrefix, after *ID, yield func(ID, error) bool) {
	w.Seek(IDPattern{}, nil)
	if after != nil {
		w.To(IDQuad{Subject: behindID(*after)})
	}
	for w.Next() {
		id := w.Row().Subject
		if id.Tag() != keys.TagBlank {
			t, err := w.sc.s.dict.Term(id)
			if err != nil || prefix.Fits(t) && !yield(id, nil) {
				w.sc.err = err
				return
			}
		}
		w.To(IDQuad{Subject: behindID(id)})
	}
}

// behindID returns the id after one.
func behindID(id ID) ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// lastID is greater than all ids.
var lastID = ID(bytes.Repeat([]byte{0xff}, keys.IDSize))

// knownWith lists the ids of the IRIs with a prefix that are built into the layout, in order.
func knownWith(prefix TermPrefix) (ids []ID) {
	list := []Term{Sequence}
	for n := range 256 {
		list = append(list, Ordered(uint8(n)))
	}
	for _, t := range list {
		if id, ok := base.InlineID(t); ok && prefix.Fits(t) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, ID.Compare)
	return ids
}

// HasDatatype reports whether the store knows a literal of the datatype, visible or not.
func (s *Snapshot) HasDatatype(iri string) (bool, error) {
	return s.dict.KV.Get(keys.Datatype(iri), func([]byte) error { return nil })
}

// HasLiteralOf reports whether the view shows a statement of the predicate with a literal
// object. It costs one seek, behind the resources.
func (s *Snapshot) HasLiteralOf(predicate ID) (bool, error) {
	resources := lastID
	resources[0] = keys.TagLiteral - 1
	for _, err := range s.MatchIDs(IDPattern{Predicate: predicate}, &IDQuad{Subject: lastID, Predicate: predicate, Object: resources, Graph: lastID}) {
		return err == nil, err
	}
	return false, nil
}

// listSuffixes lists the rests of the keys that begin with the prefix, at most
// MaxLiteralKinds+1.
func (s *Snapshot) listSuffixes(prefix []byte) []string {
	c := s.kv.Scan(prefix)
	defer c.Close()
	var out []string
	for ; c.Valid() && len(out) <= MaxLiteralKinds; c.Next() {
		out = append(out, string(c.Key()[1:]))
	}
	return out
}
