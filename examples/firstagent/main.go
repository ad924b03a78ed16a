// Firstagent reads contradicting findings, asserts a statement of its own, and subscribes
// to the graph. agent.py and agent.ts do the same over plain HTTP.
//
//	koine serve --demo             # in another terminal
//	go run ./examples/firstagent
//
// KOINE_URL is the address of the server, KOINE_KEY the key of the agent scout.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"koine/client"
)

func main() {
	address, options := client.Environment()
	if err := run(context.Background(), address, options, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address string, options client.Options, out io.Writer) error {
	options.Agent = "scout"
	c, err := client.Open(ctx, address, options)
	if err != nil {
		return err
	}

	// 1. Read the findings, and the agents behind them.
	var read struct {
		Statements struct {
			Nodes []struct {
				Subject, Object struct{ Label string }
				AssertedBy      []string
				Certainty       float64
			}
		}
	}
	meta, err := c.Query(ctx, client.Query{Text: `{
		statements(where: {predicate: {eq: "lab:contradicts"}}) {
			nodes { subject { label } object { ... on Entity { label } } assertedBy certainty }
		}
	}`}, &read)
	if err != nil {
		return err
	}
	for _, s := range read.Statements.Nodes {
		fmt.Fprintf(out, "%s, against: %s (%s, %v)\n", s.Subject.Label, s.Object.Label, strings.Join(s.AssertedBy, ", "), s.Certainty)
	}

	// 2. Assert a statement of its own: how surely, and why. The key makes it safe to send again.
	made, err := c.Update(ctx, client.Update{
		Justification:  "Both findings rest on run 7",
		Patches:        []client.Patch{client.Add("finding:1", "lab:status", client.Text("doubtful")).Certain(0.4)},
		IdempotencyKey: "scout-doubts-finding-1",
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, made.VerificationStatus)

	// 3. Follow the graph from the position of the read: nothing in between is missed.
	for change, err := range c.Subscribe(ctx, client.Subscription{
		Query: `subscription { statementChanged(where: {predicate: {eq: "lab:status"}}) { __typename } }`,
		From:  meta.Position,
	}) {
		if err != nil {
			return err
		}
		if change.Op == client.OpResync {
			continue // the graph changed more than a stream can tell; a snapshot follows
		}
		fmt.Fprintln(out, change.Op, change.Statement.Object.Value, "by", change.Metadata.Actor)
		break // an agent that goes on keeps change.Metadata.Position
	}
	return nil
}
