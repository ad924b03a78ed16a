package online

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// QueryCommand runs a GraphQL query through knowledge/query.
type QueryCommand struct {
	Query string `arg:"" optional:"" help:"GraphQL query; - or no query reads standard input."`
	File  string `short:"f" help:"Read the query from this file." placeholder:"FILE" type:"path"`
	cli.ServerFlags
	Var           map[string]string `help:"Variable, as JSON; anything else is a string. May be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Operation     string            `help:"Operation to run, if the document has several." placeholder:"NAME"`
	At            string            `help:"Read at this revision or time." placeholder:"REVISION"`
	MinRevision   uint64            `help:"Wait until the server has this revision." placeholder:"REVISION"`
	MinCertainty  float64           `help:"Read only what is asserted with at least this certainty." placeholder:"0…1"`
	MaxAgeSeconds int64             `help:"Read only what was asserted in this number of seconds." placeholder:"N"`
	Full          bool              `help:"Print JSON with queryMetadata (revision, position, sources …)."`
	Compact       bool              `help:"Print JSON on one line."`
	cli.OutputFlags
}

// Help is shown by --help.
func (QueryCommand) Help() string {
	return `Prints the response as tables: a list, or a connection with nodes, has a column for each selected leaf; other fields are rows of name and value. IRIs are shortened with the server's prefixes. --json, --compact and --full print the response as JSON, --csv prints a single list with full IRIs.

Columns follow the selection and its order, whatever the response contains; null is empty. Standard error reports where the response was cut, which lists continue, and names in the query that the graph does not contain.

Examples (with koine serve --demo):
  koine query '{ stats { statements revision } }'
  koine query --csv '{ statements(first: 10) { nodes { subject { iri } predicate object { ... on Entity { iri } ... on Literal { value } } } } }'
  koine query --json --var id=finding:1 'query($id: IRI!) { entity(iri: $id) { label types } }'
  koine query --min-certainty 0.8 --full -f findings.graphql`
}

// Run runs the query and prints its data.
func (c *QueryCommand) Run(ctx context.Context, t cli.Terminal) error {
	text, err := cli.ReadText(t, c.Query, c.File)
	if err != nil {
		return err
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	var data json.RawMessage
	meta, err := server.Query(ctx, c.newQuery(text), &data)
	if meta == nil {
		return err
	}
	selected, unread := newSelection(text, c.Operation, parseVariables(c.Var))
	switch {
	case c.JSON || c.Full || c.Compact:
		if printing := c.printJSON(t, data, meta); printing != nil {
			return printing
		}
	case unread != nil:
		return fmt.Errorf("the columns of the query cannot be determined (%w): use --json", unread)
	default:
		if printing := c.printTables(ctx, t, server, data, selected); printing != nil {
			return printing
		}
	}
	printRemarks(t, meta)
	if unread == nil {
		printShortLists(t, shortLists(data, selected), meta)
	}
	return err
}

func (c *QueryCommand) printJSON(t cli.Terminal, data json.RawMessage, meta *client.QueryMetadata) error {
	if c.Full {
		data = fmt.Appendf(nil, `{"data":%s,"queryMetadata":%s}`, data, meta.Raw)
	}
	return cli.PrintJSON(t.Out, data, c.Compact)
}

// printTables prints the data as tables.
func (c *QueryCommand) printTables(ctx context.Context, t cli.Terminal, server *client.Client, data json.RawMessage, selected *selection) error {
	tables := dataTables(data, selected)
	if c.CSV {
		if len(tables) != 1 {
			return errManyTables(len(tables))
		}
		return tables[0].PrintCSV(t.Out)
	}
	short, err := cli.FetchPrefixes(ctx, server)
	if err != nil {
		return err
	}
	for i := range tables {
		if i > 0 {
			fmt.Fprintln(t.Out)
		}
		if err := tables[i].ShortenIRIs(short).Print(t); err != nil {
			return err
		}
	}
	return nil
}

// maxAge is the largest maximum age: beyond any assertion's.
const maxAge = math.MaxInt64 / time.Second

func (c *QueryCommand) newQuery(text string) client.Query {
	return client.Query{
		Text: text, Operation: c.Operation, Variables: parseVariables(c.Var),
		RequiredCertainty: c.MinCertainty, MaxAge: min(time.Duration(c.MaxAgeSeconds), maxAge-1) * time.Second,
		At: c.At, MinRevision: c.MinRevision,
	}
}

// parseVariables returns the variables given by flags, as JSON.
func parseVariables(flags map[string]string) map[string]any {
	out := map[string]any{}
	for name, value := range flags {
		out[name] = cli.JSONOrText(value)
	}
	return out
}
