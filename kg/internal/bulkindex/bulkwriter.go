package bulkindex

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"koine/internal/extsort"
	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// bulkWriter writes a BulkIndex once.
type bulkWriter struct {
	b        *BulkIndex
	in       *badger.Ingest
	writers  []*badger.IngestWriter
	version  uint64
	done, of uint64 // rows
	progress func(done, of uint64)

	pairs func() ([]byte, error, bool)
	pair  KeyValue // the next pair; its key is empty at the end
}

// writeAll writes the keys in the order of their prefixes. Last changes are written with
// the GSPO order, which yields them.
func (w *bulkWriter) writeAll(cat *index.Catalogue, m index.Marker) error {
	if err := w.nextPair(); err != nil {
		return err
	}
	if err := w.writeDictionary(m); err != nil {
		return err
	}
	rows := w.sortAhead()
	defer func() {
		for range rows.sorted { // drain after an error
			rows.room <- nil
		}
	}()
	counts := w.newWriter() // for last changes and counts
	for i, o := range keys.Orders {
		out := w.newWriter()
		var err error
		sorted := <-rows.sorted
		if o == keys.GSPO {
			err = w.writeLastChanges(i, sorted, out, counts)
		} else {
			err = w.writeOrder(i, sorted, out)
		}
		rows.room <- sorted
		if err == nil && i == len(keys.Orders)-1 {
			err = w.writePairsBefore(nil, out) // the past
		}
		if err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return w.writeCounts(cat, counts)
}

// errSortedRow is the error of a malformed row in a temporary file.
func errSortedRow() error {
	return fmt.Errorf("a temporary file of the load is damaged: %w", codec.ErrMalformed)
}

func (w *bulkWriter) newWriter() *badger.IngestWriter {
	out := w.in.NewWriter()
	w.writers = append(w.writers, out)
	return out
}

// nextPair moves to the next pair.
func (w *bulkWriter) nextPair() error {
	row, err, more := w.pairs()
	if !more || err != nil {
		w.pair = KeyValue{}
		return err
	}
	key, value, ok := cutEscaped(w.pair.Key[:0], row)
	if !ok {
		return errSortedRow()
	}
	w.pair = KeyValue{key, append(w.pair.Value[:0], value...)}
	return nil
}

// writePairsBefore writes the pairs up to a key, or all of them if it is nil.
func (w *bulkWriter) writePairsBefore(before []byte, out *badger.IngestWriter) error {
	for len(w.pair.Key) > 0 && (before == nil || bytes.Compare(w.pair.Key, before) < 0) {
		if err := out.Add(w.pair.Key, w.pair.Value, w.version); err != nil {
			return err
		}
		if err := w.nextPair(); err != nil {
			return err
		}
	}
	return nil
}

// writeDictionary writes the marker and both directions of the new terms.
func (w *bulkWriter) writeDictionary(m index.Marker) error {
	out := w.newWriter()
	if err := out.Add(index.MarkerKey, m.Encode(), w.version); err != nil {
		return err
	}
	if err := out.Add(index.SourceCountsKey, []byte{1}, w.version); err != nil {
		return err
	}
	var key []byte
	for row, err := range w.b.terms.Sorted() {
		if err != nil {
			return err
		}
		var number []byte
		var ok bool
		if key, number, ok = cutEscaped(key[:0], row); !ok {
			return errSortedRow()
		}
		if err := out.Add(key, number, w.version); err != nil {
			return err
		}
		w.countRow()
	}
	for _, run := range w.b.numbers { // one after the other: a run holds a record while it is read
		for row, err := range extsort.Merge([]*extsort.Run{run}, nil) {
			if err != nil {
				return err
			}
			if err := out.Add(keys.Number(binary.BigEndian.Uint64(row)), row[8:], w.version); err != nil {
				return err
			}
			w.countRow()
		}
	}
	for number, record := range w.b.Chunk.terms.all() {
		if err := out.Add(keys.Number(number), record, w.version); err != nil {
			return err
		}
	}
	if err := w.writePairsBefore(keys.Successor(keys.RankedPrefix()), out); err != nil {
		return err
	}
	return out.Flush()
}

// sortedRows yields the in-memory rows of each order in turn. The receiver must receive
// all of them and return each to room.
type sortedRows struct {
	sorted <-chan []bulkRow
	room   chan<- []bulkRow
}

// sortAhead sorts one order while the previous one is written.
func (w *bulkWriter) sortAhead() sortedRows {
	sorted, room := make(chan []bulkRow), make(chan []bulkRow, len(keys.Orders)+1)
	room <- nil // two are there at a time
	room <- nil
	go func() {
		defer close(sorted)
		for _, o := range keys.Orders {
			sorted <- w.b.Chunk.sortRows(o, <-room)
		}
	}()
	return sortedRows{sorted, room}
}

// eachStatement calls fn with key and commit of each statement of an order.
func (w *bulkWriter) eachStatement(i int, rows []bulkRow, fn func(key []byte, commit uint32) error) error {
	inMemory := make([][]byte, len(rows))
	for j := range rows {
		inMemory[j] = rows[j][:]
	}
	var key [keys.QuadKeySize]byte
	key[0] = byte(keys.Orders[i])
	for row, err := range extsort.Merge(w.b.runs[i], inMemory) {
		if err != nil {
			return err
		}
		copy(key[1:], row)
		if err := fn(key[:], binary.BigEndian.Uint32(row[len(key)-1:])); err != nil {
			return err
		}
		w.countRow()
	}
	return nil
}

// countRow counts a written row and reports progress.
func (w *bulkWriter) countRow() {
	if w.done++; w.progress != nil && w.done%index.PaceInterval == 0 {
		w.progress(min(w.done, w.of), w.of)
	}
}

// writeOrder writes an order other than GSPO.
func (w *bulkWriter) writeOrder(i int, rows []bulkRow, out *badger.IngestWriter) error {
	spog := keys.Orders[i] == keys.SPOG
	err := w.eachStatement(i, rows, func(key []byte, commit uint32) error {
		if !spog {
			return out.Add(key, index.NoValue, w.version)
		}
		if commit&BulkStood != 0 {
			return nil // a pair
		}
		if err := w.writePairsBefore(key, out); err != nil {
			return err
		}
		return out.Add(key, w.b.Values[commit], w.version)
	})
	if err == nil && spog {
		err = w.writePairsBefore([]byte{byte(keys.SPOG) + 1}, out)
	}
	return err
}

// writeLastChanges writes GSPO, in which all statements of a subject in a graph are
// adjacent, and the last changes of the subjects.
func (w *bulkWriter) writeLastChanges(i int, rows []bulkRow, out, last *badger.IngestWriter) error {
	const pair = 1 + 2*keys.IDSize
	var run [pair]byte // the current graph and subject
	newest := uint32(0)
	note := func() error {
		graph, subject, ok := keys.ParsePair(run[:])
		if !ok {
			return nil // before the first
		}
		return last.Add(keys.Last(graph, subject), binary.AppendUvarint(nil, uint64(w.b.first)+uint64(newest)), w.version)
	}
	err := w.eachStatement(i, rows, func(key []byte, commit uint32) error {
		if !bytes.Equal(run[:], key[:pair]) {
			if err := note(); err != nil {
				return err
			}
			copy(run[:], key)
			newest = 0
		}
		newest = max(newest, commit&^BulkStood)
		return out.Add(key, index.NoValue, w.version)
	})
	if err != nil {
		return err
	}
	return note()
}

// writeCounts writes the new counts and the new kinds of literals.
func (w *bulkWriter) writeCounts(cat *index.Catalogue, out *badger.IngestWriter) error {
	var list []KeyValue
	cat.Tallies.Scan(func(key string, t index.Tally) bool {
		if t.Revision >= w.b.first {
			list = append(list, KeyValue{[]byte(key), t.Encode()})
		}
		return true
	})
	for of := range w.b.kinds {
		list = append(list, KeyValue{index.LiteralKindKey(base.LiteralOfKind("", of)), index.NoValue})
	}
	for use := range w.b.uses {
		list = append(list, KeyValue{use.Key(), index.NoValue})
	}
	slices.SortFunc(list, func(a, b KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	for _, k := range list {
		if err := out.Add(k.Key, k.Value, w.version); err != nil {
			return err
		}
	}
	return out.Flush()
}
