package index

import (
	"encoding/binary"
	"slices"
	"time"

	"koine/kg/internal/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// IndexWriter turns changes into the keys of the index. What it writes follows
// from the changes and the dictionary alone, so that a commit means the same
// keys when it is made, replayed, and rebuilt.
type IndexWriter struct {
	Overlay    *Overlay
	Dictionary Dictionary // fresh is set
	Deltas     *Deltas    // of the commit at hand
	lastSource sourceKey  // the source that was counted last
	// WithoutSourceCounts tells that the index lacks the counts by source: they are made when
	// it has come up to the log.
	WithoutSourceCounts bool
	// Floor is the oldest readable revision: what ended by then is not kept.
	Floor base.Revision
	// Generations are those of the newest revision, with the commits that were made.
	Generations *Generations
	// firstUnusedNumber is the first number that no term had when the writer began: below the
	// overlay there is no statement with such a term.
	firstUnusedNumber uint64
	// newQuads are statements of the commit at hand about subjects that it is the first to
	// name, whose numbers are unnamed or more; as far as they are few.
	newQuads       []base.IDQuad
	firstNewNumber uint64
	lastState      encodedState        // the state that was encoded last
	lastChanged    base.SubjectInGraph // whose last change was written last, in the commit at hand
	// subject and graph are those that were resolved last: patches about the same
	// come one after the other.
	lastSubject, LastGraph Resolved
	RecentTerms            *RecentTerms // the committer's, nil without
	lastTime               timeTerm     // that was asked for last
	keys                   quadKeys     // of the quad at hand
	scratch                []byte
	valueBuf               []byte // for short values, which are kept
}

// copyValue gives a short value as it is kept: as a part of an array that others share.
func (w *IndexWriter) copyValue(value []byte) []byte {
	const atOnce = 512
	if cap(w.valueBuf)-len(w.valueBuf) < len(value) {
		w.valueBuf = make([]byte, 0, atOnce)
	}
	from := len(w.valueBuf)
	w.valueBuf = append(w.valueBuf, value...)
	return w.valueBuf[from:len(w.valueBuf):len(w.valueBuf)]
}

// varintValue is the value that says a number.
func (w *IndexWriter) varintValue(n uint64) []byte {
	var b [binary.MaxVarintLen64]byte
	return w.copyValue(binary.AppendUvarint(b[:0], n))
}

// quadKeys are the keys of a quad in keys.Orders, "" in an order that does not hold
// it. They are parts of one string: each is kept, and as long as the others.
type quadKeys struct {
	ids base.IDQuad
	all [len(keys.Orders)]string
}

// keysOf gives the keys of a quad, which is looked up and then written.
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

// encodedState is a state of one plain assertion with its bytes: most statements of a
// commit have the same.
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

func NewIndexWriter(o *Overlay, base KV, cache *TermCache, nextNumber uint64) *IndexWriter {
	return &IndexWriter{
		Overlay:           o,
		Dictionary:        Dictionary{KV: base, Cache: cache, Fresh: NewFreshTerms(nextNumber), missed: new(missedTerms)},
		Deltas:            new(Deltas),
		firstUnusedNumber: nextNumber, firstNewNumber: nextNumber,
	}
}

// DiscardCommit forgets what is kept of a commit that was undone: its numbers may become
// those of other terms.
func (w *IndexWriter) DiscardCommit() {
	w.Deltas.Clear()
	w.lastSource, w.lastState, w.lastChanged = sourceKey{}, encodedState{}, base.SubjectInGraph{}
	w.lastSubject, w.LastGraph = Resolved{}, Resolved{}
	w.newQuads, w.firstNewNumber = w.newQuads[:0], w.Dictionary.Fresh.Next
}

// maxNewQuads is up to how many statements of a commit's own are looked through.
const maxNewQuads = 32

// isAbsent tells that a statement is surely not there: the commit at hand is the first to
// name its subject, and has not made it.
func (w *IndexWriter) isAbsent(ids base.IDQuad) bool {
	return ids.Subject.IsNumbered() && ids.Subject.Number() >= w.firstNewNumber && !w.Overlay.BaseUncertain &&
		len(w.newQuads) < maxNewQuads && !slices.Contains(w.newQuads, ids)
}

// get reads a key of a statement or subject. Where its term is new, it asks the
// overlay alone.
func (w *IndexWriter) get(subject base.ID, key string, fn func([]byte) error) (bool, error) {
	if subject.IsNumbered() && subject.Number() >= w.firstUnusedNumber && !w.Overlay.BaseUncertain {
		return w.Overlay.getWritten(key, fn)
	}
	w.scratch = append(w.scratch[:0], key...)
	return w.Overlay.Get(w.scratch, fn)
}

// Resolve looks up the ids of a quad, with its prefetched terms f, nil for none. The ids
// of terms that the store lacks are zero, and known is false: the statement does not
// exist either.
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

// timeTerm is a time with the term and the id that say it: commits of one group mostly
// have the same.
type timeTerm struct {
	time time.Time
	Resolved
}

// TimeTerm is the term of a time.
func (w *IndexWriter) TimeTerm(t time.Time) base.Term {
	if w.lastTime.Term.IsZero() || !w.lastTime.time.Equal(t) {
		w.lastTime = timeTerm{time: t, Resolved: Resolved{Term: base.DateTime(t)}}
		if id, ok := base.InlineID(w.lastTime.Term); ok {
			w.lastTime.ID = id // else the index numbers it like other terms
		}
	}
	return w.lastTime.Term
}

// ResolveTerm gives the id of a term. last, if any, is that of its kind that was
// resolved last, f what was foreseen of it.
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

// RecentTerms are IRIs that the committer has met, each in its place: commits that come
// one after the other have most predicates, classes, agents and graphs in common. Only
// those stay whose commit is in a group before: an update that is undone leaves none.
type RecentTerms [1 << 10]Resolved

// slotOf is the place of a term, nil where it has none.
func (m *RecentTerms) slotOf(t *base.Term) *Resolved {
	n := len(t.Value())
	if m == nil || n < 2 || n > MaxCachedTerm || t.Kind() != base.KindIRI {
		return nil
	}
	// IRIs that are alike differ at their ends, or by what they say in the middle.
	at := n
	for _, c := range [...]byte{t.Value()[n-1], t.Value()[n-2], t.Value()[n/2]} {
		at = at*31 + int(c)
	}
	return &m[at%len(m)]
}

// AssignNumbers numbers the terms whose ids resolve left zero. The numbers follow from
// the order of the log alone.
func (w *IndexWriter) AssignNumbers(q *base.Quad, ids *base.IDQuad) {
	for _, part := range base.QuadParts(q, ids) {
		if part.ID.IsZero() {
			*part.ID = w.CreateTerm(*part.Term)
		}
	}
}

// numberAll gives the ids of a statement's terms, which get one if they have none. The
// graph's is that of its name.
func (w *IndexWriter) numberAll(q *base.Quad) (ids base.IDQuad, err error) {
	for _, part := range base.QuadParts(q, &ids) {
		if *part.ID, err = w.numberTerm(*part.Term); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

// numberTerm is the id of a term, which gets one if it has none.
func (w *IndexWriter) numberTerm(t base.Term) (base.ID, error) {
	id, ok, err := w.Dictionary.ID(t)
	if err != nil {
		return id, err
	}
	next := w.Dictionary.Fresh.Next
	if ok && (!id.IsNumbered() || id.Number() < next) {
		return id, nil
	}
	// A number ahead of the next one is left over from an apply that was cut
	// short: the log hands out the same number again.
	if ok && id.Number() != next {
		return id, base.Errorf(base.CodeLogDamaged, "term %s has the number %d where the log gives %d", base.Clip(t.String()), id.Number(), next)
	}
	return w.CreateTerm(t), nil
}

// CreateTerm gives a term that is not in the store the next number.
func (w *IndexWriter) CreateTerm(t base.Term) base.ID {
	if id, ok := w.Dictionary.Fresh.ID(t); ok {
		return id // it stands twice in one quad
	}
	id := w.Dictionary.Fresh.Add(t)
	key := w.Dictionary.missed.takeKey(t)
	w.Overlay.Put(string(key.key), w.varintValue(id.Number()))
	w.Overlay.Put(string(keys.Number(id.Number())), key.record)
	if key := LiteralKindKey(t); key != nil {
		w.Overlay.Put(string(key), nil)
	}
	return id
}

// LiteralKindKey is the key under which the language or datatype of a literal is
// listed, nil for one that has none.
func LiteralKindKey(t base.Term) []byte {
	switch {
	case t.LangKey() != "":
		return keys.Language(t.LangKey())
	case t.ExplicitDatatype() != "":
		return keys.Datatype(t.ExplicitDatatype())
	}
	return nil
}

// State reads what stands of a statement now; no assertions when it is absent.
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

// writeNewStatement writes the keys of a statement that is not there yet, but for its state, and
// counts it.
func (w *IndexWriter) writeNewStatement(q *base.Quad, ids base.IDQuad) {
	for _, key := range w.keysOf(ids)[1:] {
		if key != "" {
			w.Overlay.PutNew(key, nil)
		}
	}
	w.Deltas.CountStatement(q, ids, 1)
	if ids.Subject.IsNumbered() && ids.Subject.Number() >= w.firstNewNumber && len(w.newQuads) < maxNewQuads {
		w.newQuads = append(w.newQuads, ids)
	}
}

// WriteGeneration writes a statement of a generation that does not count yet: sources
// are counted, and subjects changed, when it does.
func (w *IndexWriter) WriteGeneration(s *base.WrittenStatement, q *base.Quad, ids base.IDQuad) error {
	value, err := w.encodeState(base.State{s.Since, s.Assertions})
	if err != nil {
		return err
	}
	w.Overlay.PutNew(w.keysOf(ids)[0], value)
	w.writeNewStatement(q, ids)
	return nil
}

// WriteChange writes the keys of one change, whose ids are given. It fails only when
// the dictionary cannot be read.
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
		value, err := w.encodeState(base.State{revision, c.After})
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
	if t := (base.SubjectInGraph{ids.Graph, ids.Subject}); t != w.lastChanged {
		w.Overlay.Put(string(keys.Last(ids.Graph, ids.Subject)), w.varintValue(uint64(revision)))
		w.lastChanged = t
	}
	return nil
}

// writePast keeps what stood until this revision, unless it came in the same one.
func (w *IndexWriter) writePast(c *base.Change, ids base.IDQuad, revision base.Revision) error {
	if len(c.Before) == 0 || c.Since >= revision || revision <= w.Floor {
		return nil
	}
	value, err := w.encodeState(base.State{c.Since, c.Before})
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

// FinishCommit writes what a whole commit adds: its counts and, where it carries an
// idempotency key, the row that remembers it.
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

// Replay writes a commit that the log holds already.
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

// replayGeneration is what replay does of generations.
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

// CountReplacement counts by source what a replacement changed.
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

// finishGeneration takes into the table what a commit did to a generation. The graph's
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

// IdempotencyRow remembers which commit answered a key.
type IdempotencyRow struct {
	Revision    base.Revision
	ContentHash [32]byte
	Millis      int64 // when, so that old rows can be let go
	// Proposal is the one that a held update became, "" for one that was made. It
	// is written only where there is one.
	Proposal string
}

func IdempotencyKey(principal base.AgentID, key string) []byte {
	b := codec.AppendString(nil, string(principal))
	return keys.Idempotency(base.Hash16(codec.AppendString(b, key)))
}

func (row IdempotencyRow) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(row.Revision))
	b = append(b, row.ContentHash[:]...)
	b = binary.AppendVarint(b, row.Millis)
	if row.Proposal != "" {
		b = codec.AppendString(b, row.Proposal)
	}
	return b
}

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

// Marker is written last in every group: up to where the index has applied the
// log, and what is needed to go on from there.
type Marker struct {
	Epoch      base.Epoch
	Revision   base.Revision
	NextNumber uint64
	Millis     int64    // of the last commit
	Hash       [32]byte // of its log entry
}

var MarkerKey = keys.Meta("applied")

func (m Marker) Encode() []byte {
	b := append([]byte{keys.Version}, m.Epoch[:]...)
	b = binary.AppendUvarint(b, uint64(m.Revision))
	b = binary.AppendUvarint(b, m.NextNumber)
	b = binary.AppendVarint(b, m.Millis)
	return append(b, m.Hash[:]...)
}

func ParseMarker(value []byte) (m Marker, err error) {
	r := codec.NewReader(value)
	if r.Byte() != keys.Version {
		return m, base.Errorf(base.CodeFormatUnknown, "the index has another layout")
	}
	copy(m.Epoch[:], r.Take(len(m.Epoch)))
	m.Revision = base.Revision(r.Uvarint())
	m.NextNumber = r.Uvarint()
	m.Millis = r.Varint()
	copy(m.Hash[:], r.Take(len(m.Hash)))
	return m, r.Close()
}

// LastChange is the revision that last changed the subject in the graph, 0 when
// none did.
func (w *IndexWriter) LastChange(t base.SubjectInGraph) (r base.Revision, err error) {
	_, err = w.get(t.Subject, string(keys.Last(t.Graph, t.Subject)), func(v []byte) error {
		c := codec.NewReader(v)
		r = base.Revision(c.Uvarint())
		return c.Close()
	})
	return max(r, w.Generations.LastChangeFloor(t.Graph)), err
}

// MaxIndexValueBytes is what Badger must take as one key with its value: the record of
// the longest literal, with room for all else that is in it.
const MaxIndexValueBytes = base.MaxLiteralBytes + 64<<10
