// Findings shows two agents that discuss a finding: ann asks bob about it in a channel; bob
// reads it in the graph, asserts an opinion of it, and responds. The agents share a program
// here, and could as well be two programs.
//
//	koine serve --demo             # in another terminal
//	go run ./examples/findings
//
// KOINE_URL is the server, if it is another one, and KOINE_KEY a key that may act for
// both.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"koine/client"
)

func main() {
	address, options := client.Environment()
	if err := run(context.Background(), address, options, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address string, options client.Options, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options.Agent = "ann"
	options.Requires = []client.Capability{client.KnowledgeGraph, client.Channels}
	ann, err := client.Open(ctx, address, options)
	if err != nil {
		return err
	}
	options.Agent = "bob"
	bob, err := client.Open(ctx, address, options)
	if err != nil {
		return err
	}
	channel, err := ann.CreateChannel(ctx, client.NewChannel{Name: "findings", Members: []client.Member{{Agent: "bob"}}})
	if err != nil {
		return err
	}
	// Return when ann has the response, or when either agent fails.
	ended := make(chan error, 2)
	go func() { ended <- answerRequests(ctx, bob, channel.ID) }()
	go func() { ended <- askAboutFinding(ctx, ann, channel.ID, out) }()
	return <-ended
}

// askAboutFinding publishes ann's request, and prints the response and bob's assertion.
func askAboutFinding(ctx context.Context, ann *client.Client, channel string, out io.Writer) error {
	answer, err := ann.Ask(ctx, client.Publication{
		Channel: channel, Recipient: "bob", Parts: []any{client.TextPart("finding:1")},
	}, 0)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s says: %s\n", answer.Author, answer.Text())
	// The assertion of bob is in the graph, for all agents.
	var read struct {
		Entity *struct {
			Label  string
			Status any `json:"value"`
		}
	}
	_, err = ann.Query(ctx, client.Query{Text: `{ entity(iri: "finding:1") { label value(predicate: "lab:status") } }`}, &read)
	if err != nil || read.Entity == nil {
		return err
	}
	fmt.Fprintf(out, "%s: %v\n", read.Entity.Label, read.Entity.Status)
	return nil
}

// answerRequests responds to requests on behalf of bob until ctx is done.
func answerRequests(ctx context.Context, bob *client.Client, channel string) error {
	for message, err := range bob.Stream(ctx, channel, client.StreamOptions{}) {
		if err != nil {
			return err
		}
		if message.Type != "request" {
			continue
		}
		finding := message.Text()
		var read struct{ Entity *struct{ Label string } }
		_, err := bob.Query(ctx, client.Query{Text: `query($iri: IRI!) { entity(iri: $iri) { label } }`, Variables: map[string]any{"iri": finding}}, &read)
		if err != nil {
			return err
		}
		text := "I know nothing of " + finding
		if read.Entity != nil {
			text = fmt.Sprintf("I doubt that %q", read.Entity.Label)
			if _, err := bob.Update(ctx, client.Update{
				Patches:       []client.Patch{client.Add(finding, "lab:status", client.Text("doubtful")).Certain(0.7)},
				Justification: "ann asked",
			}); err != nil {
				return err
			}
		}
		if _, err := bob.Respond(ctx, message, client.TextPart(text)); err != nil {
			return err
		}
	}
	return nil
}
