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

// target is the store that a command works on: that of a running server, or a
// data directory that no server has open.
type target struct {
	Data string `help:"Work on this data directory, which no server may have open." placeholder:"DIR" type:"path" env:"KOINE_DATA"`
	URL  string `help:"Work on this running server (default ${url})." placeholder:"URL" env:"KOINE_URL"`
	caFlag
	as
}

// as is in whose name a command talks to a server.
type as struct {
	As  string `help:"The agent that asks (X-Agent-ID); with a key, the one that it acts for." placeholder:"AGENT" env:"KOINE_AS"`
	Key string `help:"The API key or token that the server wants; better in KOINE_KEY than on the command line." placeholder:"KEY" env:"KOINE_KEY"`
}

// isOffline tells whether the target is a directory. What stands on the command
// line wins over the environment.
func (t *target) isOffline(command *kong.Context) (bool, error) {
	switch data, url := isOnCommandLine(command, "data"), isOnCommandLine(command, "url"); {
	case data && url:
		return false, usageError{errors.New("--data and --url exclude each other")}
	case data, url:
		return data, nil
	}
	return t.Data != "" && t.URL == "", nil
}

// onServer is the running server that it is.
func (t *target) onServer() *onServer { return &onServer{URL: t.URL, caFlag: t.caFlag, as: t.as} }

// openStore opens the data directory. Unless create is set there must be a store in it.
func (t *target) openStore(log *slog.Logger, create bool, o kg.Options) (*kg.Store, error) {
	if !create {
		if err := t.requireDirectory(); err != nil {
			return nil, err
		}
	}
	o.Logger, o.MustExist = log, !create
	store, err := kg.Open(t.Data, o)
	return store, inUse(err)
}

// openOrCreate opens the data directory, and makes a store where there is none.
func (t *target) openOrCreate(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	return t.openStore(log, true, o)
}

// openExisting opens the data directory of a store.
func (t *target) openExisting(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	return t.openStore(log, false, o)
}

// openToRead opens the data directory of a store for a command that may change nothing.
// One that cannot be written is read as it is. Any other is brought up to its log first,
// which need not be done again the next time.
func (t *target) openToRead(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	o.CheckIndexFirst = true
	if o.ReadOnly = !kg.Writable(t.Data); o.ReadOnly {
		log.Info("the data directory cannot be written: it is read as it is", "dir", t.Data)
	}
	return t.openStore(log, false, o)
}

// openToWrite opens the data directory of a store for a command that changes it. It fails
// at once where nothing can be written.
func (t *target) openToWrite(log *slog.Logger, o kg.Options) (*kg.Store, error) {
	o.CheckIndexFirst = true
	return t.openStore(log, false, o)
}

// reserveFlag is the free space that is kept.
type reserveFlag struct {
	ReserveMiB uint64 `help:"Free disk space below which updates are refused." default:"1024" name:"reserve-mib" placeholder:"MIB" env:"KOINE_RESERVE_MIB"`
}

// reserveBytes are those of Options.ReserveBytes, for which 0 is the default.
func (r reserveFlag) reserveBytes() uint64 { return max(1, r.ReserveMiB<<20) }

// literalFlag is how long a literal may be in what comes in.
type literalFlag struct {
	MaxLiteral int `help:"How long the text of a literal may be that is added, in UTF-8, between 524288 (512 KiB) and 8388608 (8 MiB). Longer ones that the store has already are kept and served." default:"4194304" placeholder:"BYTES"`
}

func (f literalFlag) checkMaxLiteral() error {
	if f.MaxLiteral < kg.MinLiteralBytes || f.MaxLiteral > kg.MaxLiteralBytes {
		return usageError{fmt.Errorf("--max-literal is between %d and %d", kg.MinLiteralBytes, kg.MaxLiteralBytes)}
	}
	return nil
}

// requireDirectory is an error unless the data directory is there.
func (t *target) requireDirectory() error {
	if _, err := os.Stat(t.Data); err != nil {
		return usageError{errors.New("there is no data directory " + t.Data)}
	}
	return nil
}

// inUse says what to do about a data directory that another process has.
func inUse(err error) error {
	if kg.CodeOf(err) != kg.CodeDataDirInUse {
		return err
	}
	e := *kg.AsError(err)
	e.Hint = "A server is running on it? Stop it, or use --url instead of --data where the command takes it."
	return &e
}

// localPrincipal is who works on a data directory: whoever may open its files may do
// everything.
func (t *target) localPrincipal() kg.Principal {
	p := kg.SystemPrincipal()
	if t.As != "" {
		p.ID = kg.CanonicalAgent(t.As)
	}
	return p
}

// graphNamed is the graph that --graph names: an IRI, a prefix:name, a
// blank node as _:label, or "default", as ?graph= of a server.
func graphNamed(registry *kg.Prefixes, text string) (kg.Term, error) {
	if strings.EqualFold(text, "default") {
		return kg.DefaultGraph, nil
	}
	g, err := registry.Resource(text)
	if err != nil {
		return g, usageError{fmt.Errorf("--graph: %w", err)}
	}
	return g, nil
}
