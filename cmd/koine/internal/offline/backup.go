package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/alecthomas/kong"

	"koine/cmd/koine/internal/cli"
	"koine/internal/embedding"
	"koine/kg"
)

// BackupCommand backs up a store while it is in use.
type BackupCommand struct {
	cli.Target
	Output string `short:"o" required:"" help:"File to write. It must not exist." placeholder:"FILE" type:"path"`
	Since  string `help:"Write an incremental backup: only what follows this backup file, or this revision." placeholder:"FILE|REVISION"`
}

// Help is shown by --help.
func (BackupCommand) Help() string {
	return `Writes the store at its newest revision with all of its history, while updates and reads continue. With --url the backup is taken from a running server and requires a key of an administrator or of the role backup. With --data it is taken from a data directory that no server has open.

The file is verified while it is written and appears under its name when it is complete. It contains everything, including policies and the hashes of keys, and is readable by its owner only (mode 0600).

With --since the backup contains only what follows another one. A restore needs the full backup and all incremental ones in order. If the store's history no longer reaches back that far, take a full backup.

Examples:
  koine backup -o monday.koine
  koine backup --since monday.koine -o tuesday.koine
  koine backup --data ./koine-data -o koine-$(date +%F).koine
  koine restore --data ./new-data monday.koine tuesday.koine`
}

// Run writes the backup.
func (c *BackupCommand) Run(ctx context.Context, command *kong.Context, t cli.Terminal, log *slog.Logger) error {
	offline, err := c.IsOffline(command)
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.Output); err == nil {
		return cli.Usagef("file %s already exists: choose another name", c.Output)
	}
	since, err := c.parseSince(ctx)
	if err != nil {
		return err
	}
	write := func(out io.Writer) (kg.BackupInfo, error) { return c.backupServer(ctx, t, out, since) }
	if offline {
		store, err := c.OpenUnverified(log)
		if err != nil {
			return err
		}
		defer store.Close()
		since.Attach = func(attach kg.AttachFile) error { return embedding.AttachMade(c.Data, log, attach) }
		write = func(out io.Writer) (kg.BackupInfo, error) { return c.backupDirectory(ctx, t, store, out, since) }
	}
	var info kg.BackupInfo
	err = newPrivateFile(c.Output, func(out io.Writer) (err error) {
		info, err = write(out)
		return err
	})
	if err != nil {
		return err
	}
	printBackupSummary(t, c.Output, info)
	return nil
}

// parseSince reads --since: a revision, or the file of the backup that the new one
// follows.
func (c *BackupCommand) parseSince(ctx context.Context) (o kg.BackupOptions, err error) {
	if c.Since == "" {
		return o, nil
	}
	if n, err := strconv.ParseUint(c.Since, 10, 64); err == nil {
		o.Since = kg.Revision(n)
		return o, nil
	}
	f, err := os.Open(c.Since)
	if err != nil {
		return o, cli.Usagef("--since: %w", err)
	}
	defer f.Close()
	info, err := kg.VerifyBackup(ctx, f, nil)
	if err != nil {
		return o, fmt.Errorf("%s: %w", c.Since, err)
	}
	o.Follows = &info
	return o, nil
}

// backupDirectory backs up the store of a data directory. Backup verifies the entries.
func (c *BackupCommand) backupDirectory(ctx context.Context, t cli.Terminal, store *kg.Store, out io.Writer, o kg.BackupOptions) (kg.BackupInfo, error) {
	p := newProgress(t, "backing up", io.MultiReader(), -1) // counts bytes written
	defer p.finish()
	return store.Maintenance().Backup(ctx, writerWithProgress{out, p}, o)
}

// writerWithProgress reports the bytes that are written.
type writerWithProgress struct {
	io.Writer
	p *progress
}

func (w writerWithProgress) Write(b []byte) (n int, err error) {
	n, err = w.Writer.Write(b)
	w.p.read += int64(n)
	w.p.report(n)
	return n, err
}

// backupServer downloads a backup from a running server.
func (c *BackupCommand) backupServer(ctx context.Context, t cli.Terminal, out io.Writer, o kg.BackupOptions) (info kg.BackupInfo, err error) {
	query := url.Values{}
	switch {
	case o.Follows != nil:
		query.Set("since", strconv.FormatUint(uint64(o.Follows.To), 10))
		query.Set("epoch", o.Follows.Epoch)
		query.Set("hash", o.Follows.ToHash)
	case o.Since > 0:
		query.Set("since", strconv.FormatUint(uint64(o.Since), 10))
	}
	server, err := c.ServerFlags().OpenUnbounded(ctx)
	if err != nil {
		return info, err
	}
	response, err := server.Do(ctx, http.MethodPost, BackupPath+"?"+query.Encode(), nil, nil)
	if err != nil {
		return info, err
	}
	defer response.Body.Close()
	return copyVerified(ctx, t, response.Body, out)
}

// copyVerified copies a backup from in to out and verifies it on the way.
func copyVerified(ctx context.Context, t cli.Terminal, in io.Reader, out io.Writer) (kg.BackupInfo, error) {
	p := newProgress(t, "backing up", in, -1)
	defer p.finish()
	return kg.VerifyBackup(ctx, io.TeeReader(p, out), nil)
}

func printBackupSummary(t cli.Terminal, path string, info kg.BackupInfo) {
	size := int64(0)
	if st, err := os.Stat(path); err == nil {
		size = st.Size()
	}
	what := "full"
	if !info.Full() {
		what = fmt.Sprintf("incremental from revision %d", info.From)
	}
	t.Notef("%s: %s, up to revision %d; %s", filepath.Base(path), what, info.To, cli.FormatSize(size))
}

// newPrivateFile writes a file that only its owner can read. The file appears under its
// name when it is complete and synced.
func newPrivateFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".koine-backup-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err = errors.Join(writeBlocks(f, write), f.Sync(), f.Close()); err != nil {
		return err
	}
	// Unlike Rename, Link fails if a file of that name has appeared in the meantime.
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return errors.Join(os.Remove(f.Name()), syncDir(filepath.Dir(path)))
}

// writeBlocks calls write with a writer to f, which is empty.
func writeBlocks(f *os.File, write func(io.Writer) error) error {
	w := newBlockWriter(osFile{f})
	if err := write(w); err != nil {
		return errors.Join(err, w.awaitBlock())
	}
	return w.writeLast()
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// BackupPath is the path at which a server serves backups.
const BackupPath = "/admin/backup"
