// Package openintent implements OpenIntent: RFC-0021 (channels and messages of agents that
// work on the same intent) and those parts of the protocol that its published Python SDK
// 0.17.0 needs, under /api/v1.
//
// It decodes a request, makes one call of the domain and encodes the answer. Channels and
// messages are those of package channels, shared with all other protocols. Begin with
// NewHandler: its table names every path. docs/openintent.md documents the choices that
// the protocol leaves open.
//
// Promises:
//   - Objects that a caller may not see are answered with the bytes of absent ones.
//   - A member of a body that names an agent is that of a caller that may act for it.
//   - No body with status 409 contains the word "lease" unless a lease is held: the SDK
//     takes any such body for a conflict of leases.
//   - A stream resumes by Last-Event-ID without a gap or a duplicate, and the server does
//     not end it while it lives, because the SDK connects again at once.
package openintent
