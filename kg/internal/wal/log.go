package wal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/types"
)

// MaxBatchBytes is the most that the frames of one append may add up to.
const MaxBatchBytes = 256 << 20

// Log is an open log. Reads may run concurrently with each other and with
// appends; appends and truncations take turns among themselves.
type Log struct {
	dir     string
	options Options // with defaults
	begin   uint64  // first index of an empty log; 0 stands for 1
	first   atomic.Uint64
	last    atomic.Uint64
	hashes  hashCache

	// open is held shared while raft-wal is used and alone by Close: raft-wal
	// itself does not survive reads during its Close. Taken after writing.
	open   sync.RWMutex
	closed bool
	// The log is opened again under its readers when it was stalled.
	wal   *raftwal.WAL
	files *segmentFiles
	meta  *metaStore

	// writing guards the fields below and serialises writers.
	writing  sync.Mutex
	lastHash [sha256.Size]byte
	mark     types.WritableFile // nil when read-only
	failed   error              // the first failure of a write; ErrReadOnly from the start
	stalled  error              // why nothing can be written until there is room; nil for nothing
}

// First is the lowest index that can be read, 0 when the log is empty.
func (l *Log) First() uint64 { return l.first.Load() }

// Last is the highest durable index, 0 when the log is empty.
func (l *Log) Last() uint64 { return l.last.Load() }

// UsedBytes is what the entries and the segments' own structures take in the
// segment files. The files themselves are larger (preallocated), and entries that
// were truncated count until their segment is deleted.
func (l *Log) UsedBytes() int64 {
	l.open.RLock()
	defer l.open.RUnlock()
	return l.files.total()
}

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
// returns when they are durable. ErrGap, ErrTooLarge, ErrClosed, ErrReadOnly and
// ErrNoSpace mean that nothing was written; after ErrNoSpace later appends succeed
// once there is room. After any other error it is unknown whether
// some or all entries will be there when the log is opened again, and every
// later append fails with an error that wraps the first.
func (l *Log) AppendPrepared(first uint64, batch []Prepared) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.writable(); err != nil {
		return err
	}
	settled := l.last.Load()
	if settled == 0 && l.begin > 0 {
		settled = l.begin - 1
	}
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
	if err := l.store(logs, prev); err != nil {
		return err
	}
	for i, h := range hashes {
		l.hashes.put(first+uint64(i), h)
	}
	l.first.CompareAndSwap(0, first)
	l.advance(first+uint64(len(batch))-1, prev)
	return nil
}

// store writes entries of which the last has the hash, and marks it.
func (l *Log) store(logs []*raft.Log, hash [sha256.Size]byte) error {
	bytes := int64(0)
	for _, e := range logs {
		bytes += int64(len(e.Data))
	}
	if err := l.makeRoom(bytes); err != nil {
		return err
	}
	end := indexHash{logs[len(logs)-1].Index, hash}
	l.open.RLock()
	err := l.wal.StoreLogs(logs)
	l.open.RUnlock()
	if err == nil {
		return l.writeMark(end.index, hash)
	}
	if full := l.stalledBy(err); full != nil {
		l.stalled = full
		appended, resumeErr := l.resume(&end)
		if appended {
			return nil
		}
		if resumeErr == nil {
			return noSpace("an append", full)
		}
		err = errors.Join(err, resumeErr)
	}
	l.failed = err
	return fmt.Errorf("wal: append of entries %d to %d: %w", logs[0].Index, end.index, err)
}

// writeMark notes a durable entry in the mark file. An append whose mark cannot be
// written has failed, although its sync succeeded: a volume that refuses one write
// may have lost the one before.
func (l *Log) writeMark(last uint64, hash [sha256.Size]byte) error {
	if _, err := l.mark.WriteAt(encodeMark(indexHash{last, hash}), 0); err != nil {
		l.failed = err
		return fmt.Errorf("wal: mark of entry %d: %w", last, err)
	}
	return nil
}

// advance makes a durable entry the last one.
func (l *Log) advance(last uint64, hash [sha256.Size]byte) {
	l.lastHash = hash
	l.first.CompareAndSwap(0, 1)
	l.last.Store(last)
}

// LastHash is the SHA-256 of the frame of the last entry, which was appended by this
// process: it costs nothing, and checks nothing of what is in the files.
func (l *Log) LastHash() [sha256.Size]byte {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.lastHash
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
	case l.stalled != nil:
		if _, err := l.resume(nil); isNoSpace(err) {
			return noSpace("opening the log for writing", err)
		} else if err != nil {
			l.failed = err
			return fmt.Errorf("wal: opening the log for writing: %w", err)
		}
	}
	return nil
}

// TruncateFront drops the entries below index before, which must not be above
// Last: the last entry always stays, as the end of the chain. Space is given
// back in whole segments.
func (l *Log) TruncateFront(before uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.writable(); err != nil {
		return err
	}
	l.open.RLock()
	defer l.open.RUnlock()
	if before > l.last.Load() {
		return fmt.Errorf("%w: cannot truncate before %d, last is %d", ErrNotFound, before, l.last.Load())
	}
	first := l.first.Load()
	if before <= first {
		return nil
	}
	l.first.Store(before) // ahead of the deed, so that no reader takes it for damage
	if err := l.wal.DeleteRange(first, before-1); err != nil {
		l.first.Store(first)
		if isNoSpace(err) {
			l.stalled = err
			return noSpace("the metadata of a shorter log", err)
		}
		l.failed = err
		return fmt.Errorf("wal: truncate before %d: %w", before, err)
	}
	return nil
}

// Close waits for running reads and writes, syncs the mark and closes the files.
// Reads and writes fail with ErrClosed from then on.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.open.Lock()
	defer l.open.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.wal.Close()
	if l.mark != nil {
		err = errors.Join(err, removeSpare(l.dir))
		if l.failed == nil {
			err = errors.Join(err, l.mark.Sync())
		}
		err = errors.Join(err, l.mark.Close())
	}
	if err != nil {
		return fmt.Errorf("wal: close: %w", err)
	}
	return nil
}
