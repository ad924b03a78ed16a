package extsort

import (
	"bufio"
	"bytes"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math"
	"os"
)

// TempPattern matches the names that temporary files have for a moment. A file found while
// no sort is running is a leftover and may be removed.
const TempPattern = "sorting-*.tmp"

// runBuffer is the size of the buffer for reading or writing a run.
const runBuffer = 64 << 10

// errRun reports a corrupt run.
var errRun = errors.New("a temporary file of a sorter is corrupt")

// Run is a temporary file of sorted records. Each is encoded as the length of the prefix
// shared with the previous record, the length of the rest, and the rest.
type Run struct {
	file *os.File
	size int64
}

// Size returns the size of the file in bytes.
func (r *Run) Size() int64 { return r.size }

// Close closes the file. A nil Run has none.
func (r *Run) Close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}

func closeRuns(runs []*Run) (err error) {
	for _, r := range runs {
		err = errors.Join(err, r.Close())
	}
	return err
}

// RunWriter writes a run.
type RunWriter struct {
	run  *Run
	out  *bufio.Writer
	last []byte
	head []byte
}

// NewRun creates a run; its file is unlinked at once. Finish or Abandon must be called.
func NewRun(dir string) (*RunWriter, error) {
	file, err := os.CreateTemp(dir, TempPattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &RunWriter{run: &Run{file: file}, out: bufio.NewWriterSize(file, runBuffer)}, nil
}

// Add writes a record, which must not be less than the previous one.
func (w *RunWriter) Add(record []byte) error {
	shared := sharedPrefix(w.last, record)
	w.head = binary.AppendUvarint(w.head[:0], uint64(shared))
	w.head = binary.AppendUvarint(w.head, uint64(len(record)-shared))
	_, _ = w.out.Write(w.head) // the error is sticky
	_, err := w.out.Write(record[shared:])
	w.run.size += int64(len(w.head) + len(record) - shared)
	w.last = append(w.last[:shared], record[shared:]...)
	return err
}

// Finish returns the run. After an error there is none.
func (w *RunWriter) Finish() (*Run, error) {
	if err := w.out.Flush(); err != nil {
		return nil, errors.Join(err, w.Abandon())
	}
	return w.run, nil
}

// Abandon closes the file.
func (w *RunWriter) Abandon() error { return w.run.Close() }

// writeRun writes sorted records.
func writeRun(ctx context.Context, dir string, records iter.Seq2[[]byte, error]) (*Run, error) {
	w, err := NewRun(dir)
	if err != nil {
		return nil, err
	}
	n := 0
	for record, err := range records {
		if err == nil {
			err = w.Add(record)
		}
		if n++; err == nil && n%checkEvery == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(err, w.Abandon())
		}
	}
	return w.Finish()
}

func sharedPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// runReader iterates over a run.
type runReader struct {
	in     *bufio.Reader
	left   int64 // bytes left in the run
	record []byte
}

func (r *Run) newReader() *runReader {
	return &runReader{in: bufio.NewReaderSize(io.NewSectionReader(r.file, 0, r.size), runBuffer), left: r.size}
}

// next reads the next record. It reports false at the end.
func (r *runReader) next() (bool, error) {
	shared, err := binary.ReadUvarint(r.in)
	if errors.Is(err, io.EOF) && r.left == 0 {
		return false, nil
	}
	rest, restErr := binary.ReadUvarint(r.in)
	if err = errors.Join(err, restErr); err != nil {
		return false, errors.Join(errRun, err)
	}
	if shared > uint64(len(r.record)) || rest > uint64(r.left) || shared+rest > math.MaxInt32 {
		return false, errRun
	}
	n := int(shared + rest)
	if cap(r.record) < n {
		r.record = append(make([]byte, 0, 2*n), r.record[:shared]...)
	}
	r.record = r.record[:n]
	if _, err := io.ReadFull(r.in, r.record[shared:]); err != nil {
		return false, errors.Join(errRun, err)
	}
	r.left -= int64(uvarintBytes(shared) + uvarintBytes(rest) + int(rest))
	return true, nil
}

func uvarintBytes(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// byRecord is a heap of readers, smallest record first.
type byRecord []*runReader

func (h byRecord) Len() int           { return len(h) }
func (h byRecord) Less(i, j int) bool { return bytes.Compare(h[i].record, h[j].record) < 0 }
func (h byRecord) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byRecord) Push(x any)        { *h = append(*h, x.(*runReader)) }
func (h *byRecord) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// Merge yields the records of all runs and of rows, which must be sorted, in order. A record
// is valid until the next one; an error ends the sequence.
func Merge(runs []*Run, rows [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		rows := rows
		var readers byRecord
		for _, r := range runs {
			reader := r.newReader()
			more, err := reader.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if more {
				readers = append(readers, reader)
			}
		}
		heap.Init(&readers)
		for len(readers) > 0 {
			for len(rows) > 0 && bytes.Compare(rows[0], readers[0].record) <= 0 {
				if !yield(rows[0], nil) {
					return
				}
				rows = rows[1:]
			}
			if !yield(readers[0].record, nil) {
				return
			}
			more, err := readers[0].next()
			switch {
			case err != nil:
				yield(nil, err)
				return
			case more:
				heap.Fix(&readers, 0)
			default:
				heap.Pop(&readers)
			}
		}
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}
