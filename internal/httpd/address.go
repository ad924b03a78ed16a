package httpd

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// MaxForwarded bounds how many entries of X-Forwarded-For are looked at: there
// are not more proxies in a row.
const MaxForwarded = 16

// addressOf is where a request comes from: the other end of the connection, or,
// if that is a proxy that is trusted, who it says it speaks for. What somebody
// else wrote into X-Forwarded-For before it reached a trusted proxy is not
// believed.
func (s *Server) addressOf(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap().WithZone("")
	if len(s.options.TrustedProxies) == 0 || !s.trusts(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	slices.Reverse(hops)
	for _, hop := range hops[:min(len(hops), MaxForwarded)] {
		next, ok := hopAddr(hop)
		if !ok {
			break // of what stands before it nobody trusted has seen anything
		}
		if addr = next; !s.trusts(addr) {
			break
		}
	}
	return addr
}

// hopAddr reads an entry, which may have a port.
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

func (s *Server) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(s.options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
