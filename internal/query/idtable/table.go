// Package idtable numbers the ids that a query meets.
package idtable

import "koine/kg"

// Table numbers ids: 0, 1, 2 … Those of the dictionary are dense, so that they take an
// array of pages instead of a map. The zero Table is empty.
type Table struct {
	pages  []*[idPage]uint32 // by the id's number; the id's index and one
	others map[kg.ID]uint32
	n      int
}

const (
	idPage = 1 << 12
	// maxIDPages bounds the pages by number: 16 billion terms.
	maxIDPages = 1 << 22
)

// slotOf returns the place of an id in a page, nil if it has none.
func (t *Table) slotOf(id kg.ID, create bool) *uint32 {
	if !id.IsNumbered() || id.Number()/idPage >= maxIDPages {
		return nil
	}
	number := id.Number()
	page := int(number / idPage)
	if page >= len(t.pages) {
		if !create {
			return nil
		}
		t.pages = append(t.pages, make([]*[idPage]uint32, page+1-len(t.pages))...)
	}
	p := t.pages[page]
	if p == nil {
		if !create {
			return nil
		}
		p = new([idPage]uint32)
		t.pages[page] = p
	}
	return &p[number%idPage]
}

// Add numbers an id, unless it has a number.
func (t *Table) Add(id kg.ID) (index int, isNew bool) {
	at := t.slotOf(id, true)
	if at == nil {
		n, known := t.others[id]
		if known {
			return int(n), false
		}
		if t.others == nil {
			t.others = map[kg.ID]uint32{}
		}
		t.others[id] = uint32(t.n)
	} else {
		if *at != 0 {
			return int(*at) - 1, false
		}
		*at = uint32(t.n) + 1
	}
	t.n++
	return t.n - 1, true
}

// Find returns the number of an id, -1 if it has none.
func (t *Table) Find(id kg.ID) int {
	if at := t.slotOf(id, false); at != nil {
		return int(*at) - 1
	}
	if n, known := t.others[id]; known {
		return int(n)
	}
	return -1
}

// Len returns the number of ids.
func (t *Table) Len() int { return t.n }
