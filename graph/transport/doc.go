// Package transport brings GraphQL operations to an engine and the answers
// back: GraphQL over HTTP (POST and GET), graphql-sse (distinct connections and
// single connection mode) and graphql-transport-ws, all on one path. It knows
// the engine through an interface only, and of the operations nothing but their
// kind.
//
// # One operation, many ways out
//
// A request is decoded to an operation.Request, whatever brought it. A query or
// a mutation is executed and gives one result. What is streamed is begun first,
// so that a refusal can still be told as the protocol wants it, and is then a
// sequence of steps: results, and at the end maybe why it failed. Each protocol
// writes steps in its own frames.
//
// # Promises
//
//   - Every result tells the revision and the position behind it.
//   - Nothing is buffered for a client that does not read: the log is the buffer.
//     One that stalls is told so, if it still takes that, and let go.
//   - What stays open (event streams, reservations, sockets) is counted and ended
//     by one sse.Server.
//   - When a handler returns, what ran for it has ended.
//   - A panic of the engine is that operation's internal error.
package transport
