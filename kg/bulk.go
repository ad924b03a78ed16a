package kg

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"koine/kg/internal/keys"
	"koine/kg/internal/wal"
)

// Bounds of a bulk load. What lies beyond goes the way of all updates.
const (
	// maxBulkQuads is how many statements are held in memory to be sorted,
	// maxBulkTextBytes how much text their new terms may have, which is held too.
	maxBulkQuads     = 5_000_000
	maxBulkTextBytes = 2 << 30
	// maxKeptKeys is how many keys there may be already: StreamWriter drops
	// them, so they are written again.
	maxKeptKeys = 100_000
	// bulkGroup is how many commits share an fsync.
	bulkGroup = 8
)

// errNotInBulk says that a batch must go the way of all updates.
var errNotInBulk = errors.New("not in bulk")

// keyValue is a key of the index with its value.
type keyValue struct{ key, value []byte }

// keptByBulk lists the keys that a bulk load must keep; ok is false when the
// store holds statements of others than koine itself, or too much.
func (s *Store) keptByBulk() (kept []keyValue, ok bool, err error) {
	kv := s.newKV(s.head.Load().revision)
	defer kv.close()
	d := dictionary{kv: kv, cache: s.cache}
	ok = true
	s.head.Load().catalogue.each(keys.PrefixPredicate, ID{}, func(graph, _ ID, n uint64) {
		t, termErr := d.term(graph)
		err = errors.Join(err, termErr)
		ok = ok && (n == 0 || IsOwnGraph(t))
	})
	if !ok || err != nil {
		return nil, false, err
	}
	for prefix := range 256 {
		c := kv.scan([]byte{byte(prefix)})
		for ; c.valid() && len(kept) <= maxKeptKeys; c.next() {
			err := c.value(func(v []byte) error {
				// Badger gives nil for an empty value, and nil would mean a deletion.
				kept = append(kept, keyValue{bytes.Clone(c.key()), append([]byte{}, v...)})
				return nil
			})
			if err != nil {
				c.close()
				return nil, false, err
			}
		}
		c.close()
	}
	return kept, len(kept) <= maxKeptKeys, nil
}

// bulk gathers statements in ids while their commits go to the log, and then
// writes the index in one piece.
type bulk struct {
	s         *Store
	meta      Meta
	kept      []keyValue
	base      *badgerKV
	ids       map[Term]ID // of all terms that were looked at
	graphs    map[Term]ID // that may be written
	terms     []Term      // that are new, as they are numbered
	textBytes int         // of them
	next      uint64      // number of the next one
	seen      map[IDQuad]struct{}
	quads     []bulkQuad
	values    [][]byte // of SPOG, one for each commit: all its statements have the same
	deltas    *deltas
	catalogue *catalogue

	first    Revision // of the values
	revision Revision
	time     time.Time
	pending  []<-chan preparedEntry // entries that are being prepared, at most bulkGroup
	hash     [32]byte
	commits  uint64
	logged   bulkMark  // what the log has
	online   bool      // readers stay while the index is written
	tried    time.Time // when there was no room for it
}

// bulkMark is how far a bulk load is.
type bulkMark struct {
	quads, values, terms, textBytes int
	next                            uint64
	catalogue                       *catalogue
	revision                        Revision
	time                            time.Time
	commits                         uint64
}

func (b *bulk) mark() {
	b.logged = bulkMark{len(b.quads), len(b.values), len(b.terms), b.textBytes, b.next, b.catalogue.copy(), b.revision, b.time, b.commits}
}

// backToMark gives up what the log does not have.
func (b *bulk) backToMark() {
	m := &b.logged
	b.quads, b.values, b.terms = b.quads[:m.quads], b.values[:m.values], b.terms[:m.terms]
	b.textBytes, b.next, b.catalogue = m.textBytes, m.next, m.catalogue
	b.revision, b.time, b.commits, b.pending = m.revision, m.time, m.commits, nil
}

// indexBytes is about what the index of a bulk load takes.
func (b *bulk) indexBytes() uint64 {
	const quadBytes = 100 // in all orders, compressed
	return uint64(len(b.quads))*quadBytes + 2*uint64(b.textBytes)
}

type bulkQuad struct {
	ids    IDQuad
	commit uint32
}

func newBulk(s *Store, m Meta, kept []keyValue) (*bulk, error) {
	if err := writeFile(s.dir.join(buildingName), nil); err != nil {
		return nil, err
	}
	h := s.head.Load()
	base := s.newKV(h.revision)
	b := &bulk{
		s: s, meta: m, kept: kept, base: base,
		ids:       make(map[Term]ID),
		graphs:    make(map[Term]ID),
		next:      h.nextNumber,
		seen:      make(map[IDQuad]struct{}),
		deltas:    new(deltas),
		catalogue: h.catalogue.copy(),
		first:     h.revision + 1,
		revision:  h.revision,
		time:      h.time,
	}
	b.mark()
	return b, nil
}

// add takes a batch in as one commit and says how many statements are new. An
// error leaves nothing of the batch.
func (b *bulk) add(quads []Quad) (n uint64, err error) {
	rows, values, terms := len(b.quads), len(b.values), len(b.terms)
	if n, err = b.commit(quads); err != nil && len(b.quads) >= rows { // else it is further back already
		b.quads, b.values = b.quads[:rows], b.values[:values]
		b.deltas.clear()
		for _, t := range b.terms[terms:] {
			delete(b.ids, t)
			delete(b.graphs, t)
			b.textBytes -= t.textBytes()
			b.next--
		}
		b.terms = b.terms[:terms]
	}
	return n, err
}

func (b *bulk) commit(quads []Quad) (uint64, error) {
	if slices.ContainsFunc(quads, func(q Quad) bool { return IsOwnGraph(q.Graph) }) {
		return 0, errNotInBulk
	}
	now := b.s.options.Clock().UTC().Truncate(time.Millisecond)
	if now.Before(b.time) {
		now = b.time
	}
	c := &Commit{
		Revision: b.revision + 1, Time: now, Principal: b.meta.Principal.ID, Actor: b.meta.Actor,
		Justification: b.meta.Justification, TaskID: b.meta.TaskID, SessionID: b.meta.SessionID, MessageID: b.meta.MessageID,
	}
	a := Assertion{Source: b.meta.Actor, Time: now, Revision: c.Revision}
	after := []Assertion{a}
	c.Changes = make([]Change, 0, len(quads))
	var value []byte
	var last Quad // with its ids: most of the next quad's terms are the same
	var ids IDQuad
	for _, q := range quads {
		var err error
		ids, err = b.assign(&q, &last, ids)
		if err != nil {
			return 0, err
		}
		last = q
		if _, known := b.seen[ids]; known {
			continue
		}
		if value == nil {
			source, err := b.id(agentTerm(a.Source))
			if err != nil {
				return 0, err
			}
			value = appendState(nil, state{c.Revision, after}, func(AgentID) uint64 { return source.Number() })
		}
		b.seen[ids] = struct{}{}
		b.quads = append(b.quads, bulkQuad{ids, uint32(len(b.values))})
		b.deltas.count(&q, ids, 1)
		c.Changes = append(c.Changes, Change{Op: Add, Quad: q, Assertion: a, After: after, ReplacedBy: -1})
	}
	if len(c.Changes) == 0 {
		return 0, nil
	}
	source, err := b.id(agentTerm(a.Source)) // has a number since the first change
	if err != nil {
		return 0, err
	}
	b.deltas.add(keys.Source(source.Number()), int64(len(c.Changes)))
	b.values = append(b.values, value)
	return uint64(len(c.Changes)), b.log(c)
}

// assign gives a quad its ids, checking terms when they are first seen; those of
// the quad before are known.
func (b *bulk) assign(q, last *Quad, ids IDQuad) (IDQuad, error) {
	if !q.Subject.IsResource() || q.Predicate.kind != KindIRI || !q.Object.IsResource() && !q.Object.IsLiteral() {
		return ids, q.valid()
	}
	old := quadParts(last, &ids)
	for i, part := range quadParts(q, &ids) {
		if *part.term == *old[i].term {
			continue
		}
		lookUp := b.id
		if part.id == &ids.Graph {
			lookUp = b.graph
		}
		id, err := lookUp(*part.term)
		if err != nil {
			if invalid := q.valid(); invalid != nil {
				return ids, invalid
			}
			return ids, err
		}
		*part.id = id
	}
	return ids, nil
}

// full tells whether the load has come to its bounds.
func (b *bulk) full() bool {
	return len(b.quads) >= b.s.options.bulkQuads || b.textBytes >= b.s.options.bulkTextBytes
}

func (b *bulk) id(t Term) (ID, error) {
	if id, ok := b.ids[t]; ok {
		return id, nil
	}
	if id, ok := inlineID(t); ok {
		return id, t.Valid()
	}
	if err := t.Valid(); err != nil {
		return ID{}, err
	}
	id, known, err := b.known(t)
	if err != nil {
		return id, err
	}
	if !known {
		id = keys.Numbered(tagOf(t), b.next)
		b.next++
		b.terms = append(b.terms, t)
		b.textBytes += t.textBytes()
	}
	b.ids[t] = id
	return id, nil
}

// known looks a term up among those from before the load.
func (b *bulk) known(t Term) (ID, bool, error) {
	if b.s.head.Load().nextNumber == 1 {
		return ID{}, false, nil // there was none
	}
	return dictionary{kv: b.base, cache: b.s.cache}.id(t)
}

// graph is the id of a graph that the caller may write.
func (b *bulk) graph(t Term) (ID, error) {
	if id, ok := b.graphs[t]; ok {
		return id, nil
	}
	tx := &Tx{
		meta: b.meta, access: b.s.options.Access, catalog: b.s.head.Load().catalogue,
		w: &indexWriter{dict: dictionary{kv: b.base, cache: b.s.cache}},
	}
	if err := tx.mayWrite(t); err != nil {
		return ID{}, err
	}
	if !t.NamesGraph() {
		return ID{}, Errorf(CodeInvalid, "a graph is named by an IRI or a blank node").At("graph")
	}
	id, err := b.id(t)
	if err == nil {
		b.graphs[t] = id
	}
	return id, err
}

// log prepares the commit's entry and appends those that wait when they are
// enough for one fsync.
func (b *bulk) log(c *Commit) error {
	b.pending = append(b.pending, prepareEntry(c))
	b.catalogue.add(b.deltas, c.Revision, func(string, tally) {})
	b.deltas.clear()
	b.revision, b.time = c.Revision, c.Time
	b.commits++
	if len(b.pending) < bulkGroup {
		return nil
	}
	return b.append()
}

// preparedEntry is a log entry that is ready to be appended.
type preparedEntry struct {
	frame wal.Prepared
	err   error
}

// prepareEntry encodes and compresses a commit beside the loader.
func prepareEntry(c *Commit) <-chan preparedEntry {
	done := make(chan preparedEntry, 1)
	go func() {
		frame, err := wal.Prepare(appendEntry(nil, c))
		done <- preparedEntry{frame, err}
	}()
	return done
}

// prepared waits for the entries that wait to be appended.
func (b *bulk) prepared() (frames []wal.Prepared, err error) {
	for _, p := range b.pending {
		e := <-p
		frames = append(frames, e.frame)
		err = errors.Join(err, e.err)
	}
	b.pending = nil
	return frames, err
}

func (b *bulk) append() error {
	if len(b.pending) == 0 {
		return nil
	}
	first := b.revision - Revision(len(b.pending)) + 1
	frames, err := b.prepared()
	if full := b.s.writableWith(b.indexBytes()); full != nil && err == nil {
		b.backToMark()
		return full
	}
	if err == nil {
		err = b.s.wal.AppendPrepared(uint64(first), frames)
	}
	if errors.Is(err, wal.ErrNoSpace) {
		b.backToMark()
		return b.s.errDiskFull()
	}
	if err != nil {
		b.s.refuse(errReadOnly(writeFailure, err))
		return &Error{Code: CodeOutcomeUnknown, Message: "the store failed while it loaded: open it again to see how much of it is there", Err: err}
	}
	b.hash, err = b.s.wal.Hash(uint64(b.revision))
	b.mark()
	return err
}

// abandon ends a load that cannot go on. The commits before the failure stand:
// they are in the log, and so the index must hold them.
func (b *bulk) abandon(l *load, cause error) error {
	if b.s.refused.Load() != nil {
		b.close()
		return cause
	}
	return errors.Join(cause, b.finish(l))
}

func (b *bulk) close() { b.base.close() }

// finish appends what waits, writes the index and shows it.
func (b *bulk) finish(l *load) error {
	err := b.append()
	b.close()
	l.report.Commits += b.commits
	switch {
	case b.commits == 0:
		l.report = LoadReport{}
		return errors.Join(err, removeFile(b.s.dir.join(buildingName)))
	case err != nil && CodeOf(err) != CodeDiskFull:
		return err
	}
	l.report.Bulk, l.report.Statements = true, uint64(len(b.quads))
	return errors.Join(err, b.index())
}

// index writes what the log has of the load.
func (b *bulk) index() (err error) {
	b.online = !b.s.shutGate()
	err = b.write()
	switch {
	case isNoSpace(err):
		b.s.log.Warn("the volume has no room for the index of a load: it is written when there is room again", "error", err)
		b.tried = time.Now()
		b.s.unindexed.Store(b)
		err = errUnindexed()
		if !b.online {
			b.s.openGate(errUnindexed()) // what was there is gone from the index
		}
	case err != nil:
		err = b.failed(err)
		if !b.online {
			b.s.openGate(b.s.refused.Load())
		}
	case !b.online:
		b.s.openGate(nil)
	}
	return err
}

// write writes the index and shows it. It may be done again after it failed.
func (b *bulk) write() error {
	if b.online {
		// From the log, because readers stay. What a try before has shown is not applied
		// again.
		if from := b.s.head.Load().revision + 1; from <= b.revision {
			if err := b.s.replay(from, b.revision); err != nil {
				return err
			}
		}
		b.s.tailer.tell()
		return removeFile(b.s.dir.join(buildingName))
	}
	m := marker{b.s.dir.epoch, b.revision, b.next, b.time.UnixMilli(), b.hash}
	if err := b.stream(m); err != nil {
		return err
	}
	return b.show(m)
}

// errUnindexed is why nothing is written, and perhaps nothing read, while the volume has
// no room for the index of a load that is in the log.
func errUnindexed() *Error {
	e := Errorf(CodeDiskFull, "the volume of the data directory has no room for the index of a load, which is in the log")
	e.Hint = "make room: the index is written then, without a restart"
	e.RetryAfter = flushRetry
	return e
}

// indexLoad tries again to write the index of a load for which there was no room. Only
// the committer calls it.
func (s *Store) indexLoad() {
	b := s.unindexed.Load()
	if b == nil || s.refused.Load() != nil || time.Since(b.tried) < flushRetry {
		return
	}
	b.tried = time.Now()
	if free, err := s.options.FreeBytes(s.dir.path); err == nil && free < b.indexBytes() {
		return
	}
	// What is in memory goes to disk first: a flush that ended later would show readers
	// the revision that it was begun at.
	if s.settle(); s.layers.stuck || s.layers.frozen != nil || s.layers.mem.Len() > 0 {
		return
	}
	err := b.write()
	if isNoSpace(err) {
		return
	}
	var lost *Error
	if err != nil {
		_ = b.failed(err)
		lost = s.refused.Load()
	} else {
		s.log.Warn("the volume has room again: the index of a load was written")
	}
	s.unindexed.Store(nil)
	if !b.online {
		s.mu.Lock()
		s.gate.lost = lost
		s.mu.Unlock()
	}
}

func (b *bulk) failed(err error) error {
	b.s.refuse(errReadOnly("the index could not be written; opening the store again builds it from the log", err))
	return &Error{Code: CodeOutcomeUnknown, Message: "the load is in the log, and the index could not be written", Hint: "open the store again", Err: err}
}

func (b *bulk) show(m marker) error {
	b.s.publish(&head{b.revision, b.time, b.catalogue, m.nextNumber, b.hash})
	b.s.tailer.tell()
	return removeFile(b.s.dir.join(buildingName))
}
