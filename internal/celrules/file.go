package celrules

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"koine/channels"
	"koine/kg"
)

// DefaultPoll is the interval at which a File checks for changes.
const DefaultPoll = time.Second

// File holds the rules of a file that may change. It is safe for concurrent use.
type File struct {
	path    string
	options Options
	log     *slog.Logger
	set     atomic.Pointer[Set]
	version atomic.Uint64
	sum     atomic.Pointer[[32]byte] // of the text read last
	changed atomic.Pointer[func()]
}

// Open reads the rules of a file. An invalid file is an error.
func Open(path string, o Options, log *slog.Logger) (*File, error) {
	f := &File{path: path, options: o, log: log}
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	set, err := Parse(text, o)
	if err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "%s: %w", path, err)
	}
	sum := sha256.Sum256(text)
	f.set.Store(set)
	f.sum.Store(&sum)
	return f, nil
}

// readFile reads a file up to the size limit.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "%w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "%s: %w", path, err)
	}
	return text, nil
}

// Set returns the rules in force.
func (f *File) Set() *Set { return f.set.Load() }

// Reloads counts the changes of the rules in force (kg.Governor.RulesVersion).
func (f *File) Reloads() uint64 { return f.version.Load() }

// OnChange sets a function to call after new rules have come into force.
func (f *File) OnChange(fn func()) { f.changed.Store(&fn) }

// Reload reads the file again and installs its rules if it has changed. If the file is
// invalid, Reload logs the error and the old rules stay in force.
func (f *File) Reload() error {
	text, err := readFile(f.path)
	if err != nil {
		return f.logInvalid(err, sha256.Sum256([]byte(err.Error())))
	}
	sum := sha256.Sum256(text)
	if *f.sum.Load() == sum {
		return nil
	}
	set, err := Parse(text, f.options)
	if err != nil {
		return f.logInvalid(err, sum)
	}
	f.sum.Store(&sum)
	f.set.Store(set)
	f.version.Add(1) // after Store: a reader of the old number may already use the new rules
	f.log.Info("rules reloaded", "file", f.path, "rules", len(set.Rules()))
	if fn := f.changed.Load(); fn != nil {
		(*fn)()
	}
	return nil
}

// logInvalid logs an invalid file, once for the same text.
func (f *File) logInvalid(err error, sum [32]byte) error {
	if *f.sum.Load() != sum {
		f.sum.Store(&sum)
		f.log.Error("the changed file of rules is invalid, the old rules stay in force", "file", f.path, "error", err)
	}
	return err
}

// Follow reloads the file when it changes and for each signal from now, until the
// context ends. Reading a small file every second costs less than watching all the ways
// in which editors and mounted volumes replace it.
func (f *File) Follow(ctx context.Context, every time.Duration, now <-chan os.Signal) {
	tick := time.NewTicker(cmp.Or(every, DefaultPoll))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-now:
		}
		_ = f.Reload() // logged there
	}
}

// Verify judges by the rules in force (kg.Verifier).
func (f *File) Verify(ctx context.Context, j kg.Judgement) (kg.Verdict, error) {
	return f.Set().Verify(ctx, j)
}

// JudgesMessages is Set.JudgesMessages of the rules in force.
func (f *File) JudgesMessages() (all, byScan bool) { return f.Set().JudgesMessages() }

// Scan is Set.Scan of the rules in force.
func (f *File) Scan(ctx context.Context, m *channels.ScannedMessage) (channels.Ruling, error) {
	return f.Set().Scan(ctx, m)
}

// CheckQuery is Set.CheckQuery of the rules in force.
func (f *File) CheckQuery(ctx context.Context, q Query) error { return f.Set().CheckQuery(ctx, q) }

// Hides is Set.Hides of the rules in force.
func (f *File) Hides(p kg.Principal) func(predicate, graph kg.Term) bool { return f.Set().Hides(p) }
