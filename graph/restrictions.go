package graph

import (
	"context"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// sizeOfRestriction is the approximate size of a restriction or an invitation in an
// answer, in bytes.
const sizeOfRestriction = 64

// listRestrictions lists the restrictions of a channel, or those that hold in all
// channels.
func (r *run) listRestrictions(id channel.ID) ([]ChannelRestriction, error) {
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	list, err := service.Members().Restrictions(by, id)
	if err != nil {
		return nil, err
	}
	out := make([]ChannelRestriction, len(list))
	for i, b := range list {
		out[i] = ChannelRestriction{Agent: agentOf(b.Agent), AgentID: string(b.Agent), Kind: ChannelRestrictionKindBan, From: b.From, Until: timeOrNil(b.Until)}
		if b.Muted {
			out[i].Kind = ChannelRestrictionKindMute
		}
	}
	return out, r.chargeBytes(sizeOfRestriction * len(out))
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

// readGlobalRestrictions answers Query.globalRestrictions.
func readGlobalRestrictions(ctx context.Context) ([]ChannelRestriction, error) {
	return runOf(ctx).listRestrictions(channel.AllChannels)
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
	out.Restrictions, err = r.listRestrictions(id)
	out.Restrictions = notNil(out.Restrictions)
	return out, unlessHidden(err)
}

// RestrictAgent answers Mutation.restrictAgent.
func (*mutationRoot) RestrictAgent(ctx context.Context, input RestrictAgentInput) (*RestrictionPayload, error) {
	return runOf(ctx).changeRestrictions(ctx, input.ChannelID, input.Everywhere, func(m *channels.Members, by channels.Caller, id channel.ID) error {
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
