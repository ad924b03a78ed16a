// Package ws serves WebSockets. It has what protocols over them share: a connection takes a
// place among the streams, its client introduces itself within a time, messages arrive and
// are read within deadlines, heartbeats find a client that is gone, and the end of a
// connection is told with its reason. What a message means is the protocol's own.
//
// A protocol has one Server. It calls Server.Accept for a request, and then Conn.Serve, which
// returns when the connection has ended.
package ws
