package kg

import (
	"errors"
	"slices"
	"time"

	"koine/kg/base"
	"koine/kg/internal/bulkindex"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
	"koine/kg/internal/logentry"
	"koine/kg/internal/wal"
)

// Bounds of a bulk load.
const (
	// bulkFrom is the number of quads from which a load into a store with content is done in
	// bulk. A bulk load costs at least as much as that many quads cost as updates.
	bulkFrom = 2 * DefaultLoadCommit
	// bulkFromBytes is the same bound in bytes of text: the quads stay in memory until the
	// decision.
	bulkFromBytes = 64 << 20
	// bulkChunk is the number of statements gathered in memory before they are sorted to disk,
	// and bulkChunkText bounds the text of their new terms and of the earlier states of
	// statements.
	bulkChunk     = 1 << 19
	bulkChunkText = 64 << 20
	// bulkTableBytes bounds the tables of terms and statements. When they are full, the
	// gathered statements are written to the index and a new round begins.
	bulkTableBytes = 1 << 30
	// bulkGroup is the number of commits that share an fsync.
	bulkGroup = 8
	// maxBulkGraphs bounds the graphs that are remembered as writable. Others are checked
	// again.
	maxBulkGraphs = 1 << 12
)

// errNotInBulk means that a batch must be loaded as ordinary updates.
var errNotInBulk = errors.New("not in bulk")

// bulk gathers statements while their commits are appended to the log, and then writes the
// index of all of them in one step. Two tables of bounded size hold the terms and statements
// of a round. When they are full, it writes the index and begins another round.
type bulk struct {
	s         *Store
	meta      Meta
	options   LoadOptions
	base      *index.BadgerKV // the index before the round
	empty     bool            // base is empty
	terms     bulkindex.TermTable
	termCache [1 << 12]index.Resolved // direct-mapped by hash
	graphs    map[Term]ID             // writable graphs, at most maxBulkGraphs
	unused    uint64                  // first number that no term had before the round
	next      uint64                  // number of the next new term
	seen      *bulkindex.QuadSet
	index     *bulkindex.BulkIndex
	textBytes int // of new terms
	deltas    *index.Deltas
	catalogue *index.Catalogue
	record    []byte // scratch for the record of a term
	source    ID     // of the last assertion counted
	sourceKey []byte
	replays   bool // the statements come from the log: their terms are not checked

	revision    Revision
	time        time.Time
	pending     []<-chan preparedEntry // entries being prepared, at most bulkGroup
	hash        [32]byte
	totals      loadTotals // of all rounds
	ended       bool       // writing the index failed
	logged      bulkMark   // state of the last append to the log
	indexedUpTo Revision   // revision of the index
	triedAt     time.Time  // last attempt to write the index without enough space
}

// loadTotals counts the quads read, the statements changed and the commits made.
type loadTotals struct{ read, statements, commits uint64 }

// bulkMark is a state of a bulk load to which it can return.
type bulkMark struct {
	size      bulkindex.BulkSize
	next      uint64
	catalogue *index.Catalogue
	revision  Revision
	time      time.Time
	made      loadTotals
}

func (b *bulk) markFlushed() {
	b.logged = bulkMark{b.index.Size(), b.next, b.catalogue.Copy(), b.revision, b.time, b.totals}
}

// resetToMark drops everything that is not in the log. The tables still contain it, so that
// nothing may be added afterwards.
func (b *bulk) resetToMark() {
	m := &b.logged
	b.index.Truncate(m.size)
	b.next, b.catalogue = m.next, m.catalogue
	b.revision, b.time, b.totals, b.pending = m.revision, m.time, m.made, nil
}

// indexBytes estimates the size of the round's index.
func (b *bulk) indexBytes() uint64 {
	const quadBytes = 100 // in all orders, compressed
	return b.index.Statements()*quadBytes + 2*uint64(b.textBytes)
}

func newBulk(s *Store, m Meta, o LoadOptions) *bulk {
	h := s.head.Load()
	b := &bulk{
		s: s, meta: m, options: o,
		graphs:      make(map[Term]ID),
		deltas:      new(index.Deltas),
		catalogue:   h.catalogue.Copy(),
		revision:    h.revision,
		time:        h.time,
		indexedUpTo: h.revision,
		next:        h.nextNumber,
		hash:        h.hash,
	}
	b.beginRound()
	return b
}

func (b *bulk) beginRound() {
	b.s.options.bulkStep("round")
	b.base = b.s.newKV(b.revision)
	b.unused, b.empty = b.next, b.next == 1
	b.terms, b.seen = bulkindex.NewTermTable(), bulkindex.NewQuadSet()
	clear(b.termCache[:])
	b.index = bulkindex.NewBulkIndex(b.s.bulkIndexOptions(), b.revision+1, b.next)
	b.textBytes = 0
	b.markFlushed()
}

func (s *Store) bulkIndexOptions() bulkindex.BulkIndexOptions {
	return bulkindex.BulkIndexOptions{
		DB: s.db, Dir: s.dir.Path, SortBytes: s.options.bulkSortBytes,
		Chunk: s.options.bulkChunk, ChunkText: bulkChunkText, Step: s.options.bulkStep,
	}
}

// closeRound ends a round, except for its index.
func (b *bulk) closeRound() {
	b.base.Close()
	b.terms.Free()
	b.seen.Free()
}

// isFull reports whether the round has reached its bounds or can no longer write to disk.
func (b *bulk) isFull() bool {
	return b.index.Failed != nil || b.terms.Bytes+b.seen.Bytes() >= b.s.options.bulkTableBytes
}

// addQuads adds a batch, in one commit if it fits, and returns the number of statements
// changed. After an error nothing of the failed commit remains, and nothing may be added.
func (b *bulk) addQuads(quads []Quad) (n uint64, err error) {
	if slices.ContainsFunc(quads, func(q Quad) bool { return IsOwnGraph(q.Graph) }) {
		return 0, errNotInBulk
	}
	for len(quads) > 0 {
		size, next, text, made := b.index.Size(), b.next, b.textBytes, b.totals
		read, changed, err := b.commitQuads(quads)
		if err != nil {
			if b.index.Size().Quads >= size.Quads { // else resetToMark went further back
				b.index.Truncate(size)
				b.deltas.Clear()
				b.next, b.textBytes, b.totals = next, text, made
			}
			return n, err
		}
		quads = quads[read:]
		n += changed
	}
	return n, nil
}

// commitQuads makes a commit of quads and returns how many it contains. It leaves some for the
// next commit if the earlier assertions of their statements fill the log entry.
func (b *bulk) commitQuads(quads []Quad) (read int, changed uint64, err error) {
	now := b.s.options.Clock().UTC().Truncate(time.Millisecond)
	if now.Before(b.time) {
		now = b.time
	}
	c := b.newCommit(now)
	made := Assertion{Source: b.meta.Actor, Time: now, Revision: c.Revision}
	after := []Assertion{made}
	c.Changes = make([]Change, 0, len(quads))
	var last Quad // with its ids: the next quad mostly shares terms with it
	var ids IDQuad
	for before := 0; read < len(quads) && before < b.s.options.loadCommitBytes; read++ {
		q := quads[read]
		if ids, err = b.assignIDs(&q, &last, ids); err != nil {
			return 0, 0, err
		}
		last = q
		if fresh, err := b.seen.Add(&ids); err != nil {
			return 0, 0, err
		} else if !fresh {
			continue
		}
		change := Change{Op: Add, Quad: q, Assertion: made, After: after, ReplacedBy: -1}
		changes, err := b.applyChange(&change, ids)
		if err != nil {
			return 0, 0, err
		}
		if changes {
			c.Changes = append(c.Changes, change)
			before += assertionBytes(change.Before)
		}
	}
	b.totals.read += uint64(read)
	if len(c.Changes) == 0 {
		return read, 0, nil
	}
	if b.options.Place != nil {
		c.MessageID = b.options.Place(b.totals.read)
	}
	if err := b.indexCommit(c, after); err != nil {
		return 0, 0, err
	}
	return read, uint64(len(c.Changes)), b.logCommit(c)
}

// indexCommit adds the keys of a commit as a whole to the index, after its changes: the state of
// its new statements, and the counts.
func (b *bulk) indexCommit(c *Commit, after []Assertion) error {
	value, err := b.encodeState(base.State{Since: c.Revision, Assertions: after})
	if err != nil {
		return err
	}
	b.index.Values = append(b.index.Values, value)
	b.catalogue.Add(b.deltas, c.Revision, func(string, index.Tally) {})
	b.deltas.Clear()
	b.revision, b.time = c.Revision, c.Time
	return nil
}

// assertionBytes estimates the size of assertions in a log entry.
func assertionBytes(list []Assertion) (n int) {
	const perAssertion = 64
	for i := range list {
		n += perAssertion + len(list[i].Source) + list[i].ContentBytes()
	}
	return n
}

func (b *bulk) newCommit(now time.Time) *Commit {
	return &Commit{
		Revision: b.revision + 1, Time: now, Principal: b.meta.Principal.ID, Actor: b.meta.Actor,
		Justification: b.meta.Justification, TaskID: b.meta.TaskID, SessionID: b.meta.SessionID, MessageID: b.meta.MessageID,
	}
}

// applyChange adds a change and reports whether it has an effect.
func (b *bulk) applyChange(c *Change, ids IDQuad) (bool, error) {
	row := bulkindex.BulkQuad{IDs: ids, Commit: uint32(len(b.index.Values))}
	before, err := b.stateBefore(&ids)
	if err != nil {
		return false, err
	}
	old, had := base.FindSource(before.Assertions, c.Assertion.Source)
	if len(before.Assertions) > 0 {
		if had && old.SameContent(c.Assertion) {
			return false, nil
		}
		if !had && len(before.Assertions) >= MaxAssertions {
			return false, Errorf(CodeLimitExceeded, "a statement has at most %d sources", MaxAssertions)
		}
		c.Before, c.Since, c.After = before.Assertions, before.Since, base.WithAssertion(before.Assertions, c.Assertion)
		if err := b.updateExisting(c, ids); err != nil {
			return false, err
		}
		row.Commit |= bulkindex.BulkStood
	} else {
		b.deltas.CountStatement(&c.Quad, ids, 1)
		b.index.AddUse(&c.Quad, ids)
	}
	if !had {
		source, err := b.termID(base.AgentTerm(c.Assertion.Source))
		if err != nil {
			return false, err
		}
		b.countSource(source)
	}
	b.index.Chunk.Quads = append(b.index.Chunk.Quads, row)
	return true, nil
}

// countSource counts a statement of a source.
func (b *bulk) countSource(id ID) {
	if b.source != id {
		b.source, b.sourceKey = id, keys.Source(id.Number())
	}
	b.deltas.Add(b.sourceKey, 1)
}

// stateBefore returns the state of a statement before the round.
func (b *bulk) stateBefore(ids *IDQuad) (s base.State, err error) {
	if b.empty {
		return s, nil
	}
	for _, id := range [...]*ID{&ids.Subject, &ids.Predicate, &ids.Object, &ids.Graph} {
		if id.IsNumbered() && id.Number() >= b.unused {
			return s, nil
		}
	}
	_, err = b.base.Get(keys.SPOG.Append(nil, *ids), func(v []byte) (err error) {
		s, err = base.ParseState(v, b.s.dictionary(b.base).Agent)
		return err
	})
	b.s.head.Load().generations.SettleState(&s, ids.Graph)
	return s, err
}

// updateExisting writes the new state of an existing statement, and the old one to the past
// (index.IndexWriter).
func (b *bulk) updateExisting(c *Change, ids IDQuad) error {
	value, err := b.encodeState(base.State{Since: c.Assertion.Revision, Assertions: c.After})
	if err != nil {
		return err
	}
	b.index.Chunk.AddPair(keys.SPOG.Append(nil, ids), value)
	if from, to := c.Since, c.Assertion.Revision; to > b.s.oldestReadable() {
		if value, err = b.encodeState(base.State{Since: from, Assertions: c.Before}); err != nil {
			return err
		}
		for _, o := range keys.Orders {
			if o.Holds(ids) {
				b.index.Chunk.AddPair(o.AppendPast(nil, ids, uint64(from), uint64(to)), value)
				value = index.NoValue // only SPOG has one
			}
		}
	}
	return nil
}

func (b *bulk) encodeState(s base.State) (value []byte, err error) {
	value = base.AppendState(nil, s, func(a AgentID) uint64 {
		id, failed := b.termID(base.AgentTerm(a))
		err = errors.Join(err, failed)
		return id.Number()
	})
	return value, err
}

// assignIDs returns the ids of a quad. It reuses those of the quad before, and checks new
// terms.
func (b *bulk) assignIDs(q, last *Quad, ids IDQuad) (IDQuad, error) {
	if !q.Subject.IsResource() || q.Predicate.Kind() != KindIRI || !q.Object.IsResource() && !q.Object.IsLiteral() {
		return ids, q.Valid(Term.ValidNew)
	}
	old := base.QuadParts(last, &ids)
	for i, part := range base.QuadParts(q, &ids) {
		if *part.Term == *old[i].Term {
			continue
		}
		lookUp := b.termID
		if part.ID == &ids.Graph {
			lookUp = b.graphID
		}
		id, err := lookUp(*part.Term)
		if err != nil {
			if invalid := q.Valid(func(t Term) error { return b.checkTerm(&t) }); invalid != nil {
				return ids, invalid
			}
			return ids, err
		}
		*part.ID = id
	}
	return ids, nil
}

// termID returns the id of a term. A new term gets the next number.
func (b *bulk) termID(t Term) (ID, error) {
	if id, ok := base.InlineID(t); ok {
		return id, b.checkTerm(&t)
	}
	late := b.cacheSlot(&t)
	if late != nil && late.Term == t {
		return late.ID, nil
	}
	b.record = base.AppendTerm(b.record[:0], t)
	place, key, id, err := b.terms.Find(b.record)
	if err != nil {
		return ID{}, err
	}
	if id.IsZero() {
		if id, err = b.termNumber(t); err != nil {
			return ID{}, err
		}
		b.terms.Set(place, key, id)
	}
	if late != nil {
		*late = index.Resolved{Term: t, ID: id}
	}
	return id, nil
}

// cacheSlot returns the slot of the term cache for a term, nil for none.
func (b *bulk) cacheSlot(t *Term) *index.Resolved {
	n := len(t.Value())
	if n < 4 || n > index.MaxCachedTerm {
		return nil
	}
	at := uint64(n)<<32 | uint64(t.Value()[n-1])<<24 | uint64(t.Value()[n-2])<<16 | uint64(t.Value()[n-3])<<8 | uint64(t.Value()[n/2])
	return &b.termCache[bulkindex.Mix(at)%uint64(len(b.termCache))]
}

// termNumber returns the number of a term in the store, or assigns the next one.
func (b *bulk) termNumber(t Term) (ID, error) {
	if err := b.checkTerm(&t); err != nil {
		return ID{}, err
	}
	if !b.empty {
		id, known, err := b.dictionary().ID(t)
		// A number from b.unused on is left over from an interrupted apply: the log assigns
		// the same number again.
		if err != nil || known && (!id.IsNumbered() || id.Number() < b.unused) {
			return id, err
		}
	}
	id := keys.Numbered(base.TagOf(t), b.next)
	b.next++
	b.index.AddTerm(t, b.record)
	b.textBytes += t.TextBytes()
	return id, nil
}

func (b *bulk) checkTerm(t *Term) error {
	if b.replays {
		return nil
	}
	if err := t.LiteralWithin(b.s.options.LiteralBytes); err != nil {
		return err
	}
	return t.ValidNew()
}

// dictionary returns the dictionary as it was before the round.
func (b *bulk) dictionary() index.Dictionary {
	d := b.s.dictionary(b.base)
	d.FirstUnseen = b.unused
	return d
}

// graphID returns the id of a graph after checking that the caller may write to it.
func (b *bulk) graphID(t Term) (ID, error) {
	if id, ok := b.graphs[t]; ok {
		return id, nil
	}
	tx := &Tx{
		meta: b.meta, access: b.s.options.Access, catalog: b.s.head.Load().catalogue,
		w: &index.IndexWriter{Dictionary: b.dictionary()},
	}
	if err := tx.mayWrite(t); err != nil {
		return ID{}, err
	}
	if !t.NamesGraph() {
		return ID{}, base.ErrNamesNoGraph()
	}
	id, err := b.termID(t)
	if err == nil {
		generations := b.s.head.Load().generations
		if generations != nil && generations.Writing[id] != nil {
			return ID{}, errBeingReplaced(t)
		}
		id = generations.CurrentID(id)
		if len(b.graphs) >= maxBulkGraphs {
			clear(b.graphs)
		}
		if len(t.Value()) <= index.MaxCachedTerm {
			b.graphs[t] = id
		}
	}
	return id, err
}

// logCommit starts to prepare the commit's entry, and appends the pending entries once they
// are enough for an fsync.
func (b *bulk) logCommit(c *Commit) error {
	b.pending = append(b.pending, prepareEntry(c))
	b.totals.commits++
	b.totals.statements += uint64(len(c.Changes))
	if len(b.pending) < bulkGroup {
		return nil
	}
	return b.appendEntries()
}

// preparedEntry is a log entry that is ready to be appended.
type preparedEntry struct {
	frame wal.Prepared
	err   error
}

// prepareEntry encodes and compresses a commit concurrently with the loader.
func prepareEntry(c *Commit) <-chan preparedEntry {
	done := make(chan preparedEntry, 1)
	go func() {
		frame, err := wal.Prepare(logentry.AppendEntry(nil, c))
		done <- preparedEntry{frame, err}
	}()
	return done
}

// preparedFrames waits for the pending entries.
func (b *bulk) preparedFrames() (frames []wal.Prepared, err error) {
	for _, p := range b.pending {
		e := <-p
		frames = append(frames, e.frame)
		err = errors.Join(err, e.err)
	}
	b.pending = nil
	return frames, err
}

func (b *bulk) appendEntries() error {
	if len(b.pending) == 0 {
		return nil
	}
	first := b.revision - Revision(len(b.pending)) + 1
	frames, err := b.preparedFrames()
	if err != nil { // the log has none of them
		b.resetToMark()
		return errCommitTooLarge()
	}
	if full := b.s.writableWith(b.indexBytes()); full != nil {
		b.resetToMark()
		return full
	}
	b.s.options.bulkStep("append")
	err = b.s.wal.AppendPrepared(uint64(first), frames)
	if lost := b.s.notAppended(err); lost != nil {
		b.resetToMark()
		return lost
	}
	if err != nil {
		b.s.setReadOnly(errReadOnly(writeFailure, err))
		return &Error{Code: CodeOutcomeUnknown, Message: "the store failed while it loaded: open it again to see how much of it is there", Err: err}
	}
	b.hash = b.s.wal.LastHash()
	b.index.SpillIfFull()
	b.markFlushed()
	return nil
}

// nextRound writes the index and begins another round.
func (b *bulk) nextRound() error {
	if err := b.appendEntries(); err != nil {
		return err
	}
	b.closeRound()
	if err := b.publishIndex(); err != nil {
		return err
	}
	b.beginRound()
	return nil
}

// finishLoad appends the pending entries, writes the index and makes it visible. cause is the
// error that ends the load, nil at its regular end. Earlier commits stay in both cases: they
// are in the log, and so the index must have them.
func (b *bulk) finishLoad(l *load, cause error) error {
	var err error
	if !b.ended && b.s.refused.Load() == nil {
		err = b.appendEntries()
	}
	b.closeRound()
	l.report = LoadReport{Read: b.totals.read, Statements: b.totals.statements, Commits: b.totals.commits, Bulk: b.totals.commits > 0}
	if !b.ended && b.s.refused.Load() == nil {
		err = errors.Join(err, b.publishIndex())
	}
	return errors.Join(cause, err)
}

// publishIndex writes the logged part of the load to the index and makes it visible.
func (b *bulk) publishIndex() error {
	err := b.writeRound()
	b.ended = err != nil
	switch {
	case datadir.IsNoSpace(err):
		b.s.log.Warn("the volume is too full for the index of a load: it is written once there is space", "error", err)
		b.triedAt = time.Now()
		b.s.unindexed.Store(b)
		return errUnindexed()
	case err != nil:
		b.index.Close()
		return b.failWith(err)
	}
	b.index.Close()
	return nil
}

// writeRound writes the index and makes it visible. It may be repeated after an error.
func (b *bulk) writeRound() error {
	if b.indexedUpTo == b.revision {
		return nil
	}
	h := &head{b.revision, b.time, b.catalogue, b.s.head.Load().generations, b.next, b.hash}
	err := b.index.Write(b.catalogue, b.s.markerOf(h), b.options.Indexing)
	if b.index.Failed != nil && !b.replays {
		return b.writeFromLog(err)
	}
	if err != nil {
		return err
	}
	b.indexedUpTo = b.revision
	b.s.options.bulkStep("show")
	b.s.apply(applied{head: h})
	if !b.replays {
		b.s.tailer.notify()
	}
	return nil
}

// writeFromLog does the work of writeRound from the log, after the sorted runs could not be
// written. It skips the commits that an earlier attempt made visible.
func (b *bulk) writeFromLog(cause error) error {
	b.s.log.Warn("the sorted runs of a load could not be written: its index is built from the log", "error", cause)
	if from := b.s.head.Load().revision + 1; from <= b.revision {
		if err := b.s.replayLog(from, b.revision); err != nil {
			return err
		}
	}
	b.indexedUpTo = b.revision
	b.s.tailer.notify()
	return nil
}

// errUnindexed is the error of updates while the index of a logged load does not fit on the
// volume.
func errUnindexed() *Error {
	e := Errorf(CodeDiskFull, "the volume of the data directory is too full for the index of a load, which is in the log")
	e.Hint = "free disk space; the index is then written without a restart"
	e.RetryAfter = flushRetry
	return e
}

// retryLoadIndex tries again to write the index of a load that did not fit on the volume. Only the
// committer calls it.
func (s *Store) retryLoadIndex() {
	b := s.unindexed.Load()
	if b == nil || s.refused.Load() != nil || time.Since(b.triedAt) < flushRetry {
		return
	}
	b.triedAt = time.Now()
	if free, err := s.options.FreeBytes(s.dir.Path); err == nil && free < b.indexBytes() {
		return
	}
	// Memory goes to disk first: a flush that ended later would set the head back to the
	// revision at which it began.
	if s.flushAll(); s.layers.stuck || s.layers.frozen != nil || s.layers.mem.Len() > 0 {
		return
	}
	err := b.writeRound()
	if datadir.IsNoSpace(err) {
		return
	}
	if err != nil {
		_ = b.failWith(err)
	} else {
		s.log.Warn("the index of a load was written after space was freed")
	}
	b.index.Close()
	s.unindexed.Store(nil)
}

func (b *bulk) failWith(err error) error {
	b.s.setReadOnly(errReadOnly("the index could not be written; reopening the store rebuilds it from the log", err))
	return &Error{Code: CodeOutcomeUnknown, Message: "the load is in the log, and the index could not be written", Hint: "open the store again", Err: err}
}

// replayBulkFrom is the number of changes from which a replay applies a commit of additions in
// bulk. Commits of loads are that large.
const replayBulkFrom = 2 * onlineCommitQuads

// isLoadCommit reports whether a commit only adds statements without earlier assertions, as most
// commits of loads do.
func isLoadCommit(c *Commit) bool {
	return len(c.Changes) >= replayBulkFrom && c.IdempotencyKey == "" && c.Written == nil && c.Replaced == nil && !slices.ContainsFunc(c.Changes, func(ch Change) bool {
		a := &ch.Assertion
		return ch.Op != Add || len(ch.Before) > 0 || len(ch.Replaces) > 0 || IsOwnGraph(ch.Quad.Graph) ||
			!a.IsPlain() || a.Revision != c.Revision || a.Source != c.Changes[0].Assertion.Source || !a.Time.Equal(c.Changes[0].Assertion.Time)
	})
}

// replayInBulk applies a commit in bulk and reports whether it could. Everything replayed
// before is in the index then.
func (r *replayer) replayInBulk(c *Commit) (bool, error) {
	s := r.s
	if s.readsInPlace() || r.full || r.ordinary || !s.counted || !isLoadCommit(c) {
		return false, r.endBulk()
	}
	if r.bulk == nil {
		if err := r.flush(); err != nil || r.full {
			return false, err
		}
		r.bulk = newBulk(s, Meta{}, LoadOptions{})
		r.bulk.replays = true
	}
	err := r.bulk.replayCommit(c)
	if err == nil && r.bulk.isFull() {
		err = r.endBulk()
	}
	return true, err
}

// endBulk writes the bulk part of the replay to the index.
func (r *replayer) endBulk() error {
	b := r.bulk
	if b == nil {
		return nil
	}
	r.bulk = nil
	b.closeRound()
	defer b.index.Close()
	var err error
	if b.hash, err = r.s.wal.Hash(uint64(b.revision)); err == nil {
		err = b.writeRound()
	}
	if err == nil {
		r.reset()
	}
	return err
}

// reset begins again on top of the index.
func (r *replayer) reset() {
	r.base.Close()
	next := r.s.newReplay()
	next.keeps, next.ordinary = r.keeps, r.ordinary
	*r = *next
}

// giveUpBulk discards the bulk part that is not in the index.
func (r *replayer) giveUpBulk() {
	if r.bulk != nil {
		r.bulk.closeRound()
		r.bulk.index.Close()
		r.bulk = nil
	}
}

// replayCommit adds a commit of the log.
func (b *bulk) replayCommit(c *Commit) error {
	for i := range c.Changes {
		ch := &c.Changes[i]
		row := bulkindex.BulkQuad{Commit: uint32(len(b.index.Values))}
		for _, part := range base.QuadParts(&ch.Quad, &row.IDs) {
			id, err := b.termID(*part.Term)
			if err != nil {
				return err
			}
			*part.ID = id
		}
		row.IDs.Graph = b.s.head.Load().generations.CurrentID(row.IDs.Graph)
		source, err := b.termID(base.AgentTerm(ch.Assertion.Source))
		if err != nil {
			return err
		}
		b.index.Chunk.Quads = append(b.index.Chunk.Quads, row)
		b.deltas.CountStatement(&ch.Quad, row.IDs, 1)
		b.index.AddUse(&ch.Quad, row.IDs)
		b.countSource(source)
	}
	if err := b.indexCommit(c, c.Changes[0].After); err != nil {
		return err
	}
	b.index.SpillIfFull()
	return nil
}
