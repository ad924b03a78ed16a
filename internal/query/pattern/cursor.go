package pattern

import (
	"encoding/binary"
	"slices"

	"koine/kg"
)

// A cursor is the position behind a returned row. It is valid for the
// same pattern, options and view at the same revision only. It is not sealed: the
// caller that exposes it must ensure this. Layout:
//
//	layout  1 byte: 3 if the cursor counts rows, 4 if it has an outermost row,
//	        7 if it counts rows of an order; 2 more if the pattern has texts
//	state   8 bytes, layouts 5, 6 and 9 only: the state of the texts' hits
//	orders  uvarint length, then one byte for each element of each group, in the
//	        order in which groups are planned: the element's index, 128 more for a
//	        path that starts from its end; empty in layouts 7 and 9
//	count   uvarint: rows returned since the outermost one, or in all
//	quad    36 bytes, layouts 4 and 6 only: the outermost row; of a text the
//	        resource four times
//
// The join orders determine the order of rows that are not sorted. They are part of the cursor
// because the planner may choose others the next time. Layouts 1 and 2, and layouts 3 and 5 of
// sorted rows, belong to builds with a different order of rows and are rejected as foreign.
const (
	countLayout  = 3
	outerLayout  = 4
	sortedLayout = 7
	withTexts    = 2 // added to each

	stateBytes = 8
)

// maxCursorOrders is the largest number of elements in all groups of a cursor.
const maxCursorOrders = 1 << 10

// cursor is a decoded cursor.
type cursor struct {
	state  []byte // nil without texts
	orders []byte
	count  uint64
	outer  *kg.IDQuad
	sorted bool // the rows are in an order of the query
}

func (p cursor) appendTo(b []byte) []byte {
	layout := byte(countLayout)
	switch {
	case p.sorted:
		layout = sortedLayout
	case p.outer != nil:
		layout = outerLayout
	}
	if p.state != nil {
		layout += withTexts
	}
	b = append(append(b, layout), p.state...)
	b = binary.AppendUvarint(b, uint64(len(p.orders)))
	b = append(b, p.orders...)
	b = binary.AppendUvarint(b, p.count)
	if p.outer != nil {
		for _, id := range quadParts(p.outer) {
			b = append(b, id[:]...)
		}
	}
	return b
}

// parseCursor decodes a cursor. It accepts only the output of append.
func parseCursor(b []byte) (p cursor, err error) {
	if len(b) == 0 {
		return p, errForeign
	}
	layout, b := b[0], b[1:]
	switch layout {
	case countLayout, outerLayout, sortedLayout:
	case countLayout + withTexts, outerLayout + withTexts, sortedLayout + withTexts:
		if len(b) < stateBytes {
			return p, errForeign
		}
		layout, p.state, b = layout-withTexts, slices.Clone(b[:stateBytes]), b[stateBytes:]
	default:
		return p, errForeign
	}
	p.sorted = layout == sortedLayout
	n, b, ok := readUvarint(b)
	if !ok || p.sorted && n > 0 || n > maxCursorOrders || n > uint64(len(b)) {
		return p, errForeign
	}
	p.orders = append(make([]byte, 0, n), b[:n]...)
	if p.count, b, ok = readUvarint(b[n:]); !ok {
		return p, errForeign
	}
	if layout == outerLayout {
		p.outer = &kg.IDQuad{}
		for _, id := range quadParts(p.outer) {
			if len(b) < len(id) {
				return cursor{}, errForeign
			}
			b = b[copy(id[:], b):]
			if id.IsZero() {
				return cursor{}, errForeign
			}
		}
	}
	if len(b) > 0 {
		return cursor{}, errForeign
	}
	return p, nil
}

// readUvarint decodes a number. It accepts only the form that AppendUvarint writes.
func readUvarint(b []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || size > 1 && b[size-1] == 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}

// errTextsChanged reports a cursor of a text whose hits have changed, so that rows would be
// repeated or missed.
func errTextsChanged() *kg.Error {
	e := kg.Errorf(kg.CodeCursorGone, "the texts have changed since the cursor was given")
	e.Hint = "Begin again with the first page; a larger first needs fewer pages."
	return e
}

var errForeign = kg.Errorf(kg.CodeCursorForeign, "the cursor does not belong to this pattern")

// outerScan tracks the current row of the outermost scan and the rows returned
// for it.
type outerScan struct {
	from *kg.IDQuad // start of the scan
	skip uint64     // rows to skip at from
	at   kg.IDQuad
	any  bool
	rows uint64 // rows returned since at, or in all without an outermost scan
}

// beginRow records the next row of the outermost scan.
func (o *outerScan) beginRow(q *kg.IDQuad, anyGraph bool) {
	if o.from != nil && !o.any {
		f := *o.from
		if anyGraph {
			f.Graph = q.Graph
		}
		if f != *q { // no longer in view
			o.skip = 0
		}
	}
	o.at, o.any, o.rows = *q, true, 0
}
