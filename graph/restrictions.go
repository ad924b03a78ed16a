package graph

import (
	"context"
	"fmt"
	"math"

	"koine/channels"
	"koine/channels/channel"
	"koine/graph/internal/knowledge"
	"koine/graph/limit"
	"koine/kg"
)

// sizeOfRestriction is the approximate size of a restriction or an invitation in an
// answer, in bytes.
const sizeOfRestriction = 64

// listRestrictions lists the restrictions of a channel, or those that hold in all
// channels.
func (r *run) listRestrictions(list string, id channel.ID, a knowledge.PageArgs) (*ChannelRestrictionConnection, error) {
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	p, err := r.openRange(list, a, limit.DefaultListSize, math.MaxInt, id)
	if err != nil {
		return nil, err
	}
	found, err := service.Members().Restrictions(by, id)
	if err != nil {
		return nil, err
	}
	key := func(b *channel.Restriction) string { return fmt.Sprintf("%s %t", b.Agent, b.Muted) }
	page := pageOfSlice(p, found, key, func(b *channel.Restriction) ChannelRestriction {
		out := ChannelRestriction{Agent: agentOf(b.Agent), AgentID: string(b.Agent), Kind: ChannelRestrictionKindBan, From: b.From, Until: timeOrNil(b.Until)}
		if b.Muted {
			out.Kind = ChannelRestrictionKindMute
		}
		return out
	})
	return page, r.chargeBytes(sizeOfRestriction * len(page.nodes))
}

// unlessHidden drops the errors of a caller that may not see the channel, or no
// longer.
func unlessHidden(err error) error {
	switch kg.CodeOf(err) {
	case kg.CodeChannelNotFound, kg.CodePermissionDenied:
		return nil
	}
	return err
}

// GlobalRestrictions answers Query.globalRestrictions.
func (*queryRoot) GlobalRestrictions(ctx context.Context, first *int, after *Cursor, last *int, before *Cursor) (*ChannelRestrictionConnection, error) {
	return runOf(ctx).listRestrictions("globalRestrictions", channel.AllChannels, knowledge.PageArgs{First: first, After: after, Last: last, Before: before})
}

// changeRestrictions answers a mutation of restrictions in one channel, or in
// all.
func (r *run) changeRestrictions(ctx context.Context, channelID *string, everywhere bool, change func(*channels.Members, channels.Caller, channel.ID) error) (*RestrictionPayload, error) {
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	id := channel.ID(deref(channelID))
	if everywhere == (id != channel.AllChannels) {
		return nil, kg.Errorf(kg.CodeInvalid, "exactly one of channelId and everywhere is required").At("channelId").At("input")
	}
	if err := change(service.Members(), by, id); err != nil {
		return nil, inInput(withFieldNames(err, inInputs))
	}
	r.notePosition(r.engine.deps.Store.Head())
	out := &RestrictionPayload{}
	if !everywhere {
		if out.Channel, err = unlessGone(readChannel(ctx, string(id))); err != nil {
			return nil, err
		}
	}
	list := "channel.restrictions"
	if everywhere {
		list = "globalRestrictions"
	}
	out.Restrictions, err = r.listRestrictions(list, id, knowledge.PageArgs{})
	if err = unlessHidden(err); err == nil && out.Restrictions == nil {
		out.Restrictions = &ChannelRestrictionConnection{count: exactly(0)}
	}
	return out, err
}

// RestrictAgent answers Mutation.restrictAgent.
func (*mutationRoot) RestrictAgent(ctx context.Context, input RestrictAgentInput) (*RestrictionPayload, error) {
	return runOf(ctx).changeRestrictions(ctx, input.ChannelID, input.Everywhere, func(m *channels.Members, by channels.Caller, id channel.ID) error {
		by.Justification = deref(input.Justification)
		if input.Kind == ChannelRestrictionKindMute {
			return m.Mute(ctx, by, id, kg.AgentID(input.AgentID), orZero(input.Until))
		}
		return m.Ban(ctx, by, id, kg.AgentID(input.AgentID), orZero(input.Until))
	})
}

// LiftRestriction answers Mutation.liftRestriction.
func (*mutationRoot) LiftRestriction(ctx context.Context, input LiftRestrictionInput) (*RestrictionPayload, error) {
	return runOf(ctx).changeRestrictions(ctx, input.ChannelID, input.Everywhere, func(m *channels.Members, by channels.Caller, id channel.ID) error {
		if input.Kind == ChannelRestrictionKindMute {
			return m.Unmute(ctx, by, id, kg.AgentID(input.AgentID))
		}
		return m.Unban(ctx, by, id, kg.AgentID(input.AgentID))
	})
}
