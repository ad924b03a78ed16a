package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"koine/kg"
)

// restoreCommand creates a data directory from backups.
type restoreCommand struct {
	Data    string   `required:"" help:"The data directory to make; it must be empty or not there." placeholder:"NEWDIR" type:"path"`
	Backups []string `arg:"" name:"backup" help:"A full backup, and those that follow on it, in order." type:"path"`
}

// Help is shown by --help.
func (restoreCommand) Help() string {
	return `Makes a store that holds what the backed up one held at the end of the last backup: statements, their sources and certainties, policies, history, every revision under its number. Nothing that is there is ever written over.

The restored store is another one: what clients hold of the old one (positions, cursors) is refused, and they start again. Credentials are restored with it; tokens that the old server sealed are not good any more.

Examples:
  koine restore --data ./new-data monday.koine
  koine restore --data ./new-data monday.koine tuesday.koine wednesday.koine
  koine check --data ./new-data`
}

// Run restores the backups, opens the store once to build its index, and compares the last
// revisions.
func (c *restoreCommand) Run(ctx context.Context, t terminal, log *slog.Logger) error {
	var readers []io.Reader
	for _, path := range c.Backups {
		f, err := os.Open(path)
		if err != nil {
			return usageError{err}
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
	dir := target{Data: c.Data}
	store, err := dir.openStore(log, false, kg.Options{})
	if err != nil {
		return fmt.Errorf("the backups are restored, but the index could not be built: %w", err)
	}
	stats, sound := store.Stats(), store.Sound()
	if err := errors.Join(sound, store.Close()); err != nil {
		return err
	}
	if stats.Revision < info.To { // an upgrade may add revisions
		return exitError{fmt.Errorf("the backups end with revision %d, but the restored store ends with %d", info.To, stats.Revision), exitDamaged}
	}
	t.sayf("%s: revision %d, %s statements. Compare everything in it with koine check --data %s", c.Data, info.To, countText(stats.Statements), c.Data)
	return nil
}
