package graph

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/kg"
)

// Channel is a channel as the caller sees it.
type Channel struct{ record *channel.Channel }

// channelService returns the channel service and the caller.
func (r *run) channelService() (*channels.Service, channels.Caller, error) {
	by := channels.Caller{Principal: r.request.Principal, Actor: r.request.Actor}
	if r.engine.deps.Channels == nil {
		return nil, by, kg.Errorf(kg.CodeNotFound, "channels are disabled on this server")
	}
	return r.engine.deps.Channels, by, nil
}

// readChannel answers Query.channel.
func readChannel(ctx context.Context, id string) (*Channel, error) {
	service, by, err := runOf(ctx).channelService()
	if err != nil {
		return nil, err
	}
	return shownChannel(service.Get(ctx, by, channel.ID(id)))
}

// shownChannel converts a channel, and places its error in the schema's
// argument.
func shownChannel(c *channel.Channel, err error) (*Channel, error) {
	if err != nil {
		return nil, atArgument(err)
	}
	return &Channel{c}, nil
}

// unlessGone turns a "not found" error into nil.
func unlessGone[T any](v *T, err error) (*T, error) {
	switch kg.CodeOf(err) {
	case kg.CodeChannelNotFound, kg.CodeScopeNotFound, kg.CodeNotFound:
		return nil, nil
	}
	return v, err
}

// argumentNames maps the domain's field names to the schema's argument names.
var argumentNames = map[string]string{"sinceTimestamp": "sinceTime", "pageToken": "after", "channelId": "id", "messageId": "id"}

// atArgument places an error in the argument that it is about.
func atArgument(err error) error { return withFieldNames(err, argumentNames) }

// withFieldNames translates the field name of an error.
func withFieldNames(err error, names map[string]string) error {
	return fault.WithFieldNames(err, names)
}

// Channels answers Query.channels.
func (*queryRoot) Channels(
	ctx context.Context, visibility *ChannelVisibility, member *string, invited bool, scopeID *string, first *int, after *Cursor, last *int, before *Cursor,
) (*ChannelConnection, error) {
	l := channel.ListQuery{Member: kg.AgentID(deref(member)), Invited: invited, Scope: scope.ID(deref(scopeID))}
	l.Visibility = channel.Visibility(inDomain(deref(visibility)))
	return runOf(ctx).listChannels(ctx, "channels", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, l)
}

func (r *run) listChannels(ctx context.Context, list string, a knowledge.PageArgs, l channel.ListQuery) (*ChannelConnection, error) {
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, err := r.openDomainRange(list, a, channels.MaxPage, l.Scope, l.Visibility, l.Member, l.Invited)
	if err != nil {
		return nil, err
	}
	l.PageSize, l.Behind, l.Backward = p.size, channel.ID(p.key), p.backward
	found, end, more, err := service.ListPage(ctx, by, l)
	if err == nil {
		err = chargeAll(r, found, sizeOfChannel)
	}
	if err != nil {
		return nil, atArgument(err)
	}
	page := newListPage(p, found, more, string(end), func(c **channel.Channel) string { return string((*c).ID) }, func(c **channel.Channel) Channel { return Channel{*c} })
	page.count = func(context.Context) (int64, bool, error) {
		n, exact, err := service.CountChannels(by, l)
		return int64(n), exact, err
	}
	return page, nil
}

func sizeOfChannel(c **channel.Channel) int { return len((*c).Metadata) + 64*len((*c).Members) }

// inDomain converts an enum value of the schema to the domain's spelling.
// inSchema is its inverse.
func inDomain[T ~string](word T) string { return strings.ToLower(string(word)) }

func inSchema[T ~string](word T) string { return strings.ToUpper(string(word)) }

// ID is the id of the channel.
func (c *Channel) ID() string { return string(c.record.ID) }

// Kind is direct, room or channel.
func (c *Channel) Kind() ChannelKind { return ChannelKind(inSchema(c.record.Kind)) }

// Name is nil if the channel has none.
func (c *Channel) Name() *string { return nilIfEmpty(c.record.Name) }

// Topic is nil if the channel has none.
func (c *Channel) Topic() *string { return nilIfEmpty(c.record.Topic) }

// Visibility tells which agents find the channel.
func (c *Channel) Visibility() ChannelVisibility {
	return ChannelVisibility(inSchema(c.record.Visibility))
}

// CreatedAt is nil for a direct channel that does not exist yet.
func (c *Channel) CreatedAt() *time.Time { return timeOrNil(c.record.CreatedAt) }

// CreatedBy is nil for a direct channel that does not exist yet.
func (c *Channel) CreatedBy() *Agent { return agentIfAny(c.record.CreatedBy) }

// CreatedByID is the id of that agent.
func (c *Channel) CreatedByID() *string { return nilIfEmpty(string(c.record.CreatedBy)) }

// Members are ordered by the time at which they joined.
func (c *Channel) Members(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*ChannelMemberConnection, error) {
	p, err := runOf(ctx).openRange("channel.members", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, limit.DefaultListSize, math.MaxInt, c.record.ID)
	if err != nil {
		return nil, err
	}
	return pageOfSlice(p, c.record.Members, func(m *channel.Member) string { return timeKey(m.Joined) + string(m.Agent) }, func(m *channel.Member) ChannelMember {
		return ChannelMember{Agent: agentOf(m.Agent), AgentID: string(m.Agent), Role: ChannelRole(inSchema(m.Role)), JoinedAt: timeOrNil(m.Joined)}
	}), nil
}

// Metadata is a JSON object, nil for none.
func (c *Channel) Metadata() json.RawMessage { return c.record.Metadata }

// Rights are the channel's own rights, completed by the defaults of its kind.
func (c *Channel) Rights() *ChannelRights {
	p := c.record.Policy()
	return &ChannelRights{
		Discover: ChannelAccessLevel(inSchema(p.Discover)), Join: ChannelAccessLevel(inSchema(p.Join)), Read: ChannelAccessLevel(inSchema(p.Read)),
		Post: ChannelAccessLevel(inSchema(p.Post)), Manage: ChannelAccessLevel(inSchema(p.Manage)),
	}
}

// MaxMembers is nil if the server's bound applies.
func (c *Channel) MaxMembers() *int {
	if c.record.MaxMembers == 0 {
		return nil
	}
	return &c.record.MaxMembers
}

// Version increases with each change of the channel.
func (c *Channel) Version() int64 { return c.record.Version }

// MessageCount counts all messages ever published.
func (c *Channel) MessageCount() int64 { return c.record.Messages }

// LastMessageAt is nil if there is no message.
func (c *Channel) LastMessageAt() *time.Time { return timeOrNil(c.record.LastMessageAt) }

// FactsGraph is the graph for facts of messages that name none, unless the
// channel is public.
func (c *Channel) FactsGraph() kg.Term { return c.record.ID.FactsGraph() }

// Entity is the channel as an entity.
func (c *Channel) Entity(ctx context.Context, f *executor.Selected) (executor.Value, error) {
	return knowledge.ReadOwnEntity(ctx, f, c.record.ID.Entity())
}
