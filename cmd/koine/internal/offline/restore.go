package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"koine/cmd/koine/internal/cli"
	"koine/kg"
)

// RestoreCommand creates a data directory from backups.
type RestoreCommand struct {
	Data    string   `required:"" help:"Data directory to create. It must be empty or not exist." placeholder:"NEWDIR" type:"path"`
	Backups []string `arg:"" name:"backup" help:"Full backup, followed by its incremental backups in order." type:"path"`
}

// Help is shown by --help.
func (RestoreCommand) Help() string {
	return `Creates a store with the content at the end of the last backup: statements, assertions, policies, and every revision under its number. Existing files are never overwritten.

The restored store is a new one for its clients: positions and cursors of the old store are refused. Credentials are restored, but tokens that the old server sealed are no longer valid.

Examples:
  koine restore --data ./new-data monday.koine
  koine restore --data ./new-data monday.koine tuesday.koine wednesday.koine
  koine check --data ./new-data`
}

// Run restores the backups, opens the store once to build its index, and compares the last
// revisions.
func (c *RestoreCommand) Run(ctx context.Context, t cli.Terminal, log *slog.Logger) error {
	var readers []io.Reader
	for _, path := range c.Backups {
		f, err := os.Open(path)
		if err != nil {
			return cli.AsUsage(err)
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		p := newProgress(t, "restoring "+filepath.Base(path), f, st.Size())
		defer p.finish()
		readers = append(readers, p)
	}
	_, absent := os.Stat(c.Data)
	info, err := kg.Restore(ctx, c.Data, readers, kg.RestoreOptions{Logger: log})
	if err != nil {
		if errors.Is(absent, fs.ErrNotExist) {
			_ = os.Remove(c.Data) // created by Restore and empty
		}
		return err
	}
	dir := cli.Target{Data: c.Data}
	store, err := dir.OpenStore(log, false, kg.Options{})
	if err != nil {
		return fmt.Errorf("the backups were restored, but building the index failed: %w", err)
	}
	stats, sound := store.Stats(), store.Maintenance().Sound()
	if err := errors.Join(sound, store.Close()); err != nil {
		return err
	}
	if stats.Revision < info.To { // an upgrade may add revisions
		return cli.WithCode(fmt.Errorf("the backups end at revision %d, but the restored store ends at %d", info.To, stats.Revision), cli.ExitDamaged)
	}
	t.Notef("%s: revision %d, %s statements. Verify it with koine check --data %s", c.Data, info.To, cli.FormatCount(stats.Statements), c.Data)
	return nil
}
