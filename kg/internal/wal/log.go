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

// MaxBatchBytes is the largest total size of the frames of one append.
const MaxBatchBytes = 256 << 20

// Log is an open log. Reads are safe for concurrent use, also with appends; appends and
// truncations are serialised.
type Log struct {
	dir     string
	options Options // with defaults
	begin   uint64  // first index of an empty log; 0 stands for 1
	first   atomic.Uint64
	last    atomic.Uint64
	hashes  hashCache

	// open is held shared while raft-wal is used and exclusively by Close, because
	// raft-wal does not tolerate reads during its Close. Lock order: writing, open.
	open   sync.RWMutex
	closed bool
	// A stalled log is reopened under its readers.
	wal   *raftwal.WAL
	files *segmentFiles
	meta  *metaStore

	// writing guards the fields below and serialises writers.
	writing  sync.Mutex
	lastHash [sha256.Size]byte
	mark     types.WritableFile // nil when read-only
	failed   error              // first failed write; ErrReadOnly from the start
	stalled  error              // reason why appends wait for free space; nil if they do not
}

// First returns the lowest readable index, 0 if the log is empty.
func (l *Log) First() uint64 { return l.first.Load() }

// Last returns the highest durable index, 0 if the log is empty.
func (l *Log) Last() uint64 { return l.last.Load() }

// UsedBytes returns the space taken by entries and structures in the segment files. The files
// are larger, because they are preallocated. Truncated entries count until their segment is
// deleted.
func (l *Log) UsedBytes() int64 {
	l.open.RLock()
	defer l.open.RUnlock()
	return l.files.totalUsed()
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

// AppendPrepared writes batch as entries first, first+1 … with one fsync and returns when
// they are durable. After ErrGap, ErrTooLarge, ErrClosed, ErrReadOnly and ErrNoSpace nothing
// was written; after ErrNoSpace, appends succeed again once there is free space. After any
// other error it is unknown whether the entries will be in the log when it is opened again,
// and every later append fails with an error that wraps the first.
func (l *Log) AppendPrepared(first uint64, batch []Prepared) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.checkWritable(); err != nil {
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
	if err := l.storeLogs(logs, prev); err != nil {
		return err
	}
	for i, h := range hashes {
		l.hashes.put(first+uint64(i), h)
	}
	l.first.CompareAndSwap(0, first)
	l.setLast(first+uint64(len(batch))-1, prev)
	return nil
}

// storeLogs writes entries and their mark; hash is that of the last entry.
func (l *Log) storeLogs(logs []*raft.Log, hash [sha256.Size]byte) error {
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
		appended, resumeErr := l.reopenStalled(&end)
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

// writeMark writes a durable entry to the mark file. If that fails, the append has failed
// although its sync succeeded: a volume that rejects one write may have lost the previous
// one.
func (l *Log) writeMark(last uint64, hash [sha256.Size]byte) error {
	if _, err := l.mark.WriteAt(encodeMark(indexHash{last, hash}), 0); err != nil {
		l.failed = err
		return fmt.Errorf("wal: mark of entry %d: %w", last, err)
	}
	return nil
}

// setLast makes a durable entry the last one.
func (l *Log) setLast(last uint64, hash [sha256.Size]byte) {
	l.lastHash = hash
	l.first.CompareAndSwap(0, 1)
	l.last.Store(last)
}

// LastHash returns the SHA-256 of the frame of the last entry from memory, without checking
// the files.
func (l *Log) LastHash() [sha256.Size]byte {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.lastHash
}

func checkBatch(batch []Prepared) error {
	total := 0
	for i, p := range batch {
		if len(p.frame) < headerBytes {
			return fmt.Errorf("wal: payload %d of %d is not prepared", i+1, len(batch))
		}
		total += len(p.frame)
	}
	if total > MaxBatchBytes {
		return fmt.Errorf("%w: batch of %d bytes, at most %d", ErrTooLarge, total, MaxBatchBytes)
	}
	return nil
}

func (l *Log) checkWritable() error {
	switch {
	case l.closed:
		return ErrClosed
	case l.failed == ErrReadOnly:
		return ErrReadOnly
	case l.failed != nil:
		return fmt.Errorf("wal: no writes after an earlier failure: %w", l.failed)
	case l.stalled != nil:
		if _, err := l.reopenStalled(nil); isNoSpace(err) {
			return noSpace("opening the log for writing", err)
		} else if err != nil {
			l.failed = err
			return fmt.Errorf("wal: opening the log for writing: %w", err)
		}
	}
	return nil
}

// TruncateFront removes the entries below index before, which must not be above Last: the last
// entry stays, as the end of the chain. Space is released in whole segments, one after the other:
// an append waits for the metadata of one, and for the removal of none.
func (l *Log) TruncateFront(before uint64) error {
	for {
		more, files, err := l.truncateStep(before)
		if files != nil {
			files.removals.awaitIdle()
		}
		if err != nil || !more {
			return err
		}
	}
}

// truncateStep removes the entries below before, or only those of the first segment. It returns
// true if some are left, and the files whose removals the step began.
func (l *Log) truncateStep(before uint64) (more bool, files *segmentFiles, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.checkWritable(); err != nil {
		return false, nil, err
	}
	l.open.RLock()
	defer l.open.RUnlock()
	if before > l.last.Load() {
		return false, nil, fmt.Errorf("%w: cannot truncate before %d, last is %d", ErrNotFound, before, l.last.Load())
	}
	first := l.first.Load()
	if before <= first {
		return false, nil, nil
	}
	to := before
	if sealed := l.meta.sealedSegments(); len(sealed) > 0 && sealed[0].MaxIndex >= first {
		to = min(to, sealed[0].MaxIndex+1)
	}
	l.first.Store(to) // before the truncation, so that no reader reports damage
	if err := l.wal.DeleteRange(first, to-1); err != nil {
		l.first.Store(first)
		if isNoSpace(err) {
			l.stalled = err
			return false, nil, noSpace("the metadata of a shorter log", err)
		}
		l.failed = err
		return false, nil, fmt.Errorf("wal: truncate before %d: %w", to, err)
	}
	return to < before, l.files, nil
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
	l.files.removals.awaitIdle()
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
