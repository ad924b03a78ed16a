package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal holds the streams of a command: results go to out, all else (progress, messages,
// logs) to err.
type terminal struct {
	in  io.Reader
	out io.Writer
	err io.Writer

	// records logs messages as JSON records, for --log-format json; nil writes them to err
	// as text.
	records *slog.Logger
	// quiet suppresses messages.
	quiet bool
}

// withFlags returns the terminal with the global flags applied.
func (t terminal) withFlags(l logFlags, quiet bool) terminal {
	t.quiet = quiet
	if l.Format == formatJSON {
		t.records = l.newLogger(t.err)
	}
	return t
}

// sayf writes a message to the user.
func (t terminal) sayf(format string, args ...any) {
	switch {
	case t.quiet:
	case t.records != nil:
		t.records.Info(strings.TrimSpace(fmt.Sprintf(format, args...)))
	default:
		fmt.Fprintf(t.err, format+"\n", args...)
	}
}

// printError writes a command's error, followed by hints.
func (t terminal) printError(message string, code int, more ...string) {
	if t.records == nil {
		fmt.Fprintln(t.err, strings.Join(append([]string{"koine: " + message}, more...), "\n"))
		return
	}
	attributes := []any{"exit", code}
	if len(more) > 0 {
		attributes = append(attributes, "hint", strings.Join(more, " "))
	}
	t.records.Error(message, attributes...)
}

// isInteractive reports whether err is a terminal that shows messages.
func (t terminal) isInteractive() bool { return t.records == nil && !t.quiet && isTerminal(t.err) }

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
