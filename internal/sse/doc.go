// Package sse is the one place where koine speaks Server-Sent Events, as a
// server and as a client, over github.com/r3labs/sse. It moves events (an id, a
// name, bytes) and knows nothing of what they mean.
//
// The server side has two types. A [Server] counts the open streams, beats for
// the idle ones and ends them all at shutdown. A [Stream] is one response: Open
// reserves its place before the first byte, so that a refusal can still be an
// ordinary HTTP answer, and Serve pulls events from an iterator until the
// iterator ends, the client leaves, falls behind, or the server shuts down.
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
//   - A stream that cannot take a block within the write timeout never delays
//     another. It is told so, if it takes that last event, and closed.
//   - The last event is written after everything before it, or not at all.
//   - When Serve returns, the producer is no longer running, its context is done,
//     and the hub's loop for the stream has been told to end.
//
// What r3labs/sse would do otherwise, and what keeps it from doing so here:
//   - It fans a stream out to many subscribers, and one that stalls stalls all:
//     here each request has a private stream.
//   - A subscriber leaves through the stream's own loop, so a stream that goes
//     first strands it: here the stream is removed after its subscriber.
//   - It ignores write errors, has no deadlines, begins each block with an id
//     line (an empty one resets a client) and can write no block without data
//     but a comment: the response writer in writer.go sees to all of these.
//   - Its client sends GET only, takes the part of a block that a broken
//     connection leaves behind for an event, and retries without looking at the
//     context or the status: [Subscribe] feeds it whole blocks from a request of
//     our own, one connection at a time.
package sse
