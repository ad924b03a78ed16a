package cli

import (
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"koine/kg"
)

const DefaultURL = "http://127.0.0.1:8080"

// Target selects the store that a command works on: a running server, or a data directory
// that no server has open.
type Target struct {
	Data string `help:"Data directory to work on. No server may have it open." placeholder:"DIR" type:"path" env:"KOINE_DATA"`
	URL  string `help:"Server to work on (default ${url})." placeholder:"URL" env:"KOINE_URL"`
	CAFlag
	CallerFlags
}

// CallerFlags identify the caller at a server.
type CallerFlags struct {
	As  string `help:"Agent to act as (X-Agent-ID); with a key, an agent that it may act for." placeholder:"AGENT" env:"KOINE_AS"`
	Key string `help:"API key or token. Prefer KOINE_KEY: command lines are visible to other users." placeholder:"KEY" env:"KOINE_KEY"`
}

// IsOffline reports whether the target is a directory. Flags take precedence over the
// environment.
func (t *Target) IsOffline(command *kong.Context) (bool, error) {
	switch data, url := isOnCommandLine(command, "data"), isOnCommandLine(command, "url"); {
	case data && url:
		return false, Usagef("--data and --url are mutually exclusive")
	case data, url:
		return data, nil
	}
	return t.Data != "" && t.URL == "", nil
}

// ServerFlags returns the server of the target.
func (t *Target) ServerFlags() *ServerFlags {
	return &ServerFlags{URL: t.URL, CAFlag: t.CAFlag, CallerFlags: t.CallerFlags}
}

// OpenStore opens the data directory. Unless create is set, it must contain a store.
func (t *Target) OpenStore(log *slog.Logger, create bool, o kg.Options) (*kg.Store, error) {
	if !create {
		if err := t.RequireDirectory(); err != nil {
			return nil, err
		}
	}
	o.Logger, o.MustExist = log, !create
	store, err := kg.Open(t.Data, o)
	return store, HintInUse(err)
}

// OpenOrCreate opens the data directory and creates a store if there is none.
func (t *Target) OpenOrCreate(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	return t.OpenStore(log, true, o)
}

// OpenExisting opens a data directory that contains a store.
func (t *Target) OpenExisting(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	return t.OpenStore(log, false, o)
}

// OpenToRead opens the store for a command that changes nothing. A data directory without
// write permission is opened read-only; otherwise the index first catches up with the log,
// which saves the next command that work.
func (t *Target) OpenToRead(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	o.CheckIndexFirst = true
	if o.ReadOnly = !kg.Writable(t.Data); o.ReadOnly {
		log.Info("the data directory is not writable: opened read-only", "dir", t.Data)
	}
	return t.OpenStore(log, false, o)
}

// OpenUnverified opens the store for a command that verifies the log itself and does not read the
// index. If the store was closed in order, it is opened read-only and neither is verified. Where
// that fails, as after an interrupted erasure, or the log seems to be damaged, which may be the
// index, OpenToRead opens it.
func (t *Target) OpenUnverified(log *slog.Logger) (*kg.Store, error) {
	if kg.ClosedInOrder(t.Data) {
		store, err := t.OpenStore(log, false, kg.Options{ReadOnly: true, SkipChecks: true})
		if err == nil && kg.CodeOf(store.Ready()) != kg.CodeLogDamaged {
			return store, nil
		}
		if err == nil {
			if err := store.Close(); err != nil {
				return nil, err
			}
		}
	}
	return t.OpenToRead(log, kg.Options{})
}

// OpenToWrite opens the store for a command that changes it. It fails at once if the
// directory is not writable.
func (t *Target) OpenToWrite(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	o.CheckIndexFirst = true
	return t.OpenStore(log, false, o)
}

// ReserveFlag is the free disk space to preserve.
type ReserveFlag struct {
	ReserveMiB uint64 `help:"Free disk space below which updates are refused." default:"1024" name:"reserve-mib" placeholder:"MIB" env:"KOINE_RESERVE_MIB"`
}

// ReserveBytes returns the value for Options.ReserveBytes, at least 1: there, 0 means the
// default.
func (r ReserveFlag) ReserveBytes() uint64 { return max(1, r.ReserveMiB<<20) }

// LiteralFlag bounds the length of added literals.
type LiteralFlag struct {
	MaxLiteral int `help:"Maximum size of an added literal in bytes of UTF-8, from 524288 (512 KiB) to 8388608 (8 MiB). Longer literals that the store already has are kept." default:"4194304" placeholder:"BYTES"`
}

func (f LiteralFlag) CheckMaxLiteral() error {
	return CheckRange("max-literal", f.MaxLiteral, kg.MinLiteralBytes, kg.MaxLiteralBytes)
}

// RequireDirectory returns an error unless the data directory exists.
func (t *Target) RequireDirectory() error {
	if _, err := os.Stat(t.Data); err != nil {
		return Usagef("data directory %s does not exist", t.Data)
	}
	return nil
}

// HintInUse adds a hint to the error of a data directory that another process has open.
func HintInUse(err error) error {
	if kg.CodeOf(err) != kg.CodeDataDirInUse {
		return err
	}
	e := *kg.AsError(err)
	e.Hint = "If a server has it open, stop the server, or use --url instead of --data if the command accepts it."
	return &e
}

// LocalPrincipal is the principal of commands on a data directory. It has all rights: with
// access to the files, nothing could be denied.
func (t *Target) LocalPrincipal() kg.Principal {
	p := kg.SystemPrincipal()
	if t.As != "" {
		p.ID = kg.CanonicalAgent(t.As)
	}
	return p
}

// ParseGraphName parses the value of --graph: an IRI, prefix:name, a blank node _:label, or
// "default", as the server's ?graph= parameter.
func ParseGraphName(registry *kg.Prefixes, text string) (kg.Term, error) {
	if strings.EqualFold(text, "default") {
		return kg.DefaultGraph, nil
	}
	g, err := registry.Resource(text)
	if err != nil {
		return g, Usagef("--graph: %w", err)
	}
	return g, nil
}

// isOnCommandLine reports whether the flag was given on the command line, and not by the
// environment or the configuration file.
func isOnCommandLine(command *kong.Context, flag string) bool {
	for _, p := range command.Path {
		if p.Flag != nil && p.Flag.Name == flag && !p.Resolved {
			return true
		}
	}
	return false
}
