package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"koine/client"
)

// graphSnapshotQuery reads the statements of a graph, like the snapshot of allChanges.
const graphSnapshotQuery = `query Watch($where: StatementFilter, $view: ViewInput!, $first: Int!, $after: Cursor) {
  statements(where: $where, view: $view, first: $first, after: $after) {
    nodes {
      subject { id: iri } predicate object { ... on Entity { id: iri } ... on Literal { value language } } graph revision
      assertions { source certainty revision }
    }
    pageInfo { hasNextPage endCursor }
  }
}`

// rereadGraph prints the statements of a replaced graph at the revision of its replacement.
// The subscription continues after that revision.
func (c *watchCommand) rereadGraph(ctx context.Context, t terminal, server *client.Client, replaced *client.Change) error {
	variables := map[string]any{
		"where": c.filterInput(), "first": maxPage,
		"view": map[string]any{"at": strconv.FormatUint(replaced.Metadata.Revision, 10), "graphs": []any{nullIfDefault(replaced.Graph)}},
	}
	for first := true; ; first = false {
		var answer struct {
			Statements struct {
				Nodes    []snapshotStatement
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		if err := server.GraphQL(ctx, graphSnapshotQuery, variables, &answer); err != nil {
			return err
		}
		if first { // only after the first page arrived
			if err := c.printResync(t, replaced); err != nil {
				return err
			}
		}
		for i := range answer.Statements.Nodes {
			if err := c.printSnapshotStatement(t, &answer.Statements.Nodes[i]); err != nil {
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

// maxPage is the maximum page size of a server.
const maxPage = 1000

// printSnapshotStatement prints a statement as part of a snapshot.
func (c *watchCommand) printSnapshotStatement(t terminal, s *snapshotStatement) error {
	if !c.JSON {
		return c.printChange(t, s.strongestChange())
	}
	change := s.strongestChange()
	statement := map[string]any{"subject": change.Statement.Subject.jsonValue(), "predicate": change.Statement.Predicate.jsonValue(), "object": change.Statement.Object.jsonValue()}
	if s.Graph != "" {
		statement["graph"] = s.Graph
	}
	if change.Statement.Certainty != nil {
		statement["certainty"] = *change.Statement.Certainty
	}
	event := map[string]any{
		"op": "add", "statement": statement,
		"changeMetadata": map[string]any{"revision": s.Revision, "source": change.Metadata.Source, "snapshot": true},
	}
	out, err := json.Marshal(event)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.out, string(out))
	return err
}

// jsonValue returns the node in the form of an event.
func (n node) jsonValue() map[string]any {
	if n.ID != "" {
		return map[string]any{"id": n.ID}
	}
	out := map[string]any{"value": n.Value}
	if n.Language != "" {
		out["language"] = n.Language
	}
	return out
}

// quoteOrNull encodes a graph's name as JSON, null for the default graph.
func quoteOrNull(graph string) string {
	out, err := json.Marshal(nullIfDefault(graph))
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(out)
}

// nullIfDefault returns a graph's name for variables and events, nil for the default graph.
func nullIfDefault(graph string) any {
	if graph == "" {
		return nil
	}
	return graph
}
