package wal

// Only the last segment can be torn by a crash. When raft-wal opens it, it reads up to the first
// invalid frame header, compares the checksum of the last batch found, and takes everything
// before for the log: a bad byte in the middle silently loses the rest. So the segment is read
// here first, every batch with its checksum, and the bytes behind the last good batch are
// searched for legible frames. The header of each frame states up to which index the log was
// durable when it was written; if that is beyond the good batches, entries are lost.
//
// raft-wal's layout (its segment/format.go), little-endian, everything padded
// to 8 bytes: a file header of 32 bytes, then frames of an 8-byte header
// {type, 0, 0, 0, length or checksum} and their content. A batch is its entries,
// then the index of the segment if this batch filled it, then a commit frame
// with the CRC-32C of the batch (of the file header too, for the first).

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"

	"github.com/hashicorp/raft-wal/types"
)

const (
	fileHeaderBytes  = 32
	lowerHeaderBytes = 8
	lowerEntry       = 1
	lowerIndex       = 2
	lowerCommit      = 3
	scanBufferBytes  = 1 << 20
	// maxWitnessBytes bounds the bytes that are checksummed in search of legible
	// frames behind the good batches, where arbitrary bytes may look like a frame.
	maxWitnessBytes = 1 << 30
)

// tail is the state of the last segment as found.
type tail struct {
	last     uint64 // offset behind that batch, 0 if there is none
	end      int64  // offset of the segment's index in a good batch, else 0
	sealedAt int64  // offset of the segment's index if a good batch has it, else 0
	dirtyEnd int64  // offset behind the last byte that is not zero, or end
	settled  uint64 // highest index that a legible frame says was durable
}

// scanTail reads the segment that begins with index base. The error is one of reading, or damage
// within a batch with a valid checksum.
func scanTail(f types.ReadableFile, base uint64) (tail, error) {
	s := tailScan{
		r:    bufio.NewReaderSize(io.NewSectionReader(f, 0, math.MaxInt64), scanBufferBytes),
		base: base,
		next: base,
		tail: tail{last: base - 1},
	}
	if err := s.scanBatches(); err != nil && !errors.Is(err, errScanEnd) {
		return tail{}, err
	}
	t := s.tail
	err := scanLeftover(f, &t)
	return t, err
}

// errScanEnd ends a scan if no good batch follows.
var errScanEnd = errors.New("no further batch")

// tailScan iterates over batches. off, crc, next, odd and indexAt describe the current batch,
// tail the previous ones.
type tailScan struct {
	r       *bufio.Reader
	buf     []byte
	base    uint64
	off     int64
	crc     uint32
	next    uint64
	odd     error // damage of an entry
	indexAt int64
	tail    tail
}

func (s *tailScan) scanBatches() error {
	if _, err := s.readContent(fileHeaderBytes); err != nil {
		return err
	}
	for {
		var h [lowerHeaderBytes]byte
		if err := s.read(h[:]); err != nil {
			return err
		}
		n := binary.LittleEndian.Uint32(h[4:])
		if h[0] == lowerCommit {
			if err := s.scanCommit(n); err != nil {
				return err
			}
			continue
		}
		s.crc = crc32.Update(s.crc, castagnoli, h[:])
		switch h[0] {
		case lowerEntry:
			if err := s.scanEntry(n); err != nil {
				return err
			}
		case lowerIndex:
			if err := s.skipIndex(n); err != nil {
				return err
			}
		default:
			return errScanEnd
		}
	}
}

func (s *tailScan) scanEntry(n uint32) error {
	if n > MaxEntryBytes {
		return errScanEnd
	}
	b, err := s.readContent(int(n))
	if err != nil {
		return err
	}
	f, err := decodeFrame(b)
	switch {
	case s.odd != nil:
	case errors.Is(err, ErrVersion):
		s.odd = err
	case err != nil:
		s.odd = damageErrorf(s.next, err, "frame")
	case f.index != s.next:
		s.odd = damageErrorf(s.next, nil, "found entry %d in its place", f.index)
	}
	s.next++
	return nil
}

// skipIndex skips the index of a full segment: one offset per entry.
func (s *tailScan) skipIndex(n uint32) error {
	if uint64(n) != 4*(s.next-s.base) {
		return errScanEnd
	}
	s.indexAt = s.off
	_, err := s.readContent(int(n))
	return err
}

func (s *tailScan) scanCommit(crc uint32) error {
	if crc != s.crc {
		return errScanEnd
	}
	if s.odd != nil {
		return s.odd
	}
	s.tail.last, s.tail.end, s.tail.sealedAt = s.next-1, s.off, s.indexAt
	s.crc = 0
	if s.indexAt != 0 {
		return errScanEnd
	}
	return nil
}

// readContent reads n bytes and their padding into the batch's checksum. The result is valid until
// the next call.
func (s *tailScan) readContent(n int) ([]byte, error) {
	padded := (n + 7) &^ 7
	if cap(s.buf) < padded {
		s.buf = make([]byte, padded)
	}
	b := s.buf[:padded]
	if err := s.read(b); err != nil {
		return nil, err
	}
	s.crc = crc32.Update(s.crc, castagnoli, b)
	return b[:n], nil
}

func (s *tailScan) read(b []byte) error {
	n, err := io.ReadFull(s.r, b)
	s.off += int64(n)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errScanEnd
	}
	return err
}

// zeros is what most of a segment is: it is preallocated. It is compared with many bytes at once.
var zeros [zerosBytes]byte

const zerosBytes = 4 << 10 // a multiple of 8, as words are compared

// scanLeftover examines the bytes behind the good batches: their end, and the legible frames
// among them.
func scanLeftover(f types.ReadableFile, t *tail) error {
	t.dirtyEnd = t.end
	budget := maxWitnessBytes
	chunk := make([]byte, scanBufferBytes)
	for at := t.end; ; {
		n, err := f.ReadAt(chunk, at)
		if err != nil && err != io.EOF {
			return err
		}
		skip := int64(0)
		for i := 0; i < n; i += 8 {
			if i%zerosBytes == 0 && bytes.Equal(chunk[i:min(i+zerosBytes, n)], zeros[:min(zerosBytes, n-i)]) {
				i += zerosBytes - 8
				continue
			}
			word := chunk[i:min(i+8, n)]
			if allZero(word) {
				continue
			}
			t.dirtyEnd = max(t.dirtyEnd, at+int64(i+len(word)))
			if len(word) < 8 || word[0] != magic0 || word[1] != magic1 || budget <= 0 {
				continue
			}
			w, size, err := readWitness(f, at+int64(i), &budget)
			if err != nil {
				return err
			}
			if size > 0 { // skip it: frames within a payload prove nothing
				t.settled = max(t.settled, w.settled)
				skip = int64(i) + (size+7)&^7
				t.dirtyEnd = max(t.dirtyEnd, at+int64(i)+size)
				break
			}
		}
		if skip == 0 {
			if n < len(chunk) {
				return nil
			}
			skip = int64(n)
		}
		at += skip
	}
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// readWitness reads the frame at offset at; the size is 0 if there is none.
func readWitness(f types.ReadableFile, at int64, budget *int) (frame, int64, error) {
	var h [headerBytes]byte
	if n, err := f.ReadAt(h[:], at); n < len(h) {
		return frame{}, 0, ignoreEOF(err)
	}
	size := int64(headerBytes) + int64(binary.BigEndian.Uint32(h[60:]))
	if size > MaxEntryBytes {
		return frame{}, 0, nil
	}
	*budget -= int(size)
	b := make([]byte, size)
	if n, err := f.ReadAt(b, at); int64(n) < size {
		return frame{}, 0, ignoreEOF(err)
	}
	w, err := decodeFrame(b)
	if err != nil {
		return frame{}, 0, nil
	}
	return w, size, nil
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
