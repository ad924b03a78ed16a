// Package a2a speaks A2A: JSON-RPC 2.0 over HTTP, Server-Sent Events for what
// streams, the agent card, the knowledge graph extension (knowledge/query,
// knowledge/update, knowledge/subscribe) together with its plain feed
// GET /changes, and the channels extension (channels/*).
//
// A [Handler] decodes the envelope, finds the method's row in its table, and
// calls it; a method maps params to one domain call and its answer back. What a
// domain error becomes on the wire stands in one table for each extension
// (errortable.go).
//
// Promises:
//   - An id comes back byte for byte.
//   - A request that is refused was not carried out, not even in part.
//   - A stream is valid, authorised and registered before its first byte, so
//     that a refusal is an ordinary answer.
//   - What is unexpected is "internal error" to the caller, and logged once.
//
// docs/reference says all of this for those who write clients.
package a2a
