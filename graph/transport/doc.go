// Package transport serves an engine's GraphQL operations over HTTP (POST and
// GET), graphql-sse (distinct connections and single connection mode) and
// graphql-transport-ws, all on one path. It knows the engine through an
// interface, and of an operation only its type.
//
// # One operation, many protocols
//
// Every protocol decodes a request to an operation.Request. A query or a
// mutation is executed and gives one result. A streamed operation is started
// first, so that a refusal can take the form that the protocol prescribes. It
// then yields a sequence of steps: results, and possibly the reason of its
// failure. Each protocol writes steps in its own frames.
//
// # Promises
//
//   - Every result has the revision and the position after it.
//   - Nothing is buffered for a slow client: the log is the buffer. A
//     stalled client gets an error, if it still accepts one, and is
//     disconnected.
//   - Everything that stays open (event streams, reservations, sockets) is
//     counted and ended by one sse.Server.
//   - A handler returns only after everything that it started has ended.
//   - A panic of the engine is an internal error of that operation.
package transport
