// Package agents keeps the records of who has been here: an agent's id, the name
// that people know it by, its owner, the roles that its credentials brought, and
// whether it is suspended.
//
// A record is made when the agent gets an API key, and when the bearer of a token
// is seen for the first time. What an agent may do is decided by its credential
// and the graphs' policies, not by its record, with one exception: an agent that
// is suspended is refused whatever it brings.
//
// An agent that is registered can be asked: what it says of itself is part of its
// record, and it is found in the Directory. When it deregisters, the rest of the
// record stays.
//
// Storage: the graph Graph, which everybody who is let in may read; the subject is
// the agent's id, the properties are those in record.go.
package agents
