package wal

// Frames is a place in which the entries of one append are prepared after those of
// another: most are small, and an append is done with them when it returns. It belongs
// to one goroutine.
type Frames struct {
	room []byte // its length is what is taken
}

// Bounds of the place, in bytes: that for one entry at least, and no more than for a large
// group of usual ones.
const (
	minFrames = headerBytes + CompressFromBytes
	maxFrames = 256 << 10
)

// Clear gives the place to the next append. What was prepared before must not be used
// any more.
func (f *Frames) Clear() { f.room = f.room[:0] }

// Prepare is the function of this name, whose frame is good until Clear.
func (f *Frames) Prepare(payload []byte) (Prepared, error) {
	if len(payload) >= CompressFromBytes {
		return Prepare(payload)
	}
	at, n := len(f.room), headerBytes+len(payload)
	if cap(f.room)-at < n {
		// What was prepared before stays where it is.
		f.room, at = make([]byte, 0, max(minFrames, min(2*cap(f.room), maxFrames))), 0
	}
	f.room = f.room[:at+n]
	b := f.room[at : at+n : at+n]
	copy(b[headerBytes:], payload)
	return prepared(b, len(payload), 0), nil
}
