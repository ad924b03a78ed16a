package graph

import (
	"cmp"
	"context"

	"koine/internal/presence"
	"koine/kg"
)

// Heartbeat answers Mutation.heartbeat for the agent that the request acts
// for.
func (*mutationRoot) Heartbeat(ctx context.Context, input HeartbeatInput) (*PresencePayload, error) {
	r := runOf(ctx)
	if r.engine.deps.Presence == nil {
		return nil, kg.Errorf(kg.CodeNotFound, "presence is disabled on this server")
	}
	if err := r.request.Principal.CheckWrite(); err != nil {
		return nil, err
	}
	agent := cmp.Or(r.request.Actor, r.request.Principal.ID)
	if !r.request.Principal.MayActFor(agent) {
		return nil, kg.Errorf(kg.CodeSourceForbidden, "you may not act for %s", agent)
	}
	now, err := r.engine.deps.Presence.Heartbeat(ctx, agent, presence.Status(deref(input.Status)))
	if err != nil {
		return nil, err
	}
	return &PresencePayload{Presence: shownPresence(now)}, nil
}

func shownPresence(p presence.Presence) *Presence {
	out := &Presence{Status: PresenceStatus(p.Status)}
	if !p.Since.IsZero() {
		out.Since = &p.Since
	}
	return out
}
