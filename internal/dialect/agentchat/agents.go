package agentchat

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"koine/channels"
	"koine/internal/agents"
	"koine/internal/auth"
	"koine/internal/plainjson"
	"koine/internal/presence"
	"koine/internal/rest"
	"koine/kg"
)

type registration struct {
	Name         string          `json:"name"`
	Owner        string          `json:"owner"`
	Capabilities []string        `json:"capabilities"`
	Metadata     json.RawMessage `json:"metadata"`
	Test         bool            `json:"test"`
}

type registered struct {
	AgentID string `json:"agent_id"`
	APIKey  string `json:"api_key"`
}

// registerAgent makes an agent and its key.
func (h *Handler) registerAgent(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	if err := h.mayRegister(who); err != nil {
		return 0, nil, err
	}
	var body registration
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if err := checkAgentName(body.Name); err != nil {
		return 0, nil, err
	}
	metadata, err := objectIn("metadata", body.Metadata)
	if err != nil {
		return 0, nil, err
	}
	record := agents.Record{Name: body.Name, Registration: &agents.Registration{Capabilities: body.Capabilities, Metadata: metadata}}
	if body.Owner != "" {
		if len(body.Owner) > MaxOwnerBytes {
			return 0, nil, kg.Errorf(kg.CodeLimitExceeded, "has more than %d bytes", MaxOwnerBytes).At("owner")
		}
		if record.Owner, err = parseAgent("owner", body.Owner); err != nil {
			return 0, nil, err
		}
	}
	// Registrations by an administrator are not charged to its address.
	if who.visitor {
		if err := h.registrations.reserve(h.options.Clock(), who.Address); err != nil {
			return 0, nil, err
		}
	}
	e := auth.Enrollment{Agent: h.options.NewID(), Record: record, Roles: []string{Role}, Label: Role}
	if body.Test {
		e.Mode = auth.Test
	}
	m := kg.Meta{Method: "agentchat/register"}
	if !who.visitor {
		m.Principal, m.Actor = who.Principal, who.Actor
	}
	done, err := h.deps.Keys.Enroll(r.Context(), m, h.deps.Agents, e)
	return http.StatusCreated, registered{agents.ShortID(done.Record.ID), done.Key.Secret}, err
}

// mayRegister returns an error if the caller may not make an agent with a key.
func (h *Handler) mayRegister(who *requester) error {
	switch {
	case h.options.Registration == RegisterOff:
		return kg.Errorf(kg.CodePermissionDenied, "the server does not register agents: ask its administrator for a key")
	case h.options.Registration == RegisterOpen:
		return nil
	case who.visitor:
		return errUnauthorized()
	case !who.Principal.IsAdmin() && !who.Principal.HasRole(RoleRegistrar):
		return kg.Errorf(kg.CodePermissionDenied, "registration requires the role %s or %s", kg.RoleAdmin, RoleRegistrar)
	}
	return nil
}

// newAgentID returns an id of 100 random bits.
func newAgentID() kg.AgentID {
	return kg.CanonicalAgent("ag_" + strings.ToLower(rand.Text()[:20]))
}

func checkAgentName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case strings.TrimSpace(name) == "":
		return kg.Errorf(kg.CodeInvalid, "is required").At("name")
	case n > MaxAgentNameRunes:
		return kg.Errorf(kg.CodeLimitExceeded, "name has %d characters; the limit is %d", n, MaxAgentNameRunes).At("name")
	}
	return nil
}

// objectIn returns metadata as a compact object, nil for null or {}.
func objectIn(field string, raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, kg.Errorf(kg.CodeInvalid, "must be an object").At(field)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, kg.Errorf(kg.CodeInvalid, "is not valid JSON").At(field)
	}
	if b.Len() > MaxMetadataBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "metadata has %d bytes; the limit is %d", b.Len(), MaxMetadataBytes).At(field)
	}
	if b.Len() == len("{}") {
		return nil, nil
	}
	return b.Bytes(), nil
}

// getAgent returns a registered agent.
func (h *Handler) getAgent(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	id, err := h.pathAgent(r, who)
	if err != nil {
		return 0, nil, err
	}
	record, err := h.deps.Agents.Get(r.Context(), id)
	if err != nil {
		return 0, nil, err
	}
	if who.visitor {
		out, err := h.encodeFor(r.Context(), who, id, record)
		return http.StatusOK, out, err
	}
	out := h.encodeAgent(id, record)
	out.Wanted, err = h.wantedIn(r.Context(), who, out.Capabilities)
	return http.StatusOK, out, err
}

// pathAgent returns the agent in the path; me is the caller.
func (h *Handler) pathAgent(r *http.Request, who *requester) (kg.AgentID, error) {
	if text := r.PathValue("id"); text != "me" {
		return parseAgent("id", text)
	}
	if who.visitor {
		return "", errUnauthorized()
	}
	return who.agent, nil
}

type agentPage struct {
	Agents []*agent `json:"agents"`
	Next   *string  `json:"next_cursor"`
}

// listAgents lists the registered agents in the order of their ids.
func (h *Handler) listAgents(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	limit, err := rest.LimitParam(r, DefaultPage, agents.MaxPage)
	if err != nil {
		return 0, nil, err
	}
	query := r.URL.Query()
	status, name := query.Get("status"), strings.ToLower(query.Get("name"))
	switch status {
	case "", statusOnline, statusIdle, statusBusy, statusOffline:
	default:
		return 0, nil, kg.Errorf(kg.CodeInvalid, "must be online, idle, busy or offline").At("status")
	}
	after := kg.AgentID(query.Get("cursor"))
	out := struct {
		Agents []any   `json:"agents"`
		Next   *string `json:"next_cursor"`
	}{Agents: []any{}}
	for range MaxPageReads {
		page, last, err := h.deps.Agents.Find(r.Context(), agents.Query{Capability: query.Get("capability"), After: after, First: limit - len(out.Agents)})
		if err != nil {
			return 0, nil, err
		}
		for i := range page {
			a := h.encodeAgent(page[i].ID, &page[i])
			if status != "" && a.Status != status || !strings.Contains(strings.ToLower(a.Name), name) {
				continue
			}
			seen, err := h.encodeFor(r.Context(), who, page[i].ID, &page[i])
			if err != nil {
				return 0, nil, err
			}
			out.Agents = append(out.Agents, seen)
		}
		if after = last; after == "" {
			return http.StatusOK, out, nil
		}
		if len(out.Agents) >= limit {
			break
		}
	}
	next := agents.ShortID(after)
	out.Next = &next
	return http.StatusOK, out, nil
}

type agentPatch struct {
	Name         *string         `json:"name"`
	Capabilities *[]string       `json:"capabilities"`
	Metadata     json.RawMessage `json:"metadata"`
	Status       *string         `json:"status"`
}

// patchAgent changes the caller's profile and status. Metadata is replaced.
func (h *Handler) patchAgent(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	var body agentPatch
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	change := map[string]any{}
	if body.Name != nil {
		if err := checkAgentName(*body.Name); err != nil {
			return 0, nil, err
		}
		change["name"] = *body.Name
	}
	if body.Capabilities != nil {
		change["capabilities"] = *body.Capabilities
	}
	if body.Metadata != nil {
		metadata, err := objectIn("metadata", body.Metadata)
		if err != nil {
			return 0, nil, err
		}
		change["metadata"] = metadata
	}
	if body.Status != nil {
		if err := h.setStatus(r.Context(), who, *body.Status); err != nil {
			return 0, nil, err
		}
	}
	if len(change) == 0 {
		return http.StatusOK, h.encodeOwn(r, who), nil
	}
	record, err := h.deps.Agents.Update(r.Context(), who.Caller, who.agent, plainjson.MustEncode(change))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, h.encodeAgent(who.agent, &record), nil
}

// setStatus declares the status of the caller.
func (h *Handler) setStatus(ctx context.Context, who *requester, status string) error {
	switch status {
	case statusOnline, statusIdle, statusBusy:
	default:
		return kg.Errorf(kg.CodeInvalid, "must be online, idle or busy").At("status")
	}
	if err := who.Principal.CheckWrite(); err != nil {
		return err
	}
	_, err := h.deps.Presence.HeartbeatFor(ctx, who.agent, presence.Status(strings.ToUpper(status)), Validity)
	return err
}

// encodeOwn returns the caller's own agent, which may have no registration.
func (h *Handler) encodeOwn(r *http.Request, who *requester) *agent {
	record, err := h.deps.Agents.Get(r.Context(), who.agent)
	if err != nil {
		record = nil
	}
	return h.encodeAgent(who.agent, record)
}

// deleteAgent ends the caller's registration and removes it from its rooms.
func (h *Handler) deleteAgent(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	return http.StatusNoContent, nil, h.deps.Agents.Deregister(r.Context(), who.Caller, who.agent)
}

// rotateKey replaces the caller's key.
func (h *Handler) rotateKey(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	var body struct {
		Overlap int64 `json:"overlap_seconds"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Overlap < 0 || body.Overlap > int64(auth.MaxOwnOverlap/time.Second) {
		return 0, nil, kg.Errorf(kg.CodeInvalid, "must be between 0 and %d", int64(auth.MaxOwnOverlap/time.Second)).At("overlap_seconds")
	}
	made, _, err := h.deps.Keys.RotateOwn(r.Context(), kg.Meta{Principal: who.Principal, Actor: who.Actor, Method: "agentchat/rotate"}, time.Duration(body.Overlap)*time.Second)
	return http.StatusOK, struct {
		APIKey string `json:"api_key"`
	}{made.Secret}, err
}

type tier struct {
	Name        string `json:"name"`
	Messages    int    `json:"messages_per_minute"`
	Connections int    `json:"connections"`
	Rooms       int    `json:"rooms"`
}

func encodeTier(t channels.Tier) tier {
	return tier{cmp.Or(t.Name, channels.Unlimited.Name), t.MessagesPerMinute, t.Streams, t.Channels}
}

// getMe returns the caller's own agent and its tier, in which 0 is no limit.
func (h *Handler) getMe(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	return http.StatusOK, struct {
		Agent *agent `json:"agent"`
		Tier  tier   `json:"tier"`
	}{h.encodeOwn(r, who), encodeTier(h.deps.Channels.TierOf(who.onChannels()))}, nil
}
