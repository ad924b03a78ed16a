package main

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/alecthomas/kong"

	"koine/cmd/koine/internal/cli"
)

// startDemoServer starts a server with the demo graph in a temporary directory, for a
// benchmark. stop shuts it down and removes the directory.
func startDemoServer(ctx context.Context) (url string, stop func() error, err error) {
	var all commandLine
	parser, err := kong.New(&all, kong.Name("koine"), kong.Vars{"url": cli.DefaultURL})
	if err != nil {
		return "", nil, err
	}
	// The environment and the configuration file are ignored: they configure another server.
	if _, err := parser.Parse([]string{"serve", "--demo", "--listen", "127.0.0.1:0", "--reserve-mib", "64"}); err != nil {
		return "", nil, err
	}
	urls, ended := make(chan string, 1), make(chan error, 1)
	all.Serve.listening = func(url string) { urls <- url }
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		var said bytes.Buffer
		ended <- all.Serve.Run(ctx, cli.Terminal{In: &said, Out: &said, Err: &said}, slog.New(slog.DiscardHandler))
	}()
	select {
	case err := <-ended:
		cancel()
		return "", nil, err
	case url = <-urls:
	}
	return url, func() error { cancel(); return <-ended }, nil
}
