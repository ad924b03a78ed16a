package httpd

import (
	"fmt"
	"net"
)

// Listen opens the address. Without credentials every client may do anything, so it
// must be a loopback address unless insecure is set.
func Listen(addr string, insecure bool) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	if !insecure && !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address: without credentials every client that reaches it may do anything; "+
			"listen on 127.0.0.1, authenticate callers with --auth keys, or set --insecure on a trusted network", addr)
	}
	return net.ListenTCP("tcp", tcp)
}
