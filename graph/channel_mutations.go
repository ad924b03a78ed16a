package graph

import (
	"context"
	"encoding/json"

	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// changedChannel answers a mutation of a channel and notes the position after
// its commit.
func (r *run) changedChannel(c *channel.Channel, err error) (*ChannelPayload, error) {
	if err != nil {
		return nil, inInput(withFieldNames(err, inInputs))
	}
	r.notePosition(r.engine.deps.Store.Head())
	return &ChannelPayload{ChannelID: string(c.ID), Channel: &Channel{c}}, nil
}

// inInputs maps the domain's field names to the schema's input members.
var inInputs = map[string]string{
	"expireAfter": "expireAfterSeconds", "parent": "parentId", "access.agents": "access.agentIds", "principalId": "agentId", "coordinator": "coordinatorId",
}

// notePosition notes the position after the commit of a mutation.
func (r *run) notePosition(p kg.Position) {
	r.writtenPosition = &p
}

// CreateChannel answers Mutation.createChannel.
func (*mutationRoot) CreateChannel(ctx context.Context, input CreateChannelInput) (*ChannelPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	d := channel.Draft{Name: deref(input.Name), Topic: deref(input.Topic), Metadata: input.Metadata, IdempotencyKey: deref(input.IdempotencyKey)}
	d.Visibility = channel.Visibility(inDomain(deref(input.Visibility)))
	d.Kind, d.MaxMembers = channel.Kind(inDomain(deref(input.Kind))), deref(input.MaxMembers)
	d.KeepMessages, d.Audit, d.MemberPolicy = deref(input.KeepMessages), input.Audit, channel.MemberPolicy(inDomain(deref(input.MemberPolicy)))
	d.Limits, d.ExpireAfter = deref(limitsIn(input.Limits)), deref(idleTimeout(input.ExpireAfterSeconds))
	if rights := rightsIn(input.Rights); rights != nil {
		d.Rights = *rights
	}
	for _, m := range input.Members {
		d.Members = append(d.Members, channel.Member{Agent: kg.AgentID(m.AgentID), Role: roleIn(m.Role)})
	}
	if input.ScopeID != nil {
		return r.changedChannel(service.CreateIn(ctx, by, scope.ID(*input.ScopeID), d))
	}
	return r.changedChannel(service.Create(ctx, by, d))
}

func roleIn(role *ChannelRole) channel.Role { return channel.Role(inDomain(deref(role))) }

// rightsIn converts an input of rights, nil for nil.
func rightsIn(input *ChannelRightsInput) *channel.Rights {
	if input == nil {
		return nil
	}
	who := func(w *ChannelAccessLevel) channel.Grantee { return channel.Grantee(inDomain(deref(w))) }
	return &channel.Rights{Discover: who(input.Discover), Join: who(input.Join), Read: who(input.Read), Post: who(input.Post), Manage: who(input.Manage)}
}

// UpdateChannel answers Mutation.updateChannel.
func (*mutationRoot) UpdateChannel(ctx context.Context, input UpdateChannelInput) (*ChannelPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	change := channel.Update{ExpectedVersion: input.ExpectedVersion, Name: input.Name, Topic: input.Topic, Rights: rightsIn(input.Rights), MaxMembers: input.MaxMembers}
	change.Limits, change.ExpireAfter, change.KeepMessages, change.Audit = limitsIn(input.Limits), idleTimeout(input.ExpireAfterSeconds), input.KeepMessages, input.Audit
	if p := input.MemberPolicy; p != nil {
		policy := channel.MemberPolicy(inDomain(*p))
		change.MemberPolicy = &policy
	}
	if p := input.MetadataPatch; p != nil {
		change.Remove = p.Remove
		if err := json.Unmarshal(orNull(p.Set), &change.Set); err != nil {
			return nil, kg.Errorf(kg.CodeInvalid, "set must be a JSON object").At("metadataPatch.set").At("input")
		}
	}
	return r.changedChannel(service.Update(ctx, by, channel.ID(input.ChannelID), change))
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// DeleteChannel answers Mutation.deleteChannel.
func (*mutationRoot) DeleteChannel(ctx context.Context, input DeleteChannelInput) (*ChannelPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	if err := service.Delete(ctx, by, channel.ID(input.ChannelID)); err != nil {
		return nil, inInput(err)
	}
	r.notePosition(r.engine.deps.Store.Head())
	return &ChannelPayload{ChannelID: input.ChannelID}, nil
}

// AddChannelMember answers Mutation.addChannelMember.
func (*mutationRoot) AddChannelMember(ctx context.Context, input AddChannelMemberInput) (*ChannelPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	return r.changedChannel(service.Members().Add(ctx, by, channel.ID(input.ChannelID), kg.AgentID(input.AgentID), roleIn(input.Role)))
}

// RemoveChannelMember answers Mutation.removeChannelMember.
func (*mutationRoot) RemoveChannelMember(ctx context.Context, input RemoveChannelMemberInput) (*ChannelPayload, error) {
	r := runOf(ctx)
	service, by, err := r.channelService()
	if err != nil {
		return nil, err
	}
	return r.changedChannel(service.Members().Remove(ctx, by, channel.ID(input.ChannelID), kg.AgentID(input.AgentID)))
}
