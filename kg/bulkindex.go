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

// stream writes the dictionary, the orders and the last changes, each sorted.
func (b *bulk) stream() error {
	sw := b.s.db.NewStreamWriter()
	if err := sw.Prepare(); err != nil {
		return err
	}
	out := &streamOut{sw: sw, version: uint64(b.revision), buf: z.NewBuffer(streamChunk, "bulk")}
	defer func() { _ = out.buf.Release() }()
	b.dictionary(out)
	for _, o := range keys.Orders {
		b.order(o, out)
	}
	out.send()
	return errors.Join(out.err, sw.Flush())
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
		if t.lang != "" || t.datatype != "" {
			kinds[string(literalKindKey(t))] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		out.put([]byte(key), nil)
	}
}

// order writes one order; GSPO, which comes last, has each subject of a graph in
// one run and so writes the last changes as well.
func (b *bulk) order(o keys.Order, out *streamOut) {
	type entry struct {
		key    [keys.QuadKeySize]byte
		commit uint32
	}
	rows := make([]entry, 0, len(b.quads))
	for _, q := range b.quads {
		if o == keys.OSPG && !q.ids.Object.IsResource() {
			continue
		}
		var e entry
		o.Append(e.key[:0], q.ids)
		e.commit = q.commit
		rows = append(rows, e)
	}
	slices.SortFunc(rows, func(a, b entry) int { return bytes.Compare(a.key[:], b.key[:]) })
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
	kv      pb.KV
	err     error
}

func (o *streamOut) put(key, value []byte) {
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

// rest writes what is small: the keys from before, the counts and the marker.
func (b *bulk) rest(m marker) error {
	w := &indexTxn{db: b.s.db, at: uint64(b.revision)}
	kv := newBadgerKV(b.s.db, b.revision)
	defer kv.close()
	for _, k := range b.kept {
		written, err := kv.get(k.key, func([]byte) error { return nil })
		if err != nil {
			return err
		}
		if !written {
			w.set(k.key, k.value)
		}
	}
	b.catalogue.tallies.Scan(func(key string, t tally) bool { return w.set([]byte(key), t.encode()) })
	w.set(markerKey, m.encode())
	return w.commit()
}
