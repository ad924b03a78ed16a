package wal

import (
	"encoding/binary"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// windowBytes is how much of a segment an orderedReader has in memory, or one entry if that is
// longer.
const windowBytes = 256 << 10

// orderedReader reads entries in ascending order. raft-wal reads 64 KiB for each entry, and the
// index of its segment before; an orderedReader reads a closed segment in windows. What it does
// not find there, raft-wal reads, and tells why it cannot. It belongs to one goroutine.
type orderedReader struct {
	l    *Log
	seg  types.SegmentInfo  // the open one
	file types.ReadableFile // nil for none

	offsets fileWindow // of the segment's index
	entries fileWindow
}

// fileWindow is a part of a file.
type fileWindow struct {
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

// find returns the bytes of an entry in a closed segment, valid until the next call, or nil if
// they are not where they belong.
func (r *orderedReader) find(index uint64) []byte {
	if !r.openSegment(index) {
		return nil
	}
	at := int64(r.seg.IndexStart) + 4*int64(index-r.seg.BaseIndex)
	offset := r.offsets.read(r.file, at, 4, sealedEnd(r.seg))
	if offset == nil {
		return nil
	}
	at = int64(binary.LittleEndian.Uint32(offset))
	header := r.entries.read(r.file, at, lowerHeaderBytes, int64(r.seg.IndexStart))
	if header == nil || header[0] != lowerEntry {
		return nil
	}
	n := binary.LittleEndian.Uint32(header[4:])
	if n > MaxEntryBytes {
		return nil
	}
	return r.entries.read(r.file, at+lowerHeaderBytes, int(n), int64(r.seg.IndexStart))
}

// openSegment opens the closed segment of an entry. It returns false if there is none, or the
// entry is not to be read.
func (r *orderedReader) openSegment(index uint64) bool {
	l := r.l
	l.open.RLock()
	defer l.open.RUnlock()
	if l.closed || index == 0 || index > l.last.Load() || index < l.First() {
		return false
	}
	if r.file != nil && index >= r.seg.MinIndex && index <= r.seg.MaxIndex {
		return true
	}
	r.Close()
	r.offsets.bytes, r.entries.bytes = r.offsets.bytes[:0], r.entries.bytes[:0]
	for _, seg := range l.meta.closedSegments() {
		if index < seg.MinIndex || index > seg.MaxIndex {
			continue
		}
		f, err := l.files.OpenReader(l.dir, segment.FileName(seg))
		if err != nil {
			return false
		}
		r.seg, r.file = seg, f
		return true
	}
	return false
}

// read returns n bytes at an offset, valid until the next call, or nil if they cannot be read.
// What it reads ahead ends at end.
func (w *fileWindow) read(f types.ReadableFile, at int64, n int, end int64) []byte {
	if at < 0 || at+int64(n) > end {
		return nil
	}
	if at < w.at || at+int64(n) > w.at+int64(len(w.bytes)) {
		size := int(min(max(int64(n), windowBytes), end-at))
		if cap(w.bytes) < size || cap(w.bytes) > max(size, windowBytes) {
			w.bytes = make([]byte, size)
		}
		w.at, w.bytes = at, w.bytes[:size]
		if got, _ := f.ReadAt(w.bytes, at); got < size { // raft-wal will meet the error
			w.bytes = w.bytes[:0]
			return nil
		}
	}
	return w.bytes[at-w.at : at-w.at+int64(n)]
}
