package wal

// A frame stores one entry of the log. All numbers are big-endian.
//
//	offset size
//	     0    2  magic B5 4B
//	     2    1  format version
//	     3    1  flags: bit 0 = payload stored as one zstd frame; others 0
//	     4    4  CRC-32C of bytes 0–3 and 8–end
//	     8    8  index of this entry
//	    16    8  settled: the last index that was durable before this entry's
//	             batch was written (0 for the first batch)
//	    24   32  SHA-256 of the whole frame of index−1; zeros for index 1
//	    56    4  length of the payload
//	    60    4  length of the payload as stored, after compression
//	    64    …  payload as stored
//
// The first eight bytes keep their meaning in every later format version, so
// that a newer frame is told apart from a damaged one.
//
// The magic is not a frame type of raft-wal (these are 0 to 3), so that a scan that lost
// its position stops at a payload instead of reading it as structure.
//
// "Settled" turns each frame into a witness: a log that ends before the settled
// index of any frame that is still legible has lost durable entries.

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	// FormatVersion is the version of the frames that are written.
	FormatVersion = 1
	// MaxEntryBytes is the largest size of a frame. It is far below the 64 MiB that
	// raft-wal can read back (it accepts larger writes).
	MaxEntryBytes = 16 << 20
	// MaxPayloadBytes is the largest size of a payload before compression, and thus
	// the largest allocation for reading an entry.
	MaxPayloadBytes = 64 << 20
	// CompressFromBytes is the payload size from which compression is tried.
	CompressFromBytes = 4 << 10

	headerBytes    = 64
	magic0, magic1 = 0xb5, 0x4b
	flagZstd       = 1 << 0
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Prepared is a payload ready to be appended: checked, compressed if that helps, and laid
// out behind a header. Only the index and the hash in the header are missing, because they
// depend on the previous entry. A Prepared can be appended once.
type Prepared struct {
	frame []byte
}

// Prepare copies payload into a frame. It is safe for concurrent use. The error is
// ErrTooLarge or nil.
func Prepare(payload []byte) (Prepared, error) {
	if len(payload) > MaxPayloadBytes {
		return Prepared{}, fmt.Errorf("%w: payload of %d bytes, at most %d", ErrTooLarge, len(payload), MaxPayloadBytes)
	}
	var b []byte
	var flags byte
	if len(payload) >= CompressFromBytes {
		b = compress(make([]byte, headerBytes, headerBytes+len(payload)/3), payload)
		flags = flagZstd
	}
	if b == nil || len(b) >= headerBytes+len(payload) {
		flags = 0
		b = append(make([]byte, headerBytes, headerBytes+len(payload)), payload...)
	}
	if len(b) > MaxEntryBytes {
		return Prepared{}, fmt.Errorf("%w: frame of %d bytes, at most %d", ErrTooLarge, len(b), MaxEntryBytes)
	}
	return newPrepared(b, len(payload), flags), nil
}

// newPrepared writes the parts of the header that are known before the append.
func newPrepared(b []byte, payload int, flags byte) Prepared {
	b[0], b[1], b[2], b[3] = magic0, magic1, FormatVersion, flags
	binary.BigEndian.PutUint32(b[56:], uint32(payload))
	binary.BigEndian.PutUint32(b[60:], uint32(len(b)-headerBytes))
	return Prepared{frame: b}
}

// Bytes returns the size of the frame. In the log the entry takes up to 15 more bytes of
// raft-wal's own.
func (p Prepared) Bytes() int { return len(p.frame) }

// seal completes the header and returns the hash that the next entry carries.
func (p Prepared) seal(index, settled uint64, prev [32]byte) [32]byte {
	b := p.frame
	binary.BigEndian.PutUint64(b[8:], index)
	binary.BigEndian.PutUint64(b[16:], settled)
	copy(b[24:56], prev[:])
	binary.BigEndian.PutUint32(b[4:], frameCRC(b))
	return sha256.Sum256(b)
}

func frameCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:4], castagnoli), castagnoli, b[8:])
}

// frame is a decoded header with its stored payload, which aliases the input.
type frame struct {
	flags      byte
	index      uint64
	settled    uint64
	prev       [32]byte
	payloadLen uint32
	stored     []byte
	raw        []byte // header included
}

// decodeFrame decodes a frame and checks everything except its neighbours. ErrVersion is the
// only sentinel error.
func decodeFrame(b []byte) (frame, error) {
	if len(b) < headerBytes {
		return frame{}, fmt.Errorf("frame of %d bytes, a header has %d", len(b), headerBytes)
	}
	if b[0] != magic0 || b[1] != magic1 {
		return frame{}, fmt.Errorf("magic %x%x", b[0], b[1])
	}
	if got, want := frameCRC(b), binary.BigEndian.Uint32(b[4:]); got != want {
		return frame{}, fmt.Errorf("checksum %08x, recorded %08x", got, want)
	}
	if b[2] != FormatVersion {
		return frame{}, fmt.Errorf("%w %d", ErrVersion, b[2])
	}
	f := frame{
		flags:      b[3],
		index:      binary.BigEndian.Uint64(b[8:]),
		settled:    binary.BigEndian.Uint64(b[16:]),
		prev:       [32]byte(b[24:56]),
		payloadLen: binary.BigEndian.Uint32(b[56:]),
		stored:     b[headerBytes:],
		raw:        b,
	}
	return f, f.checkHeader(binary.BigEndian.Uint32(b[60:]))
}

func (f frame) checkHeader(storedLen uint32) error {
	switch {
	case f.flags&^flagZstd != 0:
		return fmt.Errorf("unknown flags %02x", f.flags)
	case f.index == 0:
		return fmt.Errorf("index 0")
	case f.settled >= f.index:
		return fmt.Errorf("settled index %d not below the entry's own %d", f.settled, f.index)
	case uint64(storedLen) != uint64(len(f.stored)):
		return fmt.Errorf("stored length %d, recorded %d", len(f.stored), storedLen)
	case f.payloadLen > MaxPayloadBytes:
		return fmt.Errorf("payload length %d over the limit of %d", f.payloadLen, MaxPayloadBytes)
	case f.flags&flagZstd == 0 && f.payloadLen != storedLen:
		return fmt.Errorf("payload length %d of %d stored bytes", f.payloadLen, storedLen)
	}
	return nil
}

// decodePayload returns the payload. Uncompressed bytes alias the frame; others are in room if it
// is large enough.
func (f frame) decodePayload(room []byte) ([]byte, error) {
	if f.flags&flagZstd == 0 {
		return f.stored, nil
	}
	return decompress(f.stored, int(f.payloadLen), room)
}
