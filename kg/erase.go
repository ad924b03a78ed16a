package kg

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"koine/kg/base"
	"koine/kg/internal/archive"
	"koine/kg/internal/datadir"
	"koine/kg/internal/erasure"
	"koine/kg/internal/logentry"
	"koine/kg/internal/wal"
)

// EraseReport is the result of an erasure.
type EraseReport struct {
	Changes  uint64 // changes in the log removed or altered
	Commits  uint64 // commits that contained them
	Rows     uint64 // rows removed from the checkpoint, if the log was cut
	Revision Revision
	Epoch    Epoch // of the new log; the old one if nothing was erased
}

// Erase rewrites the log of a data directory without the selected content, keeping all
// revisions, and builds a new index from it. The store gets a new epoch, which invalidates
// positions and cursors. Commits that lose content also lose their justification, and their
// idempotency keys can never be used again. The old files are removed once the new ones are
// verified. After a crash at any time the directory holds either the old store or the new one.
// Erasing the same content again changes nothing. Erase does not reach backups. The store must
// not be open.
func Erase(ctx context.Context, dir string, o EraseOptions) (r EraseReport, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.Valid(); err != nil {
		return r, err
	}
	if err := verifyStore(dir, o.Logger); err != nil {
		return r, err
	}
	d, err := datadir.OpenDirectory(dir, true)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if o.Keep && datadir.Exists(d.Join(KeptName)) {
		e := Errorf(CodeInvalid, "%s is there already", d.Join(KeptName))
		e.Hint = "remove it first: it holds the files from before the last erasure"
		return r, e
	}
	e := &erase{dir: d, options: o}
	if r, err = e.rewriteFiles(ctx); err != nil || o.DryRun || r.Changes+r.Rows == 0 {
		r.Epoch = d.Epoch
		return r, errors.Join(err, os.RemoveAll(d.Join(datadir.ErasingName)))
	}
	if err = e.checkNewStore(ctx, r.Revision); err != nil {
		return r, errors.Join(err, os.RemoveAll(d.Join(datadir.ErasingName)))
	}
	r.Epoch = e.epoch
	return r, d.Exchange(o.Keep, o.Step)
}

// verifyStore opens the store once to compare its index with its log. After the erasure
// nothing would reveal that the log had lost its end.
func verifyStore(dir string, log *slog.Logger) error {
	s, err := Open(dir, Options{Logger: log, MustExist: true})
	if err != nil {
		return err
	}
	return errors.Join(s.Maintenance().Sound(), s.Close())
}

// erase is an erasure in progress.
type erase struct {
	dir     *datadir.Directory
	options EraseOptions
	epoch   Epoch
}

// rewriteFiles writes the new store's files beside the old ones.
func (e *erase) rewriteFiles(ctx context.Context) (r EraseReport, err error) {
	old, err := wal.Open(e.dir.Join(datadir.LogName), wal.Options{Logger: e.options.Logger})
	if err != nil {
		return r, base.ErrLog(err)
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	to := filepath.Join(e.dir.Path, datadir.ErasingName)
	if err := os.RemoveAll(to); err != nil {
		return r, err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return r, err
	}
	_, _ = rand.Read(e.epoch[:]) // never fails
	first := max(old.First(), 1)
	x := erasure.NewEraser(&e.options)
	var checkpoint *erasure.ErasedCheckpoint
	if first > 1 {
		path, m, err := (&Store{dir: e.dir, log: e.options.Logger}).newestCheckpoint()
		if err != nil {
			return r, err
		}
		if checkpoint, err = erasure.ReadErasedCheckpoint(path, m, x, Revision(first)); err != nil {
			return r, err
		}
		r.Rows = checkpoint.Rows
	}
	fresh, err := wal.Open(filepath.Join(to, datadir.LogName), wal.Options{Logger: e.options.Logger, Begin: first})
	if err != nil {
		return r, err
	}
	err = e.copyLog(ctx, old, fresh, x)
	r.Changes, r.Commits, r.Revision = x.Changes, x.Commits, Revision(old.Last())
	if err == nil && checkpoint != nil && !e.options.DryRun {
		err = checkpoint.Write(filepath.Join(to, datadir.CheckpointName), e.epoch, fresh)
	}
	if err = errors.Join(err, fresh.Close()); err != nil {
		return r, err
	}
	return r, e.writeSmallFiles(to)
}

// eraseGroup is the number of bytes of entries that share an fsync.
const eraseGroup = 8 << 20

func (e *erase) copyLog(ctx context.Context, from, to *wal.Log, x *erasure.Eraser) error {
	if from.Last() == 0 {
		return nil
	}
	first, total := from.First(), from.Last()-from.First()+1
	var batch []wal.Prepared
	next, size := first, 0
	flush := func() error {
		err := to.AppendPrepared(next, batch)
		next, size, batch = next+uint64(len(batch)), 0, nil
		return err
	}
	for entry, err := range from.Entries(first, from.Last()) {
		if err != nil {
			return base.ErrLog(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := logentry.ParseEntry(entry.Payload, Revision(entry.Index))
		if err != nil {
			return err
		}
		payload := entry.Payload
		if x.Redact(c) {
			payload = logentry.AppendEntry(nil, c)
		}
		if done := entry.Index - first + 1; e.options.Progress != nil && (done%archive.ProgressInterval == 0 || done == total) {
			e.options.Progress(done, total)
		}
		if e.options.DryRun {
			continue
		}
		p, err := wal.Prepare(payload)
		if err != nil {
			return err
		}
		batch, size = append(batch, p), size+p.Bytes()
		if size >= eraseGroup {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// writeSmallFiles writes the files beside the log. The last one makes the directory a store.
func (e *erase) writeSmallFiles(to string) error {
	secret := make([]byte, datadir.SecretBytes)
	_, _ = rand.Read(secret) // never fails
	if err := datadir.WriteFile(filepath.Join(to, datadir.SecretName), secret); err != nil {
		return err
	}
	if e.dir.Floor > 0 {
		if err := datadir.WriteHistory(filepath.Join(to, datadir.HistoryName), e.dir.Floor); err != nil {
			return err
		}
	}
	return datadir.WriteFormat(filepath.Join(to, datadir.FormatName), e.epoch, secret, 0)
}

// checkNewStore opens the new store, which builds its index, and checks its integrity.
func (e *erase) checkNewStore(ctx context.Context, head Revision) (err error) {
	s, err := Open(filepath.Join(e.dir.Path, datadir.ErasingName), Options{Logger: e.options.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Maintenance().Sound(); err != nil {
		return err
	}
	report, err := s.Maintenance().Check(ctx, CheckOptions{Checkpoints: true})
	if err != nil {
		return err
	}
	if !report.Clean() {
		return Errorf(CodeInternal, "the rewritten store is inconsistent: %s", report.Problems[0])
	}
	if report.Revision != head {
		return Errorf(CodeInternal, "the rewritten store ends with revision %d, the original with %d", report.Revision, head)
	}
	return nil
}
