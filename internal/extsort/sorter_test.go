package extsort_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"koine/internal/extsort"
	"koine/internal/slowtest"
)

// random returns records of many lengths, some of them twice.
func random(n int) [][]byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	rows := make([][]byte, n)
	for i := range rows {
		row := binary.BigEndian.AppendUint64(bytes.Repeat([]byte{'x'}, r.IntN(4)), r.Uint64N(uint64(n)))
		rows[i] = row[:r.IntN(len(row)+1)]
	}
	return rows
}

func sorter(t *testing.T, o extsort.Options) *extsort.Sorter {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s := extsort.New(t.Context(), o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
			t.Errorf("%v is left behind, %v", left, err)
		}
	})
	return s
}

func add(t *testing.T, s *extsort.Sorter, rows [][]byte) {
	t.Helper()
	for _, row := range rows {
		if err := s.Add(row); err != nil {
			t.Fatal(err)
		}
	}
}

func sorted(t *testing.T, s *extsort.Sorter) (rows [][]byte) {
	t.Helper()
	for row, err := range s.Sorted() {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, bytes.Clone(row))
	}
	return rows
}

// TestSorted proves that the order is the same in memory, with some runs, and with so
// many that runs are merged repeatedly; and that Sorted may be called twice and be left
// early.
func TestSorted(t *testing.T) {
	slowtest.Long(t)
	const n = 5000
	rows := random(n)
	want := slices.Clone(rows)
	slices.SortFunc(want, bytes.Compare)
	for bound, spilled := range map[int]bool{0: false, 40 << 10: true, 64: true, 1: true} {
		s := sorter(t, extsort.Options{Bytes: bound})
		add(t, s, rows)
		if s.Spilled() != spilled {
			t.Errorf("at %d bytes: spilled: %t, want %t", bound, s.Spilled(), spilled)
		}
		for range s.Sorted() {
			break
		}
		for range 2 {
			if got := sorted(t, s); !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("at %d bytes: %d records, want %d, or out of order", bound, len(got), len(want))
			}
		}
	}
	if got := sorted(t, sorter(t, extsort.Options{})); len(got) > 0 {
		t.Errorf("of nothing came %x", got)
	}
}

// TestBound proves that the memory limit is exact, and that a record longer than the
// limit, or than a chunk, is accepted.
func TestBound(t *testing.T) {
	row := bytes.Repeat([]byte{'r'}, 100)
	const each = 100 + 24
	for bound, spilled := range map[int]bool{10 * each: false, 10*each - 1: true} {
		s := sorter(t, extsort.Options{Bytes: bound})
		add(t, s, slices.Repeat([][]byte{row}, 10))
		if s.Spilled() != spilled {
			t.Errorf("%d bytes: spilled: %t, want %t", bound, s.Spilled(), spilled)
		}
	}
	long := bytes.Repeat([]byte{'l'}, 1<<20)
	s := sorter(t, extsort.Options{Bytes: 1 << 10})
	add(t, s, [][]byte{row, long, row, long[1:]})
	if got := sorted(t, s); !slices.EqualFunc(got, [][]byte{long[1:], long, row, row}, bytes.Equal) {
		t.Errorf("%d records came back otherwise", len(got))
	}
}

// TestEnds proves that errors of Room, the context and the file system end the sort and
// leave no files behind.
func TestEnds(t *testing.T) {
	full := errors.New("no room")
	s := sorter(t, extsort.Options{Bytes: 64, Room: func(n int64) error {
		if n > 64 {
			t.Errorf("asked for %d bytes", n)
		}
		return full
	}})
	if err := fill(s); !errors.Is(err, full) {
		t.Errorf("without room: %v", err)
	}
	if err := fill(extsort.New(t.Context(), extsort.Options{Bytes: 64, Dir: "/nowhere"})); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if err := fill(extsort.New(ctx, extsort.Options{Bytes: 1 << 20, Dir: dir})); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
}

// fill adds records until an error.
func fill(s *extsort.Sorter) error {
	for _, row := range random(100_000) {
		if err := s.Add(row); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return s.Close()
}
