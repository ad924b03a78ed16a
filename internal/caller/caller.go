// Package caller carries the identity of the caller from the authentication middleware
// to the protocol adapters. Only adapters read it from the context; the packages below
// them receive the caller as an argument.
package caller

import (
	"context"
	"net/netip"

	"koine/kg"
)

// MethodNone is the method of an unauthenticated principal.
const MethodNone = "none"

// Caller identifies the sender of a request.
type Caller struct {
	// Principal is the authenticated caller.
	Principal kg.Principal
	// Actor is the agent that the principal acts for in this request; "" means the
	// principal itself.
	Actor kg.AgentID
	// Address is the client's address as seen by the server or reported by a trusted
	// proxy; the zero Addr if unknown.
	Address netip.Addr
	// Path is the path of the request's route; "" if there is none.
	Path string
	// RequestID identifies the request in the log and in the X-Request-ID header of the
	// response.
	RequestID string
}

// Acting returns the agent that is the source of assertions without an explicit source.
func (c Caller) Acting() kg.AgentID {
	if c.Actor != "" {
		return c.Actor
	}
	return c.Principal.ID
}

type key struct{}

// With returns a context that carries the caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// From returns the caller that ctx carries. Without one, it returns an anonymous caller
// without roles, so that missing middleware grants no rights.
func From(ctx context.Context) Caller {
	if c, ok := ctx.Value(key{}).(Caller); ok {
		return c
	}
	return Caller{Principal: kg.Principal{ID: kg.Anonymous, Method: kg.MethodOpen}}
}

// Agent returns the acting agent in canonical form.
//
// Errors: CodeSourceForbidden if the principal may not act for it.
func (c Caller) Agent() (kg.AgentID, error) {
	agent := kg.CanonicalAgent(string(c.Acting()))
	if agent == "" {
		agent = kg.Anonymous
	}
	if err := agent.Valid(); err != nil {
		return "", err
	}
	if !c.Principal.MayActFor(agent) {
		return "", kg.Errorf(kg.CodeSourceForbidden, "caller cannot act for %s", agent)
	}
	return agent, nil
}

// Reader returns the principal for reading the agent's own data. A principal that acts
// for another agent has no more rights there than that agent.
func (c Caller) Reader(agent kg.AgentID) kg.Principal {
	if agent == c.Principal.ID {
		return c.Principal
	}
	return kg.Principal{ID: agent, Method: actingMethod}
}

// actingMethod is the method of a principal for which another one acts.
const actingMethod = "acting"

// OriginOf returns the prefix that counts as one address: an IPv4 address, or the /64 of
// an IPv6 address, the usual allocation of one customer. It is the zero Prefix for an
// invalid address.
func OriginOf(addr netip.Addr) netip.Prefix {
	bits := 32
	if addr = addr.Unmap(); addr.Is6() {
		bits = 64
	}
	p, _ := addr.WithZone("").Prefix(bits)
	return p
}
