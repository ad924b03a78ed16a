package index

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync"

	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
	"koine/kg/internal/memtree"
)

// Catalogue counts statements per (graph, predicate), subjects per (graph, class) and
// statements per source. Overviews and planning read the counts instead of scanning, and
// quotas are checked against them. The keys are those of the index. A copy is cheap and
// shares unchanged parts; a published catalogue is never modified.
type Catalogue struct {
	mu      sync.Mutex // guards the tree while it is copied, which writes to it
	Tallies memtree.Map[Tally]
}

// Tally is a count with the revision of the last commit in it. Replaying a commit that it
// already contains has no effect.
type Tally struct {
	Count    uint64
	Revision base.Revision
	// Touched is the revision of the last commit since the start that added or removed
	// something that is counted, also if the count is as before; 0 for none.
	Touched base.Revision
}

// Copy returns a copy that can be changed independently. It is safe for concurrent use.
func (c *Catalogue) Copy() *Catalogue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Catalogue{Tallies: *c.Tallies.Copy()}
}

// Add applies the deltas of a commit and calls changed for every new tally.
func (c *Catalogue) Add(d *Deltas, revision base.Revision, changed func(key string, t Tally)) {
	for _, e := range d.All() {
		if e.By == 0 {
			if _, counted := c.Tallies.Get(e.Key); counted {
				t, _ := c.Tallies.GetOrInsert(e.Key)
				t.Touched = max(t.Touched, revision)
			}
			continue
		}
		t, _ := c.Tallies.GetOrInsert(e.Key)
		if t.Revision >= revision {
			continue
		}
		*t = Tally{t.Count + uint64(e.By), revision, revision}
		changed(e.Key, *t)
	}
}

// HasStatements reports whether the graph holds a statement, counting the pending deltas
// of an unfinished update.
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

// Each calls fn for every count of the kind (keys.PrefixPredicate or keys.PrefixClass) in
// the graph, or in all graphs if in is zero. Counts that fell to zero are included.
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

// CountOf returns the count of one id in a graph.
func (c *Catalogue) CountOf(kind byte, graph, id base.ID) uint64 {
	t, _ := c.Tallies.Get(string([]byte{kind}) + string(graph[:]) + string(id[:]))
	return t.Count
}

// TouchedAt returns Tally.Touched of one id in a graph.
func (c *Catalogue) TouchedAt(kind byte, graph, id base.ID) base.Revision {
	t, _ := c.Tallies.Get(string([]byte{kind}) + string(graph[:]) + string(id[:]))
	return t.Touched
}

// EachGraph calls fn for the count of one id in each graph. The number of lookups is the
// number of graphs, independent of the counts in them.
func (c *Catalogue) EachGraph(kind byte, id base.ID, fn func(graph base.ID, count uint64)) {
	it := c.Tallies.Iter()
	from := []byte{kind}
	for it.Seek(string(from)) {
		graph, first, ok := keys.ParsePair([]byte(it.Key()))
		if !ok || it.Key()[0] != kind {
			return
		}
		count, found := it.Value().Count, first == id
		if !found && first.Compare(id) < 0 {
			count = c.CountOf(kind, graph, id)
			found = count > 0
		}
		if found {
			fn(graph, count)
		}
		from = append(append(from[:1], graph[:]...), bytes.Repeat([]byte{0xff}, keys.IDSize)...)
	}
}

// Encode returns the value of the tally in the index.
func (t Tally) Encode() []byte { return t.appendTo(nil) }

func (t Tally) appendTo(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(t.Revision)), t.Count)
}

// ParseTally decodes the value of a tally.
func ParseTally(value []byte) (Tally, error) {
	r := codec.NewReader(value)
	t := Tally{Revision: base.Revision(r.Uvarint()), Count: r.Uvarint()}
	return t, r.Close()
}

// CountPrefixes are the key prefixes of all counts.
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

// EverCounted reports whether the graph, given by its id in the index, ever had a count,
// including counts that are zero now.
func (c *Catalogue) EverCounted(graph base.ID) (any bool) {
	c.Each(keys.PrefixPredicate, graph, func(_, _ base.ID, _ uint64) { any = true })
	return any
}

// Deltas are the changes of one commit to the catalogue, by the keys of the counts. A nil
// Deltas is empty. It belongs to one goroutine.
type Deltas struct {
	list []delta
	// at is the index of each key in a long list. Most commits change few counts and do
	// not need it.
	at map[string]int
}

type delta struct {
	Key string
	By  int64
}

// fewDeltas is the length up to which the list is searched linearly.
const fewDeltas = 16

// Add adds by to the delta of a count. It does not retain the key.
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

// findKey returns the index of a key in the list, or the index at which it would be
// inserted.
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

// Get returns the delta of a count, 0 if it does not change.
func (d *Deltas) Get(key string) int64 {
	if d == nil {
		return 0
	}
	if i, found := d.findKey([]byte(key)); found {
		return d.list[i].By
	}
	return 0
}

// All returns the deltas. The slice is valid until the next Add.
func (d *Deltas) All() []delta {
	if d == nil {
		return nil
	}
	return d.list
}

// Clear removes all deltas.
func (d *Deltas) Clear() {
	clear(d.list)
	d.list, d.at = d.list[:0], nil
}

// CountStatement counts a statement that was added (by 1) or removed (by -1) in its
// predicate and class. Sources are counted separately.
func (d *Deltas) CountStatement(q *base.Quad, ids base.IDQuad, by int64) {
	d.Add(keys.Predicate(ids.Graph, ids.Predicate), by)
	if q.Predicate.Value() == base.RDFType {
		d.Add(keys.Class(ids.Graph, ids.Object), by)
	}
}
