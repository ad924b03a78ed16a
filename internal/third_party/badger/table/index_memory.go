package table

import "sync/atomic"

// IndexMemory bounds the memory of the indexes that the tables of a DB have outside of their
// files. A look-up reads the filter and the index of a table, a page here and a page there, and
// the system maps 64 KiB around each: in memory of their own they take a third of that.
type IndexMemory struct{ left atomic.Int64 }

// NewIndexMemory returns an IndexMemory of a number of bytes.
func NewIndexMemory(size int64) *IndexMemory {
	m := new(IndexMemory)
	m.left.Store(size)
	return m
}

// acquire takes room for an index, and reports whether there is any.
func (m *IndexMemory) acquire(size int) bool {
	if m == nil {
		return false
	}
	if m.left.Add(-int64(size)) >= 0 {
		return true
	}
	m.release(size)
	return false
}

// release gives the room of an index back.
func (m *IndexMemory) release(size int) { m.left.Add(int64(size)) }

// Left returns the bytes that no index has, 0 for a nil IndexMemory.
func (m *IndexMemory) Left() int64 {
	if m == nil {
		return 0
	}
	return m.left.Load()
}
