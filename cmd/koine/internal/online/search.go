package online

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// SearchCommand finds entities and messages by words.
type SearchCommand struct {
	Query     []string `arg:"" optional:"" help:"Words; \"words in this order\"; begin*; -unwanted."`
	Like      string   `help:"Find what has vectors near to that of this text, beside the words or without any. The server needs --embeddings-url." placeholder:"TEXT"`
	Class     []string `help:"Find only entities of this class; may be repeated." placeholder:"IRI" sep:"none"`
	Predicate []string `help:"Find only texts of this property; may be repeated." placeholder:"IRI" sep:"none"`
	Graph     []string `help:"Find only texts in this graph; may be repeated. \"default\" is the default graph." placeholder:"IRI" sep:"none"`
	Channel   []string `help:"Find only messages of this channel, an id or a name; may be repeated." placeholder:"CHANNEL" sep:"none"`
	Author    []string `help:"Find only what this agent asserted or sent; may be repeated." placeholder:"AGENT" sep:"none"`
	Since     string   `help:"Find only what was asserted or sent at this time or later." placeholder:"TIME"`
	Until     string   `help:"Find only what was asserted or sent before this time." placeholder:"TIME"`
	Certainty float64  `help:"Find only what is asserted with at least this certainty." placeholder:"0…1"`
	Order     string   `help:"Order of the hits: score (the best first) or time (the newest first)." enum:"score,time" default:"score" placeholder:"score|time"`
	First     int      `help:"Number of hits to print, 1 to 1000." default:"10" placeholder:"N"`
	Facets    bool     `help:"Print how many hits there are by class, predicate, graph, channel and author, --first of each (at most 100), instead of the hits."`
	cli.ServerFlags
	cli.OutputFlags
}

// Help is shown by --help.
func (SearchCommand) Help() string {
	return `The server keeps an index of texts, unless it runs with --search off. Put -- before a query that begins with "-". Filters add up; times are as in 2026-11-27T08:00:00Z.

Examples:
  koine search water capacity
  koine search '"prussian white" -dried'
  koine search 'elect*' --class lab:Finding --certainty 0.5 --order time
  koine search capacity --facets
  koine search --like 'batteries that fade'`
}

// searchHit is a hit as the query of SearchCommand selects it.
type searchHit struct {
	Score   float64
	Time    string
	Entity  struct{ IRI, Label string }
	Matches []struct{ Text string }
}

// searchObjects has hits with their score or their time.
func searchObjects(first string) *objects[searchHit] {
	return &objects[searchHit]{
		columns: []string{strings.ToUpper(first), "LABEL", "ENTITY", "TEXT"},
		row: func(h *searchHit) []string {
			text := ""
			if len(h.Matches) > 0 {
				text = h.Matches[0].Text
			}
			place := h.Time
			if first == "score" {
				place = strconv.FormatFloat(h.Score, 'f', 2, 64)
			}
			return []string{place, cmp.Or(h.Entity.Label, "-"), h.Entity.IRI, text}
		},
	}
}

// Run prints a row for each hit, or for each value of a facet.
func (c *SearchCommand) Run(ctx context.Context, t cli.Terminal) error {
	switch {
	case len(c.Query) == 0 && c.Like == "":
		return cli.Usagef("give words to search for, or --like TEXT")
	case c.Facets && c.Like != "":
		return cli.Usagef("--facets and --like are mutually exclusive: everything with a vector is a hit of --like")
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	for i, channel := range c.Channel {
		if c.Channel[i], err = findChannel(ctx, server, "", channel, anyState); err != nil {
			return err
		}
	}
	variables := map[string]any{"query": strings.Join(c.Query, " "), "filter": c.newFilter(), "first": c.First}
	if c.Facets {
		return c.printFacets(ctx, t, server, variables)
	}
	variables["order"] = strings.ToUpper(c.Order)
	if c.Like != "" {
		variables["near"] = map[string]any{"like": c.Like}
	}
	const query = `query($query: String!, $near: NearInput, $filter: SearchFilter, $order: SearchOrder!, $first: Int) { search(query: $query, near: $near, filter: $filter, order: $order, first: $first) { nodes { score time entity { iri label } matches { predicate graph text pieces } } building } }`
	var answer struct {
		Search struct {
			Nodes    []json.RawMessage
			Building bool
		}
	}
	if err := server.GraphQL(ctx, query, variables, &answer); err != nil {
		return err
	}
	if answer.Search.Building {
		t.Notef("The index of texts is being built: hits may be missing.")
	}
	return searchObjects(c.Order).print(ctx, t, server, c.OutputFlags, answer.Search.Nodes...)
}

// newFilter returns the filter that the flags describe.
func (c *SearchCommand) newFilter() map[string]any {
	filter := map[string]any{}
	for name, list := range map[string][]string{"classes": c.Class, "predicates": c.Predicate, "channelIds": c.Channel, "authorIds": c.Author} {
		if list != nil {
			filter[name] = list
		}
	}
	if c.Graph != nil {
		graphs := make([]any, len(c.Graph))
		for i, g := range c.Graph {
			if g != "default" {
				graphs[i] = g
			}
		}
		filter["graphs"] = graphs
	}
	for name, time := range map[string]string{"since": c.Since, "until": c.Until} {
		if time != "" {
			filter[name] = time
		}
	}
	if c.Certainty != 0 {
		filter["minCertainty"] = c.Certainty
	}
	return filter
}

// searchFacet is a facet as printFacets selects it.
type searchFacet struct {
	By     string
	Values []struct {
		IRI, NodeID string
		Count       int
	}
	Exact bool
}

// printFacets prints a row for each value of each facet.
func (c *SearchCommand) printFacets(ctx context.Context, t cli.Terminal, server *client.Client, variables map[string]any) error {
	const query = `query($query: String!, $filter: SearchFilter, $first: Int!) { search(query: $query, filter: $filter, first: 1) { facets(by: [CLASS, PREDICATE, GRAPH, CHANNEL, AUTHOR], first: $first) { by values { iri nodeId count } distinct exact } } }`
	var answer struct {
		Search struct{ Facets []json.RawMessage }
	}
	if err := server.GraphQL(ctx, query, variables, &answer); err != nil {
		return err
	}
	b := &cli.Table{Columns: []string{"FACET", "VALUE", "HITS"}}
	for _, raw := range answer.Search.Facets {
		facet, err := decodeObject[searchFacet](raw)
		if err != nil {
			return err
		}
		for _, v := range facet.Values {
			b.Rows = append(b.Rows, []string{strings.ToLower(facet.By), cmp.Or(v.IRI, v.NodeID, "default"), strconv.Itoa(v.Count)})
		}
		if !facet.Exact && facet.By == "CLASS" {
			t.Notef("There are more hits; 10000 of them are counted.")
		}
	}
	return c.PrintList(ctx, t, server, answer.Search.Facets, b)
}

// RecallCommand prints the knowledge about a topic.
type RecallCommand struct {
	Topic     []string `arg:"" help:"Words, or the name of an entity."`
	MaxTokens int      `help:"Bound of the text in tokens of a language model, 50 to 50000." default:"1000" placeholder:"N"`
	cli.ServerFlags
}

// Help is shown by --help.
func (RecallCommand) Help() string {
	return `The text has the form in which facts are written: prefixes, subjects at the beginning of lines, and below them predicates with their objects.

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
