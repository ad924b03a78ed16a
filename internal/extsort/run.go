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

// TempPattern matches the names that temporary files have for a moment: one that is
// found when nobody sorts is left over and may be removed.
const TempPattern = "sorting-*.tmp"

// runBuffer is what reading or writing a run takes.
const runBuffer = 64 << 10

// errRun says that a run does not hold what was written.
var errRun = errors.New("a temporary file of a sorting is not as it was written")

// run is a temporary file of records in order: of each how many bytes it shares with
// the one before, how many follow, and these.
type run struct {
	file *os.File
	size int64
}

func closeRuns(runs []*run) (err error) {
	for _, r := range runs {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// writeRun writes the records, which come in order.
func writeRun(ctx context.Context, dir string, records iter.Seq2[[]byte, error]) (_ *run, err error) {
	file, err := os.CreateTemp(dir, TempPattern)
	if err != nil {
		return nil, err
	}
	r := &run{file: file}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if err := os.Remove(file.Name()); err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(file, runBuffer)
	var last, head []byte
	n := 0
	for record, err := range records {
		if err != nil {
			return nil, err
		}
		shared := sharedPrefix(last, record)
		head = binary.AppendUvarint(head[:0], uint64(shared))
		head = binary.AppendUvarint(head, uint64(len(record)-shared))
		_, _ = out.Write(head) // its error stays until Flush
		_, _ = out.Write(record[shared:])
		r.size += int64(len(head) + len(record) - shared)
		last = append(last[:shared], record[shared:]...)
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return r, out.Flush()
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

// runReader stands on a record of a run.
type runReader struct {
	in     *bufio.Reader
	left   int64 // bytes of the run that are to come
	record []byte
}

func (r *run) reader() *runReader {
	return &runReader{in: bufio.NewReaderSize(io.NewSectionReader(r.file, 0, r.size), runBuffer), left: r.size}
}

// next goes on to the next record; false at the end.
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

// byRecord is a heap of readers, the one with the least record first.
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

// merged gives the records of all runs, and of rows, in order.
func merged(runs []*run, rows [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		rows := rows
		var readers byRecord
		for _, r := range runs {
			reader := r.reader()
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
