package index

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync"

	"koine/kg/internal/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
	"koine/kg/internal/memtree"
)

// Catalogue counts statements per (graph, predicate) and subjects per (graph,
// class), so that overviews and planning never scan, and statements per source,
// so that a source can be kept within its share. Its keys are those under which
// the index keeps the counts. A copy is cheap and shares what does not
// change; a published catalogue is never written again.
type Catalogue struct {
	mu      sync.Mutex // guards the tree while it is copied, which writes to it
	Tallies memtree.Map[Tally]
}

// Tally is a count with the revision of the last commit in it. Replaying a
// commit that is in it already changes nothing.
type Tally struct {
	Count    uint64
	Revision base.Revision
}

func (c *Catalogue) Copy() *Catalogue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Catalogue{Tallies: *c.Tallies.Copy()}
}

// Add takes a commit's deltas in and calls changed for every new tally.
func (c *Catalogue) Add(d *Deltas, revision base.Revision, changed func(key string, t Tally)) {
	for _, e := range d.All() {
		if e.By == 0 {
			continue
		}
		t, _ := c.Tallies.GetOrInsert(e.Key)
		if t.Revision >= revision {
			continue
		}
		*t = Tally{t.Count + uint64(e.By), revision}
		changed(e.Key, *t)
	}
}

// HasStatements tells whether any statement stands in the graph, with what an update
// under way adds.
func (c *Catalogue) HasStatements(graph base.ID, pending *Deltas) bool {
	prefix := string([]byte{keys.PrefixPredicate}) + string(graph[:])
	found := false
	c.Tallies.Ascend(prefix, func(key string, t Tally) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		found = int64(t.Count)+pending.Get(key) > 0
		return !found
	})
	for _, e := range pending.All() {
		if !found && strings.HasPrefix(e.Key, prefix) {
			t, _ := c.Tallies.Get(e.Key)
			found = int64(t.Count)+e.By > 0
		}
	}
	return found
}

// Each calls fn for every count of the kind (keys.PrefixPredicate or
// keys.PrefixClass) in the graph, or in all of them when it is zero; those that
// went down to zero are included.
func (c *Catalogue) Each(kind byte, in base.ID, fn func(graph, id base.ID, count uint64)) {
	prefix := string([]byte{kind})
	if !in.IsZero() {
		prefix += string(in[:])
	}
	c.Tallies.Ascend(prefix, func(key string, t Tally) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		if graph, id, ok := keys.ParsePair([]byte(key)); ok {
			fn(graph, id, t.Count)
		}
		return true
	})
}

// CountOf is the count of the kind that a graph has of one id.
func (c *Catalogue) CountOf(kind byte, graph, id base.ID) uint64 {
	t, _ := c.Tallies.Get(string([]byte{kind}) + string(graph[:]) + string(id[:]))
	return t.Count
}

// EachGraph calls fn for the count that each graph has of one id. It looks up as
// often as there are graphs, however many counts those hold.
func (c *Catalogue) EachGraph(kind byte, id base.ID, fn func(graph base.ID, count uint64)) {
	it := c.Tallies.Iter()
	from := []byte{kind}
	for it.Seek(string(from)) {
		graph, first, ok := keys.ParsePair([]byte(it.Key()))
		if !ok || it.Key()[0] != kind {
			return
		}
		count, found := it.Value().Count, first == id
		if !found && CompareIDs(first, id) < 0 {
			count = c.CountOf(kind, graph, id)
			found = count > 0
		}
		if found {
			fn(graph, count)
		}
		from = append(append(from[:1], graph[:]...), bytes.Repeat([]byte{0xff}, keys.IDSize)...)
	}
}

func (t Tally) Encode() []byte { return t.appendTo(nil) }

func (t Tally) appendTo(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(t.Revision)), t.Count)
}

func ParseTally(value []byte) (Tally, error) {
	r := codec.NewReader(value)
	t := Tally{Revision: base.Revision(r.Uvarint()), Count: r.Uvarint()}
	return t, r.Close()
}

// CountPrefixes are the prefixes of all counts.
var CountPrefixes = [...]byte{keys.PrefixPredicate, keys.PrefixClass, keys.PrefixSource}

// ReadCatalogue reads all counts from the index.
func ReadCatalogue(k KV) (*Catalogue, error) {
	c := new(Catalogue)
	for _, prefix := range CountPrefixes {
		cur := k.Scan([]byte{prefix})
		for ; cur.Valid(); cur.Next() {
			var t Tally
			err := cur.Value(func(v []byte) (err error) {
				t, err = ParseTally(v)
				return err
			})
			if err != nil {
				cur.Close()
				return nil, err
			}
			c.Tallies.Set(string(cur.Key()), t)
		}
		cur.Close()
	}
	return c, nil
}

// EverCounted tells whether any statement was ever counted of a graph, by its id in the
// index.
func (c *Catalogue) EverCounted(graph base.ID) (any bool) {
	c.Each(keys.PrefixPredicate, graph, func(_, _ base.ID, _ uint64) { any = true })
	return any
}

// Deltas are what one commit changes in the catalogue: by how much, under the keys of
// its counts. A nil one says nothing. It belongs to one goroutine.
type Deltas struct {
	list []delta
	// at is where each key is in the list, once it is long: most commits change few
	// counts.
	at map[string]int
}

type delta struct {
	Key string
	By  int64
}

// fewDeltas is up to how many are looked for one by one.
const fewDeltas = 16

// Add changes a count by so much. It does not keep the key.
func (d *Deltas) Add(key []byte, by int64) {
	i, found := d.findKey(key)
	if found {
		d.list[i].By += by
		return
	}
	e := delta{string(key), by}
	d.list = append(d.list, e)
	switch {
	case d.at != nil:
		d.at[e.Key] = i
	case len(d.list) > fewDeltas:
		d.at = make(map[string]int)
		for i := range d.list {
			d.at[d.list[i].Key] = i
		}
	}
}

// findKey is where a key is in the list, or would be.
func (d *Deltas) findKey(key []byte) (at int, found bool) {
	if d.at != nil {
		if at, found = d.at[string(key)]; found {
			return at, true
		}
		return len(d.list), false
	}
	for i := range d.list {
		if d.list[i].Key == string(key) {
			return i, true
		}
	}
	return len(d.list), false
}

// Get is by how much a count changes.
func (d *Deltas) Get(key string) int64 {
	if d == nil {
		return 0
	}
	if i, found := d.findKey([]byte(key)); found {
		return d.list[i].By
	}
	return 0
}

// All lists them; it is valid until the next is added.
func (d *Deltas) All() []delta {
	if d == nil {
		return nil
	}
	return d.list
}

func (d *Deltas) Clear() {
	clear(d.list)
	d.list, d.at = d.list[:0], nil
}

// CountStatement notes, but for its sources, that a statement came (by 1) or went (by -1).
func (d *Deltas) CountStatement(q *base.Quad, ids base.IDQuad, by int64) {
	d.Add(keys.Predicate(ids.Graph, ids.Predicate), by)
	if q.Predicate.Value() == base.RDFType {
		d.Add(keys.Class(ids.Graph, ids.Object), by)
	}
}
