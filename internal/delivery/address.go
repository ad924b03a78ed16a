package delivery

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// ErrPrivateAddress reports a hook at an address that is not public.
var ErrPrivateAddress = errors.New("address is not public")

// reserved lists non-public networks that net/netip does not know, and networks that
// reach others by translation.
var reserved = parsePrefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10")

func parsePrefixes(list ...string) (out []netip.Prefix) {
	for _, text := range list {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// isPublic reports whether the address is public.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(ip.WithZone("")) })
}

// newClient returns a client for hooks. It checks whether an address is public when it
// dials, after name resolution, so that the name cannot change to another address. It
// follows no redirects, which could send a secret for one host to another. It uses no
// proxy, because the proxy would dial instead. With streams, timeout bounds connecting only.
func newClient(timeout time.Duration, allowPrivate, streams bool) *http.Client {
	dialer := &net.Dialer{Timeout: timeout}
	if !allowPrivate {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !isPublic(at.Addr()) {
				return ErrPrivateAddress
			}
			return nil
		}
	}
	whole := timeout
	if streams {
		whole = 0
	}
	return &http.Client{
		Timeout:       whole,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout,
			MaxIdleConns: 64, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
	}
}
