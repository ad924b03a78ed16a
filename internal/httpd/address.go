package httpd

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// MaxForwarded bounds the entries of X-Forwarded-For that are read, far above the
// length of a chain of proxies.
const MaxForwarded = 16

// addressOf returns the address of the client: the peer of the connection or, if that
// is a trusted proxy, the address that the proxy reports. Entries of X-Forwarded-For
// from before the first trusted proxy are ignored.
func (s *Server) addressOf(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap().WithZone("")
	if len(s.options.TrustedProxies) == 0 || !s.trustsProxy(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	slices.Reverse(hops)
	for _, hop := range hops[:min(len(hops), MaxForwarded)] {
		next, ok := hopAddr(hop)
		if !ok {
			break // no trusted proxy vouches for earlier entries
		}
		if addr = next; !s.trustsProxy(addr) {
			break
		}
	}
	return addr
}

// hopAddr parses an entry, which may have a port.
func hopAddr(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		var with netip.AddrPort
		if with, err = netip.ParseAddrPort(text); err != nil {
			return netip.Addr{}, false
		}
		addr = with.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

func (s *Server) trustsProxy(addr netip.Addr) bool {
	return slices.ContainsFunc(s.options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
