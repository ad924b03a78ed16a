package kg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/ristretto/v2/z"

	"koine/kg/internal/keys"
)

// stream writes the whole index: what is new, and the keys that StreamWriter
// drops. The marker is among them, so that a stop right afterwards finds the
// index done.
func (b *bulk) stream(m marker) error {
	b.s.hideFlushed() // readers are out already
	b.s.renumbered.Store(true)
	sw := b.s.db.NewStreamWriter()
	if err := sw.Prepare(); err != nil {
		sw.Cancel()
		return err
	}
	out := &streamOut{sw: sw, version: uint64(b.revision), buf: z.NewBuffer(streamChunk, "bulk"), kept: make(map[byte][]keyValue)}
	defer func() { _ = out.buf.Release() }()
	for _, k := range b.kept {
		out.kept[k.key[0]] = append(out.kept[k.key[0]], k)
	}
	sorted := b.sortAhead()
	b.dictionary(out)
	for _, o := range keys.Orders {
		b.order(o, <-sorted, out)
	}
	b.catalogue.tallies.Scan(func(key string, t tally) bool {
		out.put([]byte(key), t.encode())
		return true
	})
	out.put(markerKey, m.encode())
	out.put(countedKey, []byte{1})
	out.rest()
	err := errors.Join(out.err, sw.Flush())
	if err != nil {
		sw.Cancel() // waits for the tables that are still being written
	}
	return err
}

// dictionary writes both sides of the new terms.
func (b *bulk) dictionary(out *streamOut) {
	rows := make([]keyValue, len(b.terms))
	first := b.next - uint64(len(b.terms))
	for i, t := range b.terms {
		number := first + uint64(i)
		record := appendTerm(nil, t)
		key, _ := keys.Term(record, hash16)
		rows[i] = keyValue{key, binary.AppendUvarint(nil, number)}
		out.put(keys.Number(number), record)
	}
	slices.SortFunc(rows, func(a, b keyValue) int { return bytes.Compare(a.key, b.key) })
	for _, r := range rows {
		out.put(r.key, r.value)
	}
	kinds := make(map[string]bool)
	for _, t := range b.terms {
		if t.lang() != "" || t.datatype() != "" {
			kinds[string(literalKindKey(t))] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		out.put([]byte(key), nil)
	}
}

// bulkRow is a statement as a key of one order.
type bulkRow struct {
	key    [keys.QuadKeySize]byte
	commit uint32
}

// sortAhead gives the rows of each order in turn; one is sorted while the one
// before it is written. All of them must be received.
func (b *bulk) sortAhead() <-chan []bulkRow {
	sorted := make(chan []bulkRow)
	go func() {
		for _, o := range keys.Orders {
			sorted <- b.sorted(o)
		}
	}()
	return sorted
}

func (b *bulk) sorted(o keys.Order) []bulkRow {
	n := 0
	for _, q := range b.quads {
		if o.Holds(q.ids) {
			n++
		}
	}
	rows := make([]bulkRow, 0, n)
	for _, q := range b.quads {
		if !o.Holds(q.ids) {
			continue
		}
		row := bulkRow{commit: q.commit}
		o.Append(row.key[:0], q.ids)
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b bulkRow) int { return bytes.Compare(a.key[:], b.key[:]) })
	return rows
}

// order writes one order; GSPO has each subject of a graph in
// one run and so writes the last changes as well.
func (b *bulk) order(o keys.Order, rows []bulkRow, out *streamOut) {
	for i := range rows {
		var value []byte
		if o == keys.SPOG {
			value = b.values[rows[i].commit]
		}
		out.put(rows[i].key[:], value)
	}
	if o != keys.GSPO {
		return
	}
	const run = 1 + 2*keys.IDSize
	for i := 0; i < len(rows); {
		last, first := rows[i].commit, i
		for ; i < len(rows) && bytes.Equal(rows[i].key[:run], rows[first].key[:run]); i++ {
			last = max(last, rows[i].commit)
		}
		graph, subject, _ := keys.ParsePair(rows[first].key[:run])
		out.put(keys.Last(graph, subject), binary.AppendUvarint(nil, uint64(b.first)+uint64(last)))
	}
}

// streamChunk is how many bytes go to the stream writer at a time.
const streamChunk = 4 << 20

// streamOut feeds a StreamWriter. Keys come in order within a prefix; every
// prefix is a stream of its own.
type streamOut struct {
	sw      *badger.StreamWriter
	version uint64
	buf     *z.Buffer
	// kept are keys from before, by prefix and in order, that are merged in; a
	// new one of the same name wins.
	kept map[byte][]keyValue
	last [256][]byte // key that was written last, by prefix
	kv   pb.KV
	err  error
}

func (o *streamOut) put(key, value []byte) {
	kept := o.kept[key[0]]
	for len(kept) > 0 {
		c := bytes.Compare(kept[0].key, key)
		if c > 0 {
			break
		}
		if c < 0 {
			o.write(kept[0].key, kept[0].value)
		}
		kept = kept[1:]
		o.kept[key[0]] = kept
	}
	o.write(key, value)
}

// rest writes the kept keys that are left, and all that is buffered.
func (o *streamOut) rest() {
	for _, kept := range o.kept {
		for _, k := range kept {
			o.write(k.key, k.value)
		}
	}
	o.send()
}

func (o *streamOut) write(key, value []byte) {
	last := &o.last[key[0]]
	if o.err == nil && bytes.Compare(key, *last) <= 0 {
		// StreamWriter would take it, and readers not find it.
		o.err = Errorf(CodeInternal, "keys of a bulk load are out of order: %x after %x", key, *last)
	}
	*last = append((*last)[:0], key...)
	o.kv = pb.KV{Key: key, Value: value, Version: o.version, StreamId: uint32(key[0]) + 1}
	badger.KVToBuffer(&o.kv, o.buf)
	if o.buf.LenNoPadding() >= streamChunk {
		o.send()
	}
}

func (o *streamOut) send() {
	if o.err == nil && o.buf.LenNoPadding() > 0 {
		o.err = o.sw.Write(o.buf)
	}
	o.buf.Reset()
}
