package httpd

import (
	"fmt"
	"net"
)

// Listen opens the address. In open mode everybody who reaches the server may
// do anything, so it must be a loopback address unless insecure says otherwise.
func Listen(addr string, insecure bool) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	if !insecure && !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address: without credentials everybody who reaches it could do anything; "+
			"listen on 127.0.0.1, know callers by --auth keys, or say --insecure if a network that you trust is all that reaches it", addr)
	}
	return net.ListenTCP("tcp", tcp)
}
