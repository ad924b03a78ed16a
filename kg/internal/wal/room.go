package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	rwfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
)

// A full volume must not break the log. Before an append, everything that it may write is
// allocated:
//
//   - the segment to the end of the batch: segments are allocated when they are created, but
//     the last batch may reach beyond,
//   - from three quarters of a segment on, the next one as the file "spare", which is renamed
//     when raft-wal creates a segment,
//   - the metadata files, including the next segment's entry.
//
// If there is no space, the append fails with ErrNoSpace before it writes anything. If the file
// system cannot allocate (Allocates), or a write still fails for lack of space, the log is
// reopened to find out which entries of the batch are durable.

const spareName = "spare"

// metaRoom is the growth of the metadata between two allocations.
const metaRoom = 4 << 10

// isNoSpace reports whether an operation failed because the volume or a quota is full.
func isNoSpace(err error) bool {
	return errors.Is(err, ErrNoSpace) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func noSpace(what string, err error) error { return fmt.Errorf("%w: %s: %w", ErrNoSpace, what, err) }

// systemFiles is the real file system.
type systemFiles struct{ *rwfs.FS }

// renamer is a file system that can create a spare segment.
type renamer interface {
	types.VFS
	rename(dir, from, to string) error
}

func (systemFiles) rename(dir, from, to string) error {
	return os.Rename(filepath.Join(dir, from), filepath.Join(dir, to))
}

// Create is raft-wal's Create, but removes a file for which there is no space.
func (s systemFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := s.FS.Create(dir, name, size)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		_ = os.Remove(filepath.Join(dir, name))
	}
	return f, err
}

// makeRoom allocates the space for an append of the given size.
func (l *Log) makeRoom(bytes int64) error {
	files, ok := l.files.VFS.(renamer)
	if !ok || l.files.unsupported {
		return nil
	}
	// Each entry has a header, padding, and four bytes in the segment's index.
	bytes += bytes/8 + 4<<10
	size := int64(l.options.SegmentBytes)
	name, end, beyond, spare := l.files.newestSegment()
	if end+bytes >= size/4*3 {
		if err := l.awaitRotation(); err != nil {
			return err
		}
		name, end, beyond, spare = l.files.newestSegment()
	}
	if over := end + bytes - size; name != "" && over > beyond {
		if err := l.allocateFile(name, size, over); err != nil {
			return err
		}
		l.files.setBeyond(over)
	}
	if end+bytes < size/4*3 || spare {
		return nil
	}
	for _, name := range metaNames {
		if err := l.allocateFile(name, 0, l.meta.encodedLen()+metaRoom); err != nil {
			return err
		}
	}
	f, err := files.Create(l.dir, spareName, uint64(size))
	if err == nil {
		if err = errors.Join(f.Sync(), f.Close()); err != nil {
			_ = os.Remove(filepath.Join(l.dir, spareName))
		}
	}
	if isNoSpace(err) {
		return noSpace("the next segment", err)
	}
	if err != nil {
		l.failed = err
		return fmt.Errorf("wal: spare segment: %w", err)
	}
	l.files.setSpare()
	return nil
}

// removeSpare removes the spare segment; the next append creates it again if needed.
func removeSpare(dir string) error {
	if err := os.Remove(filepath.Join(dir, spareName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("wal: %w", err)
	}
	return nil
}

// awaitRotation waits for a pending change of segments in raft-wal.
func (l *Log) awaitRotation() error {
	l.open.RLock()
	defer l.open.RUnlock()
	behind := l.last.Load() + 1
	return l.wal.DeleteRange(behind, behind) // deletes nothing, but waits
}

// allocateFile allocates blocks for a file of the log.
func (l *Log) allocateFile(name string, off, bytes int64) error {
	f, err := os.OpenFile(filepath.Join(l.dir, name), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	err = errors.Join(allocate(f, off, bytes), f.Close())
	switch {
	case isNoSpace(err):
		return noSpace(name, err)
	case errors.Is(err, errors.ErrUnsupported):
		l.files.unsupported = true
		return nil
	case err != nil:
		return fmt.Errorf("wal: allocate %s: %w", name, err)
	}
	return nil
}

// Allocates reports whether the file system can preallocate blocks. If not, only free space
// keeps writes from failing.
func (l *Log) Allocates() bool {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.mark != nil && !l.files.unsupported {
		if _, ok := l.files.VFS.(renamer); ok {
			_ = l.allocateFile(markName, 0, markBytes)
		}
	}
	return !l.files.unsupported
}

// stalledBy returns the reason why appends wait for free space if err, the failure of an append
// or of a change of segments, is due to lack of space. Otherwise it returns nil.
func (l *Log) stalledBy(err error) error {
	switch {
	case isNoSpace(err):
		return err
	case errors.Is(err, types.ErrSealed) && isNoSpace(l.meta.failed):
		return l.meta.failed
	case errors.Is(err, types.ErrSealed) && isNoSpace(l.files.createError()):
		return l.files.createError()
	}
	return nil
}

// reopenStalled reopens the files of a stalled log. They have the acknowledged entries and possibly
// the batch of the failed append, which batchEnd identifies by its last entry and hash.
func (l *Log) reopenStalled(batchEnd *indexHash) (appended bool, err error) {
	l.open.Lock()
	defer l.open.Unlock()
	if l.wal != nil {
		_ = l.wal.Close()
	}
	if l.mark != nil {
		_ = l.mark.Close()
		l.mark = nil
	}
	o := l.options
	o.ReadOnly, o.ReadWhenFull = false, false
	again, err := Open(l.dir, o)
	if err == nil {
		last, hash := again.last.Load(), again.lastHash
		switch {
		case last == l.last.Load() && hash == l.lastHash:
		case batchEnd != nil && last == batchEnd.index && hash == batchEnd.hash:
			appended = true
		default:
			err = errors.Join(damageErrorf(last, nil, "is the last entry; before the volume was full it was %d", l.last.Load()), again.Close())
		}
	}
	if err != nil {
		// Readers continue with the legible part.
		o.ReadOnly = true
		if r, readErr := Open(l.dir, o); readErr == nil {
			l.wal, l.files, l.meta = r.wal, r.files, r.meta
			l.first.Store(r.first.Load())
		}
		return false, err
	}
	l.wal, l.files, l.meta, l.mark = again.wal, again.files, again.meta, again.mark
	l.first.Store(again.first.Load()) // a truncation that failed may have been durable
	l.stalled = nil
	return appended, nil
}
