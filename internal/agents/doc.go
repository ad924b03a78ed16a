// Package agents keeps the records of agents: id, display name, owner, the roles that
// its credentials have brought, and whether it is suspended.
//
// A record is created when the agent gets an API key, and when the bearer of a token is
// seen for the first time. The rights of an agent follow from its credential and the
// policies of graphs, not from its record, with one exception: a suspended agent is
// refused regardless of its credential.
//
// A registered agent can be asked: its self-description is part of its record, and the
// Directory finds it. After deregistration the rest of the record stays.
//
// Storage: the graph Graph, which every authenticated caller can read. The subject is
// the agent's id, the properties are those in record.go.
package agents
