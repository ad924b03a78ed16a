package sse

import (
	"context"
	"net"
	"net/http"
)

type connKey struct{}

// ConnContext belongs into http.Server.ConnContext. It lets a stream bound the
// kernel's send buffer of its own connection and leave all others as they are.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// BoundSendBuffer sets the send buffer of the connection that r came over, so
// that a client that does not read is noticed before megabytes wait for it. On
// HTTP/2 it does nothing: many requests share the connection there, and each
// stream is bounded by the window that its client grants.
func BoundSendBuffer(r *http.Request, size int) {
	if r.ProtoMajor != 1 {
		return
	}
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if wrapper, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = wrapper.NetConn()
	}
	if tcp, ok := conn.(interface{ SetWriteBuffer(int) error }); ok {
		// A refusal leaves the kernel's default: the stream works, it only
		// takes longer to notice that its client has stalled.
		_ = tcp.SetWriteBuffer(size)
	}
}
