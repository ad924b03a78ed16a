// Contradictions shows an agent that follows the graph and tells, as soon as they are
// there, which statements cannot all hold.
//
//	koine serve --demo
//	go run ./examples/contradictions
//	koine update add lab:status rdf:type owl:FunctionalProperty
//	koine update add finding:1 lab:status settled --as ann
//	koine update add finding:1 lab:status doubtful --as bob
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"koine/client"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8080", "the server")
	count := flag.Int("count", 0, "end after so many contradictions; 0 goes on")
	flag.Parse()
	if err := run(context.Background(), *url, *count, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// asked says what is shown of contradictions; the number bounds how many at a time.
const asked = `{ contradictions(first: 100) { nodes { reason statements { statement { id } assertions { source } } } } }`

type contradictions struct {
	Contradictions struct {
		Nodes []struct {
			Reason     string
			Statements []struct {
				Statement  struct{ ID string }
				Assertions []struct{ Source string }
			}
		}
	}
}

func run(ctx context.Context, url string, count int, out io.Writer) error {
	c, err := client.Open(ctx, url, client.Options{Agent: "watcher", Requires: []client.Capability{client.KnowledgeGraph}})
	if err != nil {
		return err
	}
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
		read, err := c.Query(ctx, client.Query{Text: asked, MinRevision: m.Revision}, &found)
		if err != nil {
			return err
		}
		looked = read.Revision
		for _, one := range found.Contradictions.Nodes {
			key := one.Reason
			var sources []string
			for _, side := range one.Statements {
				key += " " + side.Statement.ID
				for _, a := range side.Assertions {
					sources = append(sources, a.Source)
				}
			}
			if told[key] {
				continue
			}
			told[key] = true
			fmt.Fprintf(out, "%s (say %v)\n", one.Reason, sources)
			if len(told) == count {
				return nil
			}
		}
	}
	return nil
}
