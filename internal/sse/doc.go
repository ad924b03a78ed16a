// Package sse is the single implementation of Server-Sent Events in koine, as a server
// and as a client, over github.com/r3labs/sse. It moves events (an id, a name, bytes)
// without interpreting them.
//
// The server side has two types. A [Server] counts the open streams, sends heartbeats
// to the idle ones and ends them all at shutdown. A [Stream] is one response: Open
// reserves its place before the first byte, so that a refusal can still be an ordinary
// HTTP answer, and Serve pulls events from an iterator until the iterator ends, the
// client leaves or falls behind, or the server shuts down.
//
//	stream, err := server.Open(r.Context(), sse.StreamOptions{...})
//	if err != nil { ... }            // *Refused: answer 503 with Retry-After
//	defer stream.Close()
//	events, err := watch(stream.Context(), ...)
//	if err != nil { ... }            // an ordinary HTTP error is still possible
//	err = stream.Serve(w, r, events) // 200 text/event-stream
//
// Promises of the server side:
//   - Nothing is buffered beyond [MaxInFlightBytes] (or one larger event): the
//     iterator is pulled when there is room. There is no replay; the producer's
//     log is the replay.
//   - A stream that cannot write a block within the write timeout never delays
//     another. It gets a last event with the reason, if it still reads, and is closed.
//   - The last event is written after everything before it, or not at all.
//   - When Serve returns, the producer has stopped, its context is done, and the
//     hub's loop for the stream has been told to end.
//
// Differences from r3labs/sse alone, and how this package achieves them:
//   - It fans a stream out to many subscribers, and one that stalls stalls all:
//     here each request has a private stream.
//   - A subscriber leaves through the stream's own loop, so a stream that ends
//     first strands it: here the stream is removed after its subscriber.
//   - It ignores write errors, has no deadlines, begins each block with an id
//     line (an empty one resets a client) and can write a block without data only
//     as a comment: the response writer in writer.go handles all of these.
//   - Its client sends GET only, takes a truncated block of a broken connection
//     for an event, and retries without checking the context or the status:
//     [Subscribe] feeds it whole blocks from a request of our own, one connection
//     at a time.
package sse
