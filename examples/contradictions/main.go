// Contradictions shows an agent that follows the graph and tells, as soon as they are
// there, which statements cannot all hold.
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

// contradictionsQuery says what is shown of contradictions; the number bounds how many at a time.
const contradictionsQuery = `{ contradictions(first: 100) { nodes { reason statements {
	statement { statementId subject { id } predicate { id } object { id value } } assertions { source }
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

// identity is the same whenever the contradiction is found.
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

// run tells so many contradictions, or all that come if count is 0.
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
	// From a snapshot, so that what contradicts already is told too.
	for change, err := range c.Subscribe(ctx, client.Subscription{Query: `subscription { statementChanged { __typename } }`, From: client.Snapshot}) {
		if err != nil {
			return err
		}
		// A snapshot is looked at once, at its end; a commit of many statements once.
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
