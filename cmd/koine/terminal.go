package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal is where a command reads and writes: results go to out, everything
// else (progress, messages, logs) to err.
type terminal struct {
	in  io.Reader
	out io.Writer
	err io.Writer

	// records takes messages as records of the log, where err has nothing but JSON; nil
	// writes them as lines of text.
	records *slog.Logger
	// quiet leaves out what is only said to people.
	quiet bool
}

// withFlags is the terminal as the flags that all commands have want it.
func (t terminal) withFlags(l logging, quiet bool) terminal {
	t.quiet = quiet
	if l.Format == formatJSON {
		t.records = l.newLogger(t.err)
	}
	return t
}

// sayf writes a message for the person who runs the command.
func (t terminal) sayf(format string, args ...any) {
	switch {
	case t.quiet:
	case t.records != nil:
		t.records.Info(strings.TrimSpace(fmt.Sprintf(format, args...)))
	default:
		fmt.Fprintf(t.err, format+"\n", args...)
	}
}

// printError writes why the command failed, and below it what helps.
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

// isInteractive tells whether a person watches err.
func (t terminal) isInteractive() bool { return t.records == nil && !t.quiet && isTerminal(t.err) }

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
