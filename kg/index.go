package kg

import (
	"encoding/binary"
	"slices"
	"time"

	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// indexWriter turns changes into the keys of the index. What it writes follows
// from the changes and the dictionary alone, so that a commit means the same
// keys when it is made, replayed, and rebuilt.
type indexWriter struct {
	o      *overlay
	dict   dictionary // fresh is set
	deltas *deltas    // of the commit at hand
	backer backer     // the source that was counted last
	// uncounted tells that the index lacks the counts by source: they are made when
	// it has come up to the log.
	uncounted bool
	// floor is the oldest readable revision: what ended by then is not kept.
	floor Revision
	// generations are those of the newest revision, with the commits that were made.
	generations *generations
	// unused is the first number that no term had when the writer began: below the
	// overlay there is no statement with such a term.
	unused uint64
	// own are statements of the commit at hand about subjects that it is the first to
	// name, whose numbers are unnamed or more; as far as they are few.
	own     []IDQuad
	unnamed uint64
	encoded encoded        // the state that was encoded last
	noted   subjectInGraph // whose last change was written last, in the commit at hand
	// subject and graph are those that were resolved last: patches about the same
	// come one after the other.
	subject, graph resolved
	met            *metTerms // the committer's, nil without
	said           timeTerm  // that was asked for last
	keys           quadKeys  // of the quad at hand
	scratch        []byte
	room           []byte // for short values, which are kept
}

// keep gives a short value as it is kept: as a part of an array that others share.
func (w *indexWriter) keep(value []byte) []byte {
	const atOnce = 512
	if cap(w.room)-len(w.room) < len(value) {
		w.room = make([]byte, 0, atOnce)
	}
	from := len(w.room)
	w.room = append(w.room, value...)
	return w.room[from:len(w.room):len(w.room)]
}

// varint is the value that says a number.
func (w *indexWriter) varint(n uint64) []byte {
	var b [binary.MaxVarintLen64]byte
	return w.keep(binary.AppendUvarint(b[:0], n))
}

// quadKeys are the keys of a quad in keys.Orders, "" in an order that does not hold
// it. They are parts of one string: each is kept, and as long as the others.
type quadKeys struct {
	ids IDQuad
	all [len(keys.Orders)]string
}

// keysOf gives the keys of a quad, which is looked up and then written.
func (w *indexWriter) keysOf(ids IDQuad) *[len(keys.Orders)]string {
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

// resolved is a term of the store with its id.
type resolved struct {
	term Term
	id   ID
}

// encoded is a state of one plain assertion with its bytes: most statements of a
// commit have the same.
type encoded struct {
	since, revision Revision
	time            time.Time
	source          AgentID
	value           []byte
}

func (e *encoded) is(s *state) bool {
	a := &s.assertions[0]
	return e.value != nil && e.since == s.since && e.revision == a.Revision && e.source == a.Source && e.time.Equal(a.Time)
}

func newIndexWriter(o *overlay, base kv, cache *termCache, nextNumber uint64) *indexWriter {
	return &indexWriter{
		o:      o,
		dict:   dictionary{kv: base, cache: cache, fresh: newFreshTerms(nextNumber), missed: new(missedTerms)},
		deltas: new(deltas),
		unused: nextNumber, unnamed: nextNumber,
	}
}

// undone forgets what is kept of a commit that was undone: its numbers may become
// those of other terms.
func (w *indexWriter) undone() {
	w.deltas.clear()
	w.backer, w.encoded, w.noted = backer{}, encoded{}, subjectInGraph{}
	w.subject, w.graph = resolved{}, resolved{}
	w.own, w.unnamed = w.own[:0], w.dict.fresh.next
}

// fewOwn is up to how many statements of a commit's own are looked through.
const fewOwn = 32

// absent tells that a statement is surely not there: the commit at hand is the first to
// name its subject, and has not made it.
func (w *indexWriter) absent(ids IDQuad) bool {
	return ids.Subject.IsNumbered() && ids.Subject.Number() >= w.unnamed && !w.o.unsure &&
		len(w.own) < fewOwn && !slices.Contains(w.own, ids)
}

// get reads a key of a statement or subject. Where its term is new, it asks the
// overlay alone.
func (w *indexWriter) get(subject ID, key string, fn func([]byte) error) (bool, error) {
	if subject.IsNumbered() && subject.Number() >= w.unused && !w.o.unsure {
		return w.o.getWritten(key, fn)
	}
	w.scratch = append(w.scratch[:0], key...)
	return w.o.get(w.scratch, fn)
}

// quadPart is a term of a quad and the place of its id.
type quadPart struct {
	term *Term
	id   *ID
}

// quadParts pairs the terms of a quad with where their ids go.
func quadParts(q *Quad, ids *IDQuad) [4]quadPart {
	return [4]quadPart{{&q.Subject, &ids.Subject}, {&q.Predicate, &ids.Predicate}, {&q.Object, &ids.Object}, {&q.Graph, &ids.Graph}}
}

// resolve looks up the ids of a quad, with its prefetched terms f, nil for none. The ids
// of terms that the store lacks are zero, and known is false: the statement does not
// exist either.
func (w *indexWriter) resolve(q *Quad, f *foreseen) (ids IDQuad, known bool, err error) {
	subject, object := (*foreseenTerm)(nil), (*foreseenTerm)(nil)
	if f != nil && f.cache == w.dict.cache {
		subject, object = f.subject, &f.object
	}
	known = true
	for _, part := range [...]struct {
		term     *Term
		id       *ID
		last     *resolved
		foreseen *foreseenTerm
	}{{&q.Subject, &ids.Subject, &w.subject, subject}, {&q.Predicate, &ids.Predicate, nil, nil}, {&q.Object, &ids.Object, nil, object}, {&q.Graph, &ids.Graph, &w.graph, nil}} {
		id, ok, err := w.resolveTerm(part.term, part.last, part.foreseen)
		if err != nil {
			return ids, false, err
		}
		if ok {
			*part.id = id
		}
		known = known && ok
	}
	ids.Graph = w.generations.current(ids.Graph)
	return ids, known, nil
}

// timeTerm is a time with the term and the id that say it: commits of one group mostly
// have the same.
type timeTerm struct {
	time time.Time
	resolved
}

// termOf is the term of a time.
func (w *indexWriter) termOf(t time.Time) Term {
	if w.said.term.IsZero() || !w.said.time.Equal(t) {
		w.said = timeTerm{time: t, resolved: resolved{term: DateTime(t)}}
		if id, ok := inlineID(w.said.term); ok {
			w.said.id = id // else the index numbers it like other terms
		}
	}
	return w.said.term
}

// resolveTerm gives the id of a term. last, if any, is that of its kind that was
// resolved last, f what was foreseen of it.
func (w *indexWriter) resolveTerm(t *Term, last *resolved, f *foreseenTerm) (id ID, known bool, err error) {
	if last != nil && last.term == *t {
		return last.id, true, nil
	}
	if *t == w.said.term && !w.said.id.IsZero() {
		return w.said.id, true, nil
	}
	met := w.met.of(t)
	if met != nil && met.term == *t {
		id = met.id
	} else {
		if id, known, err = w.dict.foreseen(*t, f); !known || err != nil {
			return ID{}, false, err
		}
		if met != nil && id.Number() < w.unused {
			*met = resolved{*t, id}
		}
	}
	if last != nil {
		*last = resolved{*t, id}
	}
	return id, true, nil
}

// metTerms are IRIs that the committer has met, each in its place: commits that come
// one after the other have most predicates, classes, agents and graphs in common. Only
// those stay whose commit is in a group before: an update that is undone leaves none.
type metTerms [1 << 10]resolved

// of is the place of a term, nil where it has none.
func (m *metTerms) of(t *Term) *resolved {
	n := len(t.value)
	if m == nil || n < 2 || n > maxCachedTerm || t.kind != KindIRI {
		return nil
	}
	// IRIs that are alike differ at their ends, or by what they say in the middle.
	at := n
	for _, c := range [...]byte{t.value[n-1], t.value[n-2], t.value[n/2]} {
		at = at*31 + int(c)
	}
	return &m[at%len(m)]
}

// assign numbers the terms whose ids resolve left zero. The numbers follow from
// the order of the log alone.
func (w *indexWriter) assign(q *Quad, ids *IDQuad) {
	for _, part := range quadParts(q, ids) {
		if part.id.IsZero() {
			*part.id = w.create(*part.term)
		}
	}
}

// numberAll gives the ids of a statement's terms, which get one if they have none. The
// graph's is that of its name.
func (w *indexWriter) numberAll(q *Quad) (ids IDQuad, err error) {
	for _, part := range quadParts(q, &ids) {
		if *part.id, err = w.number(*part.term); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

// number is the id of a term, which gets one if it has none.
func (w *indexWriter) number(t Term) (ID, error) {
	id, ok, err := w.dict.id(t)
	if err != nil {
		return id, err
	}
	next := w.dict.fresh.next
	if ok && (!id.IsNumbered() || id.Number() < next) {
		return id, nil
	}
	// A number ahead of the next one is left over from an apply that was cut
	// short: the log hands out the same number again.
	if ok && id.Number() != next {
		return id, Errorf(CodeLogDamaged, "term %s has the number %d where the log gives %d", clip(t.String()), id.Number(), next)
	}
	return w.create(t), nil
}

// create gives a term that is not in the store the next number.
func (w *indexWriter) create(t Term) ID {
	if id, ok := w.dict.fresh.id(t); ok {
		return id // it stands twice in one quad
	}
	id := w.dict.fresh.add(t)
	key := w.dict.missed.take(t)
	w.o.put(string(key.key), w.varint(id.Number()))
	w.o.put(string(keys.Number(id.Number())), key.record)
	if key := literalKindKey(t); key != nil {
		w.o.put(string(key), nil)
	}
	return id
}

// literalKindKey is the key under which the language or datatype of a literal is
// listed, nil for one that has none.
func literalKindKey(t Term) []byte {
	switch {
	case t.LangKey() != "":
		return keys.Language(t.LangKey())
	case t.datatype() != "":
		return keys.Datatype(t.datatype())
	}
	return nil
}

// state reads what stands of a statement now; no assertions when it is absent.
func (w *indexWriter) state(ids IDQuad) (state, error) {
	var s state
	if w.absent(ids) {
		return s, nil
	}
	_, err := w.get(ids.Subject, w.keysOf(ids)[0], func(v []byte) (err error) {
		s, err = parseState(v, w.dict.agent)
		return err
	})
	w.generations.settle(&s, ids.Graph)
	return s, err
}

// writeNew writes the keys of a statement that is not there yet, but for its state, and
// counts it.
func (w *indexWriter) writeNew(q *Quad, ids IDQuad) {
	for _, key := range w.keysOf(ids)[1:] {
		if key != "" {
			w.o.putNew(key, nil)
		}
	}
	w.deltas.count(q, ids, 1)
	if ids.Subject.IsNumbered() && ids.Subject.Number() >= w.unnamed && len(w.own) < fewOwn {
		w.own = append(w.own, ids)
	}
}

// writeGeneration writes a statement of a generation that does not count yet: sources
// are counted, and subjects changed, when it does.
func (w *indexWriter) writeGeneration(s *writtenStatement, q *Quad, ids IDQuad) error {
	value, err := w.encode(state{s.since, s.assertions})
	if err != nil {
		return err
	}
	w.o.putNew(w.keysOf(ids)[0], value)
	w.writeNew(q, ids)
	return nil
}

// change writes the keys of one change, whose ids are given. It fails only when
// the dictionary cannot be read.
func (w *indexWriter) change(c *Change, ids IDQuad, revision Revision) error {
	all := w.keysOf(ids)
	switch {
	case len(c.Before) == 0:
		w.writeNew(&c.Quad, ids)
	case len(c.After) == 0:
		for _, key := range all {
			if key != "" {
				w.o.delete(key)
			}
		}
		w.deltas.count(&c.Quad, ids, -1)
	}
	if len(c.After) > 0 {
		value, err := w.encode(state{revision, c.After})
		if err != nil {
			return err
		}
		if len(c.Before) == 0 {
			w.o.putNew(all[0], value)
		} else {
			w.o.put(all[0], value)
		}
	}
	if err := w.past(c, ids, revision); err != nil {
		return err
	}
	if err := w.countSources(c); err != nil {
		return err
	}
	if t := (subjectInGraph{ids.Graph, ids.Subject}); t != w.noted {
		w.o.put(string(keys.Last(ids.Graph, ids.Subject)), w.varint(uint64(revision)))
		w.noted = t
	}
	return nil
}

// past keeps what stood until this revision, unless it came in the same one.
func (w *indexWriter) past(c *Change, ids IDQuad, revision Revision) error {
	if len(c.Before) == 0 || c.Since >= revision || revision <= w.floor {
		return nil
	}
	value, err := w.encode(state{c.Since, c.Before})
	if err != nil {
		return err
	}
	from, to := uint64(c.Since), uint64(revision)
	w.o.put(string(keys.SPOG.AppendPast(nil, ids, from, to)), value)
	for _, o := range keys.Orders[1:] {
		if o.Holds(ids) {
			w.o.put(string(o.AppendPast(nil, ids, from, to)), nil)
		}
	}
	return nil
}

func (w *indexWriter) encode(s state) ([]byte, error) {
	plain := len(s.assertions) == 1 && s.assertions[0].plain()
	if plain && w.encoded.is(&s) {
		return w.encoded.value, nil
	}
	var failed error
	value := appendState(nil, s, func(a AgentID) uint64 {
		id, err := w.number(agentTerm(a))
		if err != nil {
			failed = err
		}
		return id.Number()
	})
	if failed == nil && plain {
		a := &s.assertions[0]
		w.encoded = encoded{s.since, a.Revision, a.Time, a.Source, value}
	}
	return value, failed
}

// finish writes what a whole commit adds: its counts and, where it carries an
// idempotency key, the row that remembers it.
func (w *indexWriter) finish(c *Commit, cat *catalogue) {
	cat.add(w.deltas, c.Revision, func(key string, t tally) {
		var b [2 * binary.MaxVarintLen64]byte
		w.o.put(key, w.keep(t.append(b[:0])))
	})
	w.finishGeneration(c)
	w.deltas.clear()
	w.noted = subjectInGraph{}
	w.own, w.unnamed = w.own[:0], w.dict.fresh.next
	if c.IdempotencyKey != "" {
		row := idempotencyRow{revision: c.Revision, contentHash: c.ContentHash, millis: c.Time.UnixMilli()}
		if c.Held {
			row.proposal = c.ProposalID
		}
		w.o.put(string(idempotencyKey(c.Principal, c.IdempotencyKey)), row.encode())
	}
}

// replay writes a commit that the log holds already.
func (w *indexWriter) replay(c *Commit, cat *catalogue) error {
	for i := range c.Changes {
		ch := &c.Changes[i]
		ids, err := w.numberAll(&ch.Quad)
		if err != nil {
			return err
		}
		ids.Graph = w.generations.current(ids.Graph)
		if err := w.change(ch, ids, c.Revision); err != nil {
			return err
		}
	}
	if err := w.replayGeneration(c); err != nil {
		return err
	}
	w.finish(c, cat)
	return nil
}

// replayGeneration is what replay does of generations.
func (w *indexWriter) replayGeneration(c *Commit) error {
	if r := c.Replaced; r != nil {
		if _, err := w.number(r.Graph); err != nil {
			return err
		}
		if r.Anew {
			if _, err := w.number(placeholder(r.Began)); err != nil {
				return err
			}
		}
		return w.countReplaced(r)
	}
	g := c.Written
	if g == nil {
		return nil
	}
	if len(g.statements) == 0 {
		_, err := w.number(g.graph)
		return err
	}
	for i := range g.statements {
		q := g.statements[i].quad(g.graph)
		ids, err := w.numberAll(&q)
		if err != nil {
			return err
		}
		ids.Graph = keys.Generation(uint64(g.began))
		if err := w.writeGeneration(&g.statements[i], &q, ids); err != nil {
			return err
		}
	}
	return nil
}

// countReplaced counts by source what a replacement changed.
func (w *indexWriter) countReplaced(r *GraphReplacement) error {
	if w.uncounted {
		return nil
	}
	for _, s := range r.Sources {
		if err := w.countSource(s.source, s.by); err != nil {
			return err
		}
	}
	return nil
}

// finishGeneration takes into the table what a commit did to a generation. The graph's
// name has its number by then.
func (w *indexWriter) finishGeneration(c *Commit) {
	g := &generation{}
	var name Term
	switch r := c.Replaced; {
	case r != nil:
		name = r.Graph
		*g = generation{began: r.Began, from: c.Revision, time: c.Time, fresh: r.Deleted, cleared: r.Deleted}
		if r.Anew {
			id, _, _ := w.dict.id(placeholder(r.Began))
			g.number = id.Number()
		}
	case c.Written != nil && (c.Written.givenUp || c.Written.began == c.Revision):
		name = c.Written.graph
		*g = generation{began: c.Written.began, dead: c.Written.givenUp}
	default:
		return
	}
	g.graph, _, _ = w.dict.id(name)
	g.name = name
	w.generations = w.generations.withEntries(g)
	w.o.put(string(keys.GenerationRecord(uint64(g.began))), g.encode())
}

// idempotencyRow remembers which commit answered a key.
type idempotencyRow struct {
	revision    Revision
	contentHash [32]byte
	millis      int64 // when, so that old rows can be let go
	// proposal is the one that a held update became, "" for one that was made. It
	// is written only where there is one.
	proposal string
}

func idempotencyKey(principal AgentID, key string) []byte {
	b := codec.AppendString(nil, string(principal))
	return keys.Idempotency(hash16(codec.AppendString(b, key)))
}

func (row idempotencyRow) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(row.revision))
	b = append(b, row.contentHash[:]...)
	b = binary.AppendVarint(b, row.millis)
	if row.proposal != "" {
		b = codec.AppendString(b, row.proposal)
	}
	return b
}

func parseIdempotencyRow(value []byte) (idempotencyRow, error) {
	r := codec.NewReader(value)
	row := idempotencyRow{revision: Revision(r.Uvarint())}
	copy(row.contentHash[:], r.Take(len(row.contentHash)))
	row.millis = r.Varint()
	if r.Len() > 0 {
		if row.proposal = r.String(); row.proposal == "" {
			r.Fail()
		}
	}
	return row, r.Close()
}

// marker is written last in every group: up to where the index has applied the
// log, and what is needed to go on from there.
type marker struct {
	epoch      Epoch
	revision   Revision
	nextNumber uint64
	millis     int64    // of the last commit
	hash       [32]byte // of its log entry
}

var markerKey = keys.Meta("applied")

func (m marker) encode() []byte {
	b := append([]byte{keys.Version}, m.epoch[:]...)
	b = binary.AppendUvarint(b, uint64(m.revision))
	b = binary.AppendUvarint(b, m.nextNumber)
	b = binary.AppendVarint(b, m.millis)
	return append(b, m.hash[:]...)
}

func parseMarker(value []byte) (m marker, err error) {
	r := codec.NewReader(value)
	if r.Byte() != keys.Version {
		return m, Errorf(CodeFormatUnknown, "the index has another layout")
	}
	copy(m.epoch[:], r.Take(len(m.epoch)))
	m.revision = Revision(r.Uvarint())
	m.nextNumber = r.Uvarint()
	m.millis = r.Varint()
	copy(m.hash[:], r.Take(len(m.hash)))
	return m, r.Close()
}

// lastChange is the revision that last changed the subject in the graph, 0 when
// none did.
func (w *indexWriter) lastChange(t subjectInGraph) (r Revision, err error) {
	_, err = w.get(t.subject, string(keys.Last(t.graph, t.subject)), func(v []byte) error {
		c := codec.NewReader(v)
		r = Revision(c.Uvarint())
		return c.Close()
	})
	return max(r, w.generations.floor(t.graph)), err
}
