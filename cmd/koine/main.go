// Koine is a knowledge graph server for agents, with the commands to work with it. Each
// command has its own file; cli.go assembles the commands, serve.go the server.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], terminal{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// run executes the command line and returns the exit code. The first SIGINT or SIGTERM
// cancels the command's context; after that the default handling applies, so that a second
// signal kills the process.
func run(args []string, t terminal) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop()
	}()
	return execute(ctx, args, t)
}
