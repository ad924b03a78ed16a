package client

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/google/uuid"
)

// Channel is a channel as the server shows it.
type Channel struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Visibility string          `json:"visibility"` // private, public, direct
	CreatedAt  int64           `json:"createdAt"`  // milliseconds since 1970
	CreatedBy  string          `json:"createdBy"`
	Members    []Member        `json:"members"`
	Metadata   json.RawMessage `json:"metadata"`
	Version    int64           `json:"version"`
	Scope      string          `json:"scopeId"`  // that it is in, if it is in one
	ClosedAt   int64           `json:"closedAt"` // 0 while it is open
	// ClosedReason is why it was closed, "" where nothing was said.
	ClosedReason string `json:"closedReason"`
	// Raw is all that the server sent.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps what it reads in Raw.
func (c *Channel) UnmarshalJSON(text []byte) error {
	type plain Channel
	c.Raw = slices.Clone(text)
	return json.Unmarshal(text, (*plain)(c))
}

// Member is an agent in a channel.
type Member struct {
	Agent    string `json:"principalId"`
	Role     string `json:"role,omitempty"` // owner, moderator, member, observer; "" is a member
	JoinedAt int64  `json:"joinedAt,omitempty"`
}

// NewChannel is what a channel is made of.
type NewChannel struct {
	Name       string         `json:"name,omitempty"`
	Visibility string         `json:"visibility,omitempty"` // private if it is ""
	Members    []Member       `json:"members,omitempty"`    // beside the caller, who owns it
	Metadata   map[string]any `json:"metadata,omitempty"`
	Scope      string         `json:"scopeId,omitempty"` // to make it in
	// MemberPolicy says who takes part in a channel of a scope: explicit, its members
	// only, or scope, whoever has access to that. "" is explicit.
	MemberPolicy string `json:"memberPolicy,omitempty"`
	// IdempotencyKey makes the same channel be made once. Without one the client makes
	// one up, for its own attempts.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// ChannelChange is what is to be another way. A name that is "", and nothing to set or
// to remove, change nothing.
type ChannelChange struct {
	// ExpectedVersion is the Version of the channel that is changed. It is required: if
	// the channel has another one by now, the change is refused (VersionConflict).
	ExpectedVersion int64
	Name            string
	Set             map[string]any // members of its metadata
	Remove          []string
}

// ChannelFilter says which channels to list.
type ChannelFilter struct {
	Visibility string // private or public; "" is both
	Member     string // only those that this agent is in
	Scope      string // those of this scope that the caller may find
	// PageSize is how many are asked for at once; 0 leaves it to the server.
	PageSize int
}

// CreateChannel makes a channel, which the caller owns. It is sent again, with the same
// key, while it is not known whether it arrived.
func (c *Client) CreateChannel(ctx context.Context, n NewChannel) (*Channel, error) {
	call := c.callWithRetry
	if n.IdempotencyKey == "" {
		if c.retry.FailFast {
			call = c.callOnce
		} else {
			n.IdempotencyKey = uuid.NewString()
		}
	}
	return c.callChannel(ctx, call, "channels/create", n)
}

// GetChannel gives a channel that the caller may read, or ChannelNotFound.
func (c *Client) GetChannel(ctx context.Context, id string) (*Channel, error) {
	return c.callChannel(ctx, c.callWithRetry, "channels/get", map[string]any{"channelId": id})
}

// ListChannels lists the channels that the caller is in, and public ones, page by
// page as they are taken. An error is the last that it gives.
func (c *Client) ListChannels(ctx context.Context, f ChannelFilter) iter.Seq2[*Channel, error] {
	p := map[string]any{}
	setNonZero(p, "visibility", f.Visibility)
	setNonZero(p, "memberId", f.Member)
	setNonZero(p, "scopeId", f.Scope)
	setNonZero(p, "pageSize", f.PageSize)
	return listPages(ctx, c, "channels/list", p, func(page *channelPage) []*Channel { return page.Channels })
}

// UpdateChannel changes a channel's name and metadata.
func (c *Client) UpdateChannel(ctx context.Context, id string, change ChannelChange) (*Channel, error) {
	p := map[string]any{"channelId": id}
	setNonZero(p, "expectedVersion", change.ExpectedVersion)
	setNonZero(p, "name", change.Name)
	patch := map[string]any{}
	if len(change.Set) > 0 {
		patch["set"] = change.Set
	}
	if len(change.Remove) > 0 {
		patch["remove"] = change.Remove
	}
	if len(patch) > 0 {
		p["metadataPatch"] = patch
	}
	return c.callChannel(ctx, c.callOnce, "channels/update", p)
}

// DeleteChannel deletes a channel for good.
func (c *Client) DeleteChannel(ctx context.Context, id string) error {
	if err := c.requireCapability(Channels); err != nil {
		return err
	}
	return c.callOnce(ctx, "channels/delete", map[string]any{"channelId": id}, nil)
}

// AddMember takes an agent into a channel, or gives one that is in it another role.
// "" is the role of a member.
func (c *Client) AddMember(ctx context.Context, id, agent, role string) (*Channel, error) {
	p := map[string]any{"channelId": id, "principalId": agent}
	setNonZero(p, "role", role)
	return c.callChannel(ctx, c.callOnce, "channels/addMember", p)
}

// RemoveMember takes an agent out of a channel.
func (c *Client) RemoveMember(ctx context.Context, id, agent string) (*Channel, error) {
	return c.callChannel(ctx, c.callOnce, "channels/removeMember", map[string]any{"channelId": id, "principalId": agent})
}

type callFunc func(ctx context.Context, method string, params, into any) error

func (c *Client) callChannel(ctx context.Context, call callFunc, method string, params any) (*Channel, error) {
	if err := c.requireCapability(Channels); err != nil {
		return nil, err
	}
	var answer struct{ Channel Channel }
	if err := call(ctx, method, params, &answer); err != nil {
		return nil, err
	}
	return &answer.Channel, nil
}

type channelPage struct {
	Channels []*Channel `json:"channels"`
	paging
}

type messagePage struct {
	Events []*Message `json:"events"`
	paging
}

type paging struct {
	NextPageToken string `json:"nextPageToken"`
}

func (p paging) nextToken() string { return p.NextPageToken }

// listPages walks a list. Each page is asked for when the one before it is used up.
func listPages[T any, P any, PP interface {
	*P
	nextToken() string
}](ctx context.Context, c *Client, method string, params map[string]any, of func(*P) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		if err := c.requireCapability(Channels); err != nil {
			yield(zero, err)
			return
		}
		for token := ""; ; {
			asked := map[string]any{}
			for name, value := range params {
				asked[name] = value
			}
			setNonZero(asked, "pageToken", token)
			page := new(P)
			if err := c.callWithRetry(ctx, method, asked, page); err != nil {
				yield(zero, err)
				return
			}
			for _, one := range of(page) {
				if !yield(one, nil) {
					return
				}
			}
			if token = PP(page).nextToken(); token == "" {
				return
			}
		}
	}
}
