// Librarian is an agent without an address of its own: it registers with koine, reads its
// tasks from its mailbox, and reports the results. Any A2A client can send it a task.
//
//	koine serve --demo             # in another terminal
//	go run ./examples/librarian
//	curl -s http://127.0.0.1:8080/agents/librarian/a2a -H 'Content-Type: application/json' -d '{"jsonrpc": "2.0", "id": 1,
//	  "method": "SendMessage", "params": {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "finding:1"}]}}}'
//
// KOINE_URL is the server, if it is another one, and KOINE_KEY the librarian's key.
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

const name = "librarian"

func run(ctx context.Context, address string, options client.Options, out io.Writer) error {
	options.Agent = name
	options.Requires = []client.Capability{client.KnowledgeGraph}
	c, err := client.Open(ctx, address, options)
	if err != nil {
		return err
	}
	if err := c.RegisterAgent(ctx, name, map[string]any{
		"name": "Librarian", "description": "Tells what a thing in the graph is called", "version": "1.0", "capabilities": []string{"labels"},
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is at %s/agents/%s\n", name, c.Address(), name)
	for letter, err := range c.Mailbox(ctx, name) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s asks for %s\n", letter.From, letter.Text())
		if err := c.Report(ctx, name, letter.Task.ID, lookUpLabel(ctx, c, letter.Text())); err != nil {
			fmt.Fprintln(out, err) // it was canceled meanwhile, for example
		}
	}
	return nil
}

// lookUpLabel returns the report on a request for the label of an IRI.
func lookUpLabel(ctx context.Context, c *client.Client, iri string) client.Report {
	var read struct{ Entity *struct{ Label string } }
	_, err := c.Query(ctx, client.Query{Text: `query($iri: IRI!) { entity(iri: $iri) { label } }`, Variables: map[string]any{"iri": iri}}, &read)
	switch {
	case err != nil:
		return newReport(client.TaskFailed, err.Error())
	case read.Entity == nil || read.Entity.Label == "":
		return newReport(client.TaskRejected, "it has no name here")
	}
	report := newReport(client.TaskCompleted, "found")
	report.Artifacts = []client.ReportArtifact{{ID: "label", Parts: []any{client.TextPart(read.Entity.Label)}, Last: true}}
	return report
}

func newReport(state client.TaskState, text string) client.Report {
	return client.Report{State: state, Message: &client.ReportMessage{Parts: []any{client.TextPart(text)}}}
}
