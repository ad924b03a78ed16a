package kg

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"koine/internal/extsort"
	"koine/kg/internal/keys"
)

// bulkIndex gathers what becomes keys of the index: statements and terms in memory, and
// beyond a chunk of them in sorted runs on disk. It then writes all of it as whole tables
// beside those of the index (badger.Ingest), in one step. What it writes stands for
// revisions after the index's; its memory does not grow with the statements.
type bulkIndex struct {
	o       bulkIndexOptions
	values  [][]byte // of SPOG, one for each commit: its statements have the same
	first   Revision // of the values
	number  uint64   // of the first term
	kinds   map[string]struct{}
	chunk   bulkPart
	runs    [len(keys.Orders)][]*extsort.Run
	numbers []*extsort.Run  // of terms by their numbers, one after the other
	terms   *extsort.Sorter // of terms by their keys
	pairs   *extsort.Sorter // of other keys with their values
	rows    uint64          // of the runs and the chunk

	sealed   bool       // nothing more is gathered
	spare    bulkPart   // whose memory the next chunk takes
	spilling chan error // a chunk is on its way to disk; nil for none
	failed   error      // of a chunk: not all that was gathered is there
}

// bulkPart is what is not on disk yet.
type bulkPart struct {
	quads []bulkQuad
	terms bulkTerms
	pairs []keyValue

	pairBytes int // of keys and values
}

func (c *bulkPart) pair(key, value []byte) {
	c.pairs = append(c.pairs, keyValue{key, value})
	c.pairBytes += len(key) + len(value)
}

// bulkQuad is a statement with its commit. Of one that stood before (bulkStood) the value
// is among the pairs.
type bulkQuad struct {
	ids    IDQuad
	commit uint32
}

const bulkStood = 1 << 31

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

// bulkIndexOptions says where a bulkIndex writes, and its bounds.
type bulkIndexOptions struct {
	db        *badger.DB
	dir       string            // of the sorted runs
	sortBytes int               // memory of a sorter; 0 is extsort.DefaultBytes
	chunk     int               // statements in memory before they go to disk
	chunkText int               // bytes of text in memory before they go to disk
	step      func(name string) // is called before each step; for tests
}

func newBulkIndex(o bulkIndexOptions, first Revision, number uint64) *bulkIndex {
	sorting := extsort.Options{Dir: o.dir, Bytes: o.sortBytes}
	return &bulkIndex{
		o: o, first: first, number: number,
		kinds: make(map[string]struct{}),
		chunk: bulkPart{terms: bulkTerms{first: number}},
		terms: extsort.New(context.Background(), sorting),
		pairs: extsort.New(context.Background(), sorting),
	}
}

// close lets memory and files go.
func (b *bulkIndex) close() {
	_ = b.await()
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

// term takes in a term with the next number.
func (b *bulkIndex) term(t Term, record []byte) {
	b.chunk.terms.add(record)
	if t.of != "" {
		if _, known := b.kinds[t.of]; !known {
			b.kinds[t.of] = struct{}{}
		}
	}
}

// size tells how much of the chunk there is, to go back to.
func (b *bulkIndex) size() bulkSize {
	return bulkSize{len(b.chunk.quads), len(b.chunk.terms.ends), len(b.chunk.pairs), len(b.values)}
}

type bulkSize struct{ quads, terms, pairs, values int }

// truncate goes back to an earlier size of the same chunk.
func (b *bulkIndex) truncate(to bulkSize) {
	c := &b.chunk
	for _, p := range c.pairs[to.pairs:] {
		c.pairBytes -= len(p.key) + len(p.value)
	}
	c.quads, c.pairs, b.values = c.quads[:to.quads], c.pairs[:to.pairs], b.values[:to.values]
	c.terms.ends = c.terms.ends[:to.terms]
	end := 0
	if to.terms > 0 {
		end = c.terms.ends[to.terms-1]
	}
	c.terms.text = c.terms.text[:end]
}

// spillIfFull sends a full chunk to disk, beside everything else. Nothing of it is taken
// back any more.
func (b *bulkIndex) spillIfFull() {
	c := &b.chunk
	if len(c.quads) < b.o.chunk && len(c.terms.text)+c.pairBytes < b.o.chunkText && len(c.pairs) < b.o.chunk {
		return
	}
	if err := b.await(); err != nil {
		return // nothing more is gathered: bulk.full
	}
	full := b.chunk
	b.rows += uint64(len(full.quads))
	b.chunk = b.spare
	b.chunk.terms.first = full.terms.first + uint64(len(full.terms.ends))
	b.spilling = make(chan error, 1)
	go func() {
		err := b.spill(&full)
		b.spare = full.empty()
		b.spilling <- err
	}()
}

// empty is the chunk without what it has, in the same memory.
func (c *bulkPart) empty() bulkPart {
	clear(c.pairs)
	return bulkPart{quads: c.quads[:0], terms: bulkTerms{text: c.terms.text[:0], ends: c.terms.ends[:0]}, pairs: c.pairs[:0]}
}

// await waits for the chunk that is on its way to disk.
func (b *bulkIndex) await() error {
	if b.spilling != nil {
		b.failed = errors.Join(b.failed, <-b.spilling)
		b.spilling = nil
	}
	return b.failed
}

func (b *bulkIndex) spill(c *bulkPart) error {
	b.o.step("spill")
	var rows []bulkRow
	for i, o := range keys.Orders {
		rows = c.sorted(o, rows)
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
	return b.sort(c)
}

func (b *bulkIndex) newRun(write func(add func([]byte) error) error) (*extsort.Run, error) {
	w, err := extsort.NewRun(b.o.dir)
	if err != nil {
		return nil, err
	}
	if err := write(w.Add); err != nil {
		return nil, errors.Join(err, w.Abandon())
	}
	return w.Finish()
}

// sort hands the chunk's terms and pairs to the sorters.
func (b *bulkIndex) sort(c *bulkPart) error {
	var row []byte
	for number, record := range c.terms.all() {
		key, _ := keys.Term(record, hash16)
		row = binary.AppendUvarint(appendEscaped(row[:0], key), number)
		if err := b.terms.Add(row); err != nil {
			return err
		}
	}
	for _, p := range c.pairs {
		row = append(appendEscaped(row[:0], p.key), p.value...)
		if err := b.pairs.Add(row); err != nil {
			return err
		}
	}
	return nil
}

// bulkRow is a statement in one order: its key without the prefix, and its commit.
type bulkRow [keys.QuadKeySize - 1 + 4]byte

// sorted gives the rows of an order, where others were that are not needed any more.
func (c *bulkPart) sorted(o keys.Order, room []bulkRow) []bulkRow {
	rows := room[:0]
	if cap(rows) < len(c.quads) {
		rows = make([]bulkRow, 0, len(c.quads))
	}
	var key [keys.QuadKeySize]byte
	for i := range c.quads {
		q := &c.quads[i]
		if !o.Holds(q.ids) {
			continue
		}
		var row bulkRow
		copy(row[:], o.Append(key[:0], q.ids)[1:])
		binary.BigEndian.PutUint32(row[len(row)-4:], q.commit)
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

// seal ends the gathering.
func (b *bulkIndex) seal() error {
	if err := b.await(); err != nil || b.sealed {
		return err
	}
	b.sealed = true
	b.failed = b.sort(&b.chunk)
	b.chunk.pairs = nil
	return b.failed
}

// statements is how many rows each order has at the most.
func (b *bulkIndex) statements() uint64 { return b.rows + uint64(len(b.chunk.quads)) }

// write writes the index: all that was gathered, the counts of the catalogue that are new,
// and the marker. After an error nothing of it is there, and it may be tried again; only
// where the index's tables contradict each other (badger.Ingest.Commit), it may be there.
func (b *bulkIndex) write(cat *catalogue, m marker, progress func(done, of uint64)) error {
	if err := b.seal(); err != nil {
		return err
	}
	const orders = uint64(len(keys.Orders) - 1) // hardly anything is in the last
	w := &bulkWriter{b: b, in: b.o.db.NewIngest(), version: uint64(m.revision), of: orders*b.statements() + 2*(m.nextNumber-b.number), progress: progress}
	next, stop := iter.Pull2(b.pairs.Sorted())
	defer stop()
	w.pairs = next
	b.o.step("write")
	if err := w.all(cat, m); err != nil {
		for _, out := range w.writers {
			out.Abandon()
		}
		w.in.Cancel()
		return err
	}
	b.o.step("ingest")
	return w.in.Commit()
}
