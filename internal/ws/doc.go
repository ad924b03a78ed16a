// Package ws serves WebSockets. It has the common parts of the protocols over them: a connection takes a
// place among the streams, its client introduces itself within a time, messages arrive and
// are read within deadlines, heartbeats find a client that is gone, and the end of a
// connection is told with its reason. The meaning of messages is up to the protocol.
//
// A protocol has one Server. It calls Server.Accept for a request, and then Conn.Serve, which
// returns when the connection has ended.
package ws
