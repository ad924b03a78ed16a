package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"koine/client"
)

// graphStanding reads what stands in a graph, as a snapshot of allChanges tells it.
const graphStanding = `query Watch($where: StatementFilter, $view: ViewInput!, $first: Int!, $after: Cursor) {
  statements(where: $where, view: $view, first: $first, after: $after) {
    nodes {
      subject { id: iri } predicate object { ... on Entity { id: iri } ... on Literal { value language } } graph revision
      assertions { source certainty revision }
    }
    pageInfo { hasNextPage endCursor }
  }
}`

// rereadGraph prints what stands in a graph that was replaced as a whole, as of that: what
// the subscription tells next comes behind it.
func (c *watchCommand) rereadGraph(ctx context.Context, t terminal, server *client.Client, replaced *client.Change) error {
	variables := map[string]any{
		"where": c.where(), "first": maxPage,
		"view": map[string]any{"at": strconv.FormatUint(replaced.Metadata.Revision, 10), "graphs": []any{orNull(replaced.Graph)}},
	}
	for first := true; ; first = false {
		var answer struct {
			Statements struct {
				Nodes    []stood
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		if err := server.GraphQL(ctx, graphStanding, variables, &answer); err != nil {
			return err
		}
		if first { // behind what may fail
			if err := c.printResync(t, replaced); err != nil {
				return err
			}
		}
		for i := range answer.Statements.Nodes {
			if err := c.printStood(t, &answer.Statements.Nodes[i]); err != nil {
				return err
			}
		}
		page := &answer.Statements.PageInfo
		if !page.HasNextPage {
			return nil
		}
		variables["after"] = page.EndCursor
	}
}

// maxPage is how many elements a page has at the most.
const maxPage = 1000

// printStood prints a statement that stands, as one of a snapshot.
func (c *watchCommand) printStood(t terminal, s *stood) error {
	if !c.JSON {
		return c.printChange(t, s.change())
	}
	told := s.change()
	statement := map[string]any{"subject": told.Statement.Subject.json(), "predicate": told.Statement.Predicate.json(), "object": told.Statement.Object.json()}
	if s.Graph != "" {
		statement["graph"] = s.Graph
	}
	if told.Statement.Certainty != nil {
		statement["certainty"] = *told.Statement.Certainty
	}
	event := map[string]any{
		"op": "add", "statement": statement,
		"changeMetadata": map[string]any{"revision": s.Revision, "source": told.Metadata.Source, "snapshot": true},
	}
	out, err := json.Marshal(event)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.out, string(out))
	return err
}

// json is the node as an event has it.
func (n node) json() map[string]any {
	if n.ID != "" {
		return map[string]any{"id": n.ID}
	}
	out := map[string]any{"value": n.Value}
	if n.Language != "" {
		out["language"] = n.Language
	}
	return out
}

// quoteOrNull is a graph's name in JSON: null for the default graph.
func quoteOrNull(graph string) string {
	out, err := json.Marshal(orNull(graph))
	if err != nil {
		panic(err) // a text can be written
	}
	return string(out)
}

// orNull is a graph's name as variables and events have it: null for the default graph.
func orNull(graph string) any {
	if graph == "" {
		return nil
	}
	return graph
}
