package wal

import (
	"errors"
	"sync"

	"github.com/hashicorp/raft-wal/types"
)

// segmentWriter is a segment that raft-wal writes, and goes on reading from when it is full. From
// then on it is a reader of the file: the writer has the place of each entry and the buffer in
// which it wrote them, a few MiB, and raft-wal keeps one for each segment since the start.
type segmentWriter struct {
	filer filer
	info  types.SegmentInfo

	mu     sync.RWMutex // guards the fields below; held shared while one of them is used
	writer types.SegmentWriter
	reader types.SegmentReader // of a full segment; the writer is nil then
	last   uint64              // the last entry of a full segment
}

func (f filer) newSegmentWriter(info types.SegmentInfo, w types.SegmentWriter, err error) (types.SegmentWriter, error) {
	if err != nil {
		return nil, err
	}
	return &segmentWriter{filer: f, info: info, writer: w}, nil
}

func (w *segmentWriter) Append(entries []types.LogEntry) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.writer == nil {
		return types.ErrSealed
	}
	return w.writer.Append(entries)
}

// Sealed reports whether the segment is full. raft-wal calls it after each Append.
func (w *segmentWriter) Sealed() (sealed bool, indexStart uint64, err error) {
	w.mu.RLock()
	writer := w.writer
	w.mu.RUnlock()
	if writer == nil {
		return true, w.info.IndexStart, nil
	}
	if sealed, indexStart, err = writer.Sealed(); sealed && err == nil {
		w.becomeReader(indexStart)
	}
	return sealed, indexStart, err
}

func (w *segmentWriter) ForceSeal() (indexStart uint64, err error) {
	w.mu.RLock()
	writer := w.writer
	w.mu.RUnlock()
	if writer == nil {
		return w.info.IndexStart, nil
	}
	if indexStart, err = writer.ForceSeal(); err == nil {
		w.becomeReader(indexStart)
	}
	return indexStart, err
}

// becomeReader replaces the writer by a reader. If the file cannot be opened, the writer stays: it
// can read too.
func (w *segmentWriter) becomeReader(indexStart uint64) {
	info := w.info
	info.IndexStart, info.MaxIndex = indexStart, w.writer.LastIndex()
	reader, err := w.filer.Open(info)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.writer.Close() // everything is on the volume
	w.info, w.last, w.reader, w.writer = info, info.MaxIndex, reader, nil
}

func (w *segmentWriter) LastIndex() uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.writer == nil {
		return w.last
	}
	return w.writer.LastIndex()
}

func (w *segmentWriter) GetLog(index uint64) (*types.PooledBuffer, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.writer == nil {
		return w.reader.GetLog(index)
	}
	return w.writer.GetLog(index)
}

func (w *segmentWriter) Close() (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writer != nil {
		err = w.writer.Close()
	}
	if w.reader != nil {
		err = errors.Join(err, w.reader.Close())
	}
	return err
}
