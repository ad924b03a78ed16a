// Package extsort sorts records that need not fit into memory. Beyond a memory limit it
// writes sorted runs to temporary files and merges them when the records are read.
package extsort

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
)

// DefaultBytes is the memory that a Sorter fills before it writes a run.
const DefaultBytes = 32 << 20

const (
	// fanIn is the number of runs on a level before they are merged into one run of
	// the next: it bounds the open files and the buffers for reading them.
	fanIn = 32
	// chunkBytes is the size of a memory chunk; a longer record has a chunk of its
	// own.
	chunkBytes = 256 << 10
	// rowBytes is the memory of a record besides its bytes.
	rowBytes = 24
	// checkEvery is the number of merged records between two checks of the context.
	checkEvery = 4096
)

// Options configures a Sorter.
type Options struct {
	// Dir is the directory for temporary files. They are unlinked at once (see
	// TempPattern), so that a crash leaves nothing behind.
	Dir string
	// Bytes is the memory for records before they are written to a run; 0 means
	// DefaultBytes.
	Bytes int
	// Room, if set, is called before that many bytes are written; its error ends the
	// sort.
	Room func(bytes int64) error
}

// Sorter takes records in any order and yields them in byte order, duplicates included. It
// belongs to one goroutine.
type Sorter struct {
	ctx     context.Context
	options Options
	rows    [][]byte // in memory
	chunks  [][]byte // that hold the rows and are reused
	used    int      // chunks in use
	bytes   int      // of rows, including overhead
	levels  [][]*Run // by size; a run merges about fanIn runs of the level below
	spilled bool
}

// New returns a sorter. Close must be called.
func New(ctx context.Context, o Options) *Sorter {
	if o.Bytes == 0 {
		o.Bytes = DefaultBytes
	}
	return &Sorter{ctx: ctx, options: o}
}

// Add adds a copy of a record. It may return an error of the temporary files, of Room, or
// of the context.
func (s *Sorter) Add(record []byte) error {
	if n := len(record) + rowBytes; s.bytes+n > s.options.Bytes && len(s.rows) > 0 {
		if err := s.spillRows(); err != nil {
			return err
		}
	}
	s.rows = append(s.rows, s.copyRecord(record))
	s.bytes += len(record) + rowBytes
	return nil
}

// Spilled reports whether records were written to temporary files.
func (s *Sorter) Spilled() bool { return s.spilled }

// copyRecord copies a record into a chunk.
func (s *Sorter) copyRecord(record []byte) []byte {
	if len(record) > chunkBytes {
		return bytes.Clone(record)
	}
	if s.used > 0 && cap(s.chunks[s.used-1])-len(s.chunks[s.used-1]) >= len(record) {
		return s.copyInto(s.used-1, record)
	}
	if s.used == len(s.chunks) {
		s.chunks = append(s.chunks, make([]byte, 0, chunkBytes))
	}
	s.used++
	s.chunks[s.used-1] = s.chunks[s.used-1][:0]
	return s.copyInto(s.used-1, record)
}

func (s *Sorter) copyInto(i int, record []byte) []byte {
	at := len(s.chunks[i])
	s.chunks[i] = append(s.chunks[i], record...)
	return s.chunks[i][at:len(s.chunks[i]):len(s.chunks[i])]
}

// spillRows writes the records in memory as a run.
func (s *Sorter) spillRows() error {
	slices.SortFunc(s.rows, bytes.Compare)
	err := s.addRun(0, int64(s.bytes), func(yield func([]byte, error) bool) {
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

// addRun writes a run of at most most bytes on a level, and merges the level when it is full.
func (s *Sorter) addRun(level int, most int64, records iter.Seq2[[]byte, error]) error {
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
	return errors.Join(s.addRun(level+1, total, Merge(full, nil)), closeRuns(full))
}

// Sorted yields all records in order. A record is valid until the next one; an error ends the
// sequence. It may be called several times; Add must not be called afterwards.
func (s *Sorter) Sorted() iter.Seq2[[]byte, error] {
	slices.SortFunc(s.rows, bytes.Compare)
	return Merge(slices.Concat(s.levels...), s.rows)
}

// Close releases memory and files.
func (s *Sorter) Close() error {
	err := closeRuns(slices.Concat(s.levels...))
	*s = Sorter{ctx: s.ctx, options: s.options}
	return err
}
