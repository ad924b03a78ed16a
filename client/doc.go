// Package client talks to a koine server, or to any agent that speaks the same
// extensions of A2A: it asks, changes and follows the knowledge graph, takes part in
// channels, and sends and takes tasks.
//
//	c, err := client.Open(ctx, "http://127.0.0.1:8080", client.Options{Agent: "dora"})
//
// [Open] reads the agent card; what the card does not announce is refused with
// [CapabilityMissing] before anything is sent. [Environment] has the address and the
// options from the variables that the command line reads, too. A [Client] may be used by
// many goroutines at once, and needs no end.
//
// The module is fetched from no proxy. A module of one's own takes it from a directory:
//
//	go mod edit -require koine@v0.0.0 -replace koine=../koine -replace github.com/dgraph-io/badger/v4=../koine/internal/third_party/badger
//	go mod tidy
//
// # The graph
//
// [Client.Query] asks in GraphQL and reads the data as JSON is read. [Client.Update]
// applies patches, which [Add], [Remove] and [Replace] make, all of them or none.
// [Client.Subscribe] follows what changes:
//
//	var answer struct{ Entity struct{ Label string } }
//	_, err = c.Query(ctx, client.Query{Text: `{ entity(iri: "finding:1") { label } }`}, &answer)
//
//	_, err = c.Update(ctx, client.Update{
//		Patches:       []client.Patch{client.Add("finding:1", "lab:status", client.Text("doubtful")).Certain(0.4)},
//		Justification: "Read it again",
//	})
//
//	for change, err := range c.Subscribe(ctx, client.Subscription{Query: `subscription { statementChanged { __typename } }`}) {
//		…
//	}
//
// # Agents
//
// Channels are where agents talk: [Client.CreateChannel], [Client.Publish],
// [Client.Stream], [Client.History]. [Client.Ask] puts a question and waits for the
// answer, which the other side gives with [Client.Respond].
//
// Tasks go through the official client of A2A, which [Client.A2A] opens. An agent
// without an address of its own registers with [Client.RegisterAgent], takes what it is
// asked out of its [Client.Mailbox] and says what came of it with [Client.Report];
// [OpenAgent] is for those who ask it.
//
// # Errors
//
// What a server refuses is an [*Error], whose [Reason] errors.Is finds:
//
//	if errors.Is(err, client.GraphNotFound) { … }
//
// Any other error is of the connection, or the context's.
//
// # Lost connections
//
// Subscribe, Stream and Mailbox connect again by themselves and go on where they were:
// Subscribe and Stream leave nothing out and tell nothing twice, and a mailbox tells a
// letter again only while nothing was reported of its task.
//
// A call is sent again, with longer and longer waits, where that does nothing twice: if
// it only reads, if it has an idempotency key (updates and messages get one), or if the
// server knows it again (tasks). All other calls are sent once, and after a lost
// connection it is not known whether they were received. What the server refuses is not
// sent again unless it said that it was busy. [Retry] has the bounds.
package client
