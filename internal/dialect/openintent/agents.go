package openintent

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/presence"
	"koine/kg"
)

// Agents registers agents and finds them (agents.Directory).
type Agents interface {
	Register(ctx context.Context, by caller.Caller, record agents.Record) (agents.Record, error)
	Get(ctx context.Context, id kg.AgentID) (*agents.Record, error)
	Find(ctx context.Context, q agents.Query) (page []agents.Record, last kg.AgentID, err error)
	Deregister(ctx context.Context, by caller.Caller, id kg.AgentID) error
}

// Presence tracks the presence of agents (presence.Tracker).
type Presence interface {
	HeartbeatFor(ctx context.Context, agent kg.AgentID, says presence.Status, validity time.Duration) (presence.Presence, error)
	Get(agent kg.AgentID) presence.Presence
}

// Heartbeats.
const (
	// HeartbeatValidity is how long a heartbeat holds, and HeartbeatInterval what clients are
	// told to keep.
	HeartbeatValidity = 90 * time.Second
	HeartbeatInterval = 30 * time.Second
	// DeadAfter is how long an agent is unhealthy before it is dead.
	DeadAfter = 210 * time.Second
)

// The states of an agent.
const (
	agentRegistering  = "registering"
	agentActive       = "active"
	agentDraining     = "draining"
	agentUnhealthy    = "unhealthy"
	agentDead         = "dead"
	agentDeregistered = "deregistered"
)

// The members of a registration that only this protocol has.
const (
	extraStatus    = "openintentStatus"
	extraCapacity  = "capacity"
	extraHeartbeat = "heartbeatConfig"
	extraDrain     = "drainTimeoutSeconds"
	// extraEndpoint marks an endpoint that was registered for messages of this protocol:
	// those of other protocols expect something else.
	extraEndpoint = "openintentEndpoint"
)

// EndpointOf returns the endpoint of an agent for messages of this protocol, or "".
func EndpointOf(r *agents.Record) string {
	if r.Registration == nil || r.Registration.Extra[extraEndpoint] == nil {
		return ""
	}
	return r.Registration.Endpoint
}

// wireAgent is a registered agent. All members are always present.
type wireAgent struct {
	ID           string          `json:"agent_id"`
	Status       string          `json:"status"`
	Role         *string         `json:"role_id"`
	Name         *string         `json:"name"`
	Capabilities []string        `json:"capabilities"`
	Capacity     json.RawMessage `json:"capacity"`
	Endpoint     *string         `json:"endpoint"`
	Heartbeat    json.RawMessage `json:"heartbeat_config"`
	Metadata     json.RawMessage `json:"metadata"`
	AgentData    json.RawMessage `json:"agent_metadata"`
	RegisteredAt *string         `json:"registered_at"`
	LastSeen     *string         `json:"last_heartbeat_at"`
	Drain        json.RawMessage `json:"drain_timeout_seconds"`
	Version      int             `json:"version"`
}

// agentOf converts the record of an agent.
func (h *Handler) agentOf(r *agents.Record) *wireAgent {
	out := &wireAgent{ID: bare(r.ID), Status: agentDeregistered, Name: orNull(r.Name), Capabilities: []string{}, Metadata: orEmptyObject(nil), AgentData: orEmptyObject(nil), Version: 1}
	g := r.Registration
	if g == nil {
		return out
	}
	out.Role, out.Capabilities, out.Endpoint = orNull(g.Role), orNone(g.Capabilities), orNull(g.Endpoint)
	out.Metadata, out.AgentData, out.RegisteredAt = orEmptyObject(g.Metadata), orEmptyObject(g.Metadata), timeOrNull(g.Time)
	out.Capacity, out.Heartbeat, out.Drain = g.Extra[extraCapacity], g.Extra[extraHeartbeat], g.Extra[extraDrain]
	out.Status = agentActive
	var said string
	if json.Unmarshal(g.Extra[extraStatus], &said) == nil && said != "" {
		out.Status = said
	}
	if p := h.deps.Presence.Get(r.ID); out.Status == agentActive && p.Status == presence.Offline && !p.Since.IsZero() {
		if silent := h.options.Clock().Sub(p.Since); silent >= DeadAfter {
			out.Status = agentDead
		} else {
			out.Status = agentUnhealthy
		}
	}
	return out
}

// agentNotFound names an agent in the error of an absent one.
func agentNotFound(err error) error {
	if kg.CodeOf(err) == kg.CodeAgentNotFound {
		return errNotFound("Agent")
	}
	return err
}

// registerAgent handles POST /agents/register: it registers an agent, or again. An agent
// that registers is present.
func (h *Handler) registerAgent(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		ID           *string  `json:"agent_id"`
		Name         *string  `json:"name"`
		Capabilities []string `json:"capabilities"`
		Role         *string  `json:"role_id"`
		Endpoint     *string  `json:"endpoint"`
		Metadata     object   `json:"metadata"`
		Capacity     object   `json:"capacity"`
		Heartbeat    object   `json:"heartbeat_config"`
		Drain        *int64   `json:"drain_timeout_seconds"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.ID == nil || *body.ID == "" {
		return 0, nil, errRequired("agent_id")
	}
	by, err := h.actAs(r.Context(), who, "agent_id", *body.ID)
	if err != nil {
		return 0, nil, err
	}
	g := &agents.Registration{Capabilities: body.Capabilities, Metadata: json.RawMessage(body.Metadata), Extra: map[string]json.RawMessage{}}
	for name, value := range map[string]object{extraCapacity: body.Capacity, extraHeartbeat: body.Heartbeat} {
		if value != nil {
			g.Extra[name] = json.RawMessage(value)
		}
	}
	if body.Drain != nil {
		g.Extra[extraDrain] = plainjson.MustEncode(*body.Drain)
	}
	record := agents.Record{ID: by.Acting(), Name: bare(by.Acting()), Registration: g}
	if body.Name != nil {
		record.Name = cmp.Or(*body.Name, record.Name)
	}
	if body.Role != nil {
		g.Role = *body.Role
	}
	if body.Endpoint != nil {
		g.Endpoint = *body.Endpoint
		g.Extra[extraEndpoint] = json.RawMessage("true")
	}
	now, err := h.deps.Agents.Register(r.Context(), by, record)
	if err != nil {
		return 0, nil, err
	}
	if _, err := h.deps.Presence.HeartbeatFor(r.Context(), now.ID, "", HeartbeatValidity); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, h.agentOf(&now), nil
}

// listAgents handles GET /agents.
func (h *Handler) listAgents(_ http.ResponseWriter, r *http.Request, _ caller.Caller) (int, any, error) {
	status, role := r.URL.Query().Get("status"), r.URL.Query().Get("role_id")
	if status != "" && !slices.Contains([]string{agentRegistering, agentActive, agentDraining, agentUnhealthy, agentDead, agentDeregistered}, status) {
		e := errField("status", "status must be a state of agents", "enum")
		e.query = true
		return 0, nil, e
	}
	out := []*wireAgent{}
	for q := (agents.Query{First: agents.MaxPage}); len(out) < MaxListed; {
		page, last, err := h.deps.Agents.Find(r.Context(), q)
		if err != nil {
			return 0, nil, err
		}
		for i := range page {
			a := h.agentOf(&page[i])
			if (status == "" || a.Status == status) && (role == "" || a.Role != nil && *a.Role == role) {
				out = append(out, a)
			}
		}
		if q.After = last; last == "" {
			break
		}
	}
	return http.StatusOK, out[:min(len(out), MaxListed)], nil
}

// getAgent handles GET /agents/{agent}/record.
func (h *Handler) getAgent(_ http.ResponseWriter, r *http.Request, _ caller.Caller) (int, any, error) {
	record, err := h.deps.Agents.Get(r.Context(), kg.CanonicalAgent(r.PathValue("agent")))
	if err != nil {
		return 0, nil, agentNotFound(err)
	}
	return http.StatusOK, h.agentOf(record), nil
}

// heartbeat handles POST /agents/{agent}/heartbeat.
func (h *Handler) heartbeat(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct{}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	by, err := h.actAs(r.Context(), who, "agent_id", r.PathValue("agent"))
	if err != nil {
		return 0, nil, err
	}
	if err := by.Principal.CheckWrite(); err != nil {
		return 0, nil, err
	}
	if _, err := h.deps.Agents.Get(r.Context(), by.Acting()); err != nil {
		return 0, nil, agentNotFound(err)
	}
	if _, err := h.deps.Presence.HeartbeatFor(r.Context(), by.Acting(), "", HeartbeatValidity); err != nil {
		return 0, nil, err
	}
	now := h.options.Clock()
	return http.StatusOK, struct {
		Status string `json:"status"`
		Now    string `json:"server_timestamp"`
		Next   string `json:"next_heartbeat_at"`
	}{"ok", formatTime(now), formatTime(now.Add(HeartbeatInterval))}, nil
}

// setAgentStatus handles PATCH /agents/{agent}/status. An agent that is deregistered leaves
// all channels (RFC 7.2).
func (h *Handler) setAgentStatus(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body struct {
		Status *string `json:"status"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Status == nil {
		return 0, nil, errRequired("status")
	}
	by, err := h.actAs(r.Context(), who, "agent_id", r.PathValue("agent"))
	if err != nil {
		return 0, nil, err
	}
	record, err := h.deps.Agents.Get(r.Context(), by.Acting())
	if err != nil {
		return 0, nil, agentNotFound(err)
	}
	switch *body.Status {
	case agentDeregistered:
		if err := h.deps.Agents.Deregister(r.Context(), by, record.ID); err != nil {
			return 0, nil, agentNotFound(err)
		}
		out := h.agentOf(record)
		out.Status = agentDeregistered
		return http.StatusOK, out, nil
	case agentRegistering, agentActive, agentDraining:
	default:
		return 0, nil, errField("status", "status must be registering, active, draining or deregistered", "enum")
	}
	g := *record.Registration
	g.Extra = map[string]json.RawMessage{}
	for name, value := range record.Registration.Extra {
		g.Extra[name] = value
	}
	g.Extra[extraStatus] = plainjson.MustEncode(*body.Status)
	now, err := h.deps.Agents.Register(r.Context(), by, agents.Record{ID: record.ID, Name: record.Name, Registration: &g})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, h.agentOf(&now), nil
}
