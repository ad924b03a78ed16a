package pattern

import (
	"encoding/binary"

	"koine/kg"
)

// A place is where an evaluation stands: behind a row that it gave. It is good
// for the same pattern, options and view at the same revision only; whoever
// hands it out must see to that (it is not sealed). Inside are
//
//	layout  1 byte: 3 when the place is a count of rows, 4 with an outermost row
//	orders  uvarint length, then a byte for each element of each group, in the
//	        order in which groups are planned: the element's index
//	count   uvarint: rows given since the outermost one, or in all
//	quad    36 bytes, layout 4 only: the outermost row
//
// Rows come in the order that the join orders make, so that these are part of
// the place: the planner may think otherwise the next time. 1 and 2 were the
// layouts of builds whose paths and conditions had other rows: their places are
// foreign.
const (
	countLayout = 3
	outerLayout = 4
)

// maxPlaceOrders bounds the elements of all groups.
const maxPlaceOrders = 1 << 10

type position struct {
	orders []byte
	count  uint64
	outer  *kg.IDQuad
}

func (p position) append(b []byte) []byte {
	layout := byte(countLayout)
	if p.outer != nil {
		layout = outerLayout
	}
	b = append(b, layout)
	b = binary.AppendUvarint(b, uint64(len(p.orders)))
	b = append(b, p.orders...)
	b = binary.AppendUvarint(b, p.count)
	if p.outer != nil {
		for _, id := range parts(p.outer) {
			b = append(b, id[:]...)
		}
	}
	return b
}

// parsePlace reads what append made, and nothing else.
func parsePlace(b []byte) (p position, err error) {
	if len(b) == 0 || b[0] != countLayout && b[0] != outerLayout {
		return p, errForeign
	}
	layout, b := b[0], b[1:]
	n, b, ok := uvarint(b)
	if !ok || n > maxPlaceOrders || n > uint64(len(b)) {
		return p, errForeign
	}
	p.orders = append(make([]byte, 0, n), b[:n]...)
	if p.count, b, ok = uvarint(b[n:]); !ok {
		return p, errForeign
	}
	if layout == outerLayout {
		p.outer = &kg.IDQuad{}
		for _, id := range parts(p.outer) {
			if len(b) < len(id) {
				return position{}, errForeign
			}
			b = b[copy(id[:], b):]
			if id.IsZero() {
				return position{}, errForeign
			}
		}
	}
	if len(b) > 0 {
		return position{}, errForeign
	}
	return p, nil
}

// uvarint reads the one form of a number that AppendUvarint writes.
func uvarint(b []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || size > 1 && b[size-1] == 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}

var errForeign = kg.Errorf(kg.CodeCursorForeign, "the place is not one of this pattern")

// outermost is the row of the outermost scan, and what was given since.
type outermost struct {
	from *kg.IDQuad // to begin at
	skip uint64     // rows to leave out there
	at   kg.IDQuad
	any  bool
	rows uint64 // since at, or in all without an outermost scan
}

// begin notes the next row of the outermost scan.
func (o *outermost) begin(q *kg.IDQuad, anyGraph bool) {
	if o.from != nil && !o.any {
		f := *o.from
		if anyGraph {
			f.Graph = q.Graph
		}
		if f != *q { // the view shows it no longer
			o.skip = 0
		}
	}
	o.at, o.any, o.rows = *q, true, 0
}
