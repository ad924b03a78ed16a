// Package caller carries who is calling from the middleware that finds it out
// to the adapters that pass it on. Only adapters look: what they call gets the
// caller as an argument.
package caller

import (
	"context"
	"net/netip"

	"koine/kg"
)

// MethodNone is the method of a principal whom nobody authenticated.
const MethodNone = "none"

// Caller is who sent a request.
type Caller struct {
	// Principal is the authenticated caller.
	Principal kg.Principal
	// Actor is the agent it acts for in all of this request; "" means the
	// principal itself.
	Actor kg.AgentID
	// Address is where the request comes from, as the server sees it or as a
	// proxy that it trusts says; the zero Addr if that is not known.
	Address netip.Addr
	// Path of the route that the request is for; "" if it is for none.
	Path string
	// RequestID names the request in the log and in the answer's X-Request-ID.
	RequestID string
}

// Acting is the agent whose assertions the caller makes when a request names
// none.
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

// From gives the caller that the context carries. Without one it is the
// anonymous one, who has no roles: a forgotten middleware gives no rights.
func From(ctx context.Context) Caller {
	if c, ok := ctx.Value(key{}).(Caller); ok {
		return c
	}
	return Caller{Principal: kg.Principal{ID: kg.Anonymous, Method: kg.MethodOpen}}
}

// Agent is the agent that asks, in its canonical form.
//
// Errors: CodeSourceForbidden where the principal may not act for it.
func (c Caller) Agent() (kg.AgentID, error) {
	agent := kg.CanonicalAgent(string(c.Acting()))
	if agent == "" {
		agent = kg.Anonymous
	}
	if err := agent.Valid(); err != nil {
		return "", err
	}
	if !c.Principal.MayActFor(agent) {
		return "", kg.Errorf(kg.CodeSourceForbidden, "you may not act for %s", agent)
	}
	return agent, nil
}

// Reader is the principal under whose eyes the agent reads what is its own. Who acts
// for another has no more rights there than that agent.
func (c Caller) Reader(agent kg.AgentID) kg.Principal {
	if agent == c.Principal.ID {
		return c.Principal
	}
	return kg.Principal{ID: agent, Method: actingMethod}
}

// actingMethod is the method of a principal that another one acts for.
const actingMethod = "acting"
