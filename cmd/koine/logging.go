package main

import (
	"io"
	"log/slog"
)

// logging says how the program logs.
type logging struct {
	Format string     `help:"How log lines are written: text or json." enum:"text,json" default:"text"`
	Level  slog.Level `help:"The least level that is logged: debug, info, warn or error." default:"info"`
}

func (l logging) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
