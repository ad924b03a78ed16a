package client

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/google/uuid"
)

// Channel describes a channel.
type Channel struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Visibility string          `json:"visibility"` // private, public, direct
	CreatedAt  int64           `json:"createdAt"`  // milliseconds since 1970
	CreatedBy  string          `json:"createdBy"`
	Members    []Member        `json:"members"`
	Metadata   json.RawMessage `json:"metadata"`
	Version    int64           `json:"version"`
	Scope      string          `json:"scopeId"`  // the scope that contains it, or ""
	ClosedAt   int64           `json:"closedAt"` // 0 while it is open
	// ClosedReason is the reason given for closing it, or "".
	ClosedReason string `json:"closedReason"`
	// Raw is the channel as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes a channel and keeps the text in Raw.
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

// NewChannel describes a channel to create.
type NewChannel struct {
	Name       string         `json:"name,omitempty"`
	Visibility string         `json:"visibility,omitempty"` // "" is private
	Members    []Member       `json:"members,omitempty"`    // in addition to the caller, the owner
	Metadata   map[string]any `json:"metadata,omitempty"`
	Scope      string         `json:"scopeId,omitempty"` // the scope to create it in
	// MemberPolicy selects the participants of a channel in a scope: "explicit" (only its
	// members) or "scope" (every agent with access to the scope). "" is "explicit".
	MemberPolicy string `json:"memberPolicy,omitempty"`
	// IdempotencyKey makes a retry return the channel of the first request. Without a key
	// the client generates one that covers its own retries.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// ChannelChange describes a change of a channel's name and metadata. Zero fields change
// nothing.
type ChannelChange struct {
	// ExpectedVersion is the Version of the channel that the change is based on. It is
	// required. The change fails with VersionConflict if the channel has another version.
	ExpectedVersion int64
	Name            string
	Set             map[string]any // metadata members to set
	Remove          []string       // names of metadata members to remove
}

// ChannelFilter selects the channels to list. Zero fields select all.
type ChannelFilter struct {
	Visibility string // private or public; "" is both
	Member     string // only channels with this member
	Scope      string // only channels of this scope that are visible to the caller
	// PageSize is the number of channels per request. 0 is the server's default.
	PageSize int
}

// CreateChannel creates a channel owned by the caller. It retries with the same
// idempotency key while the outcome is unknown.
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

// GetChannel returns a channel. It fails with ChannelNotFound if the channel does not
// exist or the caller has no read access.
func (c *Client) GetChannel(ctx context.Context, id string) (*Channel, error) {
	return c.callChannel(ctx, c.callWithRetry, "channels/get", map[string]any{"channelId": id})
}

// ListChannels returns the caller's channels and the public ones. It fetches pages as the
// iteration proceeds. An error ends the iteration.
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

// DeleteChannel deletes a channel and its messages permanently.
func (c *Client) DeleteChannel(ctx context.Context, id string) error {
	if err := c.requireCapability(Channels); err != nil {
		return err
	}
	return c.callOnce(ctx, "channels/delete", map[string]any{"channelId": id}, nil)
}

// AddMember adds an agent to a channel, or changes the role of a member. The role ""
// is "member".
func (c *Client) AddMember(ctx context.Context, id, agent, role string) (*Channel, error) {
	p := map[string]any{"channelId": id, "principalId": agent}
	setNonZero(p, "role", role)
	return c.callChannel(ctx, c.callOnce, "channels/addMember", p)
}

// RemoveMember removes an agent from a channel.
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

// listPages iterates over a paged list. It requests a page when the one before it is
// consumed.
func listPages[T any, P any, PP interface {
	*P
	nextToken() string
}](ctx context.Context, c *Client, method string, params map[string]any, items func(*P) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		if err := c.requireCapability(Channels); err != nil {
			yield(zero, err)
			return
		}
		for token := ""; ; {
			pageParams := map[string]any{}
			for name, value := range params {
				pageParams[name] = value
			}
			setNonZero(pageParams, "pageToken", token)
			page := new(P)
			if err := c.callWithRetry(ctx, method, pageParams, page); err != nil {
				yield(zero, err)
				return
			}
			for _, item := range items(page) {
				if !yield(item, nil) {
					return
				}
			}
			if token = PP(page).nextToken(); token == "" {
				return
			}
		}
	}
}
