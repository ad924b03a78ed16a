package bulkindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"koine/internal/extsort"
	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// BulkIndex collects the index keys of a bulk load. Statements and terms are gathered in
// memory chunks, which are sorted and spilled to disk. Write then adds all of them to
// Badger as whole tables in one step (badger.Ingest), with versions after the index's
// revision. The memory does not grow with the number of statements.
type BulkIndex struct {
	o       BulkIndexOptions
	Values  [][]byte      // in the SPOG order, one for each commit: its statements share it
	first   base.Revision // revision of Values[0]
	number  uint64        // number of the first term
	kinds   map[string]struct{}
	uses    map[index.LiteralUse]struct{}
	Chunk   chunk
	runs    [len(keys.Orders)][]*extsort.Run
	numbers []*extsort.Run  // terms by number, in sequence
	terms   *extsort.Sorter // terms by key
	pairs   *extsort.Sorter // other keys with their values
	rows    uint64          // statements in runs

	sealed   bool       // no more input
	Spare    chunk      // its memory is reused by the next chunk
	Spilling chan error // receives the result of the running spill; nil if none runs
	Failed   error      // error of a spill: the input is incomplete
}

// chunk is the input that is not on disk yet.
type chunk struct {
	Quads []BulkQuad
	terms bulkTerms
	pairs []KeyValue

	PairBytes int // of keys and values
}

// AddPair adds a key with its value and retains both.
func (c *chunk) AddPair(key, value []byte) {
	c.pairs = append(c.pairs, KeyValue{key, value})
	c.PairBytes += len(key) + len(value)
}

// BulkQuad is a statement with the index of its commit. If BulkStood is set, the statement
// existed before and its value is added as a pair.
type BulkQuad struct {
	IDs    base.IDQuad
	Commit uint32
}

// BulkStood is the flag in BulkQuad.Commit of a statement that existed before the load.
const BulkStood = 1 << 31

// bulkTerms are term records with consecutive numbers.
type bulkTerms struct {
	first uint64
	text  []byte
	ends  []int // of the records in the text
}

func (t *bulkTerms) add(record []byte) {
	t.text = append(t.text, record...)
	t.ends = append(t.ends, len(t.text))
}

func (t *bulkTerms) all() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		from := 0
		for i, end := range t.ends {
			if !yield(t.first+uint64(i), t.text[from:end]) {
				return
			}
			from = end
		}
	}
}

// BulkIndexOptions configures a BulkIndex.
type BulkIndexOptions struct {
	DB        *badger.DB
	Dir       string            // directory of the sorted runs
	SortBytes int               // memory of a sorter; 0 is extsort.DefaultBytes
	Chunk     int               // statements in memory before they go to disk
	ChunkText int               // bytes of text in memory before they go to disk
	Step      func(name string) // called before each step, for tests
}

// NewBulkIndex returns a BulkIndex for commits from revision first on and terms from
// number on.
func NewBulkIndex(o BulkIndexOptions, first base.Revision, number uint64) *BulkIndex {
	sorting := extsort.Options{Dir: o.Dir, Bytes: o.SortBytes}
	return &BulkIndex{
		o: o, first: first, number: number,
		kinds: make(map[string]struct{}), uses: make(map[index.LiteralUse]struct{}),
		Chunk: chunk{terms: bulkTerms{first: number}},
		terms: extsort.New(context.Background(), sorting),
		pairs: extsort.New(context.Background(), sorting),
	}
}

// Close waits for a running spill and removes the files.
func (b *BulkIndex) Close() {
	_ = b.Await()
	for i := range b.runs {
		for _, r := range b.runs[i] {
			_ = r.Close() // the file is already unlinked
		}
	}
	for _, r := range b.numbers {
		_ = r.Close()
	}
	_, _ = b.terms.Close(), b.pairs.Close()
}

// AddTerm adds a term, which gets the next number.
func (b *BulkIndex) AddTerm(t base.Term, record []byte) {
	b.Chunk.terms.add(record)
	if t.LiteralKind() != "" {
		if _, known := b.kinds[t.LiteralKind()]; !known {
			b.kinds[t.LiteralKind()] = struct{}{}
		}
	}
}

// AddUse records the use that a statement makes of its object.
func (b *BulkIndex) AddUse(q *base.Quad, ids base.IDQuad) {
	if use, ok := index.LiteralUseOf(q, ids); ok {
		b.uses[use] = struct{}{}
	}
}

// Size returns the size of the chunk, for Truncate.
func (b *BulkIndex) Size() BulkSize {
	return BulkSize{len(b.Chunk.Quads), len(b.Chunk.terms.ends), len(b.Chunk.pairs), len(b.Values)}
}

// BulkSize is the size of a chunk.
type BulkSize struct{ Quads, terms, pairs, values int }

// Truncate resets the chunk to an earlier size.
func (b *BulkIndex) Truncate(to BulkSize) {
	c := &b.Chunk
	for _, p := range c.pairs[to.pairs:] {
		c.PairBytes -= len(p.Key) + len(p.Value)
	}
	c.Quads, c.pairs, b.Values = c.Quads[:to.Quads], c.pairs[:to.pairs], b.Values[:to.values]
	c.terms.ends = c.terms.ends[:to.terms]
	end := 0
	if to.terms > 0 {
		end = c.terms.ends[to.terms-1]
	}
	c.terms.text = c.terms.text[:end]
}

// SpillIfFull starts to spill a full chunk in the background. Truncate cannot undo it.
func (b *BulkIndex) SpillIfFull() {
	c := &b.Chunk
	if len(c.Quads) < b.o.Chunk && len(c.terms.text)+c.PairBytes < b.o.ChunkText && len(c.pairs) < b.o.Chunk {
		return
	}
	if err := b.Await(); err != nil {
		return // the caller sees Failed and stops
	}
	full := b.Chunk
	b.rows += uint64(len(full.Quads))
	b.Chunk = b.Spare
	b.Chunk.terms.first = full.terms.first + uint64(len(full.terms.ends))
	b.Spilling = make(chan error, 1)
	go func() {
		err := b.spillChunk(&full)
		b.Spare = full.emptied()
		b.Spilling <- err
	}()
}

// emptied returns an empty chunk that reuses the memory.
func (c *chunk) emptied() chunk {
	clear(c.pairs)
	return chunk{Quads: c.Quads[:0], terms: bulkTerms{text: c.terms.text[:0], ends: c.terms.ends[:0]}, pairs: c.pairs[:0]}
}

// Await waits for a running spill and returns the first error of all spills.
func (b *BulkIndex) Await() error {
	if b.Spilling != nil {
		b.Failed = errors.Join(b.Failed, <-b.Spilling)
		b.Spilling = nil
	}
	return b.Failed
}

func (b *BulkIndex) spillChunk(c *chunk) error {
	b.o.Step("spill")
	var rows []bulkRow
	for i, o := range keys.Orders {
		rows = c.sortRows(o, rows)
		if len(rows) == 0 {
			continue
		}
		run, err := b.newRun(func(add func([]byte) error) error {
			for i := range rows {
				if err := add(rows[i][:]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.runs[i] = append(b.runs[i], run)
	}
	run, err := b.newRun(func(add func([]byte) error) error {
		var b []byte
		for number, record := range c.terms.all() {
			b = append(binary.BigEndian.AppendUint64(b[:0], number), record...)
			if err := add(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.numbers = append(b.numbers, run)
	return b.addToSorters(c)
}

func (b *BulkIndex) newRun(write func(add func([]byte) error) error) (*extsort.Run, error) {
	w, err := extsort.NewRun(b.o.Dir)
	if err != nil {
		return nil, err
	}
	if err := write(w.Add); err != nil {
		return nil, errors.Join(err, w.Abandon())
	}
	return w.Finish()
}

// addToSorters passes the chunk's terms and pairs to the sorters.
func (b *BulkIndex) addToSorters(c *chunk) error {
	var row []byte
	for number, record := range c.terms.all() {
		key, _ := keys.Term(record, base.Hash16)
		row = binary.AppendUvarint(appendEscaped(row[:0], key), number)
		if err := b.terms.Add(row); err != nil {
			return err
		}
		key, err := index.RankKeyOf(record, number)
		if err == nil && key != nil {
			err = b.pairs.Add(appendEscaped(row[:0], key))
		}
		if err != nil {
			return err
		}
	}
	for _, p := range c.pairs {
		row = append(appendEscaped(row[:0], p.Key), p.Value...)
		if err := b.pairs.Add(row); err != nil {
			return err
		}
	}
	return nil
}

// bulkRow is a statement in one order: its key without the prefix, and the index of its
// commit.
type bulkRow [keys.QuadKeySize - 1 + 4]byte

// sortRows returns the chunk's rows of an order, sorted. It reuses the memory of room.
func (c *chunk) sortRows(o keys.Order, room []bulkRow) []bulkRow {
	rows := room[:0]
	if cap(rows) < len(c.Quads) {
		rows = make([]bulkRow, 0, len(c.Quads))
	}
	var key [keys.QuadKeySize]byte
	for i := range c.Quads {
		q := &c.Quads[i]
		if !o.Holds(q.IDs) {
			continue
		}
		var row bulkRow
		copy(row[:], o.Append(key[:0], q.IDs)[1:])
		binary.BigEndian.PutUint32(row[len(row)-4:], q.Commit)
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b bulkRow) int { return bytes.Compare(a[:], b[:]) })
	return rows
}

// appendEscaped appends a key in an encoding whose order does not depend on the bytes that
// follow.
func appendEscaped(dst, key []byte) []byte {
	for _, c := range key {
		if dst = append(dst, c); c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 0)
}

// cutEscaped decodes a key of appendEscaped, appends it to key and returns the rest of
// row.
func cutEscaped(key, row []byte) (_, rest []byte, ok bool) {
	for i := 0; i < len(row); i++ {
		if row[i] != 0 {
			key = append(key, row[i])
			continue
		}
		if i++; i == len(row) {
			break
		}
		switch row[i] {
		case 0:
			return key, row[i+1:], true
		case 0xff:
			key = append(key, 0)
		default:
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// sealChunks ends the input and sorts the last chunk.
func (b *BulkIndex) sealChunks() error {
	if err := b.Await(); err != nil || b.sealed {
		return err
	}
	b.sealed = true
	b.Failed = b.addToSorters(&b.Chunk)
	b.Chunk.pairs = nil
	return b.Failed
}

// Statements returns an upper bound of the rows in each order.
func (b *BulkIndex) Statements() uint64 { return b.rows + uint64(len(b.Chunk.Quads)) }

// Write writes the index: the collected keys, the new counts of the catalogue, and the
// marker. After an error the index is unchanged and Write may be retried, unless its
// tables contradict each other (badger.Ingest.Commit).
func (b *BulkIndex) Write(cat *index.Catalogue, m index.Marker, progress func(done, of uint64)) error {
	if err := b.sealChunks(); err != nil {
		return err
	}
	const orders = uint64(len(keys.Orders) - 1) // the last order is nearly empty
	w := &bulkWriter{b: b, in: b.o.DB.NewIngest(), version: uint64(m.Revision), of: orders*b.Statements() + 2*(m.NextNumber-b.number), progress: progress}
	next, stop := iter.Pull2(b.pairs.Sorted())
	defer stop()
	w.pairs = next
	b.o.Step("write")
	if err := w.writeAll(cat, m); err != nil {
		for _, out := range w.writers {
			out.Abandon()
		}
		w.in.Cancel()
		return err
	}
	b.o.Step("ingest")
	return w.in.Commit()
}

// KeyValue is a key of the index with its value.
type KeyValue struct{ Key, Value []byte }
