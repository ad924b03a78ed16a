package cli

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"
)

// Terminal holds the streams of a command: results go to out, all else (progress, messages,
// logs) to err.
type Terminal struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	// records logs messages as JSON records, for --log-format json; nil writes them to err
	// as text.
	Records *slog.Logger
	// quiet suppresses messages.
	Quiet bool
}

// WithFlags returns the terminal with the global flags applied.
func (t Terminal) WithFlags(l LogFlags, quiet bool) Terminal {
	t.Quiet = quiet
	if l.Format == formatJSON {
		t.Records = l.NewLogger(t.Err)
	}
	return t
}

// Notef writes a message to the user.
func (t Terminal) Notef(format string, args ...any) {
	switch {
	case t.Quiet:
	case t.Records != nil:
		t.Records.Info(strings.TrimSpace(fmt.Sprintf(format, args...)))
	default:
		fmt.Fprintf(t.Err, format+"\n", args...)
	}
}

// PrintError writes a command's error, followed by hints.
func (t Terminal) PrintError(message string, code int, more ...string) {
	if t.Records == nil {
		fmt.Fprintln(t.Err, strings.Join(append([]string{"koine: " + message}, more...), "\n"))
		return
	}
	attributes := []any{"exit", code}
	if len(more) > 0 {
		attributes = append(attributes, "hint", strings.Join(more, " "))
	}
	t.Records.Error(message, attributes...)
}

// IsInteractive reports whether err is a terminal that shows messages.
func (t Terminal) IsInteractive() bool { return t.Records == nil && !t.Quiet && isTerminal(t.Err) }

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// formatJSON is the log format for programs: standard error holds JSON only.
const formatJSON = "json"

// LogFlags configures the log.
type LogFlags struct {
	Format string   `help:"Log format: text or json. With json, standard error holds JSON objects only, one per line." enum:"text,json" default:"text"`
	Level  logLevel `help:"Lowest level to log: debug, info, warn or error." default:"info" completes:"debug,info,warn,error"`
}

// logLevel is a level given by name.
type logLevel slog.Level

// UnmarshalText accepts the level names of slog.
func (l *logLevel) UnmarshalText(text []byte) error {
	if (*slog.Level)(l).UnmarshalText(text) != nil {
		return fmt.Errorf("%q is not one of debug, info, warn and error", text)
	}
	return nil
}

func (l LogFlags) NewLogger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(l.Level)}
	if l.Format == formatJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// LogFlagsFromArgs reads --log-format from a command line that kong failed to parse, so that the
// error is written in that format.
func LogFlagsFromArgs(args []string) LogFlags {
	l := LogFlags{Format: cmp.Or(os.Getenv("KOINE_LOG_FORMAT"), "text")}
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--log-format="); ok {
			l.Format = value
		} else if arg == "--log-format" && i+1 < len(args) {
			l.Format = args[i+1]
		}
	}
	return l
}
