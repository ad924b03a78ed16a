package openintent

import (
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"koine/channels/channel"
	"koine/channels/scope"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/internal/rest"
	"koine/kg"
)

// DefaultKeepMessages is the number of messages that a channel keeps unless its options
// say otherwise (RFC 1.2).
const DefaultKeepMessages = 1000

// updateTries is how often a change of a channel is made again while others change it.
const updateTries = 3

// wireChannel is a channel (RFC 1.1). All members of the RFC are always present.
type wireChannel struct {
	ID            channel.ID  `json:"id"`
	IntentID      scope.ID    `json:"intent_id"`
	TaskID        *string     `json:"task_id"`
	Name          string      `json:"name"`
	CreatedBy     string      `json:"created_by"`
	Members       []string    `json:"members"`
	MemberPolicy  string      `json:"member_policy"`
	Options       wireOptions `json:"options"`
	Status        string      `json:"status"`
	CreatedAt     string      `json:"created_at"`
	ClosedAt      *string     `json:"closed_at"`
	MessageCount  int64       `json:"message_count"`
	LastMessageAt *string     `json:"last_message_at"`
	// Overseers are the agents that read the channel without taking part; the RFC has none.
	Overseers []string `json:"overseers,omitempty"`
}

type wireOptions struct {
	Audit       bool   `json:"audit"`
	TTLSeconds  *int64 `json:"ttl_seconds"`
	MaxMessages *int64 `json:"max_messages"`
}

// channelOptions are the options of a channel in a body. Others are ignored.
type channelOptions struct {
	Audit       *bool           `json:"audit"`
	TTLSeconds  optional[int64] `json:"ttl_seconds"`
	MaxMessages optional[int64] `json:"max_messages"`
}

// The member policies of the protocol.
const (
	policyIntent   = "intent"
	policyExplicit = "explicit"
)

// memberPolicies has the policies of the domain.
var memberPolicies = map[string]channel.MemberPolicy{policyIntent: channel.ByScope, policyExplicit: channel.Explicit}

// channelDraft is the body of POST /intents/{id}/channels.
type channelDraft struct {
	Name         *string        `json:"name"`
	Members      []string       `json:"members"`
	MemberPolicy *string        `json:"member_policy"`
	TaskID       *string        `json:"task_id"`
	Options      channelOptions `json:"options"`
}

// createChannel handles POST /intents/{id}/channels.
func (h *Handler) createChannel(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body channelDraft
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Name == nil {
		return 0, nil, errRequired("name")
	}
	d := channel.Draft{Name: *body.Name, MemberPolicy: channel.ByScope, KeepMessages: DefaultKeepMessages}
	var err error
	if d.MemberPolicy, err = readPolicy(body.MemberPolicy, channel.ByScope); err != nil {
		return 0, nil, err
	}
	if d.IdempotencyKey, err = rest.IdempotencyKey(r); err != nil {
		return 0, nil, err
	}
	for _, name := range body.Members {
		agent, err := memberNamed(name)
		if err != nil {
			return 0, nil, err
		}
		d.Members = append(d.Members, channel.Member{Agent: agent, Role: channel.Ordinary})
	}
	if body.Options.Audit != nil {
		d.Audit = *body.Options.Audit
	}
	if d.ExpireAfter, err = body.Options.ttl(0); err != nil {
		return 0, nil, err
	}
	if d.KeepMessages, err = body.Options.keep(DefaultKeepMessages); err != nil {
		return 0, nil, err
	}
	by := channelCaller(who)
	in := scope.ID(r.PathValue("id"))
	if body.TaskID != nil {
		if in, err = h.taskScope(r.Context(), who, in, *body.TaskID); err != nil {
			return 0, nil, err
		}
	} else if in, err = h.intentScope(r.Context(), who, in); err != nil {
		return 0, nil, err
	}
	c, err := h.deps.Channels.CreateIn(r.Context(), by, in, d)
	if err != nil {
		return 0, nil, err
	}
	out, err := h.channelOf(r.Context(), who, c)
	return http.StatusCreated, out, err
}

// readPolicy returns the member policy of a body.
func readPolicy(text *string, otherwise channel.MemberPolicy) (channel.MemberPolicy, error) {
	if text == nil {
		return otherwise, nil
	}
	policy, ok := memberPolicies[*text]
	if !ok {
		return "", errField("member_policy", "member_policy must be intent or explicit", "enum")
	}
	return policy, nil
}

func memberNamed(name string) (kg.AgentID, error) {
	agent, err := caller.ParseAgent(name)
	if err != nil {
		return "", errField("members", kg.AsError(err).Message, "value_error")
	}
	return agent, nil
}

// ttl returns the idle timeout; null is none.
func (o *channelOptions) ttl(otherwise time.Duration) (time.Duration, error) {
	switch {
	case !o.TTLSeconds.given:
		return otherwise, nil
	case o.TTLSeconds.value == nil:
		return 0, nil
	}
	n := *o.TTLSeconds.value
	if n < 1 || n > int64(channel.MaxExpireAfter/time.Second) {
		return 0, errField("ttl_seconds", "ttl_seconds must be a positive number of seconds, or null", "value_error")
	}
	return time.Duration(n) * time.Second, nil
}

// keep returns the number of messages kept; null is the default.
func (o *channelOptions) keep(otherwise int64) (int64, error) {
	switch {
	case !o.MaxMessages.given:
		return otherwise, nil
	case o.MaxMessages.value == nil:
		return DefaultKeepMessages, nil
	}
	n := *o.MaxMessages.value
	if n < 1 || n > channel.MaxKeepMessages {
		return 0, errField("max_messages", "max_messages must be a positive number", "value_error")
	}
	return n, nil
}

// intentScope returns the scope if it is an intent that the caller can see.
func (h *Handler) intentScope(ctx context.Context, who caller.Caller, id scope.ID) (scope.ID, error) {
	sc, err := h.deps.Channels.Scopes().Get(ctx, channelCaller(who), id)
	if err != nil {
		return "", err
	}
	if sc.Parent != "" {
		return "", scope.ErrNotFound()
	}
	return sc.ID, nil
}

// taskScope returns the scope of a task of an intent, by its id or by the id that a client
// gave it. An unknown id makes a task of that name, because a client may refer to tasks of
// a system of its own.
func (h *Handler) taskScope(ctx context.Context, who caller.Caller, intent scope.ID, task string) (scope.ID, error) {
	by, scopes := channelCaller(who), h.deps.Channels.Scopes()
	if _, err := h.intentScope(ctx, who, intent); err != nil {
		return "", err
	}
	sc, err := scopes.Get(ctx, by, scope.ID(task))
	if err == nil && sc.Parent == intent {
		return sc.ID, nil
	}
	if err != nil && kg.CodeOf(err) != kg.CodeScopeNotFound {
		return "", err
	}
	for range updateTries {
		sc, err = scopes.TaskByExternalID(ctx, by, intent, task)
		if kg.CodeOf(err) == kg.CodeScopeNotFound {
			var made *intents.Task
			if made, err = h.deps.Intents.Tasks().Create(ctx, by, intent, intents.TaskDraft{Name: task, ExternalID: task}); err == nil {
				return made.ID, nil
			}
		}
		if kg.CodeOf(err) == kg.CodeNameTaken {
			continue // made meanwhile
		}
		break
	}
	if err != nil {
		return "", err
	}
	return sc.ID, nil
}

// channelOf converts a channel.
func (h *Handler) channelOf(ctx context.Context, who caller.Caller, c *channel.Channel) (*wireChannel, error) {
	sc, err := h.deps.Channels.Scopes().Get(ctx, channelCaller(who), c.Scope)
	if kg.CodeOf(err) == kg.CodeScopeNotFound {
		return nil, channel.ErrNotFound() // outside of intents, or access was lost
	}
	if err != nil {
		return nil, err
	}
	return channelIn(sc, c), nil
}

// channelIn converts a channel of a scope.
func channelIn(sc *scope.Scope, c *channel.Channel) *wireChannel {
	out := &wireChannel{
		ID: c.ID, IntentID: sc.ID, Name: c.Name, CreatedBy: bare(c.CreatedBy), Members: make([]string, 0, len(c.Members)), MemberPolicy: policyExplicit,
		Options: wireOptions{Audit: c.Audit}, Status: string(c.Status()), CreatedAt: formatTime(c.CreatedAt), ClosedAt: timeOrNull(c.ClosedAt),
		MessageCount: c.Messages, LastMessageAt: timeOrNull(c.LastMessageAt),
	}
	if sc.Parent != "" {
		task := string(sc.ID)
		if sc.ExternalID != "" {
			task = sc.ExternalID
		}
		out.IntentID, out.TaskID = sc.Parent, &task
	}
	if c.MemberPolicy == channel.ByScope {
		out.MemberPolicy = policyIntent
	}
	for i := range c.Members {
		out.Members = append(out.Members, bare(c.Members[i].Agent))
	}
	for i := range c.Overseers {
		out.Overseers = append(out.Overseers, bare(c.Overseers[i].Agent))
	}
	if c.ExpireAfter > 0 {
		n := int64(math.Ceil(c.ExpireAfter.Seconds()))
		out.Options.TTLSeconds = &n
	}
	if c.KeepMessages > 0 {
		out.Options.MaxMessages = &c.KeepMessages
	}
	return out
}

// listChannels handles GET /intents/{id}/channels: those of the intent and of its tasks.
func (h *Handler) listChannels(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	ctx, by := r.Context(), channelCaller(who)
	intent, err := h.deps.Channels.Scopes().Get(ctx, by, scope.ID(r.PathValue("id")))
	if err == nil && intent.Parent != "" {
		err = scope.ErrNotFound()
	}
	if err != nil {
		return 0, nil, err
	}
	within := []*scope.Scope{intent}
	for q := (scope.ListQuery{Parent: intent.ID, PageSize: 200}); ; {
		page, next, err := h.deps.Channels.Scopes().List(ctx, by, q)
		if err != nil {
			return 0, nil, err
		}
		within = append(within, page...)
		if q.PageToken = next; next == "" {
			break
		}
	}
	out := []*wireChannel{}
	for _, sc := range within {
		for q := (channel.ListQuery{Scope: sc.ID, PageSize: 200}); ; {
			page, next, err := h.deps.Channels.List(ctx, by, q)
			if err != nil {
				return 0, nil, err
			}
			for _, c := range page {
				out = append(out, channelIn(sc, c))
			}
			if q.PageToken = next; next == "" {
				break
			}
		}
	}
	return http.StatusOK, out, nil
}

// channelNamed returns the channel of the path.
func (h *Handler) channelNamed(r *http.Request, who caller.Caller) (*channel.Channel, error) {
	c, err := h.deps.Channels.Get(r.Context(), channelCaller(who), channel.ID(r.PathValue("channel")))
	if err == nil && c.Scope == "" {
		err = channel.ErrNotFound() // the protocol has channels of intents only
	}
	return c, err
}

// getChannel handles GET /channels/{channel}.
func (h *Handler) getChannel(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	c, err := h.channelNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	out, err := h.channelOf(r.Context(), who, c)
	return http.StatusOK, out, err
}

// channelChange is the body of PATCH /channels/{channel}: absent members stay unchanged.
type channelChange struct {
	Name         *string        `json:"name"`
	Members      *[]string      `json:"members"`
	MemberPolicy *string        `json:"member_policy"`
	Options      channelOptions `json:"options"`
	Status       *string        `json:"status"`
}

// updateChannel handles PATCH /channels/{channel}. The settings come first, then the
// members, and closing last, after which nothing changes.
func (h *Handler) updateChannel(w http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	var body channelChange
	if err := h.readBody(w, r, &body); err != nil {
		return 0, nil, err
	}
	c, err := h.channelNamed(r, who)
	if err != nil {
		return 0, nil, err
	}
	if body.Status != nil && *body.Status != string(channel.Open) && *body.Status != string(channel.Closed) {
		return 0, nil, errField("status", "status must be open or closed", "enum")
	}
	if body.Status != nil && *body.Status == string(channel.Open) && c.Status() == channel.Closed {
		return 0, nil, kg.Errorf(kg.CodeChannelClosed, "channel is closed")
	}
	if c, err = h.changeSettings(r.Context(), who, c, &body); err != nil {
		return 0, nil, err
	}
	if body.Members != nil {
		if c, err = h.changeMembers(r.Context(), who, c, *body.Members); err != nil {
			return 0, nil, err
		}
	}
	if body.Status != nil && *body.Status == string(channel.Closed) && c.Status() == channel.Open {
		if c, err = h.deps.Channels.CloseChannel(r.Context(), channelCaller(who), c.ID, ""); err != nil {
			return 0, nil, err
		}
	}
	out, err := h.channelOf(r.Context(), who, c)
	return http.StatusOK, out, err
}

// changeSettings changes name, policy and options. The version is the one just read.
func (h *Handler) changeSettings(ctx context.Context, who caller.Caller, c *channel.Channel, body *channelChange) (*channel.Channel, error) {
	u := channel.Update{Name: body.Name, Audit: body.Options.Audit}
	ttl, err := body.Options.ttl(c.ExpireAfter)
	if err != nil {
		return nil, err
	}
	keep, err := body.Options.keep(c.KeepMessages)
	if err != nil {
		return nil, err
	}
	if body.Options.TTLSeconds.given {
		u.ExpireAfter = &ttl
	}
	if body.Options.MaxMessages.given {
		u.KeepMessages = &keep
	}
	policy, err := readPolicy(body.MemberPolicy, c.MemberPolicy)
	if err != nil {
		return nil, err
	}
	if policy != c.MemberPolicy {
		u.MemberPolicy = &policy
	}
	if u.MemberPolicy == nil && u.Name == nil && u.Audit == nil && u.ExpireAfter == nil && u.KeepMessages == nil {
		return c, nil
	}
	by := channelCaller(who)
	for try := 1; ; try++ {
		u.ExpectedVersion = c.Version
		changed, err := h.deps.Channels.Update(ctx, by, c.ID, u)
		if err == nil || kg.CodeOf(err) != kg.CodeVersionConflict || try == updateTries {
			return changed, err
		}
		if c, err = h.deps.Channels.Get(ctx, by, c.ID); err != nil {
			return nil, err
		}
	}
}

// changeMembers makes the list the members of the channel. The creator stays, whether it is
// listed or not: it owns the channel. An agent that takes part through the intent cannot be
// removed, and stays without an error.
func (h *Handler) changeMembers(ctx context.Context, who caller.Caller, c *channel.Channel, names []string) (*channel.Channel, error) {
	by, members := channelCaller(who), h.deps.Channels.Members()
	var want []kg.AgentID
	for _, name := range names {
		agent, err := memberNamed(name)
		if err != nil {
			return nil, err
		}
		want = append(want, agent)
	}
	if c.MemberRole(c.CreatedBy) != "" && !slices.Contains(want, c.CreatedBy) {
		return nil, kg.Errorf(kg.CodeLastOwner, "the creator stays a member")
	}
	for _, m := range c.Members {
		if slices.Contains(want, m.Agent) {
			continue
		}
		changed, err := members.Remove(ctx, by, c.ID, m.Agent)
		switch kg.CodeOf(err) {
		case "":
			c = changed
		case kg.CodeInvalid, kg.CodeNotFound: // keeps access, or is gone
		default:
			return nil, err
		}
	}
	for _, agent := range want {
		if c.MemberRole(agent) != "" {
			continue
		}
		changed, err := members.Add(ctx, by, c.ID, agent, channel.Ordinary)
		if err != nil {
			return nil, err
		}
		c = changed
	}
	return c, nil
}

// deletedChannel is the answer of DELETE /channels/{channel}.
type deletedChannel struct {
	Status  string     `json:"status"`
	Channel channel.ID `json:"channel_id"`
}

// deleteChannel handles DELETE /channels/{channel}.
func (h *Handler) deleteChannel(_ http.ResponseWriter, r *http.Request, who caller.Caller) (int, any, error) {
	c, err := h.channelNamed(r, who)
	if err == nil {
		err = h.deps.Channels.Delete(r.Context(), channelCaller(who), c.ID)
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, deletedChannel{string(channel.Closed), c.ID}, nil
}
