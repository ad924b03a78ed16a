package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"koine/client"
)

// askInChannel publishes a request and waits for the response.
type askInChannel struct {
	saying
	Wait time.Duration `help:"How long to wait for the response." default:"30s"`
}

// Help is shown by --help.
func (askInChannel) Help() string {
	return `It prints the first response. When none comes in time it ends with exit code 6. A line then, and when it is interrupted, tells how to wait on: the same again with that --once asks nothing new, and finds what came meanwhile too.

Examples:
  koine channel ask --to bob 'Was it dry?'
  koine channel ask lab 'Who measured run 7?' --recipient role:reviewer --wait 10m
  koine channel publish lab 'I did.' --answers 7`
}

// Run prints the response.
func (c *askInChannel) Run(ctx context.Context, t terminal) error {
	err := c.check()
	switch {
	case err != nil:
		return usageError{err}
	case c.To == "" && c.Recipient == "":
		return usageError{errors.New("say whom: --recipient an agent or role:NAME, or --to an agent")}
	case c.Wait <= 0:
		return usageError{errors.New("--wait is more than nothing")}
	}
	server, err := c.openStream(ctx, t)
	if err != nil {
		return err
	}
	p, err := c.publication(ctx, t, server)
	if err != nil {
		return err
	}
	if p.IdempotencyKey == "" {
		p.IdempotencyKey = uuid.NewString() // to wait on with
	}
	m, err := server.Ask(ctx, p, c.Wait)
	switch {
	case errors.Is(err, client.Unanswered):
		return exitError{fmt.Errorf("%w\nWait on with --once %s", err, p.IdempotencyKey), exitUnanswered}
	case ctx.Err() != nil:
		t.sayf("Wait on with --once %s", p.IdempotencyKey)
		return ctx.Err()
	case err != nil:
		return c.lost(err)
	}
	return printMessage(ctx, t, server, m, c.JSON)
}
