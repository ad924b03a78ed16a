// Package a2a implements A2A: JSON-RPC 2.0 over HTTP, Server-Sent Events for streams,
// the agent card, the knowledge graph extension (knowledge/query, knowledge/update,
// knowledge/subscribe) with its plain feed GET /changes, and the channels extension
// (channels/*).
//
// A [Handler] decodes the envelope, looks the method up in its table, and calls it; a
// method maps params to one domain call and the result back. One table for each
// extension maps domain errors to the wire (errortable.go).
//
// Promises:
//   - An id is returned byte for byte.
//   - A refused request was not executed, not even in part.
//   - A stream is valid, authorised and registered before its first byte, so
//     that a refusal is an ordinary answer.
//   - An unexpected error is "internal error" to the caller, and logged once.
//
// docs/reference documents all of this for authors of clients.
package a2a
