package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"koine/kg"
)

const defaultURL = "http://127.0.0.1:8080"

// target selects the store that a command works on: a running server, or a data directory
// that no server has open.
type target struct {
	Data string `help:"Data directory to work on. No server may have it open." placeholder:"DIR" type:"path" env:"KOINE_DATA"`
	URL  string `help:"Server to work on (default ${url})." placeholder:"URL" env:"KOINE_URL"`
	caFlag
	callerFlags
}

// callerFlags identify the caller at a server.
type callerFlags struct {
	As  string `help:"Agent to act as (X-Agent-ID); with a key, an agent that it may act for." placeholder:"AGENT" env:"KOINE_AS"`
	Key string `help:"API key or token. Prefer KOINE_KEY: command lines are visible to other users." placeholder:"KEY" env:"KOINE_KEY"`
}

// isOffline reports whether the target is a directory. Flags take precedence over the
// environment.
func (t *target) isOffline(command *kong.Context) (bool, error) {
	switch data, url := isOnCommandLine(command, "data"), isOnCommandLine(command, "url"); {
	case data && url:
		return false, usageError{errors.New("--data and --url are mutually exclusive")}
	case data, url:
		return data, nil
	}
	return t.Data != "" && t.URL == "", nil
}

// serverFlags returns the server of the target.
func (t *target) serverFlags() *serverFlags {
	return &serverFlags{URL: t.URL, caFlag: t.caFlag, callerFlags: t.callerFlags}
}

// openStore opens the data directory. Unless create is set, it must contain a store.
func (t *target) openStore(log *slog.Logger, create bool, o kg.Options) (*kg.Store, error) {
	if !create {
		if err := t.requireDirectory(); err != nil {
			return nil, err
		}
	}
	o.Logger, o.MustExist = log, !create
	store, err := kg.Open(t.Data, o)
	return store, hintInUse(err)
}

// openOrCreate opens the data directory and creates a store if there is none.
func (t *target) openOrCreate(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	return t.openStore(log, true, o)
}

// openExisting opens a data directory that contains a store.
func (t *target) openExisting(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	return t.openStore(log, false, o)
}

// openToRead opens the store for a command that changes nothing. A data directory without
// write permission is opened read-only; otherwise the index first catches up with the log,
// which saves the next command that work.
func (t *target) openToRead(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	o.CheckIndexFirst = true
	if o.ReadOnly = !kg.Writable(t.Data); o.ReadOnly {
		log.Info("the data directory is not writable: opened read-only", "dir", t.Data)
	}
	return t.openStore(log, false, o)
}

// openToWrite opens the store for a command that changes it. It fails at once if the
// directory is not writable.
func (t *target) openToWrite(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	o.CheckIndexFirst = true
	return t.openStore(log, false, o)
}

// reserveFlag is the free disk space to preserve.
type reserveFlag struct {
	ReserveMiB uint64 `help:"Free disk space below which updates are refused." default:"1024" name:"reserve-mib" placeholder:"MIB" env:"KOINE_RESERVE_MIB"`
}

// reserveBytes returns the value for Options.ReserveBytes, at least 1: there, 0 means the
// default.
func (r reserveFlag) reserveBytes() uint64 { return max(1, r.ReserveMiB<<20) }

// literalFlag bounds the length of added literals.
type literalFlag struct {
	MaxLiteral int `help:"Maximum size of an added literal in bytes of UTF-8, from 524288 (512 KiB) to 8388608 (8 MiB). Longer literals that the store already has are kept." default:"4194304" placeholder:"BYTES"`
}

func (f literalFlag) checkMaxLiteral() error {
	if f.MaxLiteral < kg.MinLiteralBytes || f.MaxLiteral > kg.MaxLiteralBytes {
		return usageError{fmt.Errorf("--max-literal must be between %d and %d", kg.MinLiteralBytes, kg.MaxLiteralBytes)}
	}
	return nil
}

// requireDirectory returns an error unless the data directory exists.
func (t *target) requireDirectory() error {
	if _, err := os.Stat(t.Data); err != nil {
		return usageError{errors.New("data directory " + t.Data + " does not exist")}
	}
	return nil
}

// hintInUse adds a hint to the error of a data directory that another process has open.
func hintInUse(err error) error {
	if kg.CodeOf(err) != kg.CodeDataDirInUse {
		return err
	}
	e := *kg.AsError(err)
	e.Hint = "If a server has it open, stop the server, or use --url instead of --data if the command accepts it."
	return &e
}

// localPrincipal is the principal of commands on a data directory. It has all rights: with
// access to the files, nothing could be denied.
func (t *target) localPrincipal() kg.Principal {
	p := kg.SystemPrincipal()
	if t.As != "" {
		p.ID = kg.CanonicalAgent(t.As)
	}
	return p
}

// parseGraphName parses the value of --graph: an IRI, prefix:name, a blank node _:label, or
// "default", as the server's ?graph= parameter.
func parseGraphName(registry *kg.Prefixes, text string) (kg.Term, error) {
	if strings.EqualFold(text, "default") {
		return kg.DefaultGraph, nil
	}
	g, err := registry.Resource(text)
	if err != nil {
		return g, usageError{fmt.Errorf("--graph: %w", err)}
	}
	return g, nil
}
