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
// ServeDetached instead of Serve lets the handler return: over HTTP/1.1 the stream goes on
// by itself on its connection, and holds neither the handler's stack nor the buffers of net/http. A
// server offers it by a Detacher, as that of httpd does.
//
// Promises of the server side:
//   - Nothing is buffered but the event in hand, which is written on the goroutine
//     that pulled it, or that calls Send. There is no replay; the producer's log is
//     the replay.
//   - A stream that cannot write a block within the write timeout never delays
//     another. It gets a last event with the reason, if it still reads, and is closed.
//   - The last event is written after everything before it, or not at all.
//   - When Serve returns, the producer has stopped, its context is done, and
//     nothing writes to the response any more. The same is true when ServeDetached
//     calls ended, but for the end of the body.
//
// Differences from r3labs/sse alone, and how this package achieves them:
//   - It fans a stream out to many subscribers by a loop, queues and goroutines of
//     each stream: here each request has a stream of its own without any of these
//     (Direct, which koine's copy adds; see docs/decisions/sse.md).
//   - It has no deadlines: a timer watches each block (writer.go).
//   - Its client sends GET only, takes a truncated block of a broken connection
//     for an event, and retries without checking the context or the status:
//     [Subscribe] feeds it whole blocks from a request of our own, one connection
//     at a time.
package sse
