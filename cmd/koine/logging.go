package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// formatJSON is the log format for programs: standard error holds JSON only.
const formatJSON = "json"

// logFlags configures the log.
type logFlags struct {
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

func (l logFlags) newLogger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(l.Level)}
	if l.Format == formatJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// loggingFromArgs reads --log-format from a command line that kong failed to parse, so that the
// error is written in that format.
func loggingFromArgs(args []string) logFlags {
	l := logFlags{Format: cmp.Or(os.Getenv("KOINE_LOG_FORMAT"), "text")}
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--log-format="); ok {
			l.Format = value
		} else if arg == "--log-format" && i+1 < len(args) {
			l.Format = args[i+1]
		}
	}
	return l
}
