package agentchat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/agents"
	"koine/internal/auth"
	"koine/internal/plainjson"
	"koine/internal/rest"
	"koine/kg"
)

// A pasted invitation brings an agent that can only make HTTP calls into a room: a text
// with a key and three paths. The key is that of a new agent, a guest, which is invited to
// the room and becomes its member with the first use. The tier of its role has one room, so
// it enters no other.

// Numbers of invitations.
const (
	InviteLifetime = 30 * 24 * time.Hour // of the key
	GuestInterval  = 30 * time.Second    // in which a guest sends heartbeats
	GuestValidity  = 60 * time.Second    // of a heartbeat of a guest
)

// GuestTier is the tier of guests.
var GuestTier = channels.Tier{Name: "guest", MessagesPerMinute: channels.Free.MessagesPerMinute, Streams: channels.Free.Streams, Channels: 1}

type invite struct {
	Key     string `json:"key"`
	AgentID string `json:"agent_id"`
	Block   string `json:"block"`
}

// createInvite makes a guest with a key and invites it to the room. It requires an admin of
// the room who may register agents.
func (h *Handler) createInvite(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	var body struct {
		Label string `json:"label"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Label == "" {
		body.Label = "guest"
	}
	if err := checkAgentName(body.Label); err != nil {
		e := *kg.AsError(err)
		e.Field = "label"
		return 0, nil, &e
	}
	id, ctx := pathRoom(r), r.Context()
	c, err := h.deps.Channels.Get(ctx, who.onChannels(), id)
	if err != nil {
		return 0, nil, err
	}
	if err := h.mustAdmin(ctx, who, id); err != nil {
		return 0, nil, err
	}
	if err := h.mayRegister(who); err != nil {
		return 0, nil, err
	}
	if !who.Principal.IsAdmin() {
		if err := h.registrations.reserve(h.options.Clock(), who.Address); err != nil {
			return 0, nil, err
		}
	}
	metadata := plainjson.MustEncode(map[string]string{"invited_by": agents.ShortID(who.agent)})
	e := auth.Enrollment{
		Agent: h.options.NewID(), Record: agents.Record{Name: body.Label, Registration: &agents.Registration{Metadata: metadata}},
		Roles: []string{RoleGuest}, Label: Role + " invitation", Lifetime: InviteLifetime,
	}
	done, err := h.deps.Keys.Enroll(ctx, kg.Meta{Principal: who.Principal, Actor: who.Actor, Method: "agentchat/invites"}, h.deps.Agents, e)
	if err != nil {
		return 0, nil, err
	}
	if err := h.deps.Channels.Members().Invite(ctx, who.onChannels(), id, done.Record.ID); err != nil {
		return 0, nil, err
	}
	url := h.baseURL(r) + "/api/rooms/" + string(id)
	block := fmt.Sprintf("🤖 AgentChat — Join Room %q\n\nYou are invited as %q. Your key, for this room only:\n\n  Authorization: Bearer %s\n\n"+
		"Read:  GET %s/messages?since=0\n       then again with since = next_since\nWrite: POST %s/messages\n       {\"content\": \"…\"}\nStay:  POST %s/heartbeat every 30 seconds\n",
		c.Name, body.Label, done.Key.Secret, url, url, url)
	return http.StatusCreated, invite{done.Key.Secret, agents.ShortID(done.Record.ID), block}, nil
}

// baseURL returns the URL of the protocol's root.
func (h *Handler) baseURL(r *http.Request) string {
	if h.options.PublicURL != "" {
		return strings.TrimSuffix(h.options.PublicURL, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + h.options.Prefix
}

// enter makes the caller a member of the room in the path, for which it may have an
// invitation.
func (h *Handler) enter(ctx context.Context, r *http.Request, who *requester) error {
	_, err := h.joinChannel(ctx, who, pathRoom(r))
	return err
}

// joinChannel makes the caller a member. A guest enters only the room that it is invited to.
func (h *Handler) joinChannel(ctx context.Context, who *requester, id channel.ID) (*channel.Channel, error) {
	if who.isGuest() {
		c, err := h.deps.Channels.Get(ctx, who.onChannels(), id)
		if err != nil {
			return nil, err
		}
		own, err := h.deps.Channels.Members().Invitations(who.onChannels(), id)
		if err != nil {
			return nil, err
		}
		if c.MemberRole(who.agent) == "" && !slices.ContainsFunc(own, func(i channel.Invitation) bool { return i.Agent == who.agent }) {
			return nil, errGuest()
		}
	}
	return h.deps.Channels.Members().Join(ctx, who.onChannels(), id, "")
}

func (r *requester) isGuest() bool { return slices.Equal(r.Principal.Roles, []string{RoleGuest}) }

func errGuest() *kg.Error {
	return kg.Errorf(kg.CodePermissionDenied, "the key is for the room of its invitation only")
}

type guestPage struct {
	Messages []*wireMessage `json:"messages"`
	HasMore  bool           `json:"has_more"`
	Next     int64          `json:"next_since"`
}

// readAsGuest lists the messages of the room after a sequence.
func (h *Handler) readAsGuest(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	q := channels.HistoryQuery{}
	var err error
	if q.PageSize, err = rest.LimitParam(r, DefaultPage, MaxPage); err != nil {
		return 0, nil, err
	}
	since := int64(0)
	if text := r.URL.Query().Get("since"); text != "" {
		if since, err = strconv.ParseInt(text, 10, 64); err != nil || since < 0 {
			return 0, nil, kg.Errorf(kg.CodeInvalid, "must be a sequence").At("since")
		}
	}
	q.SinceSequence = &since
	if err := h.enter(r.Context(), r, who); err != nil {
		return 0, nil, err
	}
	page, end, more, err := h.deps.Channels.HistoryPage(r.Context(), who.onChannels(), pathRoom(r), q)
	if err != nil {
		return 0, nil, err
	}
	out := guestPage{Messages: make([]*wireMessage, 0, len(page)), HasMore: more, Next: since}
	for _, m := range page {
		out.Messages = append(out.Messages, encodeMessage(m))
		out.Next = m.Sequence
	}
	if more {
		out.Next = end
	}
	return http.StatusOK, out, nil
}

// writeAsGuest publishes a message in the room.
func (h *Handler) writeAsGuest(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	var body struct {
		Content *string `json:"content"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	d := messageDraft{Content: body.Content}
	p, err := d.toPublication(pathRoom(r))
	if err != nil {
		return 0, nil, err
	}
	if err := h.enter(r.Context(), r, who); err != nil {
		return 0, nil, err
	}
	p.IdempotencyKey = r.Header.Get("Idempotency-Key")
	m, err := h.publish(r.Context(), who, p)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, encodeMessage(m), nil
}

// beatAsGuest records that the caller is present in the room.
func (h *Handler) beatAsGuest(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	if err := who.Principal.CheckWrite(); err != nil {
		return 0, nil, err
	}
	if err := h.enter(r.Context(), r, who); err != nil {
		return 0, nil, err
	}
	now, err := h.deps.Presence.HeartbeatFor(r.Context(), who.agent, "", GuestValidity)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		Status string      `json:"status"`
		Next   json.Number `json:"next_heartbeat_ms"`
	}{statusOf(now), json.Number(strconv.FormatInt(GuestInterval.Milliseconds(), 10))}, nil
}
