package base

import (
	"cmp"
	"encoding/hex"
	"math"
)

// Revision numbers the commits of a store: 1, 2, 3 … without gaps. 0 is the
// store before its first commit.
type Revision uint64

// Epoch identifies a log. A data directory gets a new one when it is created, restored or
// erased from, so that positions and cursors of another log are recognised.
type Epoch [16]byte

// String returns the epoch in hexadecimal.
func (e Epoch) String() string { return hex.EncodeToString(e[:]) }

// EndOfCommit is the index of the position behind all changes of a commit.
const EndOfCommit = math.MaxUint32

// Position is a place in the log: behind the change with this index in the commit of this
// revision. Revision 0 with EndOfCommit is before the first commit. Clients see an opaque
// token: Store.FormatPosition and Store.ParsePosition.
type Position struct {
	Epoch    Epoch
	Revision Revision
	Index    uint32
}

// Compare orders positions of one log.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Revision, q.Revision); c != 0 {
		return c
	}
	return cmp.Compare(p.Index, q.Index)
}
