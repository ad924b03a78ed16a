package graph

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"koine/channels"
	"koine/kg"
)

// Channel is a channel as the caller sees it.
type Channel struct{ of *channels.Channel }

// channels gives what keeps the channels, and who asks.
func (r *run) channels() (*channels.Service, channels.Caller, error) {
	by := channels.Caller{Principal: r.request.Principal, Actor: r.request.Actor}
	if r.engine.deps.Channels == nil {
		return nil, by, kg.Errorf(kg.CodeNotFound, "there are no channels here")
	}
	return r.engine.deps.Channels, by, nil
}

// readChannel answers Query.channel.
func readChannel(ctx context.Context, id string) (*Channel, error) {
	service, by, err := runOf(ctx).channels()
	if err != nil {
		return nil, err
	}
	return shownChannel(service.Get(ctx, by, channels.ChannelID(id)))
}

// shownChannel answers with a channel, in the words of the schema.
func shownChannel(c *channels.Channel, err error) (*Channel, error) {
	if err != nil {
		return nil, asAsked(err)
	}
	return &Channel{c}, nil
}

// unlessGone is nil for what is not there for the caller, or no longer.
func unlessGone[T any](v *T, err error) (*T, error) {
	switch kg.CodeOf(err) {
	case kg.CodeChannelNotFound, kg.CodeScopeNotFound, kg.CodeNotFound:
		return nil, nil
	}
	return v, err
}

// asked are the arguments of this schema that the domain calls otherwise.
var asked = map[string]string{"sinceTimestamp": "sinceTime", "authorIds": "authors", "pageToken": "after", "channelId": "id", "messageId": "id"}

// asAsked places an error in the argument that it is about.
func asAsked(err error) error { return renamed(err, asked) }

// renamed calls what an error is about as the schema does.
func renamed(err error, names map[string]string) error {
	e := kg.AsError(err)
	name, ok := names[e.Field]
	if !ok {
		return err
	}
	out := *e
	out.Field = name
	return &out
}

// readChannels answers Query.channels.
func readChannels(ctx context.Context, first *int, after *Cursor, visibility *ChannelVisibility, member *string, invited bool, scope *string) (*ChannelConnection, error) {
	l := channels.ListQuery{Member: kg.AgentID(deref(member)), Invited: invited, Scope: channels.ScopeID(deref(scope))}
	l.Visibility = channels.Visibility(inDomain(deref(visibility)))
	return runOf(ctx).listChannels(ctx, first, after, l)
}

func (r *run) listChannels(ctx context.Context, first *int, after *Cursor, l channels.ListQuery) (*ChannelConnection, error) {
	service, by, err := r.channels()
	if err != nil {
		return nil, err
	}
	list := func(size int, token string) ([]*channels.Channel, string, error) {
		l.PageSize, l.PageToken = size, token
		return service.List(ctx, by, l)
	}
	nodes, page, err := channelNodes(r, first, after, list, func(c *channels.Channel) Channel { return Channel{c} }, sizeOfChannel)
	return &ChannelConnection{Nodes: nodes, PageInfo: page}, err
}

func sizeOfChannel(c *channels.Channel) int { return len(c.Metadata) + 64*len(c.Members) }

// channelNodes reads a page of what package channels lists.
func channelNodes[D, N any](r *run, first *int, after *Cursor, list func(size int, token string) ([]D, string, error), node func(D) N, size func(D) int) ([]N, *PageInfo, error) {
	n, err := r.channelPage(first)
	if err != nil {
		return nil, nil, err
	}
	page, next, err := list(n, string(deref(after)))
	if err != nil {
		return nil, nil, asAsked(err)
	}
	nodes, err := nodesOf(r, page, node, size)
	return nodes, tokenPage(after, next), err
}

// channelPage is the size of a page of channels or messages.
func (r *run) channelPage(first *int) (int, error) { return r.domainPage(first, channels.MaxPage) }

// inDomain is a word of the schema's enums as the domain writes it, and inSchema
// the other way round.
func inDomain[T ~string](word T) string { return strings.ToLower(string(word)) }

func inSchema[T ~string](word T) string { return strings.ToUpper(string(word)) }

// IsNode tells that Query.node finds it.
func (*Channel) IsNode() {}

// ID of the channel.
func (c *Channel) ID() string { return string(c.of.ID) }

// Kind of the channel.
func (c *Channel) Kind() ChannelKind { return ChannelKind(inSchema(c.of.Kind)) }

// Name of the channel.
func (c *Channel) Name() *string { return some(c.of.Name) }

// Topic of the channel.
func (c *Channel) Topic() *string { return some(c.of.Topic) }

// Visibility of the channel.
func (c *Channel) Visibility() ChannelVisibility {
	return ChannelVisibility(inSchema(c.of.Visibility))
}

// CreatedAt is nil of a direct channel that is not made yet.
func (c *Channel) CreatedAt() *time.Time { return timeOrNil(c.of.CreatedAt) }

// CreatedBy is nil of a direct channel that is not made yet.
func (c *Channel) CreatedBy() *string { return some(string(c.of.CreatedBy)) }

// Members in the order in which they joined.
func (c *Channel) Members() []ChannelMember {
	out := make([]ChannelMember, len(c.of.Members))
	for i, m := range c.of.Members {
		out[i] = ChannelMember{Agent: string(m.Agent), Role: ChannelRole(inSchema(m.Role)), JoinedAt: timeOrNil(m.Joined)}
	}
	return out
}

// Metadata is a JSON object, nil for none.
func (c *Channel) Metadata() json.RawMessage { return c.of.Metadata }

// Rights are those of the channel, with those that all of its kind have.
func (c *Channel) Rights() *ChannelRights {
	p := c.of.Policy()
	return &ChannelRights{
		Discover: ChannelWho(inSchema(p.Discover)), Join: ChannelWho(inSchema(p.Join)), Read: ChannelWho(inSchema(p.Read)),
		Post: ChannelWho(inSchema(p.Post)), Manage: ChannelWho(inSchema(p.Manage)),
	}
}

// MaxMembers is nil for the server's bound.
func (c *Channel) MaxMembers() *int {
	if c.of.MaxMembers == 0 {
		return nil
	}
	return &c.of.MaxMembers
}

// Version of the channel.
func (c *Channel) Version() int64 { return c.of.Version }

// MessageCount is how many were ever published.
func (c *Channel) MessageCount() int64 { return c.of.Messages }

// LastMessageAt is nil without a message.
func (c *Channel) LastMessageAt() *time.Time { return timeOrNil(c.of.LastMessageAt) }

// FactsGraph is where facts go that name no graph, unless the channel is public.
func (c *Channel) FactsGraph() kg.Term { return c.of.ID.FactsGraph() }

// Entity is the channel as an entity; the engine writes it.
func (c *Channel) Entity(ctx context.Context) (*Entity, error) {
	return nil, readOwnEntity(ctx, c.of.ID.Entity())
}
