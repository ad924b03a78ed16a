package wal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"koine/internal/slowtest"
)

// noise does not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func sealed(t testing.TB, payload []byte) []byte {
	t.Helper()
	p, err := Prepare(payload)
	if err != nil {
		t.Fatal(err)
	}
	p.seal(7, 3, [32]byte{1, 2, 3})
	return p.frame
}

func TestFrameRoundTrip(t *testing.T) {
	for name, tc := range map[string]struct {
		payload    []byte
		compressed bool
	}{
		"empty":               {nil, false},
		"below the threshold": {bytes.Repeat([]byte("a"), CompressFromBytes-1), false},
		"at the threshold":    {bytes.Repeat([]byte("a"), CompressFromBytes), true},
		"incompressible":      {noise(CompressFromBytes), false},
		"more than an entry":  {bytes.Repeat([]byte("a"), MaxEntryBytes+1), true},
		"largest payload":     {bytes.Repeat([]byte("abc "), MaxPayloadBytes/4), true},
		"largest frame":       {noise(MaxEntryBytes - headerBytes), false},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := decodeFrame(sealed(t, tc.payload))
			if err != nil {
				t.Fatal(err)
			}
			if f.index != 7 || f.settled != 3 || f.prev != [32]byte{1, 2, 3} || f.flags == flagZstd != tc.compressed {
				t.Errorf("header %d %d %x flags %d", f.index, f.settled, f.prev[:3], f.flags)
			}
			if got, err := f.decodePayload(nil); err != nil || !bytes.Equal(got, tc.payload) {
				t.Errorf("payload of %d bytes, %v, want %d bytes", len(got), err, len(tc.payload))
			}
		})
	}
}

func TestPrepareBeyondTheLimits(t *testing.T) {
	for name, payload := range map[string][]byte{
		"payload": make([]byte, MaxPayloadBytes+1),
		"frame":   noise(MaxEntryBytes - headerBytes + 1),
	} {
		if _, err := Prepare(payload); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
	}
}

func TestEveryFlippedBitOfAFrameIsNoticed(t *testing.T) {
	whole := sealed(t, []byte("some payload"))
	for i := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		if f, err := decodeFrame(b); err == nil {
			t.Errorf("bit %d of byte %d: decoded as %+v", i%8, i/8, f)
		}
	}
	for n := range whole {
		if _, err := decodeFrame(whole[:n]); err == nil {
			t.Errorf("decoded the first %d bytes", n)
		}
	}
}

// The announced size of a frame bounds the allocation of its decoding, also with a correct
// checksum and a hostile author.
func TestHostileCompression(t *testing.T) {
	slowtest.Long(t)
	bomb := sealed(t, make([]byte, MaxPayloadBytes))
	for name, announced := range map[string]uint32{"less": 100, "more": MaxPayloadBytes + 1, "nothing": 0} {
		b := reseal(bytes.Clone(bomb), announced)
		f, err := decodeFrame(b)
		if err == nil {
			_, err = f.decodePayload(nil)
		}
		if err == nil {
			t.Errorf("%s than the payload announced: decoded", name)
		}
	}
}

// reseal announces another payload length under a right checksum.
func reseal(b []byte, payloadLen uint32) []byte {
	b[56], b[57], b[58], b[59] = byte(payloadLen>>24), byte(payloadLen>>16), byte(payloadLen>>8), byte(payloadLen)
	crc := frameCRC(b)
	b[4], b[5], b[6], b[7] = byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc)
	return b
}

func TestNewerFrameVersion(t *testing.T) {
	b := sealed(t, []byte("x"))
	b[2] = FormatVersion + 1
	if _, err := decodeFrame(reseal(b, 1)); !errors.Is(err, ErrVersion) {
		t.Errorf("got %v, want ErrVersion", err)
	}
}

// Decoding never panics, and never returns more than it announced.
func FuzzDecodeFrame(f *testing.F) {
	f.Add(sealed(f, []byte("plain")))
	f.Add(sealed(f, bytes.Repeat([]byte("compressed "), CompressFromBytes)))
	f.Add(make([]byte, headerBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerBytes { // get past the checksum
			b = bytes.Clone(b)
			b[0], b[1] = magic0, magic1
			reseal(b, uint32(b[56])<<24|uint32(b[57])<<16|uint32(b[58])<<8|uint32(b[59]))
		}
		fr, err := decodeFrame(b)
		if err != nil {
			return
		}
		if got, err := fr.decodePayload(nil); err == nil && len(got) != int(fr.payloadLen) {
			t.Errorf("payload of %d bytes, announced %d", len(got), fr.payloadLen)
		}
	})
}

// The metadata decoder takes anything.
func FuzzDecodeMeta(f *testing.F) {
	good, err := encodeMeta(metaBody{Version: metaVersion, Sequence: 3})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		if body, err := decodeMeta(b); err == nil && body == nil {
			t.Error("neither metadata nor an error")
		}
	})
}

// A segment may hold anything after a crash: scanning it never panics, and never
// claims entries that it has not read.
func FuzzScanTail(f *testing.F) {
	f.Add([]byte{}, uint64(1))
	f.Add(bytes.Repeat([]byte{lowerEntry, 0, 0, 0, 8, 0, 0, 0}, 20), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, base uint64) {
		if base == 0 {
			return
		}
		got, err := scanTail(memFile{bytes.NewReader(b)}, base)
		if err == nil && (got.last < base-1 || got.end > int64(len(b)) || got.dirtyEnd < got.end) {
			t.Errorf("%d bytes: %+v", len(b), got)
		}
	})
}

type memFile struct{ *bytes.Reader }

func (memFile) Close() error { return nil }
