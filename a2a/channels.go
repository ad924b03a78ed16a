package a2a

import (
	"context"
	"encoding/json"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
)

// The methods of the channels extension about channels (section 7). The
// answers for a channel that does not exist and for one that the caller may not see are
// equal byte for byte: the domain decides, and no check precedes it.

// channelParams reads the common params of methods about one channel.
func (c *call) channelParams(f *failure) (params object, id channel.ID) {
	params = readParams(f, c.params)
	return params, channel.ID(params.readRequired("channelId"))
}

// readRest reads the optional controls and fails if unknown members remain.
func (o *object) readRest() error {
	readControls(o)
	o.checkAllRead()
	return o.failure.firstError()
}

func (c *call) byCaller() channels.Caller {
	return channels.Caller{Principal: c.caller.Principal, Actor: c.caller.Actor, IgnoreInvitations: true} // the extension has no invitations
}

// channelAnswer is the result of methods that return a channel.
type channelAnswer struct {
	Channel  *wireChannel `json:"channel"`
	Replayed bool         `json:"replayed,omitempty"` // of channels/create
}

func answerWith(c *channel.Channel, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return channelAnswer{encodeChannel(c), c.Replayed}, nil
}

// createChannel handles channels/create.
func (h *Handler) createChannel(ctx context.Context, c *call) (any, error) {
	f := new(failure)
	params := readParams(f, c.params)
	var d channel.Draft
	d.Name, _ = params.readText("name")
	visibility, _ := params.readText("visibility")
	d.Visibility = channel.Visibility(visibility)
	elements, _ := params.readArray("members")
	for i, raw := range elements {
		member := readObject(f, elementPath("members", i), raw)
		role, _ := member.readText("role")
		d.Members = append(d.Members, channel.Member{Agent: member.readRequiredAgent("principalId"), Role: channel.Role(role)})
		member.checkAllRead()
		if f.err != nil {
			break
		}
	}
	d.Metadata = params.readContent("metadata")
	d.IdempotencyKey, _ = params.readText("idempotencyKey")
	id, inScope := params.readText("scopeId")
	policy, ofScope := params.readText("memberPolicy")
	d.MemberPolicy = channel.MemberPolicy(policy)
	if ofScope && !inScope {
		params.failAt("memberPolicy", "memberPolicy requires scopeId")
	}
	params.checkAllRead()
	if err := f.firstError(); err != nil {
		return nil, err
	}
	if inScope {
		return answerWith(h.channels.CreateIn(ctx, c.byCaller(), scope.ID(id), d))
	}
	return answerWith(h.channels.Create(ctx, c.byCaller(), d))
}

// getChannel handles channels/get.
func (h *Handler) getChannel(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	if err := params.readRest(); err != nil {
		return nil, err
	}
	return answerWith(h.channels.Get(ctx, c.byCaller(), id))
}

// listChannels handles channels/list.
func (h *Handler) listChannels(ctx context.Context, c *call) (any, error) {
	params := readParams(new(failure), c.params)
	var l channel.ListQuery
	l.PageSize = params.readPageSize()
	l.PageToken, _ = params.readText("pageToken")
	visibility, _ := params.readText("visibility")
	l.Visibility = channel.Visibility(visibility)
	l.Member = params.readAgent("memberId")
	id, _ := params.readText("scopeId")
	l.Scope = scope.ID(id)
	if err := params.readRest(); err != nil {
		return nil, err
	}
	page, next, err := h.channels.List(ctx, c.byCaller(), l)
	if err != nil {
		return nil, err
	}
	out := struct {
		Channels      []*wireChannel `json:"channels"`
		NextPageToken string         `json:"nextPageToken,omitempty"`
	}{make([]*wireChannel, 0, len(page)), next}
	for _, one := range page {
		out.Channels = append(out.Channels, encodeChannel(one))
	}
	return out, nil
}

// updateChannel handles channels/update.
func (h *Handler) updateChannel(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	var r channel.Update
	version, ok := params.readNatural("expectedVersion")
	if !ok {
		params.failAt("expectedVersion", "is required")
	}
	r.ExpectedVersion = clampSequence(version)
	if name, ok := params.readText("name"); ok {
		r.Name = &name
	}
	if policy, ok := params.readText("memberPolicy"); ok {
		r.MemberPolicy = (*channel.MemberPolicy)(&policy)
	}
	patch, _ := params.readMember("metadataPatch")
	set, _ := patch.readMember("set")
	if len(set.members) > 0 {
		r.Set = make(map[string]json.RawMessage, len(set.members))
	}
	for _, m := range set.members {
		r.Set[m.name] = m.value
	}
	r.Remove = patch.readTexts("remove")
	patch.checkAllRead()
	if err := params.readRest(); err != nil {
		return nil, err
	}
	return answerWith(h.channels.Update(ctx, c.byCaller(), id, r))
}

// deleteChannel handles channels/delete.
func (h *Handler) deleteChannel(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	if err := params.readRest(); err != nil {
		return nil, err
	}
	if err := h.channels.Delete(ctx, c.byCaller(), id); err != nil {
		return nil, err
	}
	return struct {
		Deleted bool `json:"deleted"`
	}{true}, nil
}

// addMember handles channels/addMember.
func (h *Handler) addMember(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	agent := params.readRequiredAgent("principalId")
	role, _ := params.readText("role")
	if err := params.readRest(); err != nil {
		return nil, err
	}
	return answerWith(h.channels.Members().Add(ctx, c.byCaller(), id, agent, channel.Role(role)))
}

// removeMember handles channels/removeMember.
func (h *Handler) removeMember(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	agent := params.readRequiredAgent("principalId")
	if err := params.readRest(); err != nil {
		return nil, err
	}
	return answerWith(h.channels.Members().Remove(ctx, c.byCaller(), id, agent))
}
