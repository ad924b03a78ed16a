package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"koine/kg/internal/wal"
)

// Entries that are carried to another log are the same there, with the same
// hashes, from the first on and from the middle on.
func TestFramesCarried(t *testing.T) {
	from, err := wal.Open(t.TempDir(), wal.Options{SegmentBytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for i := range uint64(40) {
		if err := from.Append(i+1, [][]byte{[]byte(strings.Repeat(fmt.Sprint("entry ", i), 900))}); err != nil {
			t.Fatal(err)
		}
	}
	for _, first := range []uint64{1, 7, 40} {
		t.Run(fmt.Sprint("from ", first), func(t *testing.T) {
			dir := t.TempDir()
			to, err := wal.Open(dir, wal.Options{SegmentBytes: 4 << 10})
			if err != nil {
				t.Fatal(err)
			}
			var batch []wal.Frame
			for f, err := range from.Frames(first, 40) {
				if err != nil {
					t.Fatal(err)
				}
				if f, err = wal.ParseFrame(bytes.Clone(f.Raw)); err != nil {
					t.Fatal(err)
				}
				if batch = append(batch, f); len(batch) == 3 {
					if err := to.AppendFrames(batch); err != nil {
						t.Fatal(err)
					}
					batch = nil
				}
			}
			if err := to.AppendFrames(batch); err != nil {
				t.Fatal(err)
			}
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
			if to, err = wal.Open(dir, wal.Options{SegmentBytes: 4 << 10}); err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			if to.First() != first || to.Last() != 40 {
				t.Errorf("it holds %d to %d", to.First(), to.Last())
			}
			for i := first; i <= 40; i++ {
				want, _ := from.Read(i)
				got, err := to.Read(i)
				if err != nil || string(got) != string(want) {
					t.Fatalf("entry %d: %q, %v", i, got, err)
				}
				a, _ := from.Hash(i)
				if b, err := to.Hash(i); err != nil || a != b {
					t.Fatalf("hash of entry %d: %x, want %x, %v", i, b, a, err)
				}
			}
			if err := to.Append(41, [][]byte{[]byte("next")}); err != nil {
				t.Errorf("the next entry: %v", err)
			}
		})
	}
}

// Frames that do not hang together are refused, and nothing is written.
func TestFramesRefused(t *testing.T) {
	from, err := wal.Open(t.TempDir(), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if err := from.Append(1, [][]byte{[]byte("one"), []byte("two"), []byte("three"), []byte("four")}); err != nil {
		t.Fatal(err)
	}
	var all []wal.Frame
	for f, err := range from.Frames(1, 4) {
		if err != nil {
			t.Fatal(err)
		}
		f.Raw = bytes.Clone(f.Raw)
		all = append(all, f)
	}
	to, err := wal.Open(t.TempDir(), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := to.AppendFrames(all[:1]); err != nil {
		t.Fatal(err)
	}
	if err := to.AppendFrames([]wal.Frame{all[2]}); !errors.Is(err, wal.ErrGap) {
		t.Errorf("a gap: %v", err)
	}
	other := all[1]
	other.Prev[0]++
	if err := to.AppendFrames([]wal.Frame{other}); !errors.Is(err, wal.ErrDamaged) {
		t.Errorf("another predecessor: %v", err)
	}
	for i := range all[1].Raw {
		raw := append([]byte(nil), all[1].Raw...)
		raw[i] ^= 4
		if _, err := wal.ParseFrame(raw); err == nil {
			t.Errorf("byte %d is bad and nobody notices", i)
		}
	}
	if err := to.AppendFrames(all[1:]); err != nil || to.Last() != 4 {
		t.Errorf("the rest: %d, %v", to.Last(), err)
	}
}

// Frames of any size have their own bytes as long as they are valid, in every batch that is
// read ahead, and an error comes at its entry.
func TestFramesReadAhead(t *testing.T) {
	t.Parallel()
	l, err := wal.Open(t.TempDir(), wal.Options{SegmentBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dice := rand.New(rand.NewPCG(7, 7))
	const entries = 120
	for i := range uint64(entries) {
		content := make([]byte, []int{10, 2000, 100_000, 300_000}[dice.IntN(4)])
		for k := range content { // is not compressed
			content[k] = byte(dice.Uint32())
		}
		if err := l.Append(i+1, [][]byte{content}); err != nil {
			t.Fatal(err)
		}
	}
	next := uint64(1)
	for f, err := range l.Frames(1, entries+1) {
		if next == entries+1 {
			if !errors.Is(err, wal.ErrNotFound) || f.Index != next {
				t.Errorf("after the last entry: got entry %d, %v, want %v at %d", f.Index, err, wal.ErrNotFound, next)
			}
			next++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := l.Read(next)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Payload(); f.Index != next || err != nil || !bytes.Equal(got, want) {
			t.Fatalf("entry %d in the place of %d has %d bytes, want %d, %v", f.Index, next, len(got), len(want), err)
		}
		next++
	}
	if next != entries+2 {
		t.Errorf("ended before %d", next)
	}
}

// Frames tells an entry that is not the one that was appended, although its own checksum is right:
// by its place, or by the hash that its successor carries.
func TestFramesReplaced(t *testing.T) {
	t.Parallel()
	const entries, replaced = 40, 20
	for name, replace := range map[string]func(all []byte, at, next int){
		"other payload": func(all []byte, at, next int) {
			frame := all[at:next]
			frame[64] ^= 1
			binary.BigEndian.PutUint32(frame[4:], crc32.Update(crc32.Checksum(frame[:4], castagnoli), castagnoli, frame[8:frameBytes]))
		},
		"entry before": func(all []byte, at, next int) { copy(all[at:next], all[at-(next-at):at]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, err := wal.Open(dir, wal.Options{SegmentBytes: 256 << 10}) // raft-wal reads four entries from 2 on before a window does
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			var batch [][]byte
			for i := range entries {
				batch = append(batch, fmt.Appendf(nil, "entry %07d", i+1))
			}
			if err := l.Append(1, batch); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			all, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			place := func(entry int) int { return bytes.Index(all, fmt.Appendf(nil, "entry %07d", entry)) - 64 }
			replace(all, place(replaced), place(replaced+1))
			if err := os.WriteFile(files[0], all, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, from := range []uint64{1, 2} {
				last, failed := uint64(0), error(nil)
				for f, err := range l.Frames(from, entries) {
					if failed = err; err != nil {
						break
					}
					last = f.Index
				}
				if !errors.Is(failed, wal.ErrDamaged) || last > replaced {
					t.Errorf("from %d: ended after entry %d with %v, want %v at %d or the next", from, last, failed, wal.ErrDamaged, replaced)
				}
			}
		})
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frameBytes is the size of an entry of 13 bytes.
const frameBytes = 64 + 13
