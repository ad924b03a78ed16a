package main

import (
	"context"
	"net/netip"

	"koine/cmd/koine/internal/cli"
	"koine/internal/audit"
	"koine/internal/httpd"
	"koine/internal/throttle"
)

// throttleFlags bound the rates of a principal and of an address. The defaults are off in
// open mode.
type throttleFlags struct {
	PrincipalRequests   *float64       `help:"Requests per second of one principal, in bursts of up to ten times as many; 0 for no limit (default: 200, in open mode 0)." placeholder:"N"`
	PrincipalUpdates    *float64       `help:"Updates per second of one principal (default: 50, in open mode 0)." placeholder:"N"`
	PrincipalHistories  *float64       `help:"Reads of channel histories per second of one principal (default: 50, in open mode 0)." placeholder:"N"`
	PrincipalStreams    *int           `help:"Open streams, WebSockets and subscriptions of one principal (default: 200, in open mode 0)." placeholder:"N"`
	PrincipalStatements *int64         `help:"Statements that one agent may assert at a time, in all graphs together (default: 1000000, in open mode 0)." placeholder:"N"`
	PrincipalGraphs     *int64         `help:"Graphs that one agent may create, including deleted ones (default: 10000, in open mode 0)." placeholder:"N"`
	AddressRequests     *float64       `help:"Requests per second from one address, or one /64 of IPv6. Loopback addresses have no limit (default: 500, in open mode 0)." placeholder:"N"`
	AddressUpdates      *float64       `help:"Updates per second from one address (default: 100, in open mode 0)." placeholder:"N"`
	AddressStreams      *int           `help:"Open streams, WebSockets and subscriptions from one address (default: 500, in open mode 0)." placeholder:"N"`
	TrustedProxy        []netip.Prefix `group:"network" help:"Proxy addresses whose X-Forwarded-For is trusted; may be repeated." placeholder:"CIDR"`
}

// The default limits of a server with authentication.
var (
	principalLimits = throttle.Limits{Requests: 200, Updates: 50, Streams: 200, Histories: 50}
	addressLimits   = throttle.Limits{Requests: 500, Updates: 100, Streams: 500}
)

// maxRate bounds the rates; a higher one would limit nothing.
const maxRate = 1e6

// principalStatements and principalGraphs are the default quotas of an agent with
// authentication: the statements that it may back and the graphs that it may create.
// maxShare bounds both flags.
const (
	principalStatements = 1_000_000
	principalGraphs     = 10_000
	maxShare            = 1_000_000_000
)

// principalQuotas returns the number of statements that one agent may back and of graphs
// that it may create; 0 means no limit.
func (f throttleFlags) principalQuotas(open bool) (statements, graphs uint64, err error) {
	if !open {
		statements, graphs = principalStatements, principalGraphs
	}
	for _, flag := range []struct {
		name  string
		value *int64
		to    *uint64
	}{{"principal-statements", f.PrincipalStatements, &statements}, {"principal-graphs", f.PrincipalGraphs, &graphs}} {
		if flag.value == nil {
			continue
		}
		if *flag.value < 0 || *flag.value > maxShare {
			return 0, 0, cli.Usagef("--%s must be between 0 and %d", flag.name, int64(maxShare))
		}
		*flag.to = uint64(*flag.value)
	}
	return statements, graphs, nil
}

// newThrottle creates the rate limiter; in open mode only limits set by flags apply.
// Refusals are counted and recorded in the audit trail.
func (f throttleFlags) newThrottle(open bool, streams int, counters *httpd.Counters, trail *audit.Trail) (*throttle.Throttle, error) {
	o := throttle.Options{Principal: principalLimits, Address: addressLimits}
	if open {
		o = throttle.Options{}
	}
	o.MaxStreams = streams
	for _, flag := range []struct {
		name  string
		value *float64
		to    *float64
	}{
		{"principal-requests", f.PrincipalRequests, &o.Principal.Requests},
		{"principal-updates", f.PrincipalUpdates, &o.Principal.Updates},
		{"principal-histories", f.PrincipalHistories, &o.Principal.Histories},
		{"address-requests", f.AddressRequests, &o.Address.Requests},
		{"address-updates", f.AddressUpdates, &o.Address.Updates},
	} {
		if flag.value == nil {
			continue
		}
		if !(*flag.value >= 0 && *flag.value <= maxRate) {
			return nil, cli.Usagef("--%s must be between 0 and %d per second", flag.name, int(maxRate))
		}
		*flag.to = *flag.value
	}
	for _, flag := range []struct {
		name  string
		value *int
		to    *int
	}{
		{"principal-streams", f.PrincipalStreams, &o.Principal.Streams},
		{"address-streams", f.AddressStreams, &o.Address.Streams},
	} {
		if flag.value == nil {
			continue
		}
		if *flag.value < 0 || *flag.value > maxRate {
			return nil, cli.Usagef("--%s must be between 0 and %d", flag.name, int(maxRate))
		}
		*flag.to = *flag.value
	}
	o.OnRefusal = func(r throttle.Refusal) {
		counters.RateLimited(r.What, r.By)
		trail.Record(context.Background(), audit.Refusal{
			Kind: audit.RateLimit, Principal: r.Principal, Address: r.Address, Reason: r.What + " of this " + r.By,
		})
	}
	return throttle.New(o), nil
}
