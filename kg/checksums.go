package kg

import (
	"encoding/binary"
	"hash/maphash"
	"iter"

	"koine/internal/extsort"
	"koine/kg/internal/keys"
)

// keySum tells sets of keys apart without keeping them: their number, and the sum of
// what each is hashed to. Two that are not the same have the same sum in one of 2^64
// cases.
type keySum struct{ n, sum uint64 }

func (k *keySum) add(seed maphash.Seed, key []byte) {
	k.n++
	k.sum += maphash.Bytes(seed, key)
}

// keySums are of the keys of SPOG that each order must hold, in the sequence of
// keys.Orders.
type keySums [len(keys.Orders)]keySum

func (k *keySums) add(seed maphash.Seed, q IDQuad, key []byte) {
	for i, o := range keys.Orders {
		if o.Holds(q) {
			k[i].add(seed, key)
		}
	}
}

// all is the sum for the orders that hold every key.
func (k *keySums) all() keySum { return k[0] }

// twinOf appends the key of SPOG, or of its past, that stands for the same as a key of
// an order; ok is false for one that no order has.
func twinOf(dst []byte, o keys.Order, key []byte) (twin []byte, q IDQuad, ok bool) {
	q, ok = o.Parse(key)
	if o != o.Past() {
		return keys.SPOG.Append(dst, q), q, ok
	}
	from, to, inOrder := keys.Interval(key)
	return keys.SPOG.AppendPast(dst, q, from, to), q, ok && inOrder
}

// appendNumbered makes a record of a graph and a number that sorts like them.
func appendNumbered(dst []byte, graph ID, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, graph[:]...), uint64(n)^1<<63)
}

func parseNumbered(row []byte) (graph ID, n int64) {
	return ID(row[:keys.IDSize]), int64(binary.BigEndian.Uint64(row[keys.IDSize:]) ^ 1<<63)
}

// maxCounted bounds how many keys a check counts in memory at a time.
const maxCounted = 1 << 16

// counting counts by keys. When there are too many in memory, what they have so far
// becomes records, which are added up when they come together.
type counting struct {
	most   int
	counts sourceCounts
	sorter *extsort.Sorter
	record []byte
}

type keyCount struct {
	key string
	n   uint64
}

func newCounting(s *extsort.Sorter, most int) *counting {
	return &counting{most: most, counts: make(sourceCounts), sorter: s}
}

func (c *counting) one(key []byte) { c.counts[string(key)]++ }

// sources counts those of a value of SPOG, as far as it can be read.
func (c *counting) sources(value []byte) { _ = c.counts.add(value) }

// full makes room if there is too much in memory.
func (c *counting) full() error {
	if len(c.counts) <= c.most {
		return nil
	}
	return c.spill()
}

func (c *counting) spill() error {
	for key, n := range c.counts {
		c.record = binary.BigEndian.AppendUint64(append(c.record[:0], key...), n)
		if err := c.sorter.Add(c.record); err != nil {
			return err
		}
	}
	clear(c.counts)
	return nil
}

// sorted gives the keys in order, each once. Nothing may be counted any more. All keys
// with the same first byte have the same length, so that records sort like keys.
func (c *counting) sorted() iter.Seq2[keyCount, error] {
	return func(yield func(keyCount, error) bool) {
		if err := c.spill(); err != nil {
			yield(keyCount{}, err)
			return
		}
		var at keyCount
		for row, err := range c.sorter.Sorted() {
			if err != nil {
				yield(keyCount{}, err)
				return
			}
			key, n := row[:len(row)-8], binary.BigEndian.Uint64(row[len(row)-8:])
			if string(key) == at.key {
				at.n += n
				continue
			}
			if at.n > 0 && !yield(at, nil) {
				return
			}
			at = keyCount{string(key), n}
		}
		if at.n > 0 {
			yield(at, nil)
		}
	}
}

func (c *counting) close() error {
	c.counts = nil
	return c.sorter.Close()
}
