// Package client is the Go client of koine, and of any agent that implements the same
// extensions of A2A. It queries, updates and subscribes to the knowledge graph, takes part
// in channels, and sends and receives tasks.
//
//	c, err := client.Open(ctx, "http://127.0.0.1:8080", client.Options{Agent: "dora"})
//
// [Open] reads the agent card. A method that needs a capability that the card does not
// announce fails with [CapabilityMissing] and sends nothing. [Environment] reads the
// address and the options from the same variables as the command line. A [Client] is safe
// for concurrent use and need not be closed.
//
// The module is not published on a proxy. Another module uses it from a directory:
//
//	go mod edit -require koine@v0.0.0 -replace koine=../koine -replace github.com/dgraph-io/badger/v4=../koine/internal/third_party/badger -replace github.com/r3labs/sse/v2=../koine/internal/third_party/r3labs-sse
//	go mod tidy
//
// # The graph
//
// [Client.Query] runs a GraphQL query and decodes the data like json.Unmarshal.
// [Client.Update] applies patches, made by [Add], [Remove] and [Replace], all of them or
// none. [Client.Subscribe] delivers the changes of the graph.
//
// # Agents
//
// Agents exchange messages in channels: [Client.CreateChannel], [Client.Publish],
// [Client.Stream], [Client.History]. [Client.Ask] publishes a request and waits for the
// response, which the other agent publishes with [Client.Respond].
//
// Tasks use the official A2A client, which [Client.A2A] returns. An agent without an
// address of its own registers with [Client.RegisterAgent], reads its tasks from its
// [Client.Mailbox] and reports their progress with [Client.Report]. Its callers open it
// with [OpenAgent].
//
// # Errors
//
// An error response of a server is an [*Error]; errors.Is(err, GraphNotFound) matches its
// [Reason]. Any other error comes from the connection or the context.
//
// # Lost connections
//
// Subscribe, Stream and Mailbox reconnect by themselves and resume. Subscribe and Stream
// have no gaps and no duplicates. A mailbox repeats a letter only until its task is
// reported on.
//
// A call is retried with exponential backoff if repeating it has no further effect: if it
// is read-only, if it has an idempotency key (updates and messages get one), or if the
// server deduplicates it (tasks). All other calls are sent once, and their outcome is
// unknown after a lost connection. An error response is retried only if the server was
// busy. [Retry] has the bounds.
package client
