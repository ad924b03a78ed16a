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
	"time"

	"koine/kg/internal/wal"
)

// A backup is one stream, the same over a connection as in a file:
//
//	magic, format(1), header (length, JSON: BackupInfo)
//	records: kind(1), length, bytes
//	  P  the prefixes that a directory of format 1 keeps beside its log, as JSON
//	  C  a piece of a checkpoint: of a full backup whose log has lost its head
//	  F  an entry of the log, as the log stores it
//	  E  the end: number of records before it
//	SHA-256 of all before it
//
// Lengths are unsigned varints. A full backup has the log from its beginning on,
// or a checkpoint and the log behind it; an incremental one the log behind the
// revision that another backup ends with. The entries carry their own chain of
// hashes, which a restore keeps: so backups of one log fit together, and those of
// another are recognised. The format is that of the data directory, formatVersion.
const (
	backupMagic = "koine backup\n"
	// maxBackupHeader bounds the header, maxBackupRecord a record.
	maxBackupHeader = 64 << 10
	maxBackupRecord = wal.MaxEntryBytes
	backupChunk     = 256 << 10
)

// Kinds of records.
const (
	backupPrefixes   = 'P'
	backupCheckpoint = 'C'
	backupEntry      = 'F'
	backupEnd        = 'E'
)

// BackupInfo says what a backup holds: it is its header.
type BackupInfo struct {
	Epoch string `json:"epoch"` // of the log that it is of
	// From is the revision that it follows on, 0 for a full backup; To is the one
	// that it ends with. The hashes are those of their log entries.
	From     Revision `json:"from"`
	To       Revision `json:"to"`
	FromHash string   `json:"fromHash"`
	ToHash   string   `json:"toHash"`
	// First is the oldest log entry in it.
	First Revision `json:"first"`
	// Checkpoint is the revision of its checkpoint, 0 without one.
	Checkpoint Revision `json:"checkpoint,omitempty"`
	// Floor is the oldest readable revision, 0 when all are.
	Floor Revision  `json:"floor,omitempty"`
	Time  time.Time `json:"time"` // of the newest commit
	// Requires is the oldest version of koine that restores it; format 1 lacks it.
	Requires string `json:"requires,omitempty"`

	format int // of what is in it; written before the header
}

// upgradingFrom is the format that a restored directory is upgraded from, or 0.
func (i BackupInfo) upgradingFrom() int {
	if i.format == formatVersion {
		return 0
	}
	return i.format
}

// Full tells whether the backup can be restored by itself.
func (i BackupInfo) Full() bool { return i.From == 0 }

// Entries is how many log entries it holds.
func (i BackupInfo) Entries() uint64 { return uint64(i.To + 1 - i.First) }

// BackupOptions says what to back up.
type BackupOptions struct {
	// Since is the revision that an incremental backup follows on; 0 makes a full
	// one. With Follows set, the log must be the one of that backup, or it is
	// CodeInvalid.
	Since   Revision
	Follows *BackupInfo
	// Progress is called now and then with how many entries have been written;
	// may be nil.
	Progress func(done, total uint64)
	// Begin is called with the header before the first byte is written, when
	// nothing but the reading can go wrong any more; may be nil.
	Begin func(BackupInfo)
}

// Backup writes a backup of the newest revision while everything else goes on.
// What it reads is checked on the way; a reader finds what breaks off by the
// missing end. It holds the log: CutLog leaves what the backup still needs. It
// fails with CodeRevisionGone when the log no longer holds what follows Since,
// and with CodeRevisionAhead when Since is not there yet.
func (s *Store) Backup(ctx context.Context, w io.Writer, o BackupOptions) (BackupInfo, error) {
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
	out := newBackupWriter(w)
	err = b.write(ctx, out, o.Progress)
	return b.info, errors.Join(err, out.finish(err))
}

// backup is one under way.
type backup struct {
	s          *Store
	info       BackupInfo
	prefixes   map[string]string // that the log does not have yet
	checkpoint *os.File          // nil without one
	release    func()
}

// beginBackup decides what is written and holds it.
func (s *Store) beginBackup(ctx context.Context, o BackupOptions) (b *backup, err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed()
	}
	s.users.Add(1)
	s.mu.Unlock()
	b = &backup{s: s, prefixes: s.names.pending(), release: s.users.Done}
	defer func() {
		if err != nil {
			b.close()
			b = nil
		}
	}()
	if e := s.refused.Load(); e != nil && e.Code == CodeLogDamaged {
		return b, e
	}
	h := s.head.Load()
	if o.Since > h.revision {
		return b, Errorf(CodeRevisionAhead, "revision %d is not there yet: the newest is %d", o.Since, h.revision)
	}
	// No checkpoint is dropped and no log cut between choosing and holding.
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	first := Revision(s.wal.First())
	if o.Since > 0 && o.Since+1 < first {
		e := Errorf(CodeRevisionGone, "the log no longer holds what follows revision %d", o.Since)
		oldest := s.Oldest()
		e.Oldest, e.Hint = &oldest, "make a full backup"
		return b, e
	}
	b.info = BackupInfo{Epoch: s.dir.epoch.String(), From: o.Since, To: h.revision, First: max(first, o.Since+1), Time: h.time, Floor: s.floor(), format: s.dir.meaning()}
	if b.info.format > oldestFormat {
		b.info.Requires = formatRequires
	}
	if err := b.hashes(o.Follows); err != nil {
		return b, err
	}
	if b.info.Full() && first > 1 {
		if err := b.openCheckpoint(first); err != nil {
			return b, err
		}
	}
	b.hold()
	return b, ctx.Err()
}

// hashes fills in those of both ends, and compares the first with the backup
// that is followed.
func (b *backup) hashes(follows *BackupInfo) error {
	for _, end := range [...]struct {
		at Revision
		to *string
	}{{b.info.From, &b.info.FromHash}, {b.info.To, &b.info.ToHash}} {
		var sum [32]byte
		if end.at > 0 {
			var err error
			if sum, err = b.s.wal.Hash(uint64(end.at)); err != nil {
				return b.s.noteDamage(errLog(err))
			}
		}
		*end.to = hex.EncodeToString(sum[:])
	}
	if follows != nil && (follows.Epoch != b.info.Epoch || follows.ToHash != b.info.FromHash) {
		return Errorf(CodeInvalid, "the backup that is to be followed on, of revision %d, is not one of this log", follows.To)
	}
	return nil
}

// openCheckpoint opens one from which the log leads on.
func (b *backup) openCheckpoint(first Revision) error {
	path, m, err := b.s.newestCheckpoint()
	if err != nil {
		return err
	}
	if m.revision+1 < first {
		return errLogDamaged(fmt.Errorf("it begins at %d, and the newest checkpoint is of %d", first, m.revision))
	}
	b.info.Checkpoint = m.revision
	b.checkpoint, err = os.Open(path)
	return err
}

// hold keeps the log from being cut before the backup's first entry.
func (b *backup) hold() {
	release, let := b.release, b.s.holdLog(b.info.First)
	b.release = func() {
		let()
		release()
	}
}

// holdLog keeps the log from being cut before an entry, until the function that it returns
// is called. Callers hold checkpointing, so that it is not cut just now, unless the entry is
// the newest or later: that is never cut.
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
		_ = b.checkpoint.Close() // was only read
	}
	b.release()
}

// backupSays is after how many entries progress is told.
const backupSays = 1024

func (b *backup) write(ctx context.Context, out *backupWriter, progress func(done, total uint64)) error {
	if err := out.header(b.info); err != nil {
		return err
	}
	prefixes, err := json.Marshal(b.prefixes)
	if err != nil {
		return err
	}
	if err := out.record(backupPrefixes, prefixes); err != nil {
		return err
	}
	if err := b.copyCheckpoint(ctx, out); err != nil {
		return err
	}
	total := b.info.Entries()
	done := uint64(0)
	for f, err := range b.s.wal.Frames(uint64(b.info.First), uint64(b.info.To)) {
		if err != nil {
			return b.s.noteDamage(errLog(err))
		}
		if err := b.wanted(ctx); err != nil {
			return err
		}
		if err := out.record(backupEntry, f.Raw); err != nil {
			return err
		}
		if done++; progress != nil && (done%backupSays == 0 || done == total) {
			progress(done, total)
		}
	}
	return nil
}

// wanted is why the backup ends early, nil if it does not.
func (b *backup) wanted(ctx context.Context) error {
	if b.s.isStopping() {
		return errClosed()
	}
	return ctx.Err()
}

func (b *backup) copyCheckpoint(ctx context.Context, out *backupWriter) error {
	if b.checkpoint == nil {
		return nil
	}
	chunk := make([]byte, backupChunk)
	for {
		n, err := b.checkpoint.Read(chunk)
		if n > 0 {
			if err := errors.Join(b.wanted(ctx), out.record(backupCheckpoint, chunk[:n])); err != nil {
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

// backupWriter writes the stream and sums it.
type backupWriter struct {
	w       io.Writer
	sum     hash.Hash
	records uint64
	buf     []byte
}

func newBackupWriter(w io.Writer) *backupWriter {
	sum := sha256.New()
	return &backupWriter{w: io.MultiWriter(w, sum), sum: sum}
}

func (w *backupWriter) header(info BackupInfo) error {
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	b := append([]byte(backupMagic), byte(info.format))
	b = binary.AppendUvarint(b, uint64(len(text)))
	_, err = w.w.Write(append(b, text...))
	return err
}

func (w *backupWriter) record(kind byte, content []byte) error {
	w.records++
	w.buf = append(w.buf[:0], kind)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(content)))
	if _, err := w.w.Write(w.buf); err != nil {
		return err
	}
	_, err := w.w.Write(content)
	return err
}

// finish writes the end, unless something went wrong before it.
func (w *backupWriter) finish(failed error) error {
	if failed != nil {
		return nil
	}
	if err := w.record(backupEnd, binary.AppendUvarint(nil, w.records)); err != nil {
		return err
	}
	_, err := w.w.Write(w.sum.Sum(nil))
	return err
}
