package wal

// The file "mark" names a durable entry. It is overwritten after every append without a
// sync (a second sync would halve the rate) and synced when the log is closed. After a
// power cut it may be old or torn, but it is never ahead of the log: a log that ends
// before it has lost entries.
//
//	offset size
//	     0    4  CRC-32C of bytes 4–47
//	     4    4  magic "mark"
//	     8    8  index, big-endian
//	    16   32  SHA-256 of the entry's frame

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"github.com/hashicorp/raft-wal/types"
)

const (
	markName  = "mark"
	markMagic = "mark"
	markBytes = 48
)

// readMark returns nil if the mark is missing or not legible: both mean that nothing is
// known.
func readMark(files types.VFS, dir string) (*indexHash, error) {
	f, err := files.OpenReader(dir, markName)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b [markBytes]byte
	if n, err := f.ReadAt(b[:], 0); n < len(b) && err != io.EOF {
		return nil, err
	}
	return decodeMark(b[:]), nil
}

func decodeMark(b []byte) *indexHash {
	if string(b[4:8]) != markMagic || crc32.Checksum(b[4:], castagnoli) != binary.BigEndian.Uint32(b) {
		return nil
	}
	return &indexHash{binary.BigEndian.Uint64(b[8:]), [32]byte(b[16:])}
}

func encodeMark(m indexHash) []byte {
	b := make([]byte, markBytes)
	copy(b[4:], markMagic)
	binary.BigEndian.PutUint64(b[8:], m.index)
	copy(b[16:], m.hash[:])
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// openMark opens the file for writing and creates it if it is missing.
func openMark(files types.VFS, dir string) (types.WritableFile, error) {
	f, err := files.OpenWriter(dir, markName)
	if errors.Is(err, os.ErrNotExist) {
		return files.Create(dir, markName, markBytes)
	}
	return f, err
}
