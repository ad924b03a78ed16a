// Koine is a knowledge graph that agents share: a server, and the commands to
// work with one.
//
// Each command has a file of its own. They meet in cli.go; what the server is
// made of meets in serve.go.
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

// run is the whole program but for the end of the process. The first SIGINT or
// SIGTERM ends what goes on in good order; after it the signals have their
// usual effect again, so that a second one ends the process at once.
func run(args []string, t terminal) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop()
	}()
	return execute(ctx, args, t)
}
