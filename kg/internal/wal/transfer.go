package wal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/hashicorp/raft"
)

// Frame is an entry in stored form, for copying it to another log: it includes the checksum and
// the link, so that the chain is preserved.
type Frame struct {
	Index uint64
	Prev  [sha256.Size]byte // hash of the previous entry; zeros for entry 1
	Hash  [sha256.Size]byte
	Raw   []byte
}

// ParseFrame checks the bytes of a frame, including its payload. Errors are ErrDamaged and
// ErrVersion.
func ParseFrame(raw []byte) (Frame, error) {
	f, err := decodeFrame(raw)
	if err == nil {
		_, err = f.decodePayload(nil)
	}
	if errors.Is(err, ErrVersion) {
		return Frame{}, err
	}
	if err != nil {
		return Frame{}, damageErrorf(f.index, err, "frame")
	}
	return Frame{f.index, f.prev, sha256.Sum256(raw), raw}, nil
}

// Payload returns the payload of the entry.
func (f Frame) Payload() ([]byte, error) {
	d, err := decodeFrame(f.Raw)
	if err != nil {
		return nil, damageErrorf(f.Index, err, "frame")
	}
	return unpack(d)
}

// Frames yields the entries from … to in stored form, checked as by Read, except that
// compressed payloads are not unpacked: checksum and links prove that an entry is the appended
// one. Raw is valid until the next one.
func (l *Log) Frames(from, to uint64) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		ahead := l.readAhead(from, to)
		defer ahead.stop()
		var prev [sha256.Size]byte
		linked := false // prev is known
		next := from
		for batch := range ahead.batches {
			<-batch.checked
			for _, f := range batch.frames {
				if next == from {
					var err error
					if prev, linked, err = l.linkBefore(from); err != nil {
						yield(Frame{Index: from}, err)
						return
					}
				}
				if linked && f.Prev != prev {
					yield(Frame{Index: f.Index}, wrongLink(f.Index, f.Prev, prev))
					return
				}
				if !yield(f, nil) {
					return
				}
				next, prev, linked = next+1, f.Hash, true
			}
			if batch.err != nil {
				yield(Frame{Index: next}, batch.err)
				return
			}
			ahead.free <- batch
		}
	}
}

// AppendFrames appends stored entries of another log with one fsync. They must follow the last
// entry and carry its hash; an empty log may begin at any index. Errors are those of
// AppendPrepared, and ErrDamaged if the entries are not linked.
func (l *Log) AppendFrames(frames []Frame) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.checkWritable(); err != nil || len(frames) == 0 {
		return err
	}
	if err := l.checkFollows(frames); err != nil {
		return err
	}
	logs := make([]*raft.Log, len(frames))
	for i, f := range frames {
		logs[i] = &raft.Log{Index: f.Index, Data: f.Raw}
	}
	last := frames[len(frames)-1]
	if err := l.storeLogs(logs, last.Hash); err != nil {
		return err
	}
	for _, f := range frames {
		l.hashes.put(f.Index, f.Hash)
	}
	l.first.CompareAndSwap(0, frames[0].Index)
	l.setLast(last.Index, last.Hash)
	return nil
}

func (l *Log) checkFollows(frames []Frame) error {
	next, prev := l.last.Load()+1, l.lastHash
	if l.last.Load() == 0 {
		next, prev = frames[0].Index, frames[0].Prev
	}
	total := 0
	for _, f := range frames {
		if f.Index != next || f.Index == 0 {
			return fmt.Errorf("%w: got entry %d, the next is %d", ErrGap, f.Index, next)
		}
		if f.Prev != prev {
			return damageErrorf(f.Index, nil, "carries hash %x of its predecessor, which has %x", f.Prev[:8], prev[:8])
		}
		next, prev, total = next+1, f.Hash, total+len(f.Raw)
	}
	if frames[0].Index == 1 && frames[0].Prev != [sha256.Size]byte{} {
		return damageErrorf(1, nil, "the first entry carries a hash")
	}
	if total > MaxBatchBytes {
		return fmt.Errorf("%w: batch of %d bytes, at most %d", ErrTooLarge, total, MaxBatchBytes)
	}
	return nil
}
