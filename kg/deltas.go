package kg

import "koine/kg/internal/keys"

// deltas are what one commit changes in the catalogue: by how much, under the keys of
// its counts. A nil one says nothing. It belongs to one goroutine.
type deltas struct {
	list []delta
	// at is where each key is in the list, once it is long: most commits change few
	// counts.
	at map[string]int
}

type delta struct {
	key string
	by  int64
}

// fewDeltas is up to how many are looked for one by one.
const fewDeltas = 16

// add changes a count by so much. It does not keep the key.
func (d *deltas) add(key []byte, by int64) {
	i, found := d.find(key)
	if found {
		d.list[i].by += by
		return
	}
	e := delta{string(key), by}
	d.list = append(d.list, e)
	switch {
	case d.at != nil:
		d.at[e.key] = i
	case len(d.list) > fewDeltas:
		d.at = make(map[string]int)
		for i := range d.list {
			d.at[d.list[i].key] = i
		}
	}
}

// find is where a key is in the list, or would be.
func (d *deltas) find(key []byte) (at int, found bool) {
	if d.at != nil {
		if at, found = d.at[string(key)]; found {
			return at, true
		}
		return len(d.list), false
	}
	for i := range d.list {
		if d.list[i].key == string(key) {
			return i, true
		}
	}
	return len(d.list), false
}

// of is by how much a count changes.
func (d *deltas) of(key string) int64 {
	if d == nil {
		return 0
	}
	if i, found := d.find([]byte(key)); found {
		return d.list[i].by
	}
	return 0
}

// all lists them; it is valid until the next is added.
func (d *deltas) all() []delta {
	if d == nil {
		return nil
	}
	return d.list
}

func (d *deltas) clear() {
	clear(d.list)
	d.list, d.at = d.list[:0], nil
}

// count notes, but for its sources, that a statement came (by 1) or went (by -1).
func (d *deltas) count(q *Quad, ids IDQuad, by int64) {
	d.add(keys.Predicate(ids.Graph, ids.Predicate), by)
	if q.Predicate.value == RDFType {
		d.add(keys.Class(ids.Graph, ids.Object), by)
	}
}
