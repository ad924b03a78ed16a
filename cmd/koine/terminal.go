package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// terminal is where a command reads and writes: results go to out, everything
// else (progress, messages, logs) to err.
type terminal struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// sayf writes a message for the person who runs the command.
func (t terminal) sayf(format string, args ...any) {
	fmt.Fprintf(t.err, format+"\n", args...)
}

// interactive tells whether a person watches err.
func (t terminal) interactive() bool { return isTerminal(t.err) }

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
