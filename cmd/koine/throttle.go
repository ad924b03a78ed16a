package main

import (
	"cmp"
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
	var stored, created int64
	if !open {
		stored, created = principalStatements, principalGraphs
	}
	err = cmp.Or(
		setLimit("principal-statements", f.PrincipalStatements, maxShare, &stored),
		setLimit("principal-graphs", f.PrincipalGraphs, maxShare, &created),
	)
	if err != nil {
		return 0, 0, err
	}
	return uint64(stored), uint64(created), nil
}

// setLimit sets a limit to the value of a flag that was given, from 0 to most.
func setLimit[N int | int64 | float64](flag string, value *N, most N, limit *N) error {
	if value == nil {
		return nil
	}
	*limit = *value
	return cli.CheckRange(flag, *value, 0, most)
}

// newThrottle creates the rate limiter; in open mode only limits set by flags apply.
// Refusals are counted and recorded in the audit trail.
func (f throttleFlags) newThrottle(open bool, streams int, counters *httpd.Counters, trail *audit.Trail) (*throttle.Throttle, error) {
	o := throttle.Options{Principal: principalLimits, Address: addressLimits}
	if open {
		o = throttle.Options{}
	}
	o.MaxStreams = streams
	err := cmp.Or(
		setLimit("principal-requests", f.PrincipalRequests, maxRate, &o.Principal.Requests),
		setLimit("principal-updates", f.PrincipalUpdates, maxRate, &o.Principal.Updates),
		setLimit("principal-histories", f.PrincipalHistories, maxRate, &o.Principal.Histories),
		setLimit("address-requests", f.AddressRequests, maxRate, &o.Address.Requests),
		setLimit("address-updates", f.AddressUpdates, maxRate, &o.Address.Updates),
		setLimit("principal-streams", f.PrincipalStreams, maxRate, &o.Principal.Streams),
		setLimit("address-streams", f.AddressStreams, maxRate, &o.Address.Streams),
	)
	if err != nil {
		return nil, err
	}
	o.OnRefusal = func(r throttle.Refusal) {
		counters.RateLimited(r.What, r.By)
		trail.Record(context.Background(), audit.Refusal{
			Kind: audit.RateLimit, Principal: r.Principal, Address: r.Address, Reason: r.What + " of this " + r.By,
		})
	}
	return throttle.New(o), nil
}
