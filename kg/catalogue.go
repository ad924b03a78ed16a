package kg

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync"

	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
	"koine/kg/internal/memtree"
)

// catalogue counts statements per (graph, predicate) and subjects per (graph,
// class), so that overviews and planning never scan, and statements per source,
// so that a source can be kept within its share. Its keys are those under which
// the index keeps the counts. A copy is cheap and shares what does not
// change; a published catalogue is never written again.
type catalogue struct {
	mu      sync.Mutex // guards the tree while it is copied, which writes to it
	tallies memtree.Map[tally]
}

// tally is a count with the revision of the last commit in it. Replaying a
// commit that is in it already changes nothing.
type tally struct {
	count    uint64
	revision Revision
}

func (c *catalogue) copy() *catalogue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &catalogue{tallies: *c.tallies.Copy()}
}

// add takes a commit's deltas in and calls changed for every new tally.
func (c *catalogue) add(d *deltas, revision Revision, changed func(key string, t tally)) {
	for _, e := range d.all() {
		if e.by == 0 {
			continue
		}
		t, _ := c.tallies.GetOrInsert(e.key)
		if t.revision >= revision {
			continue
		}
		*t = tally{t.count + uint64(e.by), revision}
		changed(e.key, *t)
	}
}

// holds tells whether any statement stands in the graph, with what an update
// under way adds.
func (c *catalogue) holds(graph ID, pending *deltas) bool {
	prefix := string([]byte{keys.PrefixPredicate}) + string(graph[:])
	found := false
	c.tallies.Ascend(prefix, func(key string, t tally) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		found = int64(t.count)+pending.of(key) > 0
		return !found
	})
	for _, e := range pending.all() {
		if !found && strings.HasPrefix(e.key, prefix) {
			t, _ := c.tallies.Get(e.key)
			found = int64(t.count)+e.by > 0
		}
	}
	return found
}

// each calls fn for every count of the kind (keys.PrefixPredicate or
// keys.PrefixClass) in the graph, or in all of them when it is zero; those that
// went down to zero are included.
func (c *catalogue) each(kind byte, in ID, fn func(graph, id ID, count uint64)) {
	prefix := string([]byte{kind})
	if !in.IsZero() {
		prefix += string(in[:])
	}
	c.tallies.Ascend(prefix, func(key string, t tally) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		if graph, id, ok := keys.ParsePair([]byte(key)); ok {
			fn(graph, id, t.count)
		}
		return true
	})
}

// one is the count of the kind that a graph has of one id.
func (c *catalogue) one(kind byte, graph, id ID) uint64 {
	t, _ := c.tallies.Get(string([]byte{kind}) + string(graph[:]) + string(id[:]))
	return t.count
}

// eachGraph calls fn for the count that each graph has of one id. It looks up as
// often as there are graphs, however many counts those hold.
func (c *catalogue) eachGraph(kind byte, id ID, fn func(graph ID, count uint64)) {
	it := c.tallies.Iter()
	from := []byte{kind}
	for it.Seek(string(from)) {
		graph, first, ok := keys.ParsePair([]byte(it.Key()))
		if !ok || it.Key()[0] != kind {
			return
		}
		count, found := it.Value().count, first == id
		if !found && compareIDs(first, id) < 0 {
			count = c.one(kind, graph, id)
			found = count > 0
		}
		if found {
			fn(graph, count)
		}
		from = append(append(from[:1], graph[:]...), bytes.Repeat([]byte{0xff}, keys.IDSize)...)
	}
}

func (t tally) encode() []byte { return t.append(nil) }

func (t tally) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(t.revision)), t.count)
}

func parseTally(value []byte) (tally, error) {
	r := codec.NewReader(value)
	t := tally{revision: Revision(r.Uvarint()), count: r.Uvarint()}
	return t, r.Close()
}

// tallied are the prefixes of all counts.
var tallied = [...]byte{keys.PrefixPredicate, keys.PrefixClass, keys.PrefixSource}

// readCatalogue reads all counts from the index.
func readCatalogue(k kv) (*catalogue, error) {
	c := new(catalogue)
	for _, prefix := range tallied {
		cur := k.scan([]byte{prefix})
		for ; cur.valid(); cur.next() {
			var t tally
			err := cur.value(func(v []byte) (err error) {
				t, err = parseTally(v)
				return err
			})
			if err != nil {
				cur.close()
				return nil, err
			}
			c.tallies.Set(string(cur.key()), t)
		}
		cur.close()
	}
	return c, nil
}

// counted tells whether any statement was ever counted of a graph, by its id in the
// index.
func (c *catalogue) counted(graph ID) (any bool) {
	c.each(keys.PrefixPredicate, graph, func(_, _ ID, _ uint64) { any = true })
	return any
}
