package graph

import (
	"context"
	"time"

	"koine/channels"
)

// Limits are what the channel bounds of its own.
func (c *Channel) Limits() *ChannelLimits {
	l := &c.of.Limits
	return &ChannelLimits{MessagesPerMinute: unlessZero(l.MessagesPerMinute), Streams: unlessZero(l.Streams), MessageBytes: unlessZero(l.MessageBytes)}
}

// Status tells whether it takes messages.
func (c *Channel) Status() ChannelStatus { return ChannelStatus(inSchema(c.of.Status())) }

// ClosedAt is nil of one that is open.
func (c *Channel) ClosedAt() *time.Time { return timeOrNil(c.of.ClosedAt) }

// ClosedReason is nil where nothing was said.
func (c *Channel) ClosedReason() *string { return some(c.of.CloseReason) }

// ExpireAfterSeconds are whole seconds, rounded up; nil for never.
func (c *Channel) ExpireAfterSeconds() *int64 {
	return unlessZero(int64((c.of.ExpireAfter + time.Second - 1) / time.Second))
}

// ExpiresAt is nil for never.
func (c *Channel) ExpiresAt() *time.Time { return timeOrNil(c.of.ExpiresAt()) }

// KeepMessages is nil for all.
func (c *Channel) KeepMessages() *int64 { return unlessZero(c.of.KeepMessages) }

// Scope is what it belongs to, nil for nothing.
func (c *Channel) Scope(ctx context.Context) (*Scope, error) {
	return scopeIfAny(ctx, c.of.Scope)
}

// ScopeID is the id of that.
func (c *Channel) ScopeID() *string { return some(string(c.of.Scope)) }

// MemberPolicy is nil of a channel outside of a scope.
func (c *Channel) MemberPolicy() *ChannelMemberPolicy {
	return enumOrNil[ChannelMemberPolicy](c.of.MemberPolicy)
}

// Audit tells whether its messages are copied to the events of its scope.
func (c *Channel) Audit() bool { return c.of.Audit }

// Invitations are those that the caller may know of.
func (c *Channel) Invitations(ctx context.Context) ([]ChannelInvitation, error) {
	r := runOf(ctx)
	service, by, err := r.channels()
	if err != nil {
		return nil, err
	}
	list, err := service.Invitations(by, c.of.ID)
	if err := orGone(err); err != nil {
		return nil, err
	}
	out := make([]ChannelInvitation, len(list))
	for i, one := range list {
		out[i] = ChannelInvitation{Agent: string(one.Agent), By: string(one.By), At: one.At}
	}
	return out, r.charge(sizeOfBar * len(out))
}

// Bars are nil where the caller may not know of them.
func (c *Channel) Bars(ctx context.Context) ([]ChannelBar, error) {
	list, err := runOf(ctx).bars(c.of.ID)
	return list, orGone(err)
}

// unlessZero is nil for 0, which the domain writes for: none.
func unlessZero[T int | int64](n T) *T {
	if n == 0 {
		return nil
	}
	return &n
}

// tier is that of who asks.
func (r *run) tier() *ChannelTier {
	service, by, err := r.channels()
	if err != nil {
		return nil // there are no channels
	}
	t := service.TierOf(by)
	return &ChannelTier{
		Name: some(t.Name), MessagesPerMinute: unlessZero(t.MessagesPerMinute), Streams: unlessZero(t.Streams),
		Channels: unlessZero(t.Channels), MessageBytes: unlessZero(t.MessageBytes),
	}
}

// limitsIn are the limits that an input says; nil for none.
func limitsIn(input *ChannelLimitsInput) *channels.Limits {
	if input == nil {
		return nil
	}
	return &channels.Limits{MessagesPerMinute: deref(input.MessagesPerMinute), Streams: deref(input.Streams), MessageBytes: deref(input.MessageBytes)}
}

// staying is how long a channel is to stay open; nil for nothing said. What is past
// the domain's bounds stays past them, and does not overflow.
func staying(n *int64) *time.Duration {
	if n == nil {
		return nil
	}
	most := int64(channels.MaxExpireAfter/time.Second) + 1
	d := time.Duration(min(max(*n, -1), most)) * time.Second
	return &d
}
