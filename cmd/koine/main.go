// Koine is a knowledge graph server for agents, with the commands to work with it. Each
// command has its own file; cli.go assembles the commands, serve.go the server.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"koine/cmd/koine/internal/cli"
)

func main() {
	os.Exit(run(os.Args[1:], cli.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// run executes the command line and returns the exit code. The first SIGINT or SIGTERM
// cancels the command's context; after that the default handling applies, so that a second
// signal kills the process.
func run(args []string, t cli.Terminal) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop()
	}()
	return execute(ctx, args, t)
}
