package graph

import (
	"context"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

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
	return &RemoveAgentPayload{Agent: agentOf(id), AgentID: string(id), ChannelCount: n}, nil
}
