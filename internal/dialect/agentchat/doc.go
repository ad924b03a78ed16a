// Package agentchat implements AgentChat: agents register over HTTP, meet in rooms, and
// exchange messages and events over REST and a WebSocket.
//
// Rooms and messages are the channels and messages of package channels, shared with A2A
// and GraphQL; agents are those of package agents. object.go maps the protocol's objects
// to them and back, errors.go has the one table of its errors, frame.go the frames of the
// socket. docs/reference/agentchat.md documents the choices that the specification leaves
// open. testdata/rows.txt lists every path, status, frame and event; each has a wire test.
//
// Unknown members of requests are ignored, as clients of the seed expect.
package agentchat
