package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"koine/client"
)

// queryCommand runs a GraphQL query through knowledge/query.
type queryCommand struct {
	Query string `arg:"" optional:"" help:"GraphQL query; - or no query reads standard input."`
	File  string `short:"f" help:"Read the query from this file." placeholder:"FILE" type:"path"`
	serverFlags
	Var           map[string]string `help:"Variable, as JSON; anything else is a string. May be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Operation     string            `help:"Operation to run, if the document has several." placeholder:"NAME"`
	At            string            `help:"Read at this revision or time." placeholder:"REVISION"`
	MinRevision   uint64            `help:"Wait until the server has this revision." placeholder:"REVISION"`
	MinCertainty  float64           `help:"Read only what is asserted with at least this certainty." placeholder:"0…1"`
	MaxAgeSeconds int64             `help:"Read only what was asserted in this number of seconds." placeholder:"N"`
	Full          bool              `help:"Print JSON with queryMetadata (revision, position, sources …)."`
	Compact       bool              `help:"Print JSON on one line."`
	outputFlags
}

// Help is shown by --help.
func (queryCommand) Help() string {
	return `Prints the response as tables: a list, or a connection with nodes, has a column for each selected leaf; other fields are rows of name and value. IRIs are shortened with the server's prefixes. --json, --compact and --full print the response as JSON, --csv prints a single list with full IRIs.

Columns follow the selection and its order, whatever the response contains; null is empty. Standard error reports where the response was cut, which lists continue, and names in the query that the graph does not contain.

Examples (with koine serve --demo):
  koine query '{ stats { statements revision } }'
  koine query --csv '{ statements(first: 10) { nodes { subject { iri } predicate object { ... on Entity { iri } ... on Literal { value } } } } }'
  koine query --json --var id=finding:1 'query($id: IRI!) { entity(iri: $id) { label types } }'
  koine query --min-certainty 0.8 --full -f findings.graphql`
}

// Run runs the query and prints its data.
func (c *queryCommand) Run(ctx context.Context, t terminal) error {
	text, err := readText(t, c.Query, c.File)
	if err != nil {
		return err
	}
	server, err := c.openClient(ctx)
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

func (c *queryCommand) printJSON(t terminal, data json.RawMessage, meta *client.QueryMetadata) error {
	if c.Full {
		data = fmt.Appendf(nil, `{"data":%s,"queryMetadata":%s}`, data, meta.Raw)
	}
	return printJSON(t.out, data, c.Compact)
}

// printTables prints the data as tables.
func (c *queryCommand) printTables(ctx context.Context, t terminal, server *client.Client, data json.RawMessage, selected *selection) error {
	tables := dataTables(data, selected)
	if c.CSV {
		if len(tables) != 1 {
			return errManyTables(len(tables))
		}
		return tables[0].writeCSV(t.out)
	}
	short, err := fetchPrefixes(ctx, server)
	if err != nil {
		return err
	}
	for i := range tables {
		if i > 0 {
			fmt.Fprintln(t.out)
		}
		if err := tables[i].shortenIRIs(short).write(t); err != nil {
			return err
		}
	}
	return nil
}

// maxAge is the largest maximum age: beyond any assertion's.
const maxAge = math.MaxInt64 / time.Second

func (c *queryCommand) newQuery(text string) client.Query {
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
		out[name] = jsonOrText(value)
	}
	return out
}

// readText returns the argument, the content of a file, or standard input.
func readText(t terminal, argument, file string) (string, error) {
	switch {
	case argument != "" && file != "":
		return "", usageError{errors.New("a file and an argument are mutually exclusive")}
	case file != "" && file != "-":
		text, err := os.ReadFile(file)
		if err != nil {
			return "", usageError{err}
		}
		return string(text), nil
	case argument != "" && argument != "-":
		return argument, nil
	}
	text, err := io.ReadAll(io.LimitReader(t.in, maxAnswerBytes))
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = usageError{errors.New("standard input is empty")}
	}
	return string(text), err
}

// jsonOrText returns the text if it is JSON, else the text as a JSON string.
func jsonOrText(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always encodes
	}
	return quoted
}

func printJSON(w io.Writer, raw json.RawMessage, compact bool) error {
	var b bytes.Buffer
	var err error
	if compact {
		err = json.Compact(&b, raw)
	} else {
		err = json.Indent(&b, raw, "", "  ")
	}
	if err != nil {
		return invalidResponse(err)
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}
