package kg

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"koine/kg/base"
	"koine/kg/internal/archive"
	"koine/kg/internal/datadir"
)

// backupChunk is the size of the pieces in which a backup is written: most records are smaller.
const backupChunk = 256 << 10

// BackupOptions configures Backup. The zero value makes a full backup.
type BackupOptions struct {
	// Since is the last revision of the backup that an incremental backup continues; 0 makes a
	// full backup. If Follows is set, it replaces Since, and a backup of another log fails
	// with CodeInvalid.
	Since   Revision
	Follows *BackupInfo
	// Progress is called from time to time with the number of entries written; may be nil.
	Progress func(done, total uint64)
	// Begin is called with the header before the first byte is written, when only reading and
	// writing can still fail; may be nil.
	Begin func(BackupInfo)
	// Attach, which may be nil, attaches files that are kept beside the store to a full backup,
	// after its log. Restore creates them. A store that waits for its upgrade has none.
	Attach func(attach AttachFile) error
}

// AttachFile attaches a file to a backup. The path, with slashes, is that in the data directory,
// in a folder that is none of the store's own.
type AttachFile func(path string, content io.Reader) error

// Backup writes a backup of the newest revision beside other operations. It verifies the data
// that it reads. A truncated backup lacks the end record, so that a reader notices. Until
// Backup returns, CutLog keeps the entries that it still needs. It fails with CodeRevisionGone
// if the log no longer has the entries after Since, and with CodeRevisionAhead if Since is
// newer than the newest revision.
func (m Maintenance) Backup(ctx context.Context, w io.Writer, o BackupOptions) (BackupInfo, error) {
	s := m.s
	if o.Follows != nil {
		o.Since = o.Follows.To
	}
	b, err := s.beginBackup(ctx, o)
	if err != nil {
		return BackupInfo{}, err
	}
	defer b.close()
	if o.Begin != nil {
		o.Begin(b.info)
	}
	out := newBackupWriter(w, b.info)
	err = b.writeTo(ctx, out, &o)
	return b.info, errors.Join(err, out.writeEnd(err))
}

// backup is a backup in progress.
type backup struct {
	s          *Store
	info       BackupInfo
	prefixes   map[string]string // not yet in the log
	checkpoint *os.File          // nil without one
	release    func()
}

// beginBackup selects the content and keeps it from being removed.
func (s *Store) beginBackup(ctx context.Context, o BackupOptions) (b *backup, err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, base.ErrClosed()
	}
	s.users.Add(1)
	s.mu.Unlock()
	b = &backup{s: s, prefixes: s.names.pendingPrefixes(), release: s.users.Done}
	defer func() {
		if err != nil {
			b.close()
			b = nil
		}
	}()
	if e := s.refused.Load(); e != nil && e.Code == CodeLogDamaged {
		return b, e
	}
	// No checkpoint is made or removed and no log cut between selecting and holding. A checkpoint
	// that was made while this waited is not newer than the head.
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	h := s.head.Load()
	if o.Since > h.revision {
		return b, Errorf(CodeRevisionAhead, "revision %d does not exist yet: the newest is %d", o.Since, h.revision)
	}
	first := Revision(s.wal.First())
	if o.Since > 0 && o.Since+1 < first {
		e := Errorf(CodeRevisionGone, "the log no longer has the commits after revision %d", o.Since)
		oldest := s.Oldest()
		e.Oldest, e.Hint = &oldest, "make a full backup"
		return b, e
	}
	b.info = BackupInfo{Epoch: s.dir.Epoch.String(), From: o.Since, To: h.revision, First: max(first, o.Since+1), Time: h.time, Floor: s.oldestReadable(), Format: s.dir.ContentFormat()}
	if b.info.Format > datadir.OldestFormat {
		b.info.Requires = datadir.FormatRequires
	}
	if err := b.readHashes(o.Follows); err != nil {
		return b, err
	}
	if b.info.Full() && first > 1 {
		if err := b.openCheckpoint(first); err != nil {
			return b, err
		}
	}
	b.holdLog()
	return b, ctx.Err()
}

// readHashes sets the hashes of both ends, and compares the first with the end of the backup
// that this one continues.
func (b *backup) readHashes(follows *BackupInfo) error {
	for _, end := range [...]struct {
		at Revision
		to *string
	}{{b.info.From, &b.info.FromHash}, {b.info.To, &b.info.ToHash}} {
		var sum [32]byte
		if end.at > 0 {
			var err error
			if sum, err = b.s.wal.Hash(uint64(end.at)); err != nil {
				return b.s.noteDamage(base.ErrLog(err))
			}
		}
		*end.to = hex.EncodeToString(sum[:])
	}
	if follows != nil && (follows.Epoch != b.info.Epoch || follows.ToHash != b.info.FromHash) {
		return Errorf(CodeInvalid, "the backup of revision %d is not of this log", follows.To)
	}
	return nil
}

// openCheckpoint opens the newest checkpoint, which must lead to the first log entry.
func (b *backup) openCheckpoint(first Revision) error {
	path, m, err := b.s.newestCheckpoint()
	if err != nil {
		return err
	}
	if m.Revision+1 < first {
		return base.ErrLogDamaged(fmt.Errorf("it begins at %d, and the newest checkpoint is of %d", first, m.Revision))
	}
	if m.Revision > b.info.To {
		return Errorf(CodeInternal, "the newest checkpoint is of revision %d, and the backup ends at %d", m.Revision, b.info.To)
	}
	b.info.Checkpoint = m.Revision
	b.checkpoint, err = os.Open(path)
	return err
}

// holdLog keeps the log from being cut before the backup's first entry.
func (b *backup) holdLog() {
	release, let := b.release, b.s.holdLog(b.info.First)
	b.release = func() {
		let()
		release()
	}
}

// holdLog keeps the log from being cut before an entry until let is called. The caller holds
// checkpointing, so that no cut is in progress, unless the entry is the newest or later: that
// one is never cut.
func (s *Store) holdLog(first Revision) (let func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.holds.Get(first)
	s.holds.Set(first, n+1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n, _ := s.holds.Get(first); n > 1 {
			s.holds.Set(first, n-1)
		} else {
			s.holds.Delete(first)
		}
	}
}

func (b *backup) close() {
	if b.checkpoint != nil {
		_ = b.checkpoint.Close() // opened for reading
	}
	b.release()
}

func (b *backup) writeTo(ctx context.Context, out *backupWriter, o *BackupOptions) error {
	if err := out.writeHeader(); err != nil {
		return err
	}
	prefixes, err := json.Marshal(b.prefixes)
	if err != nil {
		return err
	}
	if err := out.writeRecord(archive.BackupPrefixes, prefixes); err != nil {
		return err
	}
	if err := b.copyCheckpoint(ctx, out); err != nil {
		return err
	}
	total := b.info.Entries()
	done := uint64(0)
	for f, err := range b.s.wal.Frames(uint64(b.info.First), uint64(b.info.To)) {
		if err != nil {
			return b.s.noteDamage(base.ErrLog(err))
		}
		if err := b.checkContext(ctx); err != nil {
			return err
		}
		if err := out.writeRecord(archive.BackupEntry, f.Raw); err != nil {
			return err
		}
		if done++; done == total && hex.EncodeToString(f.Hash[:]) != b.info.ToHash {
			return b.s.noteDamage(base.ErrLogDamaged(fmt.Errorf("entry %d has another hash than when the backup began", f.Index)))
		}
		if o.Progress != nil && (done%archive.ProgressInterval == 0 || done == total) {
			o.Progress(done, total)
		}
	}
	if o.Attach == nil || !b.info.Full() || b.info.Format < datadir.AttachmentsFormat {
		return nil
	}
	return o.Attach(func(path string, content io.Reader) error {
		if err := archive.CheckAttachment(path); err != nil {
			return err
		}
		if err := out.writeRecord(archive.BackupAttachment, []byte(path)); err != nil {
			return err
		}
		return b.copyPieces(ctx, out, archive.BackupPiece, content)
	})
}

// checkContext returns the error that ends the backup early, or nil.
func (b *backup) checkContext(ctx context.Context) error {
	if b.s.isStopping() {
		return base.ErrClosed()
	}
	return ctx.Err()
}

func (b *backup) copyCheckpoint(ctx context.Context, out *backupWriter) error {
	if b.checkpoint == nil {
		return nil
	}
	return b.copyPieces(ctx, out, archive.BackupCheckpoint, b.checkpoint)
}

// copyPieces writes a content as records of one kind.
func (b *backup) copyPieces(ctx context.Context, out *backupWriter, kind byte, content io.Reader) error {
	chunk := make([]byte, backupChunk)
	for {
		n, err := content.Read(chunk)
		if n > 0 {
			if err := errors.Join(b.checkContext(ctx), out.writeRecord(kind, chunk[:n])); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// backupWriter writes the stream, on a goroutine of its own, and computes its checksum. writeEnd
// ends that goroutine.
type backupWriter struct {
	info    BackupInfo
	w       *archive.AsyncWriter // to out
	out     io.Writer
	sum     hash.Hash
	records uint64
	buf     []byte
}

func newBackupWriter(out io.Writer, info BackupInfo) *backupWriter {
	return &backupWriter{info: info, w: archive.NewAsyncWriter(out), out: out, sum: sha256.New()}
}

func (w *backupWriter) writeHeader() error {
	text, err := json.Marshal(w.info)
	if err != nil {
		return err
	}
	b := append([]byte(archive.BackupMagic), byte(w.info.Format))
	b = binary.AppendUvarint(b, uint64(len(text)))
	return w.writeSummed(append(b, text...))
}

func (w *backupWriter) writeRecord(kind byte, content []byte) error {
	w.records++
	w.buf = append(w.buf[:0], kind)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(content)))
	if err := w.writeSummed(w.buf); err != nil {
		return err
	}
	if kind != archive.BackupEntry || w.info.SumsEntries() {
		return w.writeSummed(content)
	}
	_, err := w.w.Write(content)
	return err
}

// writeSummed writes bytes that are part of the checksum.
func (w *backupWriter) writeSummed(b []byte) error {
	w.sum.Write(b)
	_, err := w.w.Write(b)
	return err
}

// writeEnd writes the end record, unless the backup has failed.
func (w *backupWriter) writeEnd(failed error) error {
	defer w.w.Close()
	if failed != nil {
		return w.w.Flush() // a reader sees how far it went
	}
	if err := w.writeRecord(archive.BackupEnd, binary.AppendUvarint(nil, w.records)); err != nil {
		return err
	}
	if err := w.w.Flush(); err != nil {
		return err
	}
	_, err := w.out.Write(w.sum.Sum(nil))
	return err
}
