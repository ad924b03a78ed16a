package wal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg/internal/wal"
	"koine/kg/internal/wal/waltest"
)

// Any byte of any file goes bad: the log then either refuses to open, or refuses
// single entries, or (the bad byte being of no consequence) is complete. It never
// returns other bytes, and never has fewer entries than before without a word. The
// one exception: after a power cut nothing tells a bad byte in the last batch
// from a batch that was torn.
func TestFlippedByteAnywhere(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	const entries = 9
	for name, least := range map[string]uint64{"closed": entries, "power cut": entries - 1} {
		t.Run(name, func(t *testing.T) {
			files, dir := waltest.New(), t.TempDir()
			l := open(t, dir, wal.Options{Files: files, SegmentBytes: 500})
			for i := uint64(1); i <= entries; i++ {
				if err := l.Append(i, [][]byte{small(i)}); err != nil {
					t.Fatal(err)
				}
			}
			if name == "closed" {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			cut := filepath.Join(t.TempDir(), "cut")
			if err := files.PowerCut(dir, cut, 0); err != nil {
				t.Fatal(err)
			}
			flipAll(t, cut, least, entries)
		})
	}
}

func flipAll(t *testing.T, dir string, least, entries uint64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) < 4 { // meta-a, meta-b and two segments
		t.Fatalf("files %v, %v", names, err)
	}
	for _, path := range names {
		written, err := waltest.Written(path)
		if err != nil {
			t.Fatal(err)
		}
		stride := int64(1)
		if !strings.HasSuffix(path, ".wal") {
			stride = 5 // one checksum covers the whole file
		}
		for off := int64(0); off < written; off += stride {
			spoiled := filepath.Join(t.TempDir(), "spoiled")
			if err := waltest.Copy(dir, spoiled); err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(path)
			if err := waltest.Flip(filepath.Join(spoiled, name), off, 1<<(off%8)); err != nil {
				t.Fatal(err)
			}
			flipped(t, spoiled, name, off, least, entries)
			if err := os.RemoveAll(spoiled); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func small(i uint64) []byte { return bytes.Repeat([]byte{byte(i)}, int(i)) }

func flipped(t *testing.T, dir, name string, off int64, least, entries uint64) {
	t.Helper()
	r, readErr := wal.Open(dir, wal.Options{Files: waltest.New(), ReadOnly: true, Checked: true})
	l, err := wal.Open(dir, wal.Options{Files: waltest.New()})
	if (readErr == nil) != (err == nil) || errors.Is(readErr, wal.ErrDamaged) != errors.Is(err, wal.ErrDamaged) {
		t.Errorf("%s byte %d: Open to read, checked: %v, and to write: %v", name, off, readErr, err)
	}
	if readErr == nil {
		if err == nil && (r.First() != l.First() || r.Last() != l.Last()) {
			t.Errorf("%s byte %d: %d to %d are read, and %d to %d written", name, off, r.First(), r.Last(), l.First(), l.Last())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		if !errors.Is(err, wal.ErrDamaged) || !strings.HasSuffix(name, ".wal") { // the others are kept twice, or are no truth
			t.Errorf("%s byte %d: Open: %v, want ErrDamaged", name, off, err)
		}
		if l, err = wal.Open(dir, wal.Options{ReadOnly: true}); err != nil {
			if !errors.Is(err, wal.ErrDamaged) {
				t.Errorf("%s byte %d: Open to read: %v, want ErrDamaged", name, off, err)
			}
			return
		}
		if err := l.Append(l.Last()+1, [][]byte{{1}}); !errors.Is(err, wal.ErrReadOnly) {
			t.Errorf("%s byte %d: append to a damaged log: %v", name, off, err)
		}
	} else if l.Last() < least || l.Last() > entries {
		t.Errorf("%s byte %d: opened with %d of %d entries", name, off, l.Last(), entries)
	}
	defer l.Close()
	for i := l.First(); i <= l.Last(); i++ {
		got, err := l.Read(i)
		if err != nil && !errors.Is(err, wal.ErrDamaged) || err == nil && !bytes.Equal(got, small(i)) {
			t.Errorf("%s byte %d: entry %d: %d bytes, %v", name, off, i, len(got), err)
		}
	}
}
