// Contradictions is an agent that subscribes to the graph and prints contradictions as
// they arise.
//
//	koine serve --demo             # in another terminal
//	go run ./examples/contradictions
//	koine update add lab:status rdf:type owl:FunctionalProperty
//	koine update add finding:1 lab:status settled --as ann
//	koine update add finding:1 lab:status doubtful --as bob
//
// KOINE_URL is the server, if it is another one, and KOINE_KEY the watcher's key.
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
	if err := run(context.Background(), address, options, 0, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// contradictionsQuery selects the printed fields of at most 100 contradictions.
const contradictionsQuery = `{ contradictions(first: 100) { nodes { reason statements {
	statement { statementId subject { id } predicate { id } object { id value } } assertions { source: sourceId }
} } } }`

type contradictions struct {
	Contradictions struct{ Nodes []contradiction }
}

// contradiction is some statements that cannot all hold.
type contradiction struct {
	Reason     string
	Statements []struct {
		Statement struct {
			StatementID string
			Subject     struct{ ID string }
			Predicate   struct{ ID string }
			Object      struct { // one or the other
				ID    string
				Value any
			}
		}
		Assertions []struct{ Source string }
	}
}

// identity returns a key that is stable across queries.
func (c *contradiction) identity() string {
	key := c.Reason
	for _, one := range c.Statements {
		key += " " + one.Statement.StatementID
	}
	return key
}

// String is the contradiction for people.
func (c *contradiction) String() string {
	text := c.Reason
	for _, one := range c.Statements {
		s, by := one.Statement, ""
		object := s.Object.Value
		if s.Object.ID != "" {
			object = s.Object.ID
		}
		for _, a := range one.Assertions {
			by += " " + a.Source
		}
		text += fmt.Sprintf("\n  %s  %s  %v, says%s", s.Subject.ID, s.Predicate.ID, object, by)
	}
	return text
}

// run prints contradictions until it has printed count of them (0: no limit).
func run(ctx context.Context, address string, options client.Options, count int, out io.Writer) error {
	if options.Key == "" {
		options.Agent = "watcher"
	}
	options.Requires = []client.Capability{client.KnowledgeGraph}
	c, err := client.Open(ctx, address, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "watching %s\n", c.Address())
	told := map[string]bool{}
	var looked uint64
	// Begin with a snapshot, to print existing contradictions too.
	for change, err := range c.Subscribe(ctx, client.Subscription{Query: `subscription { statementChanged { __typename } }`, From: client.Snapshot}) {
		if err != nil {
			return err
		}
		// Query once at the end of a snapshot, and once per commit.
		m := change.Metadata
		if change.Op == client.OpResync || m.Snapshot && !m.SnapshotEnd || !m.Snapshot && m.Revision <= looked {
			continue
		}
		var found contradictions
		read, err := c.Query(ctx, client.Query{Text: contradictionsQuery, MinRevision: m.Revision}, &found)
		if err != nil {
			return err
		}
		looked = read.Revision
		for _, one := range found.Contradictions.Nodes {
			if told[one.identity()] {
				continue
			}
			told[one.identity()] = true
			fmt.Fprintln(out, one.String())
			if len(told) == count {
				return nil
			}
		}
	}
	return nil
}
