// Package extsort puts records in order that need not fit into memory: what is
// beyond a bound goes to temporary files, as runs that are in order themselves and
// are merged when the records are read.
package extsort

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
)

// DefaultBytes is how much memory a Sorter fills before it writes a run.
const DefaultBytes = 32 << 20

const (
	// fanIn is how many runs of one size there are before they become one of the
	// next: it bounds how many files are open, and what reading them takes.
	fanIn = 32
	// chunkBytes is how much memory is taken at a time; a longer record has a piece
	// of its own.
	chunkBytes = 256 << 10
	// rowBytes is what a record takes in memory besides its bytes.
	rowBytes = 24
	// checkEvery is how many records are merged between two looks at the context.
	checkEvery = 4096
)

// Options of a Sorter.
type Options struct {
	// Dir is where temporary files are made. They lose their names (TempPattern) at
	// once, so that whatever ends the process leaves nothing behind.
	Dir string
	// Bytes is how much memory the records may take before they are written;
	// DefaultBytes when 0.
	Bytes int
	// Room, if set, is asked before so many bytes are written; its error ends the
	// sorting.
	Room func(bytes int64) error
}

// Sorter takes records in any order and gives them in that of their bytes, those
// that are the same as often as they came. It belongs to one goroutine.
type Sorter struct {
	ctx     context.Context
	options Options
	rows    [][]byte // in memory
	chunks  [][]byte // that hold them, and are used again
	used    int      // of chunks
	bytes   int      // of rows, with what they take themselves
	levels  [][]*Run // by size; a run is about fanIn of those of the level below
	spilled bool
}

// New makes a sorter. It must be closed.
func New(ctx context.Context, o Options) *Sorter {
	if o.Bytes == 0 {
		o.Bytes = DefaultBytes
	}
	return &Sorter{ctx: ctx, options: o}
}

// Add takes a copy of a record. The error is of the temporary files, of Room, or
// the context's.
func (s *Sorter) Add(record []byte) error {
	if n := len(record) + rowBytes; s.bytes+n > s.options.Bytes && len(s.rows) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.rows = append(s.rows, s.keep(record))
	s.bytes += len(record) + rowBytes
	return nil
}

// Spilled tells whether the records did not fit into memory.
func (s *Sorter) Spilled() bool { return s.spilled }

// keep copies a record into a chunk.
func (s *Sorter) keep(record []byte) []byte {
	if len(record) > chunkBytes {
		return bytes.Clone(record)
	}
	if s.used > 0 && cap(s.chunks[s.used-1])-len(s.chunks[s.used-1]) >= len(record) {
		return s.keepIn(s.used-1, record)
	}
	if s.used == len(s.chunks) {
		s.chunks = append(s.chunks, make([]byte, 0, chunkBytes))
	}
	s.used++
	s.chunks[s.used-1] = s.chunks[s.used-1][:0]
	return s.keepIn(s.used-1, record)
}

func (s *Sorter) keepIn(i int, record []byte) []byte {
	at := len(s.chunks[i])
	s.chunks[i] = append(s.chunks[i], record...)
	return s.chunks[i][at:len(s.chunks[i]):len(s.chunks[i])]
}

// spill writes what is in memory as a run.
func (s *Sorter) spill() error {
	slices.SortFunc(s.rows, bytes.Compare)
	err := s.add(0, int64(s.bytes), func(yield func([]byte, error) bool) {
		for _, row := range s.rows {
			if !yield(row, nil) {
				return
			}
		}
	})
	clear(s.rows)
	s.rows, s.used, s.bytes, s.spilled = s.rows[:0], 0, 0, true
	return err
}

// add writes a run of a level, of at most so many bytes, and merges the level when
// it is full.
func (s *Sorter) add(level int, most int64, records iter.Seq2[[]byte, error]) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.options.Room != nil {
		if err := s.options.Room(most); err != nil {
			return err
		}
	}
	r, err := writeRun(s.ctx, s.options.Dir, records)
	if err != nil {
		return err
	}
	if level == len(s.levels) {
		s.levels = append(s.levels, nil)
	}
	s.levels[level] = append(s.levels[level], r)
	full := s.levels[level]
	if len(full) < fanIn {
		return nil
	}
	s.levels[level] = nil
	var total int64
	for _, r := range full {
		total += r.size
	}
	return errors.Join(s.add(level+1, total, Merge(full, nil)), closeRuns(full))
}

// Sorted gives all records in order; each is valid until the next. An error is the
// last. It may be asked for several times, and nothing may be added behind it.
func (s *Sorter) Sorted() iter.Seq2[[]byte, error] {
	slices.SortFunc(s.rows, bytes.Compare)
	return Merge(slices.Concat(s.levels...), s.rows)
}

// Close lets memory and files go.
func (s *Sorter) Close() error {
	err := closeRuns(slices.Concat(s.levels...))
	*s = Sorter{ctx: s.ctx, options: s.options}
	return err
}
