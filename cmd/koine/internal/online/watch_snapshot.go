package online

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// entitySnapshotSubscription is entityChanges with the statements of the snapshot.
const entitySnapshotSubscription = `subscription Watch($iri: IRI!, $depth: Int!, $far: Boolean!) {
  entityChanged(iri: $iri, depth: $depth) {
    ... on EntityChange {
      entity {
        out(first: 1000) @skip(if: $far) { nodes { ...fields } pageInfo { hasNextPage } }
        neighborhood(depth: $depth) @include(if: $far) { statements { ...fields } truncated }
      }
    }
  }
}
fragment fields on Statement {
  subject { id: iri } predicate object { ... on Entity { id: iri } ... on Literal { value language } } graph revision
  assertions { source: sourceId certainty revision }
}`

// entitySnapshot is the snapshot that entitySnapshotSubscription selects: the entity's own
// statements, or with a depth its neighborhood. Entity is nil if the entity has no
// statements.
type entitySnapshot struct {
	Entity *struct {
		Out struct {
			Nodes    []snapshotStatement `json:"nodes"`
			PageInfo struct {
				HasNextPage bool `json:"hasNextPage"`
			} `json:"pageInfo"`
		} `json:"out"`
		Neighborhood struct {
			Statements []snapshotStatement `json:"statements"`
			Truncated  bool                `json:"truncated"`
		} `json:"neighborhood"`
	} `json:"entity"`
}

// snapshotStatement is a statement of a snapshot with its assertions.
type snapshotStatement struct {
	Subject    node   `json:"subject"`
	Predicate  string `json:"predicate"`
	Object     node   `json:"object"`
	Graph      string `json:"graph"`
	Revision   uint64 `json:"revision"`
	Assertions []struct {
		Source    string   `json:"source"`
		Certainty *float64 `json:"certainty"`
		Revision  uint64   `json:"revision"`
	} `json:"assertions"`
}

// printSnapshot writes a line for each statement, in the form of later changes.
func (s *entitySnapshot) printSnapshot(c *WatchCommand, t cli.Terminal) error {
	if s.Entity == nil {
		return nil
	}
	list := append(s.Entity.Out.Nodes, s.Entity.Neighborhood.Statements...)
	for i := range list {
		if err := c.printChange(t, list[i].strongestChange()); err != nil {
			return err
		}
	}
	if s.Entity.Out.PageInfo.HasNextPage || s.Entity.Neighborhood.Truncated {
		t.Notef("The entity has more than these %d statements; use koine query for the rest.", len(list))
	}
	return nil
}

// strongestChange returns the statement with its strongest assertion: the greatest certainty
// (a fact counts as 1), then the newest revision. Snapshots of statement subscriptions
// choose alike.
func (s *snapshotStatement) strongestChange() *change {
	c := change{Op: "add", Statement: changedStatement{Subject: s.Subject, Predicate: node{ID: s.Predicate}, Object: s.Object, Graph: s.Graph}}
	c.Metadata.Snapshot, c.Metadata.Revision = true, s.Revision
	best, newest := -1.0, uint64(0)
	for _, a := range s.Assertions {
		certainty := 1.0
		if a.Certainty != nil {
			certainty = *a.Certainty
		}
		if certainty > best || certainty == best && a.Revision > newest {
			best, newest = certainty, a.Revision
			c.Statement.Certainty, c.Metadata.Source = a.Certainty, a.Source
		}
	}
	return &c
}

// graphSnapshotQuery reads the statements of a graph, like the snapshot of allChanges.
const graphSnapshotQuery = `query Watch($where: StatementFilter, $view: ViewInput!, $first: Int!, $after: Cursor) {
  statements(where: $where, view: $view, first: $first, after: $after) {
    nodes {
      subject { id: iri } predicate object { ... on Entity { id: iri } ... on Literal { value language } } graph revision
      assertions { source: sourceId certainty revision }
    }
    pageInfo { hasNextPage endCursor }
  }
}`

// rereadGraph prints the statements of a replaced graph at the revision of its replacement.
// The subscription continues after that revision.
func (c *WatchCommand) rereadGraph(ctx context.Context, t cli.Terminal, server *client.Client, replaced *client.Change) error {
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
func (c *WatchCommand) printSnapshotStatement(t cli.Terminal, s *snapshotStatement) error {
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
	_, err = fmt.Fprintln(t.Out, string(out))
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
