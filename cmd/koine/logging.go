package main

import (
	"cmp"
	"io"
	"log/slog"
	"os"
	"strings"
)

// formatJSON is the format in which standard error is read by programs.
const formatJSON = "json"

// logging says how the program logs.
type logging struct {
	Format string     `help:"How log lines are written: text or json. With json nothing but JSON is on standard error, one object a line." enum:"text,json" default:"text"`
	Level  slog.Level `help:"The least level that is logged: debug, info, warn or error." default:"info"`
}

func (l logging) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	if l.Format == formatJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// loggingOf is the format that a command line asks for which cannot be parsed.
func loggingOf(args []string) logging {
	l := logging{Format: cmp.Or(os.Getenv("KOINE_LOG_FORMAT"), "text")}
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--log-format="); ok {
			l.Format = value
		} else if arg == "--log-format" && i+1 < len(args) {
			l.Format = args[i+1]
		}
	}
	return l
}
