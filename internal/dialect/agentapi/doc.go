// Package agentapi implements the REST and WebSocket protocol of agents and tasks
// (a2a-rest): clients list agents, a message to one of them creates a task, and clients
// read the task, follow it over Server-Sent Events, or receive it over a WebSocket.
//
// The tasks are those of package tasks, shared with A2A. state.go maps the protocol's
// four states to the eight of A2A and back; parts and artifacts are returned as they
// were sent. docs/reference/rest.md documents the choices that the specification leaves open.
package agentapi
