package provenance

import (
	"encoding/binary"

	"koine/kg"
)

// Cursor is the position at which a search for contradictions stopped. It is valid in
// one store at one revision only. The zero Cursor is the beginning.
type Cursor struct {
	kind Kind
	nth  uint32    // number of the declaration within the kind
	row  kg.IDQuad // last row checked for it; zero for none
}

// CursorBytes is the length of Cursor.Bytes.
const CursorBytes = 1 + 4 + 4*len(kg.ID{})

// Bytes encodes the cursor.
func (p Cursor) Bytes() []byte {
	b := binary.BigEndian.AppendUint32([]byte{byte(p.kind)}, p.nth)
	for _, id := range [...]kg.ID{p.row.Subject, p.row.Predicate, p.row.Object, p.row.Graph} {
		b = append(b, id[:]...)
	}
	return b
}

// ParseCursor decodes Cursor.Bytes. It reports false for any other input.
func ParseCursor(b []byte) (p Cursor, ok bool) {
	if len(b) != CursorBytes || b[0] > byte(Disjoint) {
		return p, false
	}
	p.kind, p.nth = Kind(b[0]), binary.BigEndian.Uint32(b[1:])
	b = b[5:]
	for _, id := range [...]*kg.ID{&p.row.Subject, &p.row.Predicate, &p.row.Object, &p.row.Graph} {
		b = b[copy(id[:], b):]
	}
	return p, true
}
