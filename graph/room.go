package graph

import (
	"context"
	"math"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/kg"
)

// Limits are the channel's own limits.
func (c *Channel) Limits() *ChannelLimits {
	l := &c.record.Limits
	return &ChannelLimits{MessagesPerMinute: unlessZero(l.MessagesPerMinute), Streams: unlessZero(l.Streams), MessageBytes: unlessZero(l.MessageBytes)}
}

// Status tells whether the channel is open or closed.
func (c *Channel) Status() ChannelStatus { return ChannelStatus(inSchema(c.record.Status())) }

// ClosedAt is nil for an open channel.
func (c *Channel) ClosedAt() *time.Time { return timeOrNil(c.record.ClosedAt) }

// ClosedReason is nil if none was given.
func (c *Channel) ClosedReason() *string { return nilIfEmpty(c.record.CloseReason) }

// ExpireAfterSeconds is rounded up to whole seconds; nil if the channel does
// not expire.
func (c *Channel) ExpireAfterSeconds() *int64 {
	return unlessZero(int64((c.record.ExpireAfter + time.Second - 1) / time.Second))
}

// ExpiresAt is nil if the channel does not expire.
func (c *Channel) ExpiresAt() *time.Time { return timeOrNil(c.record.ExpiresAt()) }

// KeepMessages is nil if all messages are kept.
func (c *Channel) KeepMessages() *int64 { return unlessZero(c.record.KeepMessages) }

// Scope is the channel's scope, nil for none.
func (c *Channel) Scope(ctx context.Context) (*Scope, error) {
	return scopeIfAny(ctx, c.record.Scope)
}

// ScopeID is the id of the channel's scope.
func (c *Channel) ScopeID() *string { return nilIfEmpty(string(c.record.Scope)) }

// MemberPolicy is nil for a channel outside of a scope.
func (c *Channel) MemberPolicy() *ChannelMemberPolicy {
	return enumOrNil[ChannelMemberPolicy](c.record.MemberPolicy)
}

// Audit reports whether messages are copied to the events of the channel's
// scope.
func (c *Channel) Audit() bool { return c.record.Audit }

// OverseerIds are the agents that read the channel without taking part.
func (c *Channel) OverseerIds() []string {
	out := make([]string, 0, len(c.record.Overseers))
	for _, o := range c.record.Overseers {
		out = append(out, string(o.Agent))
	}
	return out
}

// Invitations are the open invitations that the caller may see.
func (c *Channel) Invitations(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*ChannelInvitationConnection, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, err := r.openRange("channel.invitations", knowledge.PageArgs{First: first, After: after, Last: last, Before: before}, limit.DefaultListSize, math.MaxInt, c.record.ID)
	if err != nil {
		return nil, err
	}
	list, err := service.Members().Invitations(by, c.record.ID)
	if err := unlessHidden(err); err != nil {
		return nil, err
	}
	page := pageOfSlice(p, list, func(i *channel.Invitation) string { return timeKey(i.At) + string(i.Agent) }, func(i *channel.Invitation) ChannelInvitation {
		return ChannelInvitation{Agent: agentOf(i.Agent), AgentID: string(i.Agent), InvitedBy: agentOf(i.By), InvitedByID: string(i.By), InvitedAt: i.At}
	})
	return page, r.chargeBytes(sizeOfRestriction * len(page.nodes))
}

// Restrictions are the channel's restrictions, nil if the caller may not see them.
func (c *Channel) Restrictions(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*ChannelRestrictionConnection, error) {
	page, err := runOf(ctx).listRestrictions("channel.restrictions", c.record.ID, knowledge.PageArgs{First: first, After: after, Last: last, Before: before})
	return page, unlessHidden(err)
}

// unlessZero returns nil for 0, the domain's value for no bound.
func unlessZero[T int | int64](n T) *T {
	if n == 0 {
		return nil
	}
	return &n
}

// callerTier returns the tier of the caller.
func (r *run) callerTier() *ChannelTier {
	service, by, err := r.channelService()
	if err != nil {
		return nil // channels are disabled
	}
	t := service.TierOf(by)
	return &ChannelTier{
		Name: nilIfEmpty(t.Name), MessagesPerMinute: unlessZero(t.MessagesPerMinute), Streams: unlessZero(t.Streams),
		Channels: unlessZero(t.Channels), MessageBytes: unlessZero(t.MessageBytes),
	}
}

// limitsIn converts an input of limits, nil for nil.
func limitsIn(input *ChannelLimitsInput) *channel.Limits {
	if input == nil {
		return nil
	}
	return &channel.Limits{MessagesPerMinute: deref(input.MessagesPerMinute), Streams: deref(input.Streams), MessageBytes: deref(input.MessageBytes)}
}

// idleTimeout converts an idle timeout, nil for nil. A value beyond the domain's
// bounds stays beyond them without overflowing.
func idleTimeout(n *int64) *time.Duration {
	if n == nil {
		return nil
	}
	most := int64(channel.MaxExpireAfter/time.Second) + 1
	d := time.Duration(min(max(*n, -1), most)) * time.Second
	return &d
}

// changeChannel answers a mutation with the channel as the caller sees it
// afterwards, nil if it no longer does.
func (r *run) changeChannel(ctx context.Context, id string, change func(*channels.Service, channels.Caller, channel.ID) error) (*ChannelPayload, error) {
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	if err := change(service, by, channel.ID(id)); err != nil {
		return nil, inInput(withFieldNames(err, inInputs))
	}
	r.notePosition(r.engine.deps.Store.Head())
	c, err := unlessGone(readChannel(ctx, id))
	if err != nil {
		return nil, err
	}
	return &ChannelPayload{ChannelID: id, Channel: c}, nil
}

// CloseChannel answers Mutation.closeChannel.
func (*mutationRoot) CloseChannel(ctx context.Context, input CloseChannelInput) (*ChannelPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	return r.changedChannel(service.CloseChannel(ctx, by, channel.ID(input.ChannelID), deref(input.Reason)))
}

// JoinChannel answers Mutation.joinChannel.
func (*mutationRoot) JoinChannel(ctx context.Context, input JoinChannelInput) (*ChannelPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	return r.changedChannel(service.Members().Join(ctx, by, channel.ID(input.ChannelID), roleIn(input.Role)))
}

// LeaveChannel answers Mutation.leaveChannel.
func (*mutationRoot) LeaveChannel(ctx context.Context, input LeaveChannelInput) (*ChannelPayload, error) {
	return runOf(ctx).changeChannel(ctx, input.ChannelID, func(s *channels.Service, by channels.Caller, id channel.ID) error {
		return s.Members().Leave(ctx, by, id)
	})
}

// InviteAgent answers Mutation.inviteAgent.
func (*mutationRoot) InviteAgent(ctx context.Context, input InvitationInput) (*ChannelPayload, error) {
	return runOf(ctx).changeChannel(ctx, input.ChannelID, func(s *channels.Service, by channels.Caller, id channel.ID) error {
		return s.Members().Invite(ctx, by, id, kg.AgentID(input.AgentID))
	})
}

// WithdrawInvitation answers Mutation.withdrawInvitation.
func (*mutationRoot) WithdrawInvitation(ctx context.Context, input InvitationInput) (*ChannelPayload, error) {
	return runOf(ctx).changeChannel(ctx, input.ChannelID, func(s *channels.Service, by channels.Caller, id channel.ID) error {
		return s.Members().Withdraw(ctx, by, id, kg.AgentID(input.AgentID))
	})
}

// AnswerInvitation answers Mutation.answerInvitation.
func (*mutationRoot) AnswerInvitation(ctx context.Context, input AnswerInvitationInput) (*ChannelPayload, error) {
	return runOf(ctx).changeChannel(ctx, input.ChannelID, func(s *channels.Service, by channels.Caller, id channel.ID) error {
		if input.Answer == InvitationAnswerDecline {
			return s.Members().Decline(ctx, by, id)
		}
		_, err := s.Members().Accept(ctx, by, id)
		return err
	})
}

// RemoveAgent answers Mutation.removeAgent.
func (*mutationRoot) RemoveAgent(ctx context.Context, input RemoveAgentInput) (*RemoveAgentPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	n, err := service.Members().RemoveAgent(ctx, by, kg.AgentID(input.AgentID))
	if n > 0 {
		r.notePosition(r.engine.deps.Store.Head())
	}
	if err != nil {
		return nil, inInput(withFieldNames(err, inInputs))
	}
	id := kg.CanonicalAgent(input.AgentID)
	if all := r.engine.deps.Intents; all != nil { // an agent that is gone holds no lease
		if err := all.Leases().ReleaseAgent(ctx, id); err != nil {
			return nil, err
		}
		r.notePosition(r.engine.deps.Store.Head())
	}
	return &RemoveAgentPayload{Agent: agentOf(id), AgentID: string(id), ChannelCount: n}, nil
}
