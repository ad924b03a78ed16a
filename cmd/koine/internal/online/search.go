package online

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"koine/cmd/koine/internal/cli"
)

// SearchCommand finds entities and messages by words.
type SearchCommand struct {
	Query []string `arg:"" help:"Words; \"words in this order\"; begin*; -unwanted."`
	First int      `help:"Number of hits to print, 1 to 1000." default:"10" placeholder:"N"`
	cli.ServerFlags
	cli.OutputFlags
}

// Help is shown by --help.
func (SearchCommand) Help() string {
	return `The server keeps an index of texts if it runs with --search on. Put -- before a query that begins with "-".

Examples:
  koine search water capacity
  koine search '"prussian white" -dried'
  koine search 'elect*' --first 3 --json`
}

// searchHit is a hit as the query of SearchCommand selects it.
type searchHit struct {
	Score   float64
	Entity  struct{ IRI, Label string }
	Matches []struct{ Text string }
}

var searchObjects = objects[searchHit]{
	columns: []string{"SCORE", "LABEL", "ENTITY", "TEXT"},
	row: func(h *searchHit) []string {
		text := ""
		if len(h.Matches) > 0 {
			text = h.Matches[0].Text
		}
		return []string{strconv.FormatFloat(h.Score, 'f', 2, 64), cmp.Or(h.Entity.Label, "-"), h.Entity.IRI, text}
	},
}

// Run prints a row for each hit, the best first.
func (c *SearchCommand) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	const query = `query($query: String!, $first: Int) { search(query: $query, first: $first) { nodes { score entity { iri label } matches { predicate graph text } } } }`
	var answer struct {
		Search struct{ Nodes []json.RawMessage }
	}
	if err := server.GraphQL(ctx, query, map[string]any{"query": strings.Join(c.Query, " "), "first": c.First}, &answer); err != nil {
		return err
	}
	return searchObjects.print(ctx, t, server, c.OutputFlags, answer.Search.Nodes...)
}

// RecallCommand prints what is known about a topic.
type RecallCommand struct {
	Topic     []string `arg:"" help:"Words, or the name of an entity."`
	MaxTokens int      `help:"Bound of the text in tokens of a language model, 50 to 50000." default:"1000" placeholder:"N"`
	cli.ServerFlags
}

// Help is shown by --help.
func (RecallCommand) Help() string {
	return `The text has the form in which facts are written: prefixes, subjects at the beginning of lines, and below them predicates with their objects. The server runs with --search on.

Examples:
  koine recall water capacity
  koine recall finding:1 --max-tokens 200`
}

// Run prints the text.
func (c *RecallCommand) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	const query = `query($topic: String!, $most: Int) { recall(topic: $topic, maxTokens: $most) { text } }`
	var answer struct{ Recall struct{ Text string } }
	if err := server.GraphQL(ctx, query, map[string]any{"topic": strings.Join(c.Topic, " "), "most": c.MaxTokens}, &answer); err != nil {
		return err
	}
	if answer.Recall.Text == "" {
		t.Notef("Nothing is known about it.")
	}
	_, err = io.WriteString(t.Out, answer.Recall.Text)
	return err
}
