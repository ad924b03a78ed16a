package wal

import (
	"encoding/binary"
	"math"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// windowBytes is how much of a segment an orderedReader has in memory, or one entry if that is
// longer.
const windowBytes = 256 << 10

// lowerReadBytes is the number of bytes that raft-wal reads for an entry.
const lowerReadBytes = 64 << 10

// orderedReader reads entries in ascending order. raft-wal reads lowerReadBytes for each entry,
// and the index of its segment before; an orderedReader reads windows of a segment and follows
// the entries in them. Entries that it does not find there are read through raft-wal, which has
// the error if that fails. It belongs to one goroutine.
type orderedReader struct {
	l        *Log
	segments *[]types.SegmentInfo // of the log when seg was looked up
	seg      types.SegmentInfo    // of file
	file     types.ReadableFile   // nil for none

	next uint64 // the entry at the position, 0 if there is no position
	at   int64  // offset of the position in the file

	offsets window // of the index of a closed segment
	entries window
	// complete, of a segment that is not sealed, is the last entry that was durable before the
	// window was read. What the window has of later ones is not used.
	complete uint64
	// lone is how many entries raft-wal has read of a segment that is not sealed. Such a segment
	// has no index yet, so a position in it is found from its beginning, which pays once raft-wal
	// has read as much.
	lone int
}

// window is a part of a file.
type window struct {
	at    int64
	bytes []byte
}

func (l *Log) newOrderedReader() *orderedReader { return &orderedReader{l: l} }

// Close closes the segment.
func (r *orderedReader) Close() {
	if r.file != nil {
		_ = r.file.Close() // opened for reading
		r.file = nil
	}
	r.next, r.lone = 0, 0
	r.offsets.clear()
	r.entries.clear()
}

// readLone is Log.readLone.
func (r *orderedReader) readLone(index uint64, room []byte) (frame, error) {
	if raw := r.find(index); raw != nil {
		room = append(room[:0], raw...)
		if f, err := decodeFrame(room); err == nil && f.index == index {
			return f, nil
		}
	}
	return r.l.readLone(index, room)
}

// find returns the bytes that should be those of an entry, valid until the next call, or nil if
// it does not find them.
func (r *orderedReader) find(index uint64) []byte {
	if !r.openSegment(index) || index != r.next && !r.seek(index) {
		return nil
	}
	return r.readNext(true)
}

// findRead is find for the next entry, if all of it is in the window: entries found there before stay
// valid.
func (r *orderedReader) findRead(index uint64) []byte {
	if index != r.next || !segmentHas(r.seg, index) {
		return nil
	}
	return r.readNext(false)
}

// openSegment opens the segment of an entry. It returns false if there is none, or the entry is
// not to be read.
func (r *orderedReader) openSegment(index uint64) bool {
	l := r.l
	l.open.RLock()
	defer l.open.RUnlock()
	if l.closed || index == 0 || index > l.last.Load() || index < l.First() {
		return false
	}
	segments := l.meta.segments.Load()
	if r.file != nil && segments == r.segments && segmentHas(r.seg, index) {
		return true
	}
	if segments == nil {
		return false
	}
	r.segments = segments
	for _, seg := range *segments {
		if !segmentHas(seg, index) {
			continue
		}
		if r.file != nil && seg.ID == r.seg.ID { // sealed in the meantime
			r.seg = seg
			r.entries.clear() // it may have been read past the last durable entry
			return true
		}
		r.Close()
		f, err := l.files.OpenReader(l.dir, segment.FileName(seg))
		if err != nil {
			return false
		}
		r.seg, r.file = seg, f
		return true
	}
	return false
}

// segmentHas reports whether a segment has an entry, if the log has it.
func segmentHas(seg types.SegmentInfo, index uint64) bool {
	return index >= seg.MinIndex && (!isSealed(seg) || index <= seg.MaxIndex)
}

// seek sets the position to an entry of the segment.
func (r *orderedReader) seek(index uint64) bool {
	r.next = 0
	if !isSealed(r.seg) {
		if index > r.seg.BaseIndex {
			if r.lone++; r.lone <= r.l.options.SegmentBytes/lowerReadBytes {
				return false
			}
		}
		r.next, r.at = r.seg.BaseIndex, fileHeaderBytes
		for r.next < index && r.readNext(true) != nil {
		}
		if r.next != index {
			r.lone = 0 // so that a search costs no more than what raft-wal reads between two
		}
		return r.next == index
	}
	at := int64(r.seg.IndexStart) + 4*int64(index-r.seg.BaseIndex)
	if offset := r.offsets.read(r.file, at, 4, sealedEnd(r.seg)); offset != nil {
		r.next, r.at = index, int64(binary.LittleEndian.Uint32(offset))
	}
	return r.next == index
}

// readNext returns the entry at the position, valid until the window moves, and goes to the one
// after it. If there is none, it returns nil, and there is no position anymore. Without mayMove it
// returns nil instead of moving the window, and keeps the position.
func (r *orderedReader) readNext(mayMove bool) []byte {
	end := int64(r.seg.IndexStart)
	if !isSealed(r.seg) {
		end = math.MaxInt64
		if r.next > r.complete {
			if !mayMove {
				return nil
			}
			r.complete = r.l.last.Load() // before the window is read
			r.entries.clear()
		}
	}
	read := func(at int64, n int) []byte {
		if !mayMove && !r.entries.has(at, n) {
			return nil
		}
		return r.entries.read(r.file, at, n, end)
	}
	at := r.at
	for header := read(at, lowerHeaderBytes); header != nil; header = read(at, lowerHeaderBytes) {
		if header[0] == lowerCommit { // the end of a batch
			at += lowerHeaderBytes
			continue
		}
		n := int64(binary.LittleEndian.Uint32(header[4:]))
		if header[0] != lowerEntry || n > MaxEntryBytes {
			break
		}
		raw := read(at+lowerHeaderBytes, int(n))
		if raw == nil {
			break
		}
		r.next, r.at = r.next+1, at+lowerHeaderBytes+(n+7)&^7
		return raw
	}
	if mayMove {
		r.next = 0
	}
	return nil
}

func (w *window) clear() { w.bytes = w.bytes[:0] }

// has reports whether n bytes at an offset are in the window.
func (w *window) has(at int64, n int) bool {
	return at >= w.at && at+int64(n) <= w.at+int64(len(w.bytes))
}

// read returns n bytes at an offset, valid until the next call, or nil if they cannot be read.
// What it reads ahead ends at end.
func (w *window) read(f types.ReadableFile, at int64, n int, end int64) []byte {
	if at < 0 || at > end-int64(n) {
		return nil
	}
	if !w.has(at, n) {
		size := int(min(max(int64(n), windowBytes), end-at))
		if cap(w.bytes) < size || cap(w.bytes) > max(size, windowBytes) {
			w.bytes = make([]byte, size)
		}
		got, _ := f.ReadAt(w.bytes[:size], at) // raft-wal will meet the error
		if w.at, w.bytes = at, w.bytes[:got]; got < n {
			return nil
		}
	}
	return w.bytes[at-w.at:][:n:n]
}
