package agentchat

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/agents"
	"koine/internal/rest"
	"koine/kg"
)

type roomDraft struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Topic      string          `json:"topic"`
	MaxMembers int             `json:"max_members"`
	Metadata   json.RawMessage `json:"metadata"`
	Members    []string        `json:"members"`
}

// createRoom creates a room with the caller as its admin.
func (h *Handler) createRoom(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	if who.isGuest() {
		return 0, nil, errGuest()
	}
	var body roomDraft
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	metadata, err := objectIn("metadata", body.Metadata)
	if err != nil {
		return 0, nil, err
	}
	d := channel.Draft{Name: body.Name, Topic: body.Topic, MaxMembers: body.MaxMembers, Metadata: metadata, IdempotencyKey: r.Header.Get("Idempotency-Key")}
	for i, text := range body.Members {
		id, err := parseAgent("members", text)
		if err != nil {
			return 0, nil, err
		}
		if id != who.agent && !slices.ContainsFunc(d.Members[:min(i, len(d.Members))], func(m channel.Member) bool { return m.Agent == id }) {
			d.Members = append(d.Members, channel.Member{Agent: id})
		}
	}
	switch body.Type {
	case "", typePublic:
		d.Kind, d.Visibility = channel.Room, channel.Public
	case typePrivate:
		d.Kind, d.Visibility = channel.Room, channel.Private
	case typeBroadcast:
		d.Kind, d.Visibility = channel.Broadcast, channel.Public
	case typeDirect:
		return h.openDirect(r.Context(), who, d)
	default:
		return 0, nil, kg.Errorf(kg.CodeInvalid, "must be public, private, direct or broadcast").At("type")
	}
	if strings.TrimSpace(body.Name) == "" {
		return 0, nil, kg.Errorf(kg.CodeInvalid, "is required").At("name")
	}
	c, err := h.deps.Channels.Create(r.Context(), who.onChannels(), d)
	if err != nil {
		return 0, nil, err
	}
	out, err := h.encodeRoomFor(r.Context(), who, c)
	return http.StatusCreated, out, err
}

// openDirect returns the direct room of the caller and another agent. Nothing is stored
// before its first message.
func (h *Handler) openDirect(ctx context.Context, who *requester, d channel.Draft) (int, any, error) {
	if len(d.Members) != 1 {
		return 0, nil, kg.Errorf(kg.CodeInvalid, "a direct room has exactly one other member").At("members")
	}
	c, err := h.deps.Channels.Get(ctx, who.onChannels(), channel.DirectID(who.agent, d.Members[0].Agent))
	if kg.CodeOf(err) == kg.CodeChannelNotFound {
		err = kg.Errorf(kg.CodeAgentNotFound, "there is no such agent").At("members")
	}
	if err != nil {
		return 0, nil, err
	}
	out, err := h.encodeRoomFor(ctx, who, c)
	return http.StatusCreated, out, err
}

// encodeRoomFor returns a room as the caller sees it.
func (h *Handler) encodeRoomFor(ctx context.Context, who *requester, c *channel.Channel) (*room, error) {
	out := encodeRoom(c, who.agent)
	if out.MyRole == nil {
		return out, nil
	}
	n := int64(0)
	if c.Messages > 0 {
		unread, err := h.deps.Channels.Receipts().Unread(ctx, who.onChannels(), c.ID)
		if err != nil {
			return nil, err
		}
		n = int64(unread.Count)
	}
	out.Unread = &n
	return out, nil
}

// getRoom returns a room with its members.
func (h *Handler) getRoom(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	c, err := h.deps.Channels.Get(r.Context(), who.onChannels(), pathRoom(r))
	if err != nil {
		return 0, nil, err
	}
	out, err := h.encodeRoomFor(r.Context(), who, c)
	if err != nil {
		return 0, nil, err
	}
	detailed := struct {
		*room
		Detail []memberDetail `json:"members_detail"`
	}{out, []memberDetail{}}
	for _, m := range c.Members {
		record, err := h.deps.Agents.Get(r.Context(), m.Agent)
		if err != nil && kg.CodeOf(err) != kg.CodeAgentNotFound {
			return 0, nil, err
		}
		one := memberDetail{Agent: h.encodeAgent(m.Agent, record), Role: wireRole(m.Role)}
		if !m.Joined.IsZero() {
			one.JoinedAt = formatTime(m.Joined)
		}
		detailed.Detail = append(detailed.Detail, one)
	}
	return http.StatusOK, detailed, nil
}

func pathRoom(r *http.Request) channel.ID { return channel.ID(r.PathValue("id")) }

type roomPage struct {
	Rooms []*room `json:"rooms"`
	Next  *string `json:"next_cursor"`
}

// directCursor begins the cursors behind the last room that is not direct.
const directCursor = "direct:"

// roomQuery is a query of rooms.
type roomQuery struct {
	kind, text, capability string
	joined                 *bool
}

// listRooms lists the rooms that the caller can find, those of others for an overseer, and
// then its direct ones.
func (h *Handler) listRooms(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	limit, err := rest.LimitParam(r, DefaultPage, MaxPage)
	if err != nil {
		return 0, nil, err
	}
	query := r.URL.Query()
	q := roomQuery{kind: query.Get("type"), text: strings.ToLower(query.Get("q")), capability: query.Get("capability")}
	switch q.kind {
	case "", typePublic, typePrivate, typeDirect, typeBroadcast:
	default:
		return 0, nil, kg.Errorf(kg.CodeInvalid, "must be public, private, direct or broadcast").At("type")
	}
	switch query.Get("joined") {
	case "":
	case "true", "false":
		joined := query.Get("joined") == "true"
		q.joined = &joined
	default:
		return 0, nil, kg.Errorf(kg.CodeInvalid, "must be true or false").At("joined")
	}
	page, next, err := h.findRooms(r.Context(), who, q, limit, query.Get("cursor"))
	if err != nil {
		return 0, nil, err
	}
	out := roomPage{Rooms: []*room{}}
	for _, c := range page {
		one, err := h.encodeRoomFor(r.Context(), who, c)
		if err != nil {
			return 0, nil, err
		}
		out.Rooms = append(out.Rooms, one)
	}
	if next != "" {
		out.Next = &next
	}
	return http.StatusOK, out, nil
}

// findRooms returns up to limit rooms behind the cursor, and the cursor behind them, ""
// at the end.
func (h *Handler) findRooms(ctx context.Context, who *requester, q roomQuery, limit int, cursor string) (out []*channel.Channel, next string, err error) {
	matches, err := h.roomFilter(ctx, who, q)
	if err != nil {
		return nil, "", err
	}
	behind, inDirect := strings.CutPrefix(cursor, directCursor)
	if !inDirect {
		l := channel.ListQuery{PageToken: cursor}
		if q.kind == typeDirect { // those of others, for an overseer
			l.Kind = channel.Direct
		}
		if q.joined != nil && *q.joined {
			l.Member = who.agent
		}
		for range MaxPageReads {
			l.PageSize = limit - len(out)
			var page []*channel.Channel
			if page, l.PageToken, err = h.deps.Channels.List(ctx, who.onChannels(), l); err != nil {
				return nil, "", err
			}
			for _, c := range page {
				if matches(c) {
					out = append(out, c)
				}
			}
			if l.PageToken == "" || len(out) == limit {
				break
			}
		}
		if l.PageToken != "" {
			return out, l.PageToken, nil
		}
		if len(out) == limit {
			return out, directCursor, nil
		}
	}
	if q.joined != nil && !*q.joined {
		return out, "", nil
	}
	ids, err := h.directRooms(ctx, who)
	if err != nil {
		return nil, "", err
	}
	for i, id := range ids {
		if string(id) <= behind {
			continue
		}
		c, err := h.deps.Channels.Get(ctx, who.onChannels(), id)
		if kg.CodeOf(err) == kg.CodeChannelNotFound {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if matches(c) {
			out = append(out, c)
		}
		if len(out) == limit && i < len(ids)-1 {
			return out, directCursor + string(id), nil
		}
	}
	return out, "", nil
}

// roomFilter returns the conditions of a query.
func (h *Handler) roomFilter(ctx context.Context, who *requester, q roomQuery) (func(*channel.Channel) bool, error) {
	able := map[kg.AgentID]bool{}
	if q.capability != "" {
		ids, err := h.deps.Agents.IDs(ctx, q.capability)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			able[id] = true
		}
	}
	return func(c *channel.Channel) bool {
		switch {
		case q.kind != "" && roomType(c) != q.kind,
			q.text != "" && !strings.Contains(strings.ToLower(c.Name), q.text) && !strings.Contains(strings.ToLower(c.Topic), q.text),
			q.joined != nil && *q.joined != (c.MemberRole(who.agent) != ""):
			return false
		}
		return q.capability == "" || slices.Contains(wantedBy(c), q.capability) || slices.ContainsFunc(c.Members, func(m channel.Member) bool { return able[m.Agent] })
	}, nil
}

// wantedBy returns the capabilities that a room asks for, in its metadata.
func wantedBy(c *channel.Channel) []string {
	var metadata struct {
		Wanted []string `json:"wanted"`
	}
	if c.Metadata == nil || json.Unmarshal(c.Metadata, &metadata) != nil {
		return nil
	}
	return metadata.Wanted
}

// directRooms returns the ids of the caller's direct rooms, sorted.
func (h *Handler) directRooms(ctx context.Context, who *requester) (ids []channel.ID, err error) {
	snapshot, err := h.deps.Store.View(ctx, kg.View{Principal: who.Reader(who.agent), AllGraphs: true})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for _, p := range channel.MemberPatterns(who.agent) {
		for statement, err := range snapshot.Match(p) {
			if err != nil {
				return nil, err
			}
			if id := channel.IDOf(statement.Subject); id.IsDirect() {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

type roomPatch struct {
	Name       *string         `json:"name"`
	Topic      *string         `json:"topic"`
	MaxMembers *int            `json:"max_members"`
	Metadata   json.RawMessage `json:"metadata"`
	Version    *int64          `json:"version"`
}

// maxPatchTries bounds the retries of a change without a version.
const maxPatchTries = 8

// patchRoom changes a room. Without a version the last change wins.
func (h *Handler) patchRoom(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	var body roomPatch
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	u := channel.Update{Name: body.Name, Topic: body.Topic, MaxMembers: body.MaxMembers}
	if body.Name != nil && strings.TrimSpace(*body.Name) == "" {
		return 0, nil, kg.Errorf(kg.CodeInvalid, "must not be empty").At("name")
	}
	if body.Metadata != nil {
		if err := json.Unmarshal(body.Metadata, &u.Set); err != nil || u.Set == nil {
			return 0, nil, kg.Errorf(kg.CodeInvalid, "must be an object").At("metadata")
		}
		for name, value := range u.Set {
			if string(value) == "null" {
				u.Remove = append(u.Remove, name)
				delete(u.Set, name)
			}
		}
	}
	for try := 1; ; try++ {
		if body.Version != nil {
			u.ExpectedVersion = *body.Version
		} else {
			c, err := h.deps.Channels.Get(r.Context(), who.onChannels(), pathRoom(r))
			if err != nil {
				return 0, nil, err
			}
			u.ExpectedVersion = c.Version
		}
		c, err := h.deps.Channels.Update(r.Context(), who.onChannels(), pathRoom(r), u)
		if kg.CodeOf(err) == kg.CodeVersionConflict && body.Version == nil && try < maxPatchTries {
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		out, err := h.encodeRoomFor(r.Context(), who, c)
		return http.StatusOK, out, err
	}
}

// deleteRoom deletes a room.
func (h *Handler) deleteRoom(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	return http.StatusNoContent, nil, h.deps.Channels.Delete(r.Context(), who.onChannels(), pathRoom(r))
}

// joinRoom makes the caller a member.
func (h *Handler) joinRoom(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	out, err := h.join(r.Context(), who, pathRoom(r))
	return http.StatusOK, out, err
}

func (h *Handler) join(ctx context.Context, who *requester, id channel.ID) (*room, error) {
	c, err := h.joinChannel(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return h.encodeRoomFor(ctx, who, c)
}

type left struct {
	RoomID string `json:"room_id"`
	Left   bool   `json:"left"`
}

// leaveRoom ends the membership of the caller.
func (h *Handler) leaveRoom(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	id := pathRoom(r)
	return http.StatusOK, left{string(id), true}, h.deps.Channels.Members().Leave(r.Context(), who.onChannels(), id)
}

type invited struct {
	RoomID  string `json:"room_id"`
	AgentID string `json:"agent_id"`
}

// inviteAgent lets an agent find and join a room.
func (h *Handler) inviteAgent(w http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	var body struct {
		AgentID string `json:"agent_id"`
	}
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	agent, err := parseAgent("agent_id", body.AgentID)
	if err != nil {
		return 0, nil, err
	}
	id := pathRoom(r)
	if err := h.mustAdmin(r.Context(), who, id); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, invited{string(id), agents.ShortID(agent)}, h.deps.Channels.Members().Invite(r.Context(), who.onChannels(), id, agent)
}

// mustAdmin returns an error unless the caller is an admin of the room.
func (h *Handler) mustAdmin(ctx context.Context, who *requester, id channel.ID) error {
	c, err := h.deps.Channels.Get(ctx, who.onChannels(), id)
	if err != nil {
		return err
	}
	if wireRole(c.MemberRole(who.agent)) != roleAdmin {
		return kg.Errorf(kg.CodePermissionDenied, "only an admin of the room can do this")
	}
	return nil
}

// removeMember ends the membership of an agent.
func (h *Handler) removeMember(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	agent, err := parseAgent("agent_id", r.PathValue("agent"))
	if err != nil {
		return 0, nil, err
	}
	_, err = h.deps.Channels.Members().Remove(r.Context(), who.onChannels(), pathRoom(r), agent)
	return http.StatusNoContent, nil, err
}

type (
	dayCount struct {
		Day      string `json:"day"`
		Messages int64  `json:"messages"`
	}
	agentCount struct {
		AgentID  string `json:"agent_id"`
		Messages int64  `json:"messages"`
	}
	analytics struct {
		Total        int64        `json:"total"`
		ByDay        []dayCount   `json:"by_day"`
		ByAgent      []agentCount `json:"by_agent"`
		ActiveAgents int          `json:"active_agents"`
	}
)

// getAnalytics counts the messages of a room by day and by agent.
func (h *Handler) getAnalytics(_ http.ResponseWriter, r *http.Request, who *requester) (int, any, error) {
	var q channels.CountQuery
	var err error
	if q.From, err = timeParam(r, "from"); err != nil {
		return 0, nil, err
	}
	if q.To, err = timeParam(r, "to"); err != nil {
		return 0, nil, err
	}
	counts, err := h.deps.Channels.Counts(r.Context(), who.onChannels(), pathRoom(r), q)
	if err != nil {
		return 0, nil, err
	}
	out := analytics{ByDay: []dayCount{}, ByAgent: []agentCount{}}
	byAgent := map[kg.AgentID]int64{}
	for _, c := range counts {
		day := c.Day.UTC().Format("2006-01-02")
		if n := len(out.ByDay); n == 0 || out.ByDay[n-1].Day != day {
			out.ByDay = append(out.ByDay, dayCount{Day: day})
		}
		out.ByDay[len(out.ByDay)-1].Messages += c.Messages
		byAgent[c.Author] += c.Messages
		out.Total += c.Messages
	}
	for id, n := range byAgent {
		out.ByAgent = append(out.ByAgent, agentCount{agents.ShortID(id), n})
	}
	slices.SortFunc(out.ByAgent, func(a, b agentCount) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.AgentID, b.AgentID))
	})
	out.ActiveAgents = len(byAgent)
	return http.StatusOK, out, nil
}
