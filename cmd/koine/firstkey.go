package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"koine/internal/auth"
	"koine/kg"
)

// firstKey creates the first administrator key if no administrator has one. It writes the
// secret to the file of --admin-key-file, or to standard error if the log is in text form.
//
// The file is created before the key. An empty file is left by a start that ended between
// the two steps; it gets a new key, because the secret of a key made by that start is
// lost.
func (w *identity) firstKey(ctx context.Context, t terminal, log *slog.Logger, store *kg.Store) error {
	if !w.acceptsKeys() {
		return nil
	}
	hasAdmin := w.keys.HasAdmin(time.Now())
	if path := w.flags.AdminKeyFile; path != "" {
		return w.firstKeyInFile(ctx, log, store, path, hasAdmin)
	}
	switch {
	case hasAdmin:
		return nil
	case t.records == nil:
		made, err := makeFirstKey(ctx, store)
		if err != nil {
			return err
		}
		t.quiet = false // the secret is printed nowhere else
		t.sayf(firstKeyText, made.Agent, made.Secret)
		return nil
	case w.acceptsTokens():
		log.Warn("no administrator has a key, and none is created: secrets are not written to a JSON log", "hint", "create one with --admin-key-file FILE, or as an administrator with a token")
		return nil
	}
	return usageError{errors.New("no administrator has a key, and secrets are not written to a JSON log: pass --admin-key-file FILE for the first one")}
}

func (w *identity) firstKeyInFile(ctx context.Context, log *slog.Logger, store *kg.Store, path string, hasAdmin bool) error {
	info, err := os.Stat(path)
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case hasAdmin && (absent || err == nil && info.Size() > 0):
		return nil
	case err != nil && !absent:
		return fmt.Errorf("--admin-key-file: %w", err)
	case !absent && (info.Size() > 0 || !info.Mode().IsRegular()):
		return usageError{fmt.Errorf("--admin-key-file: %s exists and is not empty: choose another file, or remove it", path)}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("--admin-key-file: %w", err)
	}
	defer file.Close()
	if err := file.Chmod(0o600); err != nil {
		return fmt.Errorf("--admin-key-file: %w", err)
	}
	made, err := makeFirstKey(ctx, store)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(file, made.Secret+"\n"); err != nil {
		return fmt.Errorf("--admin-key-file: %w", err)
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("--admin-key-file: %w", err)
	}
	log.Info("the first administrator's key was written to a file", "agent", made.Agent, "key", made.Name, "file", path)
	return nil
}

func makeFirstKey(ctx context.Context, store *kg.Store) (auth.CreatedKey, error) {
	return auth.NewKeys(store).Create(ctx, kg.Meta{Principal: kg.SystemPrincipal(), Justification: "first key of an administrator"},
		auth.KeyRequest{Agent: firstAdmin, Label: "first administrator", Roles: []string{kg.RoleAdmin}})
}

const firstAdmin kg.AgentID = "agent://admin"

const firstKeyText = `
No administrator has a key. This is the first one, for %s; it is printed only once:

  %s
`
