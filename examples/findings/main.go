// Findings shows two agents that share what they find: ann asks bob in a channel what he
// makes of a finding; bob reads it in the graph, writes down what he thinks of it, and
// answers. Both are in one program here; as two programs they would be the same.
//
//	koine serve --demo
//	go run ./examples/findings
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"koine/client"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8080", "the server")
	flag.Parse()
	if err := run(context.Background(), *url, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ann, err := client.Open(ctx, url, client.Options{Agent: "ann", Requires: []client.Capability{client.KnowledgeGraph, client.Channels}})
	if err != nil {
		return err
	}
	channel, err := ann.CreateChannel(ctx, client.NewChannel{Name: "findings", Members: []client.Member{{Agent: "bob"}}})
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- bob(ctx, url, channel.ID) }()

	answered := make(chan error, 1)
	go func() { answered <- ask(ctx, ann, channel.ID, out) }()
	select {
	case err := <-failed:
		return err
	case err := <-answered:
		return err
	}
}

// ask is what ann does.
func ask(ctx context.Context, ann *client.Client, channel string, out io.Writer) error {
	answer, err := ann.Ask(ctx, client.Publication{
		Channel: channel, Recipient: "bob", Parts: []any{client.TextPart("finding:1")},
	}, 0)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s says: %s\n", answer.Author, answer.Text())
	// What bob wrote down is in the graph, for everybody.
	var read struct {
		Entity struct {
			Label  string
			Status any `json:"value"`
		}
	}
	_, err = ann.Query(ctx, client.Query{Text: `{ entity(iri: "finding:1") { label value(predicate: "lab:status") } }`}, &read)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %v\n", read.Entity.Label, read.Entity.Status)
	return nil
}

// bob answers what he is asked, until the context ends.
func bob(ctx context.Context, url, channel string) error {
	bob, err := client.Open(ctx, url, client.Options{Agent: "bob"})
	if err != nil {
		return err
	}
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
