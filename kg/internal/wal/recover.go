package wal

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// recoverTail examines the directory before raft-wal does, refuses damage that raft-wal would
// ignore silently, and brings the last segment into a state that raft-wal handles correctly:
//
//   - bytes behind the last good batch are set to zero. Otherwise a later, shorter batch
//     would be followed by remains of older ones, which may contain whole batches;
//   - the segment is synced. After a killed process the page cache may show entries that
//     were never synced, and they are about to be trusted;
//   - a full segment is closed in the metadata. raft-wal does that in the background; if a
//     crash prevented it, raft-wal refuses appends forever.
//
// mark is an entry known to have been durable, or nil. The result is the written length of each
// segment file. A read-only log is not changed, and a lenient one is not refused.
func (m *metaStore) recoverTail(mark *indexHash, segmentBytes int) (map[string]int64, error) {
	used := make(map[string]int64)
	for _, seg := range m.body.State.Segments {
		if isSealed(seg) {
			used[segment.FileName(seg)] = sealedEnd(seg)
		}
	}
	if !m.lenient {
		if err := m.checkFiles(); err != nil {
			return nil, err
		}
	}
	t, name, err := m.settleTail(mark)
	if err != nil && !m.lenient {
		return nil, err
	}
	if t.end > 0 {
		used[name] = t.end
	}
	if t.sealedAt != 0 && !m.readOnly {
		err = m.finishRotation(t, segmentBytes)
	} else {
		err = m.repairFiles()
	}
	if err != nil {
		return nil, fmt.Errorf("wal: metadata: %w", err)
	}
	return used, nil
}

// sealedEnd returns the end of the commit frame behind the index of a full segment.
func sealedEnd(seg types.SegmentInfo) int64 {
	index := int64(seg.MaxIndex-seg.BaseIndex+1) * 4
	return int64(seg.IndexStart) + (index+7)&^7 + lowerHeaderBytes
}

// settleTail examines the last segment and repairs it.
func (m *metaStore) settleTail(mark *indexHash) (t tail, name string, err error) {
	segments := m.body.State.Segments
	if len(segments) == 0 {
		return tail{}, "", tail{}.checkMark(mark)
	}
	last := segments[len(segments)-1]
	name = segment.FileName(last)
	f, err := m.openTail(name)
	if errors.Is(err, os.ErrNotExist) {
		// The metadata is written before the file, so a crash can explain this.
		t = tail{last: last.BaseIndex - 1}
		return t, name, t.checkMark(mark)
	}
	if err != nil {
		return t, name, fmt.Errorf("wal: %w", err)
	}
	t, err = scanTail(f, last.BaseIndex)
	if err == nil {
		err = t.checkMark(mark)
	}
	if err == nil && !m.readOnly {
		err = t.repair(f)
	}
	return t, name, errors.Join(err, f.Close())
}

// openTail opens the last segment, for reading in a read-only log.
func (m *metaStore) openTail(name string) (types.WritableFile, error) {
	if !m.readOnly {
		return m.files.OpenWriter(m.dir, name)
	}
	f, err := m.files.OpenReader(m.dir, name)
	if err != nil {
		return nil, err
	}
	return readOnlyFile{f}, nil
}

// checkFiles compares the segment files with the metadata. raft-wal deletes files that the
// metadata does not name, which is right for truncated segments and wrong if the metadata is
// old.
func (m *metaStore) checkFiles() error {
	names, err := m.files.ListDir(m.dir)
	if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
		if !isSegmentName(name) {
			continue
		}
		var base, id uint64
		if _, err := fmt.Sscanf(name, "%020d-%016x.wal", &base, &id); err != nil {
			return damageErrorf(0, err, "segment name %q", name)
		}
		if id >= m.body.State.NextSegmentID {
			return damageErrorf(base, nil, "segment %s is newer than the metadata", name)
		}
	}
	for _, seg := range m.body.State.Segments {
		if name := segment.FileName(seg); isSealed(seg) && !there[name] {
			return damageErrorf(seg.BaseIndex, nil, "segment %s is gone", name)
		}
	}
	return nil
}

// checkMark compares the end of the log with entries known to have been durable.
func (t tail) checkMark(mark *indexHash) error {
	if t.settled > t.last {
		return damageErrorf(t.last+1, nil, "the log ends before this entry, but a later frame proves that entry %d was durable", t.settled)
	}
	if mark != nil && mark.index > t.last {
		return damageErrorf(t.last+1, nil, "the log ends before this entry, but entry %d was durable", mark.index)
	}
	return nil
}

func (t tail) repair(f types.WritableFile) error {
	zeros := make([]byte, min(t.dirtyEnd-t.end, scanBufferBytes))
	for at := t.end; at < t.dirtyEnd; {
		n, err := f.WriteAt(zeros[:min(t.dirtyEnd-at, int64(len(zeros)))], at)
		if err != nil {
			return fmt.Errorf("wal: clear the remains of an unfinished append: %w", err)
		}
		at += int64(n)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("wal: sync: %w", err)
	}
	return nil
}

// finishRotation records that the last segment is full, and its successor, for which raft-wal
// then creates the file.
func (m *metaStore) finishRotation(t tail, segmentBytes int) error {
	s := m.body.State
	full := &s.Segments[len(s.Segments)-1]
	full.SealTime = time.Now()
	full.MaxIndex = t.last
	full.IndexStart = uint64(t.sealedAt)
	s.Segments = append(s.Segments, types.SegmentInfo{
		ID:         s.NextSegmentID,
		BaseIndex:  t.last + 1,
		MinIndex:   t.last + 1,
		Codec:      codecID,
		CreateTime: full.SealTime,
		SizeLimit:  uint32(segmentBytes),
	})
	s.NextSegmentID++
	return m.CommitState(s)
}
