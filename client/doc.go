// Package client talks to a koine server, or to any agent that speaks the same
// extensions of A2A: it asks, changes and follows the knowledge graph, takes part
// in channels, and sends tasks.
//
//	c, err := client.Open(ctx, "http://127.0.0.1:8080", client.Options{Agent: "dora"})
//	…
//	var answer struct{ Entity struct{ Label string } }
//	_, err = c.Query(ctx, client.Query{Text: `{ entity(iri: "finding:1") { label } }`}, &answer)
//	…
//	_, err = c.Update(ctx, client.Update{
//		Patches:       []client.Patch{client.Add("finding:1", "lab:status", client.Text("doubtful")).Certain(0.4)},
//		Justification: "Read it again",
//	})
//	…
//	for change, err := range c.Subscribe(ctx, client.Subscription{Query: `subscription { statementChanged { __typename } }`}) {
//		…
//	}
//
// What the server refuses is an *Error, whose reason errors.Is finds:
//
//	if errors.Is(err, client.GraphNotFound) { … }
//
// Streams (Subscribe, Stream) connect again by themselves and go on where they
// were, without a gap and without telling anything twice. Updates and messages
// carry an idempotency key, so that one that was sent twice is there once.
//
// A Client may be used by many goroutines at once.
package client
