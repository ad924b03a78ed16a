// Package httpd is the HTTP server around the adapters: it listens, finds out
// who is calling, keeps foreign web pages out, bounds what clients can hold,
// logs, counts, and ends in order. Adapters are handed in as http.Handlers and
// find their caller with caller.From.
//
//	s := httpd.New(httpd.Options{...})
//	s.HandleRPC(rpc)                       // POST / and /a2a
//	s.Handle("/graphql", httpd.GraphQL, g) // a net/http pattern
//	listener, err := httpd.Listen(addr, insecure)
//	err = s.Serve(ctx, listener)           // until ctx ends, then in order
//
// Promises:
//   - In open mode no web page of another site reaches anything (docs/reference/http.md).
//   - A client that stops reading or writing is let go after a bounded time;
//     one that makes progress is not, however much there is to move.
//   - A panic of a handler is that request's error.
//   - Shutdown: not ready any more, then streams end with their reason, then
//     requests that are under way finish.
package httpd
