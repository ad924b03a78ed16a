package wal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

const (
	// DefaultSegmentBytes is the size at which a segment file is closed and the
	// next one begun. Files are preallocated at this size.
	DefaultSegmentBytes = 64 << 20
	// MaxSegmentBytes bounds Options.SegmentBytes; offsets within a segment, its
	// last batch included, have to fit in 32 bits.
	MaxSegmentBytes = 1 << 30
	// MaxBatchBytes is the most that the frames of one Append may add up to.
	MaxBatchBytes = 256 << 20
)

// Options of Open. The zero value works.
type Options struct {
	// SegmentBytes is DefaultSegmentBytes when 0, at most MaxSegmentBytes.
	SegmentBytes int
	// ReadOnly opens a log for reading what is legible of it: nothing in the
	// directory is changed, and lost entries are no reason to refuse.
	ReadOnly bool
	// Files is the file system, the real one when nil. Tests pass waltest.Files.
	Files types.VFS
	// Logger takes what raft-wal reports from its background work.
	Logger *slog.Logger
}

// Log is an open log. Reads may run concurrently with each other and with
// appends; appends and truncations take turns among themselves.
type Log struct {
	wal    *raftwal.WAL
	last   atomic.Uint64
	hashes hashCache

	// open is held shared while raft-wal is used and alone by Close: raft-wal
	// itself does not survive reads during its Close. Taken after writing.
	open   sync.RWMutex
	closed bool

	// writing guards the fields below and serialises writers.
	writing  sync.Mutex
	lastHash [sha256.Size]byte
	failed   error // the first failure of a write; ErrReadOnly from the start
}

// Open opens the log in dir, and makes dir and an empty log when there is none.
// The error is ErrDamaged when the log cannot be what was written; Options.ReadOnly
// then still gives what can be read. The caller holds the lock of the directory.
func Open(dir string, o Options) (*Log, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.SegmentBytes < 0 || o.SegmentBytes > MaxSegmentBytes {
		return nil, fmt.Errorf("wal: segments of %d bytes, at most %d", o.SegmentBytes, MaxSegmentBytes)
	}
	if o.Files == nil {
		o.Files = fs.New()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	meta, _, err := openMeta(o.Files, dir)
	if err != nil {
		return nil, err
	}
	w, err := raftwal.Open(dir,
		raftwal.WithCodec(codec{}),
		raftwal.WithMetaStore(meta),
		raftwal.WithSegmentFiler(filer{segment.NewFiler(dir, o.Files)}),
		raftwal.WithSegmentSize(o.SegmentBytes),
		raftwal.WithLogger(newHCLogger(o.Logger)))
	if err != nil {
		return nil, lowerError(0, "cannot be opened", err)
	}
	l := &Log{wal: w}
	if err := l.loadTail(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return l, nil
}

// loadTail checks the last entry and its link, and remembers its hash.
func (l *Log) loadTail() error {
	last, err := l.wal.LastIndex()
	if err != nil {
		return lowerError(0, "last index", err)
	}
	l.last.Store(last)
	if last == 0 {
		return nil
	}
	_, hash, err := l.entry(last)
	if err != nil {
		return err
	}
	l.lastHash = hash
	return nil
}

// First is the lowest index that can be read, 0 when the log is empty or closed.
func (l *Log) First() uint64 {
	first, err := l.wal.FirstIndex()
	if err != nil {
		return 0
	}
	return first
}

// Last is the highest durable index, 0 when the log is empty.
func (l *Log) Last() uint64 { return l.last.Load() }

// Append prepares payloads and appends them; see AppendPrepared.
func (l *Log) Append(first uint64, payloads [][]byte) error {
	batch := make([]Prepared, len(payloads))
	for i, p := range payloads {
		var err error
		if batch[i], err = Prepare(p); err != nil {
			return fmt.Errorf("payload %d of %d: %w", i+1, len(payloads), err)
		}
	}
	return l.AppendPrepared(first, batch)
}

// AppendPrepared writes batch as entries first, first+1 … with one fsync, and
// returns when they are durable. ErrGap, ErrTooLarge, ErrClosed and ErrReadOnly
// mean that nothing was written. After any other error it is unknown whether
// some or all entries will be there when the log is opened again, and every
// later append fails with an error that wraps the first.
func (l *Log) AppendPrepared(first uint64, batch []Prepared) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.open.RLock()
	defer l.open.RUnlock()
	if err := l.writable(); err != nil {
		return err
	}
	settled := l.last.Load()
	if first != settled+1 {
		return fmt.Errorf("%w: starts at %d, last is %d", ErrGap, first, settled)
	}
	if err := checkBatch(batch); err != nil || len(batch) == 0 {
		return err
	}
	logs := make([]*raft.Log, len(batch))
	hashes := make([][sha256.Size]byte, len(batch))
	prev := l.lastHash
	for i, p := range batch {
		index := first + uint64(i)
		prev = p.seal(index, settled, prev)
		hashes[i] = prev
		logs[i] = &raft.Log{Index: index, Data: p.frame}
	}
	if err := l.wal.StoreLogs(logs); err != nil {
		l.failed = err
		return fmt.Errorf("wal: append of entries %d to %d: %w", first, first+uint64(len(batch))-1, err)
	}
	for i, h := range hashes {
		l.hashes.put(first+uint64(i), h)
	}
	l.lastHash = prev
	l.last.Store(first + uint64(len(batch)) - 1)
	return nil
}

func checkBatch(batch []Prepared) error {
	total := 0
	for i, p := range batch {
		if len(p.frame) < headerBytes {
			return fmt.Errorf("wal: payload %d of %d was not prepared", i+1, len(batch))
		}
		total += len(p.frame)
	}
	if total > MaxBatchBytes {
		return fmt.Errorf("%w: batch of %d bytes, at most %d", ErrTooLarge, total, MaxBatchBytes)
	}
	return nil
}

func (l *Log) writable() error {
	switch {
	case l.closed:
		return ErrClosed
	case l.failed == ErrReadOnly:
		return ErrReadOnly
	case l.failed != nil:
		return fmt.Errorf("wal: no writes after an earlier failure: %w", l.failed)
	}
	return nil
}

// TruncateFront drops the entries below index before, which must not be above
// Last: the last entry always stays, as the end of the chain. Space is given
// back in whole segments.
func (l *Log) TruncateFront(before uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.open.RLock()
	defer l.open.RUnlock()
	if err := l.writable(); err != nil {
		return err
	}
	if before > l.last.Load() {
		return fmt.Errorf("%w: cannot truncate before %d, last is %d", ErrNotFound, before, l.last.Load())
	}
	if before <= l.First() {
		return nil
	}
	if err := l.wal.DeleteRange(l.First(), before-1); err != nil {
		l.failed = err
		return fmt.Errorf("wal: truncate before %d: %w", before, err)
	}
	return nil
}

// Close waits for running reads and writes and closes the files. Later calls of
// every method but Last and Close give ErrClosed or zero.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.open.Lock()
	defer l.open.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if err := l.wal.Close(); err != nil {
		return fmt.Errorf("wal: close: %w", err)
	}
	return nil
}

// lowerError maps an error of raft-wal: what only damage can explain becomes
// ErrDamaged, the rest (input/output errors, permissions) keeps its own name.
func lowerError(index uint64, what string, err error) error {
	if errors.Is(err, types.ErrCorrupt) || errors.Is(err, types.ErrNotFound) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrNotExist) {
		return damaged(index, err, "%s", what)
	}
	return fmt.Errorf("wal: %s: %w", what, err)
}
