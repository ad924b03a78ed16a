package archive

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/datadir"
	"koine/kg/internal/wal"
)

// restoreBatch is the size in bytes of the entries that share an fsync.
const restoreBatch = 8 << 20

// RestoreOptions configures Restore. The zero value works.
type RestoreOptions struct {
	Logger *slog.Logger // discards when nil
	// Progress, if not nil, is called from time to time with the number of entries read of
	// the current backup.
	Progress func(done, total uint64)
}

// Restore makes a data directory from a full backup and the incremental backups after it,
// in order. The directory must be empty or absent. It gets a new epoch and a new secret:
// positions, cursors and other tokens of the original store are not valid for it. Its
// index is made when it is first opened. After an error the directory is empty again, or
// absent if it was absent before.
//
// It returns CodeInvalid if the directory is not empty or the backups do not follow each
// other, and the errors of VerifyBackup for a bad backup.
func Restore(ctx context.Context, dir string, backups []io.Reader, o RestoreOptions) (info BackupInfo, err error) {
	if len(backups) == 0 {
		return info, base.Errorf(base.CodeInvalid, "there is no backup to restore")
	}
	r, err := newRestore(dir, o)
	if err != nil {
		return info, err
	}
	for i, in := range backups {
		if err = r.restoreOne(ctx, in); err != nil {
			err = fmt.Errorf("backup %d of %d: %w", i+1, len(backups), err)
			break
		}
	}
	if err = errors.Join(err, r.wal.Close()); err == nil {
		err = r.writeSmallFiles()
	}
	if err != nil {
		err = errors.Join(r.newStore.WrapError(err), r.undo())
	}
	return r.info, errors.Join(err, datadir.Unlock(r.lock))
}

// restore is the state of a Restore.
type restore struct {
	dir      string
	options  RestoreOptions
	lock     *os.File
	newStore *datadir.NewStore
	wal      *wal.Log
	epoch    base.Epoch
	info     BackupInfo // of the backups restored so far
	started  bool
	prefixes map[string]string
	batch    []wal.Frame
	bytes    int
	partial  *os.File // the checkpoint being received
	attached *os.File // the attachment being received
}

func newRestore(dir string, o RestoreOptions) (_ *restore, err error) {
	made := &datadir.NewStore{Path: dir, Dirs: datadir.MissingDirs(dir)}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.RemoveDirs())
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		e := base.Errorf(base.CodeInvalid, "%s is not empty", dir)
		e.Hint = "restore into a new directory: existing files are never overwritten"
		return nil, e
	}
	r := &restore{dir: dir, options: o, newStore: made}
	_, _ = rand.Read(r.epoch[:]) // never fails
	if r.lock, err = os.OpenFile(r.pathOf(datadir.LockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(r.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, r.lock.Close()) // another process has taken the directory
	}
	if r.wal, err = wal.Open(r.pathOf(datadir.LogName), wal.Options{Logger: o.Logger}); err != nil {
		return nil, errors.Join(made.WrapError(err), r.undo(), datadir.Unlock(r.lock))
	}
	return r, nil
}

func (r *restore) pathOf(name string) string { return filepath.Join(r.dir, name) }

// restoreOne reads one backup into the directory.
func (r *restore) restoreOne(ctx context.Context, in io.Reader) error {
	_, err := readBackup(ctx, in, backupSink{
		begin:      r.beginBackup,
		prefixes:   func(p map[string]string) error { r.prefixes = p; return nil },
		checkpoint: r.addCheckpointPiece,
		entry:      r.addEntry,
		attachment: r.beginAttachment,
		piece: func(piece []byte) error {
			_, err := r.attached.Write(piece)
			return err
		},
	}, r.options.Progress)
	if err == nil {
		err = cmp.Or(r.flush(), r.endAttachment())
	}
	if err != nil {
		return err
	}
	return r.installCheckpoint()
}

// beginBackup checks that a backup follows the ones restored before it.
func (r *restore) beginBackup(info BackupInfo) error {
	switch {
	case !r.started && !info.Full():
		return base.Errorf(base.CodeInvalid, "the backup begins after revision %d: the first one must be a full backup", info.From)
	case r.started && info.Full():
		return base.Errorf(base.CodeInvalid, "a full backup cannot follow another backup: restore it alone")
	case r.started && info.Epoch != r.info.Epoch:
		return base.Errorf(base.CodeInvalid, "the backup is of another store")
	case r.started && (info.From != r.info.To || info.FromHash != r.info.ToHash):
		return base.Errorf(base.CodeInvalid, "the backup begins after revision %d, and the previous one ends with revision %d", info.From, r.info.To)
	}
	if r.started {
		info.Checkpoint, info.First = r.info.Checkpoint, r.info.First
	}
	info.From, info.FromHash = 0, ""
	r.started, r.info = true, info
	return nil
}

func (r *restore) addEntry(f wal.Frame) error {
	r.batch, r.bytes = append(r.batch, f), r.bytes+len(f.Raw)
	if r.bytes < restoreBatch {
		return nil
	}
	return r.flush()
}

func (r *restore) flush() error {
	err := r.wal.AppendFrames(r.batch)
	r.batch, r.bytes = nil, 0
	return err
}

// addCheckpointPiece appends a piece of the checkpoint.
func (r *restore) addCheckpointPiece(piece []byte) (err error) {
	if r.partial == nil {
		if err := os.MkdirAll(r.pathOf(datadir.CheckpointName), 0o700); err != nil {
			return err
		}
		if r.partial, err = os.OpenFile(r.pathOf(datadir.CheckpointName+"/restored.tmp"), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600); err != nil {
			return err
		}
	}
	_, err = r.partial.Write(piece)
	return err
}

// beginAttachment creates the file of an attachment.
func (r *restore) beginAttachment(path string) error {
	if err := r.endAttachment(); err != nil {
		return err
	}
	name := r.pathOf(filepath.FromSlash(path))
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		r.attached, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	}
	if errors.Is(err, fs.ErrExist) {
		return errBackupDamaged("it has the file %s twice", path)
	}
	return err
}

// endAttachment syncs the attachment being received, if any, and its folders.
func (r *restore) endAttachment() error {
	if r.attached == nil {
		return nil
	}
	name := r.attached.Name()
	err := errors.Join(r.attached.Sync(), r.attached.Close())
	r.attached = nil
	for folder := filepath.Dir(name); err == nil && folder != filepath.Clean(r.dir); folder = filepath.Dir(folder) {
		err = datadir.SyncDir(folder)
	}
	return err
}

// installCheckpoint copies the received checkpoint to its path, with the epoch of this
// directory.
func (r *restore) installCheckpoint() error {
	if r.partial == nil {
		return nil
	}
	path := CheckpointPath(r.pathOf(datadir.CheckpointName), r.info.Checkpoint)
	err := adoptCheckpoint(r.partial, path, r.epoch, r.info.Checkpoint)
	err = errors.Join(err, r.partial.Close(), datadir.RemoveFile(r.partial.Name()))
	r.partial = nil
	return err
}

// writeSmallFiles writes the small files. The last one makes the directory a store.
func (r *restore) writeSmallFiles() error {
	if r.info.Floor > 0 {
		if err := datadir.WriteHistory(r.pathOf(datadir.HistoryName), r.info.Floor); err != nil {
			return err
		}
	}
	d := &datadir.Directory{Path: r.dir}
	if len(r.prefixes) > 0 {
		if err := base.ValidPrefixes(r.prefixes); err != nil {
			return err
		}
		if err := d.WritePrefixes(r.prefixes); err != nil {
			return err
		}
	}
	secret := make([]byte, datadir.SecretBytes)
	_, _ = rand.Read(secret) // never fails
	if err := datadir.WriteFile(r.pathOf(datadir.SecretName), secret); err != nil {
		return err
	}
	return datadir.WriteFormat(r.pathOf(datadir.FormatName), r.epoch, secret, r.info.upgradingFrom())
}

// undo empties the directory and removes it if Restore made it.
func (r *restore) undo() error {
	if r.partial != nil {
		_ = r.partial.Close() // the file is removed below
	}
	if r.attached != nil {
		_ = r.attached.Close() // likewise
	}
	entries, err := os.ReadDir(r.dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(r.pathOf(e.Name())))
	}
	return errors.Join(err, r.newStore.RemoveDirs())
}

// adoptCheckpoint verifies a checkpoint, which must have the revision want, and writes it
// to path with another epoch.
func adoptCheckpoint(from *os.File, path string, epoch base.Epoch, want base.Revision) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	size, err := VerifySum(from)
	if err != nil {
		return errBackupDamaged("its checkpoint: %w", err)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(from, 0, size), 1<<20)
	m, err := ReadCheckpointHead(in)
	if err == nil && m.Revision != want {
		err = codec.ErrMalformed
	}
	if err != nil {
		return errBackupDamaged("its checkpoint: %w", err)
	}
	m.Epoch = epoch
	return WriteSummed(path, func(w io.Writer) error {
		head := append([]byte(CheckpointMagic), CheckpointVersion)
		if _, err := w.Write(codec.AppendBytes(head, m.EncodeHead())); err != nil {
			return err
		}
		_, err := io.Copy(w, in)
		return err
	})
}
