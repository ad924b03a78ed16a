package graph

import (
	"context"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// changeChannel answers a mutation with the channel as the caller sees it
// afterwards, nil if it no longer does. place adds the argument to an error.
func (r *run) changeChannel(ctx context.Context, id string, place func(error) error, change func(*channels.Service, channels.Caller, channel.ID) error) (*Channel, error) {
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	if err := change(service, by, channel.ID(id)); err != nil {
		return nil, place(err)
	}
	r.notePosition(r.engine.deps.Store.Head())
	return unlessGone(readChannel(ctx, id))
}

// asIs returns the error unchanged.
func asIs(err error) error { return err }

// CloseChannel answers Mutation.closeChannel.
func (*mutationRoot) CloseChannel(ctx context.Context, input CloseChannelInput) (*Channel, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	return r.changedChannel(service.CloseChannel(ctx, by, channel.ID(input.ChannelID), deref(input.Reason)))
}

// JoinChannel answers Mutation.joinChannel.
func (*mutationRoot) JoinChannel(ctx context.Context, input JoinChannelInput) (*Channel, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	return r.changedChannel(service.Members().Join(ctx, by, channel.ID(input.ChannelID), roleIn(input.Role)))
}

// LeaveChannel answers Mutation.leaveChannel.
func (*mutationRoot) LeaveChannel(ctx context.Context, id string) (*LeaveChannelPayload, error) {
	c, err := runOf(ctx).changeChannel(ctx, id, asIs, func(s *channels.Service, by channels.Caller, id channel.ID) error {
		return s.Members().Leave(ctx, by, id)
	})
	return leftChannel(id, c, err)
}

func leftChannel(id string, c *Channel, err error) (*LeaveChannelPayload, error) {
	if err != nil {
		return nil, err
	}
	return &LeaveChannelPayload{ChannelID: id, Channel: c}, nil
}

// InviteMember answers Mutation.inviteMember.
func (*mutationRoot) InviteMember(ctx context.Context, input InvitationInput) (*Channel, error) {
	return runOf(ctx).changeChannel(ctx, input.ChannelID, inInput, func(s *channels.Service, by channels.Caller, id channel.ID) error {
		return s.Members().Invite(ctx, by, id, kg.AgentID(input.PrincipalID))
	})
}

// WithdrawInvitation answers Mutation.withdrawInvitation.
func (*mutationRoot) WithdrawInvitation(ctx context.Context, input InvitationInput) (*Channel, error) {
	return runOf(ctx).changeChannel(ctx, input.ChannelID, inInput, func(s *channels.Service, by channels.Caller, id channel.ID) error {
		return s.Members().Withdraw(ctx, by, id, kg.AgentID(input.PrincipalID))
	})
}

// AcceptInvitation answers Mutation.acceptInvitation.
func (*mutationRoot) AcceptInvitation(ctx context.Context, id string) (*Channel, error) {
	return runOf(ctx).changeChannel(ctx, id, asIs, func(s *channels.Service, by channels.Caller, id channel.ID) error {
		_, err := s.Members().Accept(ctx, by, id)
		return err
	})
}

// DeclineInvitation answers Mutation.declineInvitation.
func (*mutationRoot) DeclineInvitation(ctx context.Context, id string) (*LeaveChannelPayload, error) {
	c, err := runOf(ctx).changeChannel(ctx, id, asIs, func(s *channels.Service, by channels.Caller, id channel.ID) error {
		return s.Members().Decline(ctx, by, id)
	})
	return leftChannel(id, c, err)
}

// RemoveAgent answers Mutation.removeAgent.
func (*mutationRoot) RemoveAgent(ctx context.Context, agent string) (*RemoveAgentPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	n, err := service.Members().RemoveAgent(ctx, by, kg.AgentID(agent))
	if n > 0 {
		r.notePosition(r.engine.deps.Store.Head())
	}
	if err != nil {
		return nil, err
	}
	id := kg.CanonicalAgent(agent)
	return &RemoveAgentPayload{Agent: agentOf(id), AgentID: string(id), ChannelCount: n}, nil
}
