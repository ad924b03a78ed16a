package wal

// Two files, "meta-a" and "meta-b", each hold the whole metadata of the log:
//
//	offset size
//	     0    8  magic "koinewal"
//	     8    4  CRC-32C of everything from byte 12 on
//	    12    4  length of the body, big-endian
//	    16    …  body, JSON (metaBody)
//
// Every change writes and syncs one file, then the other. A write torn by a power cut thus
// leaves the other file intact, and so does later bit rot. bbolt, raft-wal's default store,
// was rejected: a flipped byte in it can panic or crash the process, and opening it waits
// for a lock.

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"slices"
	"sync/atomic"

	"github.com/hashicorp/raft-wal/types"
)

const (
	metaMagic   = "koinewal"
	metaHeader  = 16
	metaVersion = 1
	// maxMetaBytes bounds a metadata file; a segment takes about 250 bytes of it.
	maxMetaBytes = 64 << 20
)

var metaNames = [2]string{"meta-a", "meta-b"}

// metaBody is the metadata of a log. Sequence grows with every change.
type metaBody struct {
	Version  int
	Sequence uint64
	State    types.PersistentState
}

// metaStore implements types.MetaStore over two files. raft-wal calls it from
// one goroutine at a time.
type metaStore struct {
	files    types.VFS
	dir      string
	readOnly bool
	lenient  bool // do not refuse a log with lost entries

	body     metaBody
	segments atomic.Pointer[[]types.SegmentInfo] // of body: for any goroutine, and unchanged
	next     int                                 // file to write first: never the only valid one
	uneven   bool                                // the files differ, or one is not legible
	failed   error
}

// openMeta reads the metadata; a new log has none yet.
func openMeta(files types.VFS, dir string, readOnly bool) (*metaStore, error) {
	m := &metaStore{files: files, dir: dir, readOnly: readOnly}
	var bodies [2]*metaBody
	var faults [2]error
	for i, name := range metaNames {
		if bodies[i], faults[i] = readMeta(files, dir, name); faults[i] != nil && !isMetaFault(faults[i]) {
			return nil, fmt.Errorf("wal: %s: %w", name, faults[i])
		}
	}
	a, b := bodies[0], bodies[1]
	best := a
	switch {
	case a == nil && b == nil:
		return m, m.refuseUnlessNew(faults)
	case a == nil, b != nil && b.Sequence > a.Sequence:
		best, m.next = b, 0
	default:
		m.next = 1
	}
	m.uneven = a == nil || b == nil || a.Sequence != b.Sequence
	m.body = *best
	if best.Version != metaVersion {
		return nil, fmt.Errorf("%w: metadata %d", ErrVersion, best.Version)
	}
	m.noteSegments()
	return m, checkSegments(best.State)
}

// noteSegments notes the segments of the metadata.
func (m *metaStore) noteSegments() {
	segments := slices.Clone(m.body.State.Segments)
	m.segments.Store(&segments)
}

// sealedSegments returns the segments that no append reaches anymore. It is safe for concurrent use.
func (m *metaStore) sealedSegments() []types.SegmentInfo {
	list := m.segments.Load()
	if list == nil {
		return nil
	}
	sealed := *list
	for len(sealed) > 0 && !isSealed(sealed[len(sealed)-1]) {
		sealed = sealed[:len(sealed)-1]
	}
	return sealed
}

// isSealed reports whether no append goes to a segment anymore.
func isSealed(seg types.SegmentInfo) bool { return !seg.SealTime.IsZero() }

// refuseUnlessNew distinguishes a log that was never begun (no metadata, or its first write
// was torn) from one that has lost its metadata.
func (m *metaStore) refuseUnlessNew(faults [2]error) error {
	names, err := m.files.ListDir(m.dir)
	if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	for _, name := range names {
		if isSegmentName(name) {
			return damageErrorf(0, errors.Join(faults[:]...), "segment %s without metadata", name)
		}
	}
	for _, fault := range faults {
		if errors.Is(fault, os.ErrNotExist) {
			return nil
		}
	}
	return damageErrorf(0, errors.Join(faults[:]...), "metadata")
}

var errMeta = errors.New("metadata not legible")

func isMetaFault(err error) bool {
	return errors.Is(err, errMeta) || errors.Is(err, os.ErrNotExist)
}

func readMeta(files types.VFS, dir, name string) (*metaBody, error) {
	f, err := files.OpenReader(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxMetaBytes))
	if err != nil {
		return nil, err
	}
	return decodeMeta(b)
}

func decodeMeta(b []byte) (*metaBody, error) {
	if len(b) < metaHeader || string(b[:8]) != metaMagic {
		return nil, fmt.Errorf("%w: no header", errMeta)
	}
	n := binary.BigEndian.Uint32(b[12:])
	if uint64(n) > uint64(len(b)-metaHeader) {
		return nil, fmt.Errorf("%w: body of %d bytes in a file of %d", errMeta, n, len(b))
	}
	b = b[:metaHeader+int(n)]
	if crc32.Checksum(b[12:], castagnoli) != binary.BigEndian.Uint32(b[8:]) {
		return nil, fmt.Errorf("%w: checksum", errMeta)
	}
	var body metaBody
	if err := json.Unmarshal(b[metaHeader:], &body); err != nil {
		return nil, fmt.Errorf("%w: %v", errMeta, err)
	}
	return &body, nil
}

func encodeMeta(body metaBody) ([]byte, error) {
	j, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if len(j) > maxMetaBytes-metaHeader {
		return nil, fmt.Errorf("%w: metadata of %d bytes", ErrTooLarge, len(j))
	}
	b := make([]byte, metaHeader, metaHeader+len(j))
	copy(b, metaMagic)
	binary.BigEndian.PutUint32(b[12:], uint32(len(j)))
	b = append(b, j...)
	binary.BigEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b, nil
}

// checkSegments checks metadata that raft-wal trusts: segments must be contiguous, and only
// the last may be open.
func checkSegments(s types.PersistentState) error {
	for i, seg := range s.Segments {
		last := i == len(s.Segments)-1
		switch {
		case isSealed(seg) == last, seg.BaseIndex == 0, seg.ID >= s.NextSegmentID,
			seg.MinIndex < seg.BaseIndex, !last && seg.MaxIndex < seg.MinIndex,
			seg.IndexStart > math.MaxUint32,
			i > 0 && s.Segments[i-1].MaxIndex+1 != seg.BaseIndex:
			return damageErrorf(0, nil, "metadata of segment %d of %d", i+1, len(s.Segments))
		}
	}
	return nil
}

// Load returns the metadata that openMeta has read.
func (m *metaStore) Load(string) (types.PersistentState, error) { return m.body.State, nil }

// CommitState replaces the metadata in both files. After a failure every later call fails,
// because the content of the files is unknown.
func (m *metaStore) CommitState(s types.PersistentState) error {
	if m.readOnly || m.failed != nil {
		return m.failed
	}
	for i := range s.Segments {
		s.Segments[i].Codec = codecID // raft-wal always writes the id of its own codec
	}
	m.body.Version = metaVersion
	m.body.Sequence++
	m.body.State = s
	if m.failed = m.writeBoth(); m.failed == nil {
		m.noteSegments()
	}
	return m.failed
}

// repairFiles makes both files equal again after one was torn or damaged.
func (m *metaStore) repairFiles() error {
	if !m.uneven || m.readOnly {
		return nil
	}
	return m.CommitState(m.body.State)
}

// encodedLen returns the length of the files.
func (m *metaStore) encodedLen() int64 {
	b, err := encodeMeta(m.body)
	if err != nil {
		return maxMetaBytes
	}
	return int64(len(b))
}

func (m *metaStore) writeBoth() error {
	b, err := encodeMeta(m.body)
	if err != nil {
		return err
	}
	for range metaNames {
		if err := m.write(metaNames[m.next], b); err != nil {
			return err
		}
		m.next = 1 - m.next
	}
	m.uneven = false
	return nil
}

func (m *metaStore) write(name string, b []byte) error {
	f, err := m.files.OpenWriter(m.dir, name)
	if errors.Is(err, os.ErrNotExist) {
		f, err = m.files.Create(m.dir, name, 0)
	}
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

var errNoStable = errors.New("wal: no stable store")

// GetStable and SetStable are for raft's use of raft-wal; they are never called here.
func (m *metaStore) GetStable([]byte) ([]byte, error) { return nil, errNoStable }
func (m *metaStore) SetStable(_, _ []byte) error      { return errNoStable }

// Close does nothing: the files are open only while they are written.
func (m *metaStore) Close() error { return nil }
