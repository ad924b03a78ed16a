package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"koine/channels/message"
	"koine/client"
	"koine/kg"
)

// askInChannel publishes a request and waits for its response.
type askInChannel struct {
	publishInput
	Wait time.Duration `help:"How long to wait for the response." default:"30s"`
}

// Help is shown by --help.
func (askInChannel) Help() string {
	return `Prints the first response that was not retracted. If the server does not know the agent, the request is published, the command says so, and waits: the agent may still connect. Without a response in time, the exit code is 6. After a timeout or an interrupt, the command prints how to continue waiting: with the same --once, it publishes no new request, and finds responses that arrived in between.

Examples:
  koine channel ask --to bob 'Was it dry?'
  koine channel ask lab 'Who measured run 7?' --recipient role:reviewer --wait 10m
  koine channel publish lab 'I did.' --answers 7`
}

// Run publishes the request and prints the response.
func (c *askInChannel) Run(ctx context.Context, t terminal) error {
	err := c.checkFlags()
	switch {
	case err != nil:
		return usageError{err}
	case c.To == "" && c.Recipient == "":
		return usageError{errors.New("ask requires a recipient: pass --recipient AGENT, --recipient role:NAME or --to AGENT")}
	case c.Wait <= 0:
		return usageError{errors.New("--wait must be positive")}
	}
	server, err := c.openStream(ctx, t)
	if err != nil {
		return err
	}
	p, err := c.basePublication(ctx, t, server)
	if err != nil {
		return err
	}
	if p.IdempotencyKey == "" {
		p.IdempotencyKey = uuid.NewString() // the key with which the caller can resume waiting
	}
	if whom := cmp.Or(c.Recipient, c.To); unknownAgent(ctx, server, whom) {
		p.Type = "request" // Ask publishes with the same key, so the request exists once
		if _, err := server.Publish(ctx, p); err != nil {
			return err
		}
		t.sayf("The server does not know %s: no agent of this name is registered or has written anything. It may still connect; waiting for %s.", kg.CanonicalAgent(whom), c.Wait)
	}
	m, err := server.Ask(ctx, p, c.Wait)
	switch {
	case errors.Is(err, client.Unanswered):
		return exitError{fmt.Errorf("%w\nContinue waiting with --once %s", err, p.IdempotencyKey), exitUnanswered}
	case ctx.Err() != nil:
		t.sayf("Continue waiting with --once %s", p.IdempotencyKey)
		return ctx.Err()
	case err != nil:
		return c.streamError(err)
	}
	return printMessage(ctx, t, server, m, outputFlags{JSON: c.JSON})
}

// unknownAgent reports whether the server has neither a record of the agent nor, as far as
// the caller may see, any commit by it. The second test is needed because agents have no
// records in open mode. It returns false for a role, and if the server does not tell.
func unknownAgent(ctx context.Context, server *client.Client, whom string) bool {
	if whom == string(message.Everyone) || strings.HasPrefix(whom, "role:") {
		return false
	}
	var answer struct {
		Agent *struct{ ID string }
		Audit struct{ Nodes []struct{ Actor string } }
	}
	const record = `query($agent: String!) { agent(id: $agent) { id } }`
	if err := server.GraphQL(ctx, record, map[string]any{"agent": whom}, &answer); err != nil || answer.Agent != nil {
		return false
	}
	const actions = `query($agent: String!) { audit(actor: $agent, first: 1) { nodes { actor } } }`
	if err := server.GraphQL(ctx, actions, map[string]any{"agent": whom}, &answer); err != nil {
		return errors.Is(err, client.PermissionDenied) // the server authenticates callers, so a known agent would have a record
	}
	return len(answer.Audit.Nodes) == 0
}
