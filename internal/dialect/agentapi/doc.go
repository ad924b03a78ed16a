// Package agentapi is the REST and WebSocket protocol of agents and tasks (a2a-rest):
// agents are listed, a message to one of them becomes a task, and what becomes of it
// is read, followed over Server-Sent Events, or told over a WebSocket.
//
// Its tasks are those of A2A: what is sent here is read there, and the other way
// round. Its four states are mapped to A2A's eight and back in state.go; parts and
// artifacts come back as they were sent. What the text leaves open is said in
// docs/reference/rest.md.
package agentapi
