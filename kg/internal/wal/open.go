package wal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

const (
	// DefaultSegmentBytes is the size at which a segment file is closed and the next
	// one begun. Files are preallocated at this size.
	DefaultSegmentBytes = 64 << 20
	// MaxSegmentBytes is the largest Options.SegmentBytes: offsets in a segment,
	// including its last batch, must fit in 32 bits.
	MaxSegmentBytes = 1 << 30
)

// Options configures Open. The zero value has the defaults.
type Options struct {
	// SegmentBytes is the segment size; 0 means DefaultSegmentBytes.
	SegmentBytes int
	// ReadOnly opens the legible part of a log for reading. Nothing in the directory
	// is changed, and lost entries are accepted unless Checked is set.
	ReadOnly bool
	// Checked makes a read-only open refuse the damage that a writable open refuses.
	Checked bool
	// ReadWhenFull opens a log for reading if the volume has no space to open it for
	// writing: appends fail with ErrNoSpace until there is space.
	ReadWhenFull bool
	// Begin is the first index of an empty log; 0 means 1.
	Begin uint64
	// Files is the file system; nil means the real one. Tests pass waltest.Files.
	Files types.VFS
	// Logger receives reports of raft-wal's background work.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.SegmentBytes < 0 || o.SegmentBytes > MaxSegmentBytes {
		return o, fmt.Errorf("wal: segments of %d bytes, at most %d", o.SegmentBytes, MaxSegmentBytes)
	}
	if o.Files == nil {
		o.Files = systemFiles{fs.New()}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Open opens the log in dir and creates dir and an empty log if they are missing. The error
// is ErrDamaged if the log is provably damaged; nothing is changed then, and
// Options.ReadOnly still opens the legible part. The caller holds the lock of the directory.
//
// Open reads the last segment completely and syncs it: all entries that it exposes survive a
// power cut.
func Open(dir string, o Options) (*Log, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	l, err := open(dir, o)
	if err == nil || !o.ReadWhenFull || o.ReadOnly || !isNoSpace(err) {
		return l, err
	}
	full := err
	o.ReadOnly = true
	if l, err = open(dir, o); err != nil {
		return nil, errors.Join(full, err)
	}
	l.options.ReadOnly, l.failed, l.stalled = false, nil, full
	return l, nil
}

// Stalled returns the reason why appends wait for free space, nil if they do not.
func (l *Log) Stalled() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.stalled
}

func open(dir string, o Options) (*Log, error) {
	if !o.ReadOnly {
		if err := makeDir(dir); err != nil {
			return nil, fmt.Errorf("wal: %w", err)
		}
	}
	meta, err := openMeta(o.Files, dir, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	meta.lenient = o.ReadOnly && !o.Checked
	mark, err := readMark(o.Files, dir)
	if err != nil {
		return nil, fmt.Errorf("wal: mark: %w", err)
	}
	used, err := meta.recoverTail(mark, o.SegmentBytes)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, options: o, begin: o.Begin, meta: meta, files: &segmentFiles{VFS: o.Files, readOnly: o.ReadOnly, log: o.Logger, used: used}}
	l.wal, err = raftwal.Open(dir,
		raftwal.WithCodec(codec{}),
		raftwal.WithMetaStore(meta),
		raftwal.WithSegmentFiler(filer{segment.NewFiler(dir, l.files)}),
		raftwal.WithSegmentSize(o.SegmentBytes),
		raftwal.WithLogger(newHCLogger(o.Logger)))
	l.files.removals.awaitIdle() // of segments that an earlier process left
	if err != nil {
		return nil, lowerError(0, "cannot be opened", err)
	}
	if o.ReadOnly {
		err = l.startReadOnly(mark)
	} else {
		err = l.startWriting(dir, o.Files, mark)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Nothing returns a read-only log without entries. It replaces a log of which nothing is
// legible.
func Nothing() (*Log, error) { return Open("", Options{ReadOnly: true, Files: noFiles{}}) }

// startWriting checks the end of the log and opens the mark for writing.
func (l *Log) startWriting(dir string, files types.VFS, mark *indexHash) error {
	if err := l.loadRange(); err != nil {
		return err
	}
	if err := l.checkEnd(mark); err != nil {
		return err
	}
	var err error
	if l.mark, err = openMark(files, dir); err != nil {
		return fmt.Errorf("wal: mark: %w", err)
	}
	if last := l.last.Load(); last != 0 {
		if err := l.writeMark(last, l.lastHash); err != nil {
			return err
		}
		l.setLast(last, l.lastHash)
	}
	if err := removeSpare(dir); err != nil {
		return err
	}
	// raft-wal syncs the directory with the first sync of a file that it created, but
	// not of a file that it found after a crash.
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	return nil
}

// checkEnd checks the last entry and its link, and that the marked entry has the marked hash.
func (l *Log) checkEnd(mark *indexHash) error {
	if last := l.last.Load(); last != 0 {
		_, hash, err := l.readFrame(last)
		if err != nil {
			return err
		}
		l.lastHash = hash
	}
	if mark == nil || mark.index+1 < l.first.Load() {
		return nil
	}
	hash, err := l.Hash(mark.index)
	if err != nil {
		return err
	}
	if hash != mark.hash {
		return damageErrorf(mark.index, nil, "has hash %x, %x was durable", hash[:8], mark.hash[:8])
	}
	return nil
}

// startReadOnly checks nothing unless Options.Checked is set: reads check each entry.
func (l *Log) startReadOnly(mark *indexHash) error {
	l.failed = ErrReadOnly
	if err := l.loadRange(); err != nil || !l.options.Checked {
		return err
	}
	return l.checkEnd(mark)
}

func (l *Log) loadRange() error {
	first, err := l.wal.FirstIndex()
	if err != nil {
		return lowerError(0, "first index", err)
	}
	last, err := l.wal.LastIndex()
	if err != nil {
		return lowerError(0, "last index", err)
	}
	l.first.Store(first)
	l.last.Store(last)
	return nil
}

// makeDir creates dir and makes its entry in its parent durable.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lowerError maps an error of raft-wal: those that only damage can explain become ErrDamaged,
// others (I/O errors, permissions) are wrapped.
func lowerError(index uint64, what string, err error) error {
	if errors.Is(err, types.ErrCorrupt) || errors.Is(err, types.ErrNotFound) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrNotExist) {
		return damageErrorf(index, err, "%s", what)
	}
	return fmt.Errorf("wal: %s: %w", what, err)
}
