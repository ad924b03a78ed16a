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
	O      *Overlay
	Dict   Dictionary // fresh is set
	Deltas *Deltas    // of the commit at hand
	backer backer     // the source that was counted last
	// Uncounted tells that the index lacks the counts by source: they are made when
	// it has come up to the log.
	Uncounted bool
	// Floor is the oldest readable revision: what ended by then is not kept.
	Floor base.Revision
	// Generations are those of the newest revision, with the commits that were made.
	Generations *Generations
	// unused is the first number that no term had when the writer began: below the
	// overlay there is no statement with such a term.
	unused uint64
	// own are statements of the commit at hand about subjects that it is the first to
	// name, whose numbers are unnamed or more; as far as they are few.
	own     []base.IDQuad
	unnamed uint64
	encoded encoded             // the state that was encoded last
	noted   base.SubjectInGraph // whose last change was written last, in the commit at hand
	// subject and graph are those that were resolved last: patches about the same
	// come one after the other.
	subject, Graph Resolved
	Met            *MetTerms // the committer's, nil without
	said           timeTerm  // that was asked for last
	keys           quadKeys  // of the quad at hand
	scratch        []byte
	room           []byte // for short values, which are kept
}

// keep gives a short value as it is kept: as a part of an array that others share.
func (w *IndexWriter) keep(value []byte) []byte {
	const atOnce = 512
	if cap(w.room)-len(w.room) < len(value) {
		w.room = make([]byte, 0, atOnce)
	}
	from := len(w.room)
	w.room = append(w.room, value...)
	return w.room[from:len(w.room):len(w.room)]
}

// varint is the value that says a number.
func (w *IndexWriter) varint(n uint64) []byte {
	var b [binary.MaxVarintLen64]byte
	return w.keep(binary.AppendUvarint(b[:0], n))
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

// encoded is a state of one plain assertion with its bytes: most statements of a
// commit have the same.
type encoded struct {
	since, revision base.Revision
	time            time.Time
	source          base.AgentID
	value           []byte
}

func (e *encoded) is(s *base.State) bool {
	a := &s.Assertions[0]
	return e.value != nil && e.since == s.Since && e.revision == a.Revision && e.source == a.Source && e.time.Equal(a.Time)
}

func NewIndexWriter(o *Overlay, base KV, cache *TermCache, nextNumber uint64) *IndexWriter {
	return &IndexWriter{
		O:      o,
		Dict:   Dictionary{KV: base, Cache: cache, Fresh: NewFreshTerms(nextNumber), missed: new(missedTerms)},
		Deltas: new(Deltas),
		unused: nextNumber, unnamed: nextNumber,
	}
}

// Undone forgets what is kept of a commit that was undone: its numbers may become
// those of other terms.
func (w *IndexWriter) Undone() {
	w.Deltas.Clear()
	w.backer, w.encoded, w.noted = backer{}, encoded{}, base.SubjectInGraph{}
	w.subject, w.Graph = Resolved{}, Resolved{}
	w.own, w.unnamed = w.own[:0], w.Dict.Fresh.Next
}

// fewOwn is up to how many statements of a commit's own are looked through.
const fewOwn = 32

// absent tells that a statement is surely not there: the commit at hand is the first to
// name its subject, and has not made it.
func (w *IndexWriter) absent(ids base.IDQuad) bool {
	return ids.Subject.IsNumbered() && ids.Subject.Number() >= w.unnamed && !w.O.Unsure &&
		len(w.own) < fewOwn && !slices.Contains(w.own, ids)
}

// get reads a key of a statement or subject. Where its term is new, it asks the
// overlay alone.
func (w *IndexWriter) get(subject base.ID, key string, fn func([]byte) error) (bool, error) {
	if subject.IsNumbered() && subject.Number() >= w.unused && !w.O.Unsure {
		return w.O.getWritten(key, fn)
	}
	w.scratch = append(w.scratch[:0], key...)
	return w.O.Get(w.scratch, fn)
}

// Resolve looks up the ids of a quad, with its prefetched terms f, nil for none. The ids
// of terms that the store lacks are zero, and known is false: the statement does not
// exist either.
func (w *IndexWriter) Resolve(q *base.Quad, f *Foreseen) (ids base.IDQuad, known bool, err error) {
	subject, object := (*ForeseenTerm)(nil), (*ForeseenTerm)(nil)
	if f != nil && f.Cache == w.Dict.Cache {
		subject, object = f.Subject, &f.Object
	}
	known = true
	for _, part := range [...]struct {
		term     *base.Term
		id       *base.ID
		last     *Resolved
		foreseen *ForeseenTerm
	}{{&q.Subject, &ids.Subject, &w.subject, subject}, {&q.Predicate, &ids.Predicate, nil, nil}, {&q.Object, &ids.Object, nil, object}, {&q.Graph, &ids.Graph, &w.Graph, nil}} {
		id, ok, err := w.ResolveTerm(part.term, part.last, part.foreseen)
		if err != nil {
			return ids, false, err
		}
		if ok {
			*part.id = id
		}
		known = known && ok
	}
	ids.Graph = w.Generations.Current(ids.Graph)
	return ids, known, nil
}

// timeTerm is a time with the term and the id that say it: commits of one group mostly
// have the same.
type timeTerm struct {
	time time.Time
	Resolved
}

// TermOf is the term of a time.
func (w *IndexWriter) TermOf(t time.Time) base.Term {
	if w.said.Term.IsZero() || !w.said.time.Equal(t) {
		w.said = timeTerm{time: t, Resolved: Resolved{Term: base.DateTime(t)}}
		if id, ok := base.InlineID(w.said.Term); ok {
			w.said.ID = id // else the index numbers it like other terms
		}
	}
	return w.said.Term
}

// ResolveTerm gives the id of a term. last, if any, is that of its kind that was
// resolved last, f what was foreseen of it.
func (w *IndexWriter) ResolveTerm(t *base.Term, last *Resolved, f *ForeseenTerm) (id base.ID, known bool, err error) {
	if last != nil && last.Term == *t {
		return last.ID, true, nil
	}
	if *t == w.said.Term && !w.said.ID.IsZero() {
		return w.said.ID, true, nil
	}
	met := w.Met.of(t)
	if met != nil && met.Term == *t {
		id = met.ID
	} else {
		if id, known, err = w.Dict.Foreseen(*t, f); !known || err != nil {
			return base.ID{}, false, err
		}
		if met != nil && id.Number() < w.unused {
			*met = Resolved{*t, id}
		}
	}
	if last != nil {
		*last = Resolved{*t, id}
	}
	return id, true, nil
}

// MetTerms are IRIs that the committer has met, each in its place: commits that come
// one after the other have most predicates, classes, agents and graphs in common. Only
// those stay whose commit is in a group before: an update that is undone leaves none.
type MetTerms [1 << 10]Resolved

// of is the place of a term, nil where it has none.
func (m *MetTerms) of(t *base.Term) *Resolved {
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

// Assign numbers the terms whose ids resolve left zero. The numbers follow from
// the order of the log alone.
func (w *IndexWriter) Assign(q *base.Quad, ids *base.IDQuad) {
	for _, part := range base.QuadParts(q, ids) {
		if part.ID.IsZero() {
			*part.ID = w.Create(*part.Term)
		}
	}
}

// numberAll gives the ids of a statement's terms, which get one if they have none. The
// graph's is that of its name.
func (w *IndexWriter) numberAll(q *base.Quad) (ids base.IDQuad, err error) {
	for _, part := range base.QuadParts(q, &ids) {
		if *part.ID, err = w.number(*part.Term); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

// number is the id of a term, which gets one if it has none.
func (w *IndexWriter) number(t base.Term) (base.ID, error) {
	id, ok, err := w.Dict.ID(t)
	if err != nil {
		return id, err
	}
	next := w.Dict.Fresh.Next
	if ok && (!id.IsNumbered() || id.Number() < next) {
		return id, nil
	}
	// A number ahead of the next one is left over from an apply that was cut
	// short: the log hands out the same number again.
	if ok && id.Number() != next {
		return id, base.Errorf(base.CodeLogDamaged, "term %s has the number %d where the log gives %d", base.Clip(t.String()), id.Number(), next)
	}
	return w.Create(t), nil
}

// Create gives a term that is not in the store the next number.
func (w *IndexWriter) Create(t base.Term) base.ID {
	if id, ok := w.Dict.Fresh.ID(t); ok {
		return id // it stands twice in one quad
	}
	id := w.Dict.Fresh.Add(t)
	key := w.Dict.missed.take(t)
	w.O.Put(string(key.key), w.varint(id.Number()))
	w.O.Put(string(keys.Number(id.Number())), key.record)
	if key := LiteralKindKey(t); key != nil {
		w.O.Put(string(key), nil)
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
	if w.absent(ids) {
		return s, nil
	}
	_, err := w.get(ids.Subject, w.keysOf(ids)[0], func(v []byte) (err error) {
		s, err = base.ParseState(v, w.Dict.Agent)
		return err
	})
	w.Generations.Settle(&s, ids.Graph)
	return s, err
}

// writeNew writes the keys of a statement that is not there yet, but for its state, and
// counts it.
func (w *IndexWriter) writeNew(q *base.Quad, ids base.IDQuad) {
	for _, key := range w.keysOf(ids)[1:] {
		if key != "" {
			w.O.PutNew(key, nil)
		}
	}
	w.Deltas.Count(q, ids, 1)
	if ids.Subject.IsNumbered() && ids.Subject.Number() >= w.unnamed && len(w.own) < fewOwn {
		w.own = append(w.own, ids)
	}
}

// WriteGeneration writes a statement of a generation that does not count yet: sources
// are counted, and subjects changed, when it does.
func (w *IndexWriter) WriteGeneration(s *base.WrittenStatement, q *base.Quad, ids base.IDQuad) error {
	value, err := w.encode(base.State{s.Since, s.Assertions})
	if err != nil {
		return err
	}
	w.O.PutNew(w.keysOf(ids)[0], value)
	w.writeNew(q, ids)
	return nil
}

// Change writes the keys of one change, whose ids are given. It fails only when
// the dictionary cannot be read.
func (w *IndexWriter) Change(c *base.Change, ids base.IDQuad, revision base.Revision) error {
	all := w.keysOf(ids)
	switch {
	case len(c.Before) == 0:
		w.writeNew(&c.Quad, ids)
	case len(c.After) == 0:
		for _, key := range all {
			if key != "" {
				w.O.Delete(key)
			}
		}
		w.Deltas.Count(&c.Quad, ids, -1)
	}
	if len(c.After) > 0 {
		value, err := w.encode(base.State{revision, c.After})
		if err != nil {
			return err
		}
		if len(c.Before) == 0 {
			w.O.PutNew(all[0], value)
		} else {
			w.O.Put(all[0], value)
		}
	}
	if err := w.past(c, ids, revision); err != nil {
		return err
	}
	if err := w.countSources(c); err != nil {
		return err
	}
	if t := (base.SubjectInGraph{ids.Graph, ids.Subject}); t != w.noted {
		w.O.Put(string(keys.Last(ids.Graph, ids.Subject)), w.varint(uint64(revision)))
		w.noted = t
	}
	return nil
}

// past keeps what stood until this revision, unless it came in the same one.
func (w *IndexWriter) past(c *base.Change, ids base.IDQuad, revision base.Revision) error {
	if len(c.Before) == 0 || c.Since >= revision || revision <= w.Floor {
		return nil
	}
	value, err := w.encode(base.State{c.Since, c.Before})
	if err != nil {
		return err
	}
	from, to := uint64(c.Since), uint64(revision)
	w.O.Put(string(keys.SPOG.AppendPast(nil, ids, from, to)), value)
	for _, o := range keys.Orders[1:] {
		if o.Holds(ids) {
			w.O.Put(string(o.AppendPast(nil, ids, from, to)), nil)
		}
	}
	return nil
}

func (w *IndexWriter) encode(s base.State) ([]byte, error) {
	plain := len(s.Assertions) == 1 && s.Assertions[0].Plain()
	if plain && w.encoded.is(&s) {
		return w.encoded.value, nil
	}
	var failed error
	value := base.AppendState(nil, s, func(a base.AgentID) uint64 {
		id, err := w.number(base.AgentTerm(a))
		if err != nil {
			failed = err
		}
		return id.Number()
	})
	if failed == nil && plain {
		a := &s.Assertions[0]
		w.encoded = encoded{s.Since, a.Revision, a.Time, a.Source, value}
	}
	return value, failed
}

// Finish writes what a whole commit adds: its counts and, where it carries an
// idempotency key, the row that remembers it.
func (w *IndexWriter) Finish(c *base.Commit, cat *Catalogue) {
	cat.Add(w.Deltas, c.Revision, func(key string, t Tally) {
		var b [2 * binary.MaxVarintLen64]byte
		w.O.Put(key, w.keep(t.append(b[:0])))
	})
	w.finishGeneration(c)
	w.Deltas.Clear()
	w.noted = base.SubjectInGraph{}
	w.own, w.unnamed = w.own[:0], w.Dict.Fresh.Next
	if c.IdempotencyKey != "" {
		row := IdempotencyRow{Revision: c.Revision, ContentHash: c.ContentHash, Millis: c.Time.UnixMilli()}
		if c.Held {
			row.Proposal = c.ProposalID
		}
		w.O.Put(string(IdempotencyKey(c.Principal, c.IdempotencyKey)), row.Encode())
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
		ids.Graph = w.Generations.Current(ids.Graph)
		if err := w.Change(ch, ids, c.Revision); err != nil {
			return err
		}
	}
	if err := w.replayGeneration(c); err != nil {
		return err
	}
	w.Finish(c, cat)
	return nil
}

// replayGeneration is what replay does of generations.
func (w *IndexWriter) replayGeneration(c *base.Commit) error {
	if r := c.Replaced; r != nil {
		if _, err := w.number(r.Graph); err != nil {
			return err
		}
		if r.Anew {
			if _, err := w.number(Placeholder(r.Began)); err != nil {
				return err
			}
		}
		return w.CountReplaced(r)
	}
	g := c.Written
	if g == nil {
		return nil
	}
	if len(g.Statements) == 0 {
		_, err := w.number(g.Graph)
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

// CountReplaced counts by source what a replacement changed.
func (w *IndexWriter) CountReplaced(r *base.GraphReplacement) error {
	if w.Uncounted {
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
		*g = Generation{Began: r.Began, From: c.Revision, Time: c.Time, fresh: r.Deleted, Cleared: r.Deleted}
		if r.Anew {
			id, _, _ := w.Dict.ID(Placeholder(r.Began))
			g.number = id.Number()
		}
	case c.Written != nil && (c.Written.GivenUp || c.Written.Began == c.Revision):
		name = c.Written.Graph
		*g = Generation{Began: c.Written.Began, Dead: c.Written.GivenUp}
	default:
		return
	}
	g.Graph, _, _ = w.Dict.ID(name)
	g.Name = name
	w.Generations = w.Generations.WithEntries(g)
	w.O.Put(string(keys.GenerationRecord(uint64(g.Began))), g.Encode())
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
	return max(r, w.Generations.Floor(t.Graph)), err
}

// MaxIndexValueBytes is what Badger must take as one key with its value: the record of
// the longest literal, with room for all else that is in it.
const MaxIndexValueBytes = base.MaxLiteralBytes + 64<<10
