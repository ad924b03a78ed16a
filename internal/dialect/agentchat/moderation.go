package agentchat

import (
	"context"
	"net/http"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// restriction changes whether an agent may find a room or speak in it.
type restriction func(ctx context.Context, m *channels.Members, by channels.Caller, in channel.ID, agent kg.AgentID, until time.Time) error

func ban(ctx context.Context, m *channels.Members, by channels.Caller, in channel.ID, agent kg.AgentID, until time.Time) error {
	return m.Ban(ctx, by, in, agent, until)
}

func mute(ctx context.Context, m *channels.Members, by channels.Caller, in channel.ID, agent kg.AgentID, until time.Time) error {
	return m.Mute(ctx, by, in, agent, until)
}

func unban(ctx context.Context, m *channels.Members, by channels.Caller, in channel.ID, agent kg.AgentID, _ time.Time) error {
	return m.Unban(ctx, by, in, agent)
}

func unmute(ctx context.Context, m *channels.Members, by channels.Caller, in channel.ID, agent kg.AgentID, _ time.Time) error {
	return m.Unmute(ctx, by, in, agent)
}

type restrictionBody struct {
	AgentID string     `json:"agent_id"` // in a room; otherwise it is in the path
	Until   *time.Time `json:"until"`
	Reason  string     `json:"reason"`
}

// restrictInRoom returns the call of an admin of a room.
func (h *Handler) restrictInRoom(change restriction) call {
	return func(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
		var body restrictionBody
		if err := h.readBody(w, r, &body); err != nil {
			return 0, nil, err
		}
		return h.restrict(r.Context(), who, change, pathRoom(r), body.AgentID, &body)
	}
}

// restrictEverywhere returns the call of an administrator of the server.
func (h *Handler) restrictEverywhere(change restriction) call {
	return func(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
		var body restrictionBody
		if err := h.readBody(w, r, &body); err != nil {
			return 0, nil, err
		}
		return h.restrict(r.Context(), who, change, channel.AllChannels, r.PathValue("id"), &body)
	}
}

func (h *Handler) restrict(ctx context.Context, who *requester, change restriction, in channel.ID, agent string, body *restrictionBody) (int, any, error) {
	id, err := parseAgent("agent_id", agent)
	if err != nil {
		return 0, nil, err
	}
	var until time.Time
	if body.Until != nil {
		until = body.Until.UTC()
	}
	by := who.onChannels()
	by.Justification = body.Reason
	return http.StatusNoContent, nil, change(ctx, h.deps.Channels.Members(), by, in, id, until)
}
