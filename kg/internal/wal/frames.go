package wal

// Frames is a buffer in which the entries of one append after another are prepared: most are
// small, and an append does not retain them. It belongs to one goroutine.
type Frames struct {
	room []byte // len is the used part
}

// Size limits of the buffer in bytes: at least one entry, at most a large group of usual
// entries.
const (
	minFrames = headerBytes + CompressFromBytes
	maxFrames = 256 << 10
)

// Clear resets the buffer for the next append. Frames prepared before must no longer be
// used.
func (f *Frames) Clear() { f.room = f.room[:0] }

// Prepare is Prepare with a frame that is valid until Clear.
func (f *Frames) Prepare(payload []byte) (Prepared, error) {
	if len(payload) >= CompressFromBytes {
		return Prepare(payload)
	}
	at, n := len(f.room), headerBytes+len(payload)
	if cap(f.room)-at < n {
		// Frames prepared before stay in the old buffer.
		f.room, at = make([]byte, 0, max(minFrames, min(2*cap(f.room), maxFrames))), 0
	}
	f.room = f.room[:at+n]
	b := f.room[at : at+n : at+n]
	copy(b[headerBytes:], payload)
	return newPrepared(b, len(payload), 0), nil
}
