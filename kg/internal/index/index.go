package index

import (
	"encoding/binary"
	"slices"
	"time"

	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// IndexWriter turns changes into the keys of the index. The keys depend only on the
// changes and the dictionary, so that a commit, its replay and a rebuild write the same
// keys. It belongs to one goroutine.
type IndexWriter struct {
	Overlay    *Overlay
	Dictionary Dictionary // Fresh is set
	Deltas     *Deltas    // of the commit being written
	lastSource sourceKey  // the source that was counted last
	// WithoutSourceCounts tells that the index lacks the counts by source. They are made
	// once the index has caught up with the log.
	WithoutSourceCounts bool
	// Floor is the oldest readable revision. States that ended by then are not kept.
	Floor base.Revision
	// Generations is the table of the newest revision, including the commits written so
	// far.
	Generations *Generations
	// firstUnusedNumber is the first number that was free when the writer began. The
	// layers below the overlay hold no statement with such a number.
	firstUnusedNumber uint64
	// newQuads are statements that the commit at hand added about subjects that it names
	// first, with numbers from firstNewNumber on. At most maxNewQuads are listed.
	newQuads       []base.IDQuad
	firstNewNumber uint64
	uses           []LiteralUse        // recorded in the commit at hand; at most maxNewQuads
	lastState      encodedState        // the state that was encoded last
	lastChanged    base.SubjectInGraph // the last subject whose LastChange was written, in the commit at hand
	// lastSubject and LastGraph are the terms that were resolved last. Consecutive patches
	// often have the same.
	lastSubject, LastGraph Resolved
	RecentTerms            *RecentTerms // of the committer; nil for replay
	lastTime               timeTerm     // the last result of TimeTerm
	keys                   quadKeys     // of the quad at hand
	scratch                []byte
	valueBuf               []byte // backing array of short values
}

// copyValue returns a copy of a short value, allocated from a shared array.
func (w *IndexWriter) copyValue(value []byte) []byte {
	const atOnce = 512
	if cap(w.valueBuf)-len(w.valueBuf) < len(value) {
		w.valueBuf = make([]byte, 0, atOnce)
	}
	from := len(w.valueBuf)
	w.valueBuf = append(w.valueBuf, value...)
	return w.valueBuf[from:len(w.valueBuf):len(w.valueBuf)]
}

// varintValue returns the value that encodes n.
func (w *IndexWriter) varintValue(n uint64) []byte {
	var b [binary.MaxVarintLen64]byte
	return w.copyValue(binary.AppendUvarint(b[:0], n))
}

// quadKeys are the keys of a quad in keys.Orders, "" in an order that does not hold it.
// They are substrings of one string, because all of them are kept equally long.
type quadKeys struct {
	ids base.IDQuad
	all [len(keys.Orders)]string
}

// keysOf returns the keys of a quad. It caches those of the last quad, which is first
// looked up and then written.
func (w *IndexWriter) keysOf(ids base.IDQuad) *[len(keys.Orders)]string {
	k := &w.keys
	if k.ids == ids {
		return &k.all
	}
	k.ids = ids
	b := w.scratch[:0]
	var ends [len(keys.Orders)]int
	for i, o := range keys.Orders {
		if o.Holds(ids) {
			b = o.Append(b, ids)
		}
		ends[i] = len(b)
	}
	w.scratch = b
	text, from := string(b), 0
	for i, end := range ends {
		k.all[i], from = text[from:end], end
	}
	return &k.all
}

// Resolved is a term of the store with its id.
type Resolved struct {
	Term base.Term
	ID   base.ID
}

// encodedState is a state of one plain assertion with its encoding. Most statements of a
// commit have the same state.
type encodedState struct {
	since, revision base.Revision
	time            time.Time
	source          base.AgentID
	value           []byte
}

func (e *encodedState) matches(s *base.State) bool {
	a := &s.Assertions[0]
	return e.value != nil && e.since == s.Since && e.revision == a.Revision && e.source == a.Source && e.time.Equal(a.Time)
}

// NewIndexWriter returns a writer into o, which lies over base. New terms are numbered
// from nextNumber on.
func NewIndexWriter(o *Overlay, base KV, cache *TermCache, nextNumber uint64) *IndexWriter {
	return &IndexWriter{
		Overlay:           o,
		Dictionary:        Dictionary{KV: base, Cache: cache, Fresh: NewFreshTerms(nextNumber), missed: new(missedTerms)},
		Deltas:            new(Deltas),
		firstUnusedNumber: nextNumber, firstNewNumber: nextNumber,
	}
}

// DiscardCommit clears the caches after the commit at hand was undone, because its term
// numbers are assigned again.
func (w *IndexWriter) DiscardCommit() {
	w.Deltas.Clear()
	w.lastSource, w.lastState, w.lastChanged = sourceKey{}, encodedState{}, base.SubjectInGraph{}
	w.uses = w.uses[:0]
	w.lastSubject, w.LastGraph = Resolved{}, Resolved{}
	w.newQuads, w.firstNewNumber = w.newQuads[:0], w.Dictionary.Fresh.Next
}

// maxNewQuads is the number of new quads up to which a linear search pays.
const maxNewQuads = 32

// isAbsent reports that a statement certainly does not exist: the commit at hand is the
// first to name its subject, and has not added it. A false result means unknown.
func (w *IndexWriter) isAbsent(ids base.IDQuad) bool {
	return ids.Subject.IsNumbered() && ids.Subject.Number() >= w.firstNewNumber && !w.Overlay.BaseUncertain &&
		len(w.newQuads) < maxNewQuads && !slices.Contains(w.newQuads, ids)
}

// get reads a key of a statement or a subject. If its term is new, only the overlay is
// searched.
func (w *IndexWriter) get(subject base.ID, key string, fn func([]byte) error) (bool, error) {
	if subject.IsNumbered() && subject.Number() >= w.firstUnusedNumber && !w.Overlay.BaseUncertain {
		return w.Overlay.getWritten(key, fn)
	}
	w.scratch = append(w.scratch[:0], key...)
	return w.Overlay.Get(w.scratch, fn)
}

// Resolve looks up the ids of a quad. f holds prefetched terms and may be nil. The ids of
// terms that the store lacks are zero; then known is false, and the statement does not
// exist.
func (w *IndexWriter) Resolve(q *base.Quad, f *Prefetched) (ids base.IDQuad, known bool, err error) {
	subject, object := (*PrefetchedTerm)(nil), (*PrefetchedTerm)(nil)
	if f != nil && f.Cache == w.Dictionary.Cache {
		subject, object = f.Subject, &f.Object
	}
	known = true
	for _, part := range [...]struct {
		term     *base.Term
		id       *base.ID
		last     *Resolved
		foreseen *PrefetchedTerm
	}{{&q.Subject, &ids.Subject, &w.lastSubject, subject}, {&q.Predicate, &ids.Predicate, nil, nil}, {&q.Object, &ids.Object, nil, object}, {&q.Graph, &ids.Graph, &w.LastGraph, nil}} {
		id, ok, err := w.ResolveTerm(part.term, part.last, part.foreseen)
		if err != nil {
			return ids, false, err
		}
		if ok {
			*part.id = id
		}
		known = known && ok
	}
	ids.Graph = w.Generations.CurrentID(ids.Graph)
	return ids, known, nil
}

// timeTerm is a time with its term and id. The commits of a group mostly have the same
// time.
type timeTerm struct {
	time time.Time
	Resolved
}

// TimeTerm returns the term of a time.
func (w *IndexWriter) TimeTerm(t time.Time) base.Term {
	if w.lastTime.Term.IsZero() || !w.lastTime.time.Equal(t) {
		w.lastTime = timeTerm{time: t, Resolved: Resolved{Term: base.DateTime(t)}}
		if id, ok := base.InlineID(w.lastTime.Term); ok {
			w.lastTime.ID = id // otherwise the index numbers it like other terms
		}
	}
	return w.lastTime.Term
}

// ResolveTerm returns the id of a term. last, if not nil, caches the term that was
// resolved last in the same place; f, if not nil, is the prefetched result.
func (w *IndexWriter) ResolveTerm(t *base.Term, last *Resolved, f *PrefetchedTerm) (id base.ID, known bool, err error) {
	if last != nil && last.Term == *t {
		return last.ID, true, nil
	}
	if *t == w.lastTime.Term && !w.lastTime.ID.IsZero() {
		return w.lastTime.ID, true, nil
	}
	met := w.RecentTerms.slotOf(t)
	if met != nil && met.Term == *t {
		id = met.ID
	} else {
		if id, known, err = w.Dictionary.PrefetchedID(*t, f); !known || err != nil {
			return base.ID{}, false, err
		}
		if met != nil && id.Number() < w.firstUnusedNumber {
			*met = Resolved{*t, id}
		}
	}
	if last != nil {
		*last = Resolved{*t, id}
	}
	return id, true, nil
}

// RecentTerms is a direct-mapped cache of IRIs for the committer: consecutive commits
// share most predicates, classes, agents and graphs. It holds only terms of earlier
// groups, so that undoing an update never invalidates an entry.
type RecentTerms [1 << 10]Resolved

// slotOf returns the slot of a term, nil if the term is not cacheable.
func (m *RecentTerms) slotOf(t *base.Term) *Resolved {
	n := len(t.Value())
	if m == nil || n < 2 || n > MaxCachedTerm || t.Kind() != base.KindIRI {
		return nil
	}
	// Similar IRIs differ at their ends or in the middle.
	at := n
	for _, c := range [...]byte{t.Value()[n-1], t.Value()[n-2], t.Value()[n/2]} {
		at = at*31 + int(c)
	}
	return &m[at%len(m)]
}

// AssignNumbers numbers the terms whose ids Resolve left zero. The numbers depend only on
// the order of the log.
func (w *IndexWriter) AssignNumbers(q *base.Quad, ids *base.IDQuad) {
	for _, part := range base.QuadParts(q, ids) {
		if part.ID.IsZero() {
			*part.ID = w.CreateTerm(*part.Term)
		}
	}
}

// numberAll returns the ids of a statement's terms and numbers the new ones. The graph's
// id is that of its name.
func (w *IndexWriter) numberAll(q *base.Quad) (ids base.IDQuad, err error) {
	for _, part := range base.QuadParts(q, &ids) {
		if *part.ID, err = w.numberTerm(*part.Term); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

// numberTerm returns the id of a term and numbers it if it is new.
func (w *IndexWriter) numberTerm(t base.Term) (base.ID, error) {
	id, ok, err := w.Dictionary.ID(t)
	if err != nil {
		return id, err
	}
	next := w.Dictionary.Fresh.Next
	if ok && (!id.IsNumbered() || id.Number() < next) {
		return id, nil
	}
	// A number that is not yet assigned is left over from an interrupted apply:
	// the log assigns the same number again.
	if ok && id.Number() != next {
		return id, base.Errorf(base.CodeLogDamaged, "term %s has the number %d where the log gives %d", base.Clip(t.String()), id.Number(), next)
	}
	return w.CreateTerm(t), nil
}

// CreateTerm assigns the next number to a term that is not in the store.
func (w *IndexWriter) CreateTerm(t base.Term) base.ID {
	if id, ok := w.Dictionary.Fresh.ID(t); ok {
		return id // the quad contains the term twice
	}
	id := w.Dictionary.Fresh.Add(t)
	key := w.Dictionary.missed.takeKey(t)
	w.Overlay.Put(string(key.key), w.varintValue(id.Number()))
	w.Overlay.Put(string(keys.Number(id.Number())), key.record)
	if key := LiteralKindKey(t); key != nil {
		w.Overlay.Put(string(key), nil)
	}
	if key := RankKey(t, id.Number()); key != nil {
		w.Overlay.PutNew(string(key), nil)
	}
	return id
}

// LiteralKindKey returns the key that lists the language or datatype of a literal, nil if
// the term has neither.
func LiteralKindKey(t base.Term) []byte {
	switch {
	case t.LangKey() != "":
		return keys.Language(t.LangKey())
	case t.ExplicitDatatype() != "":
		return keys.Datatype(t.ExplicitDatatype())
	}
	return nil
}

// State reads the current state of a statement. The state has no assertions if the
// statement does not exist.
func (w *IndexWriter) State(ids base.IDQuad) (base.State, error) {
	var s base.State
	if w.isAbsent(ids) {
		return s, nil
	}
	_, err := w.get(ids.Subject, w.keysOf(ids)[0], func(v []byte) (err error) {
		s, err = base.ParseState(v, w.Dictionary.Agent)
		return err
	})
	w.Generations.SettleState(&s, ids.Graph)
	return s, err
}

// writeNewStatement writes all keys of a new statement except its state, and counts it.
func (w *IndexWriter) writeNewStatement(q *base.Quad, ids base.IDQuad) {
	for _, key := range w.keysOf(ids)[1:] {
		if key != "" {
			w.Overlay.PutNew(key, nil)
		}
	}
	w.Deltas.CountStatement(q, ids, 1)
	w.recordUse(q, ids)
	if ids.Subject.IsNumbered() && ids.Subject.Number() >= w.firstNewNumber && len(w.newQuads) < maxNewQuads {
		w.newQuads = append(w.newQuads, ids)
	}
}

// recordUse writes the key of the use that a statement makes of its object.
func (w *IndexWriter) recordUse(q *base.Quad, ids base.IDQuad) {
	use, ok := LiteralUseOf(q, ids)
	if !ok || slices.Contains(w.uses, use) {
		return
	}
	w.Overlay.Put(string(use.Key()), nil)
	if len(w.uses) < maxNewQuads {
		w.uses = append(w.uses, use)
	}
}

// WriteGeneration writes a statement of a generation that is not current yet. Source
// counts and last changes follow when it becomes current.
func (w *IndexWriter) WriteGeneration(s *base.WrittenStatement, q *base.Quad, ids base.IDQuad) error {
	value, err := w.encodeState(base.State{Since: s.Since, Assertions: s.Assertions})
	if err != nil {
		return err
	}
	w.Overlay.PutNew(w.keysOf(ids)[0], value)
	w.writeNewStatement(q, ids)
	return nil
}

// WriteChange writes the keys of one change with the given ids. It fails only if the
// dictionary cannot be read.
func (w *IndexWriter) WriteChange(c *base.Change, ids base.IDQuad, revision base.Revision) error {
	all := w.keysOf(ids)
	switch {
	case len(c.Before) == 0:
		w.writeNewStatement(&c.Quad, ids)
	case len(c.After) == 0:
		for _, key := range all {
			if key != "" {
				w.Overlay.Delete(key)
			}
		}
		w.Deltas.CountStatement(&c.Quad, ids, -1)
	}
	if len(c.After) > 0 {
		value, err := w.encodeState(base.State{Since: revision, Assertions: c.After})
		if err != nil {
			return err
		}
		if len(c.Before) == 0 {
			w.Overlay.PutNew(all[0], value)
		} else {
			w.Overlay.Put(all[0], value)
		}
	}
	if err := w.writePast(c, ids, revision); err != nil {
		return err
	}
	if err := w.countSources(c); err != nil {
		return err
	}
	if t := (base.SubjectInGraph{Graph: ids.Graph, Subject: ids.Subject}); t != w.lastChanged {
		w.Overlay.Put(string(keys.Last(ids.Graph, ids.Subject)), w.varintValue(uint64(revision)))
		w.lastChanged = t
	}
	return nil
}

// writePast writes the interval of the state that ends with this revision, unless the
// state began in the same revision.
func (w *IndexWriter) writePast(c *base.Change, ids base.IDQuad, revision base.Revision) error {
	if len(c.Before) == 0 || c.Since >= revision || revision <= w.Floor {
		return nil
	}
	value, err := w.encodeState(base.State{Since: c.Since, Assertions: c.Before})
	if err != nil {
		return err
	}
	from, to := uint64(c.Since), uint64(revision)
	w.Overlay.Put(string(keys.SPOG.AppendPast(nil, ids, from, to)), value)
	for _, o := range keys.Orders[1:] {
		if o.Holds(ids) {
			w.Overlay.Put(string(o.AppendPast(nil, ids, from, to)), nil)
		}
	}
	return nil
}

func (w *IndexWriter) encodeState(s base.State) ([]byte, error) {
	plain := len(s.Assertions) == 1 && s.Assertions[0].IsPlain()
	if plain && w.lastState.matches(&s) {
		return w.lastState.value, nil
	}
	var failed error
	value := base.AppendState(nil, s, func(a base.AgentID) uint64 {
		id, err := w.numberTerm(base.AgentTerm(a))
		if err != nil {
			failed = err
		}
		return id.Number()
	})
	if failed == nil && plain {
		a := &s.Assertions[0]
		w.lastState = encodedState{s.Since, a.Revision, a.Time, a.Source, value}
	}
	return value, failed
}

// FinishCommit writes the keys that a commit has as a whole: its counts, its generation
// and, if it has an idempotency key, the row that maps the key to the commit.
func (w *IndexWriter) FinishCommit(c *base.Commit, cat *Catalogue) {
	cat.Add(w.Deltas, c.Revision, func(key string, t Tally) {
		var b [2 * binary.MaxVarintLen64]byte
		w.Overlay.Put(key, w.copyValue(t.appendTo(b[:0])))
	})
	w.finishGeneration(c)
	w.Deltas.Clear()
	w.lastChanged = base.SubjectInGraph{}
	w.newQuads, w.firstNewNumber = w.newQuads[:0], w.Dictionary.Fresh.Next
	if c.IdempotencyKey != "" {
		row := IdempotencyRow{Revision: c.Revision, ContentHash: c.ContentHash, Millis: c.Time.UnixMilli()}
		if c.Held {
			row.Proposal = c.ProposalID
		}
		w.Overlay.Put(string(IdempotencyKey(c.Principal, c.IdempotencyKey)), row.Encode())
	}
}

// Replay writes a commit that is already in the log.
func (w *IndexWriter) Replay(c *base.Commit, cat *Catalogue) error {
	for i := range c.Changes {
		ch := &c.Changes[i]
		ids, err := w.numberAll(&ch.Quad)
		if err != nil {
			return err
		}
		ids.Graph = w.Generations.CurrentID(ids.Graph)
		if err := w.WriteChange(ch, ids, c.Revision); err != nil {
			return err
		}
	}
	if err := w.replayGeneration(c); err != nil {
		return err
	}
	w.FinishCommit(c, cat)
	return nil
}

// replayGeneration replays the commit's effect on generations.
func (w *IndexWriter) replayGeneration(c *base.Commit) error {
	if r := c.Replaced; r != nil {
		if _, err := w.numberTerm(r.Graph); err != nil {
			return err
		}
		if r.Anew {
			if _, err := w.numberTerm(PlaceholderTerm(r.Began)); err != nil {
				return err
			}
		}
		return w.CountReplacement(r)
	}
	g := c.Written
	if g == nil {
		return nil
	}
	if len(g.Statements) == 0 {
		_, err := w.numberTerm(g.Graph)
		return err
	}
	for i := range g.Statements {
		q := g.Statements[i].Quad(g.Graph)
		ids, err := w.numberAll(&q)
		if err != nil {
			return err
		}
		ids.Graph = keys.Generation(uint64(g.Began))
		if err := w.WriteGeneration(&g.Statements[i], &q, ids); err != nil {
			return err
		}
	}
	return nil
}

// CountReplacement updates the counts by source for a graph replacement.
func (w *IndexWriter) CountReplacement(r *base.GraphReplacement) error {
	if w.WithoutSourceCounts {
		return nil
	}
	for _, s := range r.Sources {
		if err := w.countSource(s.Source, s.By); err != nil {
			return err
		}
	}
	return nil
}

// finishGeneration updates the table with the commit's effect on a generation. The graph's
// name has its number by then.
func (w *IndexWriter) finishGeneration(c *base.Commit) {
	g := &Generation{}
	var name base.Term
	switch r := c.Replaced; {
	case r != nil:
		name = r.Graph
		*g = Generation{Began: r.Began, From: c.Revision, Time: c.Time, restart: r.Deleted, Cleared: r.Deleted}
		if r.Anew {
			id, _, _ := w.Dictionary.ID(PlaceholderTerm(r.Began))
			g.number = id.Number()
		}
	case c.Written != nil && (c.Written.GivenUp || c.Written.Began == c.Revision):
		name = c.Written.Graph
		*g = Generation{Began: c.Written.Began, Abandoned: c.Written.GivenUp}
	default:
		return
	}
	g.Graph, _, _ = w.Dictionary.ID(name)
	g.Name = name
	w.Generations = w.Generations.WithEntries(g)
	w.Overlay.Put(string(keys.GenerationRecord(uint64(g.Began))), g.Encode())
}

// IdempotencyRow maps an idempotency key to the commit that answered it.
type IdempotencyRow struct {
	Revision    base.Revision
	ContentHash [32]byte
	Millis      int64 // time of the commit, for expiry
	// Proposal is the id of the proposal that a held update became, "" for a commit. It is
	// encoded only if it is set.
	Proposal string
}

// IdempotencyKey returns the index key of a principal's idempotency key.
func IdempotencyKey(principal base.AgentID, key string) []byte {
	b := codec.AppendString(nil, string(principal))
	return keys.Idempotency(base.Hash16(codec.AppendString(b, key)))
}

// Encode returns the value of the row in the index.
func (row IdempotencyRow) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(row.Revision))
	b = append(b, row.ContentHash[:]...)
	b = binary.AppendVarint(b, row.Millis)
	if row.Proposal != "" {
		b = codec.AppendString(b, row.Proposal)
	}
	return b
}

// ParseIdempotencyRow decodes the value of a row.
func ParseIdempotencyRow(value []byte) (IdempotencyRow, error) {
	r := codec.NewReader(value)
	row := IdempotencyRow{Revision: base.Revision(r.Uvarint())}
	copy(row.ContentHash[:], r.Take(len(row.ContentHash)))
	row.Millis = r.Varint()
	if r.Len() > 0 {
		if row.Proposal = r.String(); row.Proposal == "" {
			r.Fail()
		}
	}
	return row, r.Close()
}

// Marker is the position up to which the index has applied the log, with the state needed
// to continue. It is written last in every group.
type Marker struct {
	Epoch      base.Epoch
	Revision   base.Revision
	NextNumber uint64
	Millis     int64    // of the last commit
	Hash       [32]byte // of its log entry
	// HashedTerms reports that the index may have long terms under their hash alone
	// (keys.VersionHashed, keys.VersionMixed).
	HashedTerms bool
	// Unranked reports that the index may lack the keys of values
	// (keys.VersionUnranked and before).
	Unranked bool
}

// MarkerKey is the key of the marker.
var MarkerKey = keys.Meta("applied")

// Encode returns the value of the marker in the index.
func (m Marker) Encode() []byte {
	version := byte(keys.Version)
	switch {
	case m.HashedTerms:
		version = keys.VersionMixed
	case m.Unranked:
		version = keys.VersionUnranked
	}
	b := append([]byte{version}, m.Epoch[:]...)
	b = binary.AppendUvarint(b, uint64(m.Revision))
	b = binary.AppendUvarint(b, m.NextNumber)
	b = binary.AppendVarint(b, m.Millis)
	return append(b, m.Hash[:]...)
}

// EncodeHead returns the marker for the head of a checkpoint. A checkpoint has no keys of terms, so
// that all builds may read it: it has the first version of the layout.
func (m Marker) EncodeHead() []byte {
	b := m.Encode()
	b[0] = keys.VersionHashed
	return b
}

// ParseMarker decodes a marker. It returns CodeFormatUnknown if the index has another
// layout.
func ParseMarker(value []byte) (m Marker, err error) {
	r := codec.NewReader(value)
	switch r.Byte() {
	case keys.Version:
	case keys.VersionUnranked:
		m.Unranked = true
	case keys.VersionHashed, keys.VersionMixed:
		m.HashedTerms, m.Unranked = true, true
	default:
		return m, base.Errorf(base.CodeFormatUnknown, "the index has another layout")
	}
	copy(m.Epoch[:], r.Take(len(m.Epoch)))
	m.Revision = base.Revision(r.Uvarint())
	m.NextNumber = r.Uvarint()
	m.Millis = r.Varint()
	copy(m.Hash[:], r.Take(len(m.Hash)))
	return m, r.Close()
}

// LastChange returns the revision that last changed the subject in the graph, 0 if there
// is none.
func (w *IndexWriter) LastChange(t base.SubjectInGraph) (r base.Revision, err error) {
	_, err = w.get(t.Subject, string(keys.Last(t.Graph, t.Subject)), func(v []byte) error {
		c := codec.NewReader(v)
		r = base.Revision(c.Uvarint())
		return c.Close()
	})
	return max(r, w.Generations.LastChangeFloor(t.Graph)), err
}

// MaxIndexValueBytes bounds a key of the index with its value: the record of the longest
// literal, with room for the rest of it. Badger must accept as much.
const MaxIndexValueBytes = base.MaxLiteralBytes + 64<<10
