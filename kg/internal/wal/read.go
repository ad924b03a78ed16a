package wal

import (
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// Entry is an entry of the log.
type Entry struct {
	Index   uint64
	Payload []byte // the receiver may keep it
}

// Read returns the payload of one entry. It checks the checksum, the index and the hash of the
// previous entry (unless that was truncated). The caller may keep the slice. The error is
// ErrNotFound, ErrDamaged, ErrClosed or one of the file system.
func (l *Log) Read(index uint64) ([]byte, error) {
	f, _, err := l.readFrame(index)
	if err != nil {
		return nil, err
	}
	return unpack(f)
}

// Hash returns the SHA-256 of the frame of an entry. A checkpoint that stores the hash of its
// last entry can later be compared with the log, even if that entry was truncated: for the
// index First()-1 the link in the first entry has the hash.
func (l *Log) Hash(index uint64) ([32]byte, error) {
	if index != 0 && index+1 == l.First() {
		f, _, err := l.readFrame(index + 1)
		return f.prev, err
	}
	_, hash, err := l.readFrame(index)
	return hash, err
}

// Entries yields the entries from index from to index to (Last, if that is lower or to is 0).
// An error ends the sequence. It checks as Read does. A from above Last yields nothing, one
// below First yields ErrNotFound.
func (l *Log) Entries(from, to uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		last := l.Last()
		if to == 0 || to > last {
			to = last
		}
		if last == 0 {
			return
		}
		in := l.newOrderedReader()
		defer in.Close()
		for index := from; index <= to; index++ {
			var payload []byte
			f, _, err := l.readFrameFrom(in, index, nil)
			if err == nil {
				payload, err = unpack(f)
			}
			if err != nil {
				yield(Entry{Index: index}, err)
				return
			}
			if !yield(Entry{Index: index, Payload: payload}, nil) {
				return
			}
		}
	}
}

// verifyStride is the number of entries between two calls of Verify's progress.
const verifyStride = 1024

// Verify reads and checks the whole log, including payloads. It calls progress, which may be
// nil, now and then and at the end, with numbers of entries. Entries appended meanwhile are not
// read.
func (l *Log) Verify(ctx context.Context, progress func(done, total uint64)) error {
	if progress == nil {
		progress = func(uint64, uint64) {}
	}
	first, last := l.First(), l.Last()
	if last == 0 {
		return l.stillOpen()
	}
	total := last - first + 1
	var frames, room []byte // reused buffers for frames and payloads
	in := l.newOrderedReader()
	defer in.Close()
	for index := first; index <= last; index++ {
		f, _, err := l.readFrameFrom(in, index, frames)
		if err != nil {
			return err
		}
		if cap(f.raw) <= maxRoom {
			frames = f.raw
		}
		if room, err = f.unpackInto(room); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if done := index - first + 1; done%verifyStride == 0 || done == total {
			progress(done, total)
		}
	}
	return nil
}

func (l *Log) stillOpen() error {
	l.open.RLock()
	defer l.open.RUnlock()
	if l.closed {
		return ErrClosed
	}
	return nil
}

// frameSource reads an entry, into room if that is large enough, and checks it without its
// neighbours.
type frameSource interface {
	readLone(index uint64, room []byte) (frame, error)
}

// readFrame reads one entry, checks it and its link, and returns its hash.
func (l *Log) readFrame(index uint64) (frame, [sha256.Size]byte, error) {
	return l.readFrameFrom(l, index, nil)
}

// readFrameFrom is readFrame with a source and a buffer for the frame.
func (l *Log) readFrameFrom(from frameSource, index uint64, room []byte) (frame, [sha256.Size]byte, error) {
	f, err := from.readLone(index, room)
	if err != nil {
		return frame{}, [sha256.Size]byte{}, err
	}
	hash, err := l.checkLink(f)
	if err != nil {
		return frame{}, hash, err
	}
	return f, hash, nil
}

// checkLink compares the link of an entry with the hash of its predecessor, and returns the
// hash of the entry.
func (l *Log) checkLink(f frame) ([sha256.Size]byte, error) {
	hash := l.hashFrame(f)
	want, known, err := l.linkBefore(f.index)
	if known && f.prev != want {
		err = wrongLink(f.index, f.prev, want)
	}
	return hash, err
}

// linkBefore returns the hash that an entry must carry. It is not known if the entry before was
// truncated.
func (l *Log) linkBefore(index uint64) (hash [sha256.Size]byte, known bool, err error) {
	hash, err = l.hashBefore(index)
	if errors.Is(err, ErrNotFound) {
		return hash, false, nil
	}
	return hash, err == nil, err
}

func (l *Log) hashFrame(f frame) [sha256.Size]byte {
	hash := sha256.Sum256(f.raw)
	l.hashes.put(f.index, hash)
	return hash
}

func wrongLink(index uint64, got, want [sha256.Size]byte) error {
	return damageErrorf(index, nil, "carries hash %x of its predecessor, which has %x", got[:8], want[:8])
}

// hashBefore returns the hash of the previous entry; ErrNotFound if it is unknown.
func (l *Log) hashBefore(index uint64) ([sha256.Size]byte, error) {
	if index == 1 {
		return [sha256.Size]byte{}, nil
	}
	if hash, ok := l.hashes.get(index - 1); ok {
		return hash, nil
	}
	f, err := l.readLone(index-1, nil)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return l.hashFrame(f), nil
}

// readLone reads one entry, into room if that is large enough, and checks it without its
// neighbours.
func (l *Log) readLone(index uint64, room []byte) (frame, error) {
	raw, err := l.rawFrame(index, room)
	if err != nil {
		return frame{}, err
	}
	f, err := decodeFrame(raw)
	if errors.Is(err, ErrVersion) {
		return frame{}, err
	}
	if err != nil {
		return frame{}, damageErrorf(index, err, "frame")
	}
	if f.index != index {
		return frame{}, damageErrorf(index, nil, "found entry %d in its place", f.index)
	}
	return f, nil
}

// raftLogs are pooled, because raft-wal makes them escape.
var raftLogs = sync.Pool{New: func() any { return new(raft.Log) }}

func (l *Log) rawFrame(index uint64, room []byte) ([]byte, error) {
	l.open.RLock()
	defer l.open.RUnlock()
	if l.closed {
		return nil, ErrClosed
	}
	if index == 0 || index > l.last.Load() || index < l.First() {
		return nil, ErrNotFound
	}
	entry := raftLogs.Get().(*raft.Log)
	entry.Data = room
	err := l.wal.GetLog(index, entry)
	raw := entry.Data
	entry.Data = nil
	raftLogs.Put(entry)
	if err == nil {
		return raw, nil
	}
	// A truncation may have closed the file under a slow reader.
	if index < l.First() {
		return nil, ErrNotFound
	}
	return nil, lowerError(index, "cannot be read", err)
}

func unpack(f frame) ([]byte, error) {
	payload, err := f.decodePayload(nil)
	if err != nil {
		return nil, damageErrorf(f.index, err, "payload")
	}
	return payload, nil
}

// maxRoom is the largest payload buffer that is reused.
const maxRoom = 1 << 20

// unpackInto checks the payload of a frame and returns the buffer for reuse.
func (f frame) unpackInto(room []byte) ([]byte, error) {
	payload, err := f.decodePayload(room)
	if err != nil {
		return nil, damageErrorf(f.index, err, "payload")
	}
	if f.flags&flagZstd != 0 && cap(payload) <= maxRoom {
		room = payload[:0]
	}
	return room, nil
}

// hashCacheEntries is the size of the hash cache: a few concurrent sequential readers never
// read an entry twice for its hash.
const hashCacheEntries = 1024

// hashCache has hashes of entries that this process wrote or checked. The zero value is ready;
// it is safe for concurrent use.
type hashCache struct {
	slots [hashCacheEntries]atomic.Pointer[indexHash]
}

type indexHash struct {
	index uint64
	hash  [sha256.Size]byte
}

func (c *hashCache) put(index uint64, hash [sha256.Size]byte) {
	c.slots[index%hashCacheEntries].Store(&indexHash{index, hash})
}

func (c *hashCache) get(index uint64) ([sha256.Size]byte, bool) {
	if h := c.slots[index%hashCacheEntries].Load(); h != nil && h.index == index {
		return h.hash, true
	}
	return [sha256.Size]byte{}, false
}
