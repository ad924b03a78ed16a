// Package httpd is the HTTP server around the protocol adapters: it listens,
// authenticates callers, keeps foreign web pages out, limits clients, logs, counts, and
// shuts down in order. Adapters are http.Handlers and read their caller with
// caller.From.
//
//	s := httpd.New(httpd.Options{...})
//	s.HandleRPC(rpc)                       // POST / and /a2a
//	s.Handle("/graphql", httpd.GraphQL, g) // a net/http pattern
//	listener, err := httpd.Listen(addr, insecure)
//	err = s.Serve(ctx, listener)           // until ctx ends, then in order
//
// Promises:
//   - In open mode no web page of another site reaches anything (docs/reference/http.md).
//   - A client that stops reading or writing is disconnected after a bounded time;
//     one that makes progress is not, however much data there is.
//   - A panic in a handler is an error of that request only.
//   - Shutdown: first not ready, then streams end with their reason, then
//     requests in progress finish.
package httpd
