// Librarian shows an agent without an address of its own: it registers with koine, takes
// what it is asked from its mailbox, and reports what came of it. Anybody asks it with
// any client of A2A, at /agents/librarian/a2a.
//
//	koine serve --demo
//	go run ./examples/librarian
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

const name = "librarian"

func run(ctx context.Context, url string, out io.Writer) error {
	c, err := client.Open(ctx, url, client.Options{Agent: name, Requires: []client.Capability{client.KnowledgeGraph}})
	if err != nil {
		return err
	}
	if err := c.RegisterAgent(ctx, name, map[string]any{
		"name": "Librarian", "description": "Tells what a thing in the graph is called", "version": "1.0", "capabilities": []string{"labels"},
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is at %s/agents/%s\n", name, url, name)
	for letter, err := range c.Mailbox(ctx, name) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s asks for %s\n", letter.From, letter.Text())
		if err := c.Report(ctx, name, letter.Task.ID, answer(ctx, c, letter.Text())); err != nil {
			fmt.Fprintln(out, err) // it was canceled meanwhile, for example
		}
	}
	return nil
}

// answer says what becomes of a question.
func answer(ctx context.Context, c *client.Client, iri string) client.Report {
	var read struct{ Entity *struct{ Label string } }
	_, err := c.Query(ctx, client.Query{Text: `query($iri: IRI!) { entity(iri: $iri) { label } }`, Variables: map[string]any{"iri": iri}}, &read)
	switch {
	case err != nil:
		return says("TASK_STATE_FAILED", err.Error())
	case read.Entity == nil:
		return says("TASK_STATE_REJECTED", "there is no such thing")
	}
	report := says("TASK_STATE_COMPLETED", "found")
	report.Artifacts = []client.ReportArtifact{{ID: "label", Parts: []any{map[string]any{"text": read.Entity.Label}}, Last: true}}
	return report
}

func says(state, text string) client.Report {
	return client.Report{State: state, Message: &client.ReportMessage{Parts: []any{map[string]any{"text": text}}}}
}
