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
	"koine/kg/internal/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// BulkIndex gathers what becomes keys of the index: statements and terms in memory, and
// beyond a chunk of them in sorted runs on disk. It then writes all of it as whole tables
// beside those of the index (badger.Ingest), in one step. What it writes stands for
// revisions after the index's; its memory does not grow with the statements.
type BulkIndex struct {
	o       BulkIndexOptions
	Values  [][]byte      // of SPOG, one for each commit: its statements have the same
	first   base.Revision // of the values
	number  uint64        // of the first term
	kinds   map[string]struct{}
	Chunk   chunk
	runs    [len(keys.Orders)][]*extsort.Run
	numbers []*extsort.Run  // of terms by their numbers, one after the other
	terms   *extsort.Sorter // of terms by their keys
	pairs   *extsort.Sorter // of other keys with their values
	rows    uint64          // of the runs and the chunk

	sealed   bool       // nothing more is gathered
	Spare    chunk      // whose memory the next chunk takes
	Spilling chan error // a chunk is on its way to disk; nil for none
	Failed   error      // of a chunk: not all that was gathered is there
}

// chunk is what is not on disk yet.
type chunk struct {
	Quads []BulkQuad
	terms bulkTerms
	pairs []KeyValue

	PairBytes int // of keys and values
}

func (c *chunk) AddPair(key, value []byte) {
	c.pairs = append(c.pairs, KeyValue{key, value})
	c.PairBytes += len(key) + len(value)
}

// BulkQuad is a statement with its commit. Of one that stood before (bulkStood) the value
// is among the pairs.
type BulkQuad struct {
	IDs    base.IDQuad
	Commit uint32
}

const BulkStood = 1 << 31

// bulkTerms are records of terms with consecutive numbers.
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

// BulkIndexOptions says where a bulkIndex writes, and its bounds.
type BulkIndexOptions struct {
	DB        *badger.DB
	Dir       string            // of the sorted runs
	SortBytes int               // memory of a sorter; 0 is extsort.DefaultBytes
	Chunk     int               // statements in memory before they go to disk
	ChunkText int               // bytes of text in memory before they go to disk
	Step      func(name string) // is called before each step; for tests
}

func NewBulkIndex(o BulkIndexOptions, first base.Revision, number uint64) *BulkIndex {
	sorting := extsort.Options{Dir: o.Dir, Bytes: o.SortBytes}
	return &BulkIndex{
		o: o, first: first, number: number,
		kinds: make(map[string]struct{}),
		Chunk: chunk{terms: bulkTerms{first: number}},
		terms: extsort.New(context.Background(), sorting),
		pairs: extsort.New(context.Background(), sorting),
	}
}

// Close lets memory and files go.
func (b *BulkIndex) Close() {
	_ = b.Await()
	for i := range b.runs {
		for _, r := range b.runs[i] {
			_ = r.Close() // it has no name any more
		}
	}
	for _, r := range b.numbers {
		_ = r.Close()
	}
	_, _ = b.terms.Close(), b.pairs.Close()
}

// AddTerm takes in a term with the next number.
func (b *BulkIndex) AddTerm(t base.Term, record []byte) {
	b.Chunk.terms.add(record)
	if t.LiteralKind() != "" {
		if _, known := b.kinds[t.LiteralKind()]; !known {
			b.kinds[t.LiteralKind()] = struct{}{}
		}
	}
}

// Size tells how much of the chunk there is, to go back to.
func (b *BulkIndex) Size() BulkSize {
	return BulkSize{len(b.Chunk.Quads), len(b.Chunk.terms.ends), len(b.Chunk.pairs), len(b.Values)}
}

type BulkSize struct{ Quads, terms, pairs, values int }

// Truncate goes back to an earlier size of the same chunk.
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

// SpillIfFull sends a full chunk to disk, beside everything else. Nothing of it is taken
// back any more.
func (b *BulkIndex) SpillIfFull() {
	c := &b.Chunk
	if len(c.Quads) < b.o.Chunk && len(c.terms.text)+c.PairBytes < b.o.ChunkText && len(c.pairs) < b.o.Chunk {
		return
	}
	if err := b.Await(); err != nil {
		return // nothing more is gathered: bulk.full
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

// emptied is the chunk without what it has, in the same memory.
func (c *chunk) emptied() chunk {
	clear(c.pairs)
	return chunk{Quads: c.Quads[:0], terms: bulkTerms{text: c.terms.text[:0], ends: c.terms.ends[:0]}, pairs: c.pairs[:0]}
}

// Await waits for the chunk that is on its way to disk.
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

// addToSorters hands the chunk's terms and pairs to the sorters.
func (b *BulkIndex) addToSorters(c *chunk) error {
	var row []byte
	for number, record := range c.terms.all() {
		key, _ := keys.Term(record, base.Hash16)
		row = binary.AppendUvarint(appendEscaped(row[:0], key), number)
		if err := b.terms.Add(row); err != nil {
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

// bulkRow is a statement in one order: its key without the prefix, and its commit.
type bulkRow [keys.QuadKeySize - 1 + 4]byte

// sortRows gives the rows of an order, where others were that are not needed any more.
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

// appendEscaped appends a key so that what is appended afterwards does not change where
// it sorts.
func appendEscaped(dst, key []byte) []byte {
	for _, c := range key {
		if dst = append(dst, c); c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 0)
}

// cutEscaped appends to key what appendEscaped wrote, and gives what follows it.
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

// sealChunks ends the gathering.
func (b *BulkIndex) sealChunks() error {
	if err := b.Await(); err != nil || b.sealed {
		return err
	}
	b.sealed = true
	b.Failed = b.addToSorters(&b.Chunk)
	b.Chunk.pairs = nil
	return b.Failed
}

// Statements is how many rows each order has at the most.
func (b *BulkIndex) Statements() uint64 { return b.rows + uint64(len(b.Chunk.Quads)) }

// Write writes the index: all that was gathered, the counts of the catalogue that are new,
// and the marker. After an error nothing of it is there, and it may be tried again; only
// where the index's tables contradict each other (badger.Ingest.Commit), it may be there.
func (b *BulkIndex) Write(cat *index.Catalogue, m index.Marker, progress func(done, of uint64)) error {
	if err := b.sealChunks(); err != nil {
		return err
	}
	const orders = uint64(len(keys.Orders) - 1) // hardly anything is in the last
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
