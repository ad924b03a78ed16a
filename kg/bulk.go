package kg

import (
	"errors"
	"slices"
	"time"

	"koine/kg/internal/keys"
	"koine/kg/internal/wal"
)

// Bounds of a bulk load.
const (
	// bulkFrom is from how many quads on a load into a store that holds something goes
	// this way: what it costs at least is more than so many cost as updates.
	bulkFrom = 2 * DefaultLoadCommit
	// bulkFromBytes is from how many bytes of text on it does, whatever the quads are:
	// they are in memory until it is decided.
	bulkFromBytes = 64 << 20
	// bulkChunk is how many statements are in memory before they go to disk, and
	// bulkChunkText how much text their new terms, with the states of those that stood before, may have.
	bulkChunk     = 1 << 19
	bulkChunkText = 64 << 20
	// bulkTableBytes is how much memory the tables of terms and statements take before
	// what was gathered is written to the index and a new round begins.
	bulkTableBytes = 1 << 30
	// bulkGroup is how many commits share an fsync.
	bulkGroup = 8
	// maxBulkGraphs is how many graphs are known to be writable; one that is not known is
	// asked for again.
	maxBulkGraphs = 1 << 12
)

// errNotInBulk says that a batch must go the way of all updates.
var errNotInBulk = errors.New("not in bulk")

// keyValue is a key of the index with its value.
type keyValue struct{ key, value []byte }

// bulk gathers statements while their commits go to the log, and then writes the index of
// all of them in one step. What it knows of terms and statements is in two tables of
// bounded size: when they are full, it writes the index and begins another round.
type bulk struct {
	s         *Store
	meta      Meta
	options   LoadOptions
	base      *badgerKV // the index before the round
	empty     bool      // there is nothing in it
	terms     termTable
	lately    [1 << 12]resolved // terms, each in its place
	graphs    map[Term]ID       // that may be written, at most maxBulkGraphs
	unused    uint64            // the first number that no term had before the round
	next      uint64            // number of the next one
	seen      *quadSet
	index     *bulkIndex
	textBytes int // of new terms
	deltas    *deltas
	catalogue *catalogue
	record    []byte // of the term at hand
	source    ID     // that was counted last
	sourceKey []byte
	replays   bool // the log has what is gathered: its terms are taken as they are

	revision Revision
	time     time.Time
	pending  []<-chan preparedEntry // entries that are being prepared, at most bulkGroup
	hash     [32]byte
	made     bulkMade  // by the load, all rounds together
	ended    bool      // the index could not be written
	logged   bulkMark  // what the log has
	shown    Revision  // up to which the index has it
	tried    time.Time // when there was no room for it
}

// bulkMade counts what a load took in and made of it.
type bulkMade struct{ read, statements, commits uint64 }

// bulkMark is how far a bulk load is.
type bulkMark struct {
	size      bulkSize
	next      uint64
	catalogue *catalogue
	revision  Revision
	time      time.Time
	made      bulkMade
}

func (b *bulk) mark() {
	b.logged = bulkMark{b.index.size(), b.next, b.catalogue.copy(), b.revision, b.time, b.made}
}

// backToMark gives up what the log does not have. The tables still know it: nothing may be
// added any more.
func (b *bulk) backToMark() {
	m := &b.logged
	b.index.truncate(m.size)
	b.next, b.catalogue = m.next, m.catalogue
	b.revision, b.time, b.made, b.pending = m.revision, m.time, m.made, nil
}

// indexBytes is about what the index of a bulk load takes.
func (b *bulk) indexBytes() uint64 {
	const quadBytes = 100 // in all orders, compressed
	return b.index.statements()*quadBytes + 2*uint64(b.textBytes)
}

func newBulk(s *Store, m Meta, o LoadOptions) *bulk {
	h := s.head.Load()
	b := &bulk{
		s: s, meta: m, options: o,
		graphs:    make(map[Term]ID),
		deltas:    new(deltas),
		catalogue: h.catalogue.copy(),
		revision:  h.revision,
		time:      h.time,
		shown:     h.revision,
		next:      h.nextNumber,
		hash:      h.hash,
	}
	b.begin()
	return b
}

// begin begins a round.
func (b *bulk) begin() {
	b.s.options.bulkStep("round")
	b.base = b.s.newKV(b.revision)
	b.unused, b.empty = b.next, b.next == 1
	b.terms, b.seen = newTermTable(), newQuadSet()
	clear(b.lately[:])
	b.index = newBulkIndex(b.s.bulkIndexOptions(), b.revision+1, b.next)
	b.textBytes = 0
	b.mark()
}

func (s *Store) bulkIndexOptions() bulkIndexOptions {
	return bulkIndexOptions{
		db: s.db, dir: s.dir.path, sortBytes: s.options.bulkSortBytes,
		chunk: s.options.bulkChunk, chunkText: bulkChunkText, step: s.options.bulkStep,
	}
}

// close ends a round but for the index that was gathered.
func (b *bulk) close() {
	b.base.close()
	b.terms.free()
	b.seen.free()
}

// full tells whether the round has come to its bounds, or cannot go to disk any more.
func (b *bulk) full() bool {
	return b.index.failed != nil || b.terms.bytes+b.seen.bytes() >= b.s.options.bulkTableBytes
}

// add takes a batch in, as one commit or as few as it fits into, and says how many
// statements it changed. After an error nothing of the commit is there, and nothing may be
// added any more.
func (b *bulk) add(quads []Quad) (n uint64, err error) {
	if slices.ContainsFunc(quads, func(q Quad) bool { return IsOwnGraph(q.Graph) }) {
		return 0, errNotInBulk
	}
	for len(quads) > 0 {
		size, next, text, made := b.index.size(), b.next, b.textBytes, b.made
		read, changed, err := b.commit(quads)
		if err != nil {
			if b.index.size().quads >= size.quads { // else it is further back already
				b.index.truncate(size)
				b.deltas.clear()
				b.next, b.textBytes, b.made = next, text, made
			}
			return n, err
		}
		quads = quads[read:]
		n += changed
	}
	return n, nil
}

// commit makes a commit of quads and says how many it took in. It takes fewer than all
// once the assertions that stood before fill what an entry of the log has room for beside
// the quads' own text.
func (b *bulk) commit(quads []Quad) (read int, changed uint64, err error) {
	now := b.s.options.Clock().UTC().Truncate(time.Millisecond)
	if now.Before(b.time) {
		now = b.time
	}
	c := b.newCommit(now)
	made := Assertion{Source: b.meta.Actor, Time: now, Revision: c.Revision}
	after := []Assertion{made}
	c.Changes = make([]Change, 0, len(quads))
	var last Quad // with its ids: most of the next quad's terms are the same
	var ids IDQuad
	for before := 0; read < len(quads) && before < b.s.options.loadCommitBytes; read++ {
		q := quads[read]
		if ids, err = b.assign(&q, &last, ids); err != nil {
			return 0, 0, err
		}
		last = q
		if fresh, err := b.seen.add(&ids); err != nil {
			return 0, 0, err
		} else if !fresh {
			continue
		}
		change := Change{Op: Add, Quad: q, Assertion: made, After: after, ReplacedBy: -1}
		changes, err := b.change(&change, ids)
		if err != nil {
			return 0, 0, err
		}
		if changes {
			c.Changes = append(c.Changes, change)
			before += assertionBytes(change.Before)
		}
	}
	b.made.read += uint64(read)
	if len(c.Changes) == 0 {
		return read, 0, nil
	}
	if b.options.Place != nil {
		c.MessageID = b.options.Place(b.made.read)
	}
	value, err := b.encode(state{c.Revision, after})
	if err != nil {
		return 0, 0, err
	}
	b.index.values = append(b.index.values, value)
	return read, uint64(len(c.Changes)), b.log(c)
}

// assertionBytes is about what assertions take in an entry of the log.
func assertionBytes(list []Assertion) (n int) {
	const perAssertion = 64
	for i := range list {
		n += perAssertion + len(list[i].Source) + len(list[i].Provenance)
	}
	return n
}

func (b *bulk) newCommit(now time.Time) *Commit {
	return &Commit{
		Revision: b.revision + 1, Time: now, Principal: b.meta.Principal.ID, Actor: b.meta.Actor,
		Justification: b.meta.Justification, TaskID: b.meta.TaskID, SessionID: b.meta.SessionID, MessageID: b.meta.MessageID,
	}
}

// change takes in one statement, if it changes anything.
func (b *bulk) change(c *Change, ids IDQuad) (bool, error) {
	row := bulkQuad{ids, uint32(len(b.index.values))}
	before, err := b.before(&ids)
	if err != nil {
		return false, err
	}
	old, had := findSource(before.assertions, c.Assertion.Source)
	if len(before.assertions) > 0 {
		if had && old.same(c.Assertion) {
			return false, nil
		}
		if !had && len(before.assertions) >= MaxAssertions {
			return false, Errorf(CodeLimitExceeded, "a statement is backed by at most %d sources", MaxAssertions)
		}
		c.Before, c.Since, c.After = before.assertions, before.since, withAssertion(before.assertions, c.Assertion)
		if err := b.stood(c, ids); err != nil {
			return false, err
		}
		row.commit |= bulkStood
	} else {
		b.deltas.count(&c.Quad, ids, 1)
	}
	if !had {
		source, err := b.id(agentTerm(c.Assertion.Source))
		if err != nil {
			return false, err
		}
		b.countSource(source)
	}
	b.index.chunk.quads = append(b.index.chunk.quads, row)
	return true, nil
}

// countSource notes a statement that a source backs.
func (b *bulk) countSource(id ID) {
	if b.source != id {
		b.source, b.sourceKey = id, keys.Source(id.Number())
	}
	b.deltas.add(b.sourceKey, 1)
}

// before is what stood of a statement before the round.
func (b *bulk) before(ids *IDQuad) (s state, err error) {
	if b.empty {
		return s, nil
	}
	for _, id := range [...]*ID{&ids.Subject, &ids.Predicate, &ids.Object, &ids.Graph} {
		if id.IsNumbered() && id.Number() >= b.unused {
			return s, nil
		}
	}
	_, err = b.base.get(keys.SPOG.Append(nil, *ids), func(v []byte) (err error) {
		s, err = parseState(v, dictionary{kv: b.base, cache: b.s.cache}.agent)
		return err
	})
	b.s.head.Load().generations.settle(&s, ids.Graph)
	return s, err
}

// stood gives a statement that stood before its new state, and the old one to the past
// (indexWriter.past).
func (b *bulk) stood(c *Change, ids IDQuad) error {
	value, err := b.encode(state{c.Assertion.Revision, c.After})
	if err != nil {
		return err
	}
	b.index.chunk.pair(keys.SPOG.Append(nil, ids), value)
	if from, to := c.Since, c.Assertion.Revision; to > b.s.floor() {
		if value, err = b.encode(state{from, c.Before}); err != nil {
			return err
		}
		for _, o := range keys.Orders {
			if o.Holds(ids) {
				b.index.chunk.pair(o.AppendPast(nil, ids, uint64(from), uint64(to)), value)
				value = noValue // only SPOG has one
			}
		}
	}
	return nil
}

func (b *bulk) encode(s state) (value []byte, err error) {
	value = appendState(nil, s, func(a AgentID) uint64 {
		id, failed := b.id(agentTerm(a))
		err = errors.Join(err, failed)
		return id.Number()
	})
	return value, err
}

// assign gives a quad its ids, checking terms when they are first seen; those of
// the quad before are known.
func (b *bulk) assign(q, last *Quad, ids IDQuad) (IDQuad, error) {
	if !q.Subject.IsResource() || q.Predicate.kind != KindIRI || !q.Object.IsResource() && !q.Object.IsLiteral() {
		return ids, q.valid(Term.ValidNew)
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
			if invalid := q.valid(func(t Term) error { return b.valid(&t) }); invalid != nil {
				return ids, invalid
			}
			return ids, err
		}
		*part.id = id
	}
	return ids, nil
}

// id is the id of a term, which gets the next number if it has none.
func (b *bulk) id(t Term) (ID, error) {
	if id, ok := inlineID(t); ok {
		return id, b.valid(&t)
	}
	late := b.place(&t)
	if late != nil && late.term == t {
		return late.id, nil
	}
	b.record = appendTerm(b.record[:0], t)
	place, key, id, err := b.terms.find(b.record)
	if err != nil {
		return ID{}, err
	}
	if id.IsZero() {
		if id, err = b.number(t); err != nil {
			return ID{}, err
		}
		b.terms.set(place, key, id)
	}
	if late != nil {
		*late = resolved{t, id}
	}
	return id, nil
}

// place is where a term is remembered that was asked for lately, nil for none.
func (b *bulk) place(t *Term) *resolved {
	n := len(t.value)
	if n < 4 || n > maxCachedTerm {
		return nil
	}
	at := uint64(n)<<32 | uint64(t.value[n-1])<<24 | uint64(t.value[n-2])<<16 | uint64(t.value[n-3])<<8 | uint64(t.value[n/2])
	return &b.lately[mix(at)%uint64(len(b.lately))]
}

// number finds a term's number in the store, or gives it the next.
func (b *bulk) number(t Term) (ID, error) {
	if err := b.valid(&t); err != nil {
		return ID{}, err
	}
	if !b.empty {
		id, known, err := b.dictionary().id(t)
		// A number that nobody had before the round is left over from an apply that was
		// cut short: the log gives the same one again.
		if err != nil || known && (!id.IsNumbered() || id.Number() < b.unused) {
			return id, err
		}
	}
	id := keys.Numbered(tagOf(t), b.next)
	b.next++
	b.index.term(t, b.record)
	b.textBytes += t.textBytes()
	return id, nil
}

func (b *bulk) valid(t *Term) error {
	if b.replays {
		return nil
	}
	if err := t.LiteralWithin(b.s.options.LiteralBytes); err != nil {
		return err
	}
	return t.ValidNew()
}

// dictionary is that of the index before the round.
func (b *bulk) dictionary() dictionary {
	return dictionary{kv: b.base, cache: b.s.cache, from: b.unused}
}

// graph is the id of a graph that the caller may write.
func (b *bulk) graph(t Term) (ID, error) {
	if id, ok := b.graphs[t]; ok {
		return id, nil
	}
	tx := &Tx{
		meta: b.meta, access: b.s.options.Access, catalog: b.s.head.Load().catalogue,
		w: &indexWriter{dict: b.dictionary()},
	}
	if err := tx.mayWrite(t); err != nil {
		return ID{}, err
	}
	if !t.NamesGraph() {
		return ID{}, errNamesNoGraph()
	}
	id, err := b.id(t)
	if err == nil {
		generations := b.s.head.Load().generations
		if generations != nil && generations.writing[id] != nil {
			return ID{}, errBeingReplaced(t)
		}
		id = generations.current(id)
		if len(b.graphs) >= maxBulkGraphs {
			clear(b.graphs)
		}
		if len(t.value) <= maxCachedTerm {
			b.graphs[t] = id
		}
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
	b.made.commits++
	b.made.statements += uint64(len(c.Changes))
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
	if err != nil { // the log has nothing of them
		b.backToMark()
		return errCommitTooLarge()
	}
	if full := b.s.writableWith(b.indexBytes()); full != nil {
		b.backToMark()
		return full
	}
	b.s.options.bulkStep("append")
	err = b.s.wal.AppendPrepared(uint64(first), frames)
	if errors.Is(err, wal.ErrNoSpace) {
		b.backToMark()
		return b.s.errDiskFull()
	}
	if err != nil {
		b.s.refuse(errReadOnly(writeFailure, err))
		return &Error{Code: CodeOutcomeUnknown, Message: "the store failed while it loaded: open it again to see how much of it is there", Err: err}
	}
	b.hash = b.s.wal.LastHash()
	b.index.spillIfFull()
	b.mark()
	return nil
}

// round writes the index and begins another round.
func (b *bulk) round() error {
	if err := b.append(); err != nil {
		return err
	}
	b.close()
	if err := b.show(); err != nil {
		return err
	}
	b.begin()
	return nil
}

// finish appends what waits, writes the index and shows it. cause is why the load cannot go
// on, nil at its end: the commits before stand, for they are in the log, and so the index
// must hold them.
func (b *bulk) finish(l *load, cause error) error {
	var err error
	if !b.ended && b.s.refused.Load() == nil {
		err = b.append()
	}
	b.close()
	l.report = LoadReport{Read: b.made.read, Statements: b.made.statements, Commits: b.made.commits, Bulk: b.made.commits > 0}
	if !b.ended && b.s.refused.Load() == nil {
		err = errors.Join(err, b.show())
	}
	return errors.Join(cause, err)
}

// show writes what the log has of the load into the index, and shows it.
func (b *bulk) show() error {
	err := b.write()
	b.ended = err != nil
	switch {
	case isNoSpace(err):
		b.s.log.Warn("the volume has no room for the index of a load: it is written when there is room again", "error", err)
		b.tried = time.Now()
		b.s.unindexed.Store(b)
		return errUnindexed()
	case err != nil:
		b.index.close()
		return b.failed(err)
	}
	b.index.close()
	return nil
}

// write writes the index and shows it. It may be done again after it failed.
func (b *bulk) write() error {
	if b.shown == b.revision {
		return nil
	}
	m := marker{b.s.dir.epoch, b.revision, b.next, b.time.UnixMilli(), b.hash}
	err := b.index.write(b.catalogue, m, b.options.Indexing)
	if b.index.failed != nil {
		return b.writeFromLog(err)
	}
	if err != nil {
		return err
	}
	b.shown = b.revision
	b.s.options.bulkStep("show")
	b.s.publish(&head{b.revision, b.time, b.catalogue, b.s.head.Load().generations, m.nextNumber, b.hash})
	b.s.tailer.tell()
	return nil
}

// writeFromLog is write where the sorted runs could not be written. What a try before has
// shown is not applied again.
func (b *bulk) writeFromLog(cause error) error {
	b.s.log.Warn("the sorted runs of a load could not be written: its index is made from the log", "error", cause)
	if from := b.s.head.Load().revision + 1; from <= b.revision {
		if err := b.s.replay(from, b.revision); err != nil {
			return err
		}
	}
	b.shown = b.revision
	b.s.tailer.tell()
	return nil
}

// errUnindexed is why nothing is written while the volume has no room for the index of a
// load that is in the log.
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
	if err != nil {
		_ = b.failed(err)
	} else {
		s.log.Warn("the volume has room again: the index of a load was written")
	}
	b.index.close()
	s.unindexed.Store(nil)
}

func (b *bulk) failed(err error) error {
	b.s.refuse(errReadOnly("the index could not be written; opening the store again builds it from the log", err))
	return &Error{Code: CodeOutcomeUnknown, Message: "the load is in the log, and the index could not be written", Hint: "open the store again", Err: err}
}
