package a2a

import (
	"context"
	"encoding/json"

	"koine/channels"
)

// The methods of the channels extension about channels (section 7; WIRE §7). The
// answers for a channel that does not exist and for one that the caller may not see are
// equal byte for byte: the domain decides, and no check precedes it.

// channelParams reads the common params of methods about one channel.
func (c *call) channelParams(f *failure) (params object, id channels.ChannelID) {
	params = readParams(f, c.params)
	return params, channels.ChannelID(params.required("channelId"))
}

// end reads the optional controls and fails if unknown members remain.
func (o *object) end() error {
	readControls(o)
	o.done()
	return o.failure.error()
}

func (c *call) byCaller() channels.Caller {
	return channels.Caller{Principal: c.caller.Principal, Actor: c.caller.Actor, IgnoreInvitations: true} // the extension has no invitations
}

// channelAnswer is the result of methods that return a channel.
type channelAnswer struct {
	Channel  *wireChannel `json:"channel"`
	Replayed bool         `json:"replayed,omitempty"` // of channels/create
}

func answerWith(c *channels.Channel, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return channelAnswer{encodeChannel(c), c.Replayed}, nil
}

// createChannel handles channels/create.
func (h *Handler) createChannel(ctx context.Context, c *call) (any, error) {
	f := new(failure)
	params := readParams(f, c.params)
	var d channels.Draft
	d.Name, _ = params.text("name")
	visibility, _ := params.text("visibility")
	d.Visibility = channels.Visibility(visibility)
	elements, _ := params.array("members")
	for i, raw := range elements {
		member := readObject(f, index("members", i), raw)
		role, _ := member.text("role")
		d.Members = append(d.Members, channels.Member{Agent: member.requiredAgent("principalId"), Role: channels.Role(role)})
		member.done()
		if f.err != nil {
			break
		}
	}
	d.Metadata = params.content("metadata")
	d.IdempotencyKey, _ = params.text("idempotencyKey")
	scope, inScope := params.text("scopeId")
	policy, ofScope := params.text("memberPolicy")
	d.MemberPolicy = channels.MemberPolicy(policy)
	if ofScope && !inScope {
		params.fail("memberPolicy", "memberPolicy requires scopeId")
	}
	params.done()
	if err := f.error(); err != nil {
		return nil, err
	}
	if inScope {
		return answerWith(h.channels.CreateIn(ctx, c.byCaller(), channels.ScopeID(scope), d))
	}
	return answerWith(h.channels.Create(ctx, c.byCaller(), d))
}

// getChannel handles channels/get.
func (h *Handler) getChannel(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	if err := params.end(); err != nil {
		return nil, err
	}
	return answerWith(h.channels.Get(ctx, c.byCaller(), id))
}

// listChannels handles channels/list.
func (h *Handler) listChannels(ctx context.Context, c *call) (any, error) {
	params := readParams(new(failure), c.params)
	var l channels.ListQuery
	l.PageSize = params.pageSize()
	l.PageToken, _ = params.text("pageToken")
	visibility, _ := params.text("visibility")
	l.Visibility = channels.Visibility(visibility)
	l.Member = params.agent("memberId")
	scope, _ := params.text("scopeId")
	l.Scope = channels.ScopeID(scope)
	if err := params.end(); err != nil {
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
	var r channels.ChannelUpdate
	version, ok := params.natural("expectedVersion")
	if !ok {
		params.fail("expectedVersion", "is required")
	}
	r.ExpectedVersion = bounded(version)
	if name, ok := params.text("name"); ok {
		r.Name = &name
	}
	patch, _ := params.object("metadataPatch")
	set, _ := patch.object("set")
	if len(set.members) > 0 {
		r.Set = make(map[string]json.RawMessage, len(set.members))
	}
	for _, m := range set.members {
		r.Set[m.name] = m.value
	}
	r.Remove = patch.texts("remove")
	patch.done()
	if err := params.end(); err != nil {
		return nil, err
	}
	return answerWith(h.channels.Update(ctx, c.byCaller(), id, r))
}

// deleteChannel handles channels/delete.
func (h *Handler) deleteChannel(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	if err := params.end(); err != nil {
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
	agent := params.requiredAgent("principalId")
	role, _ := params.text("role")
	if err := params.end(); err != nil {
		return nil, err
	}
	return answerWith(h.channels.AddMember(ctx, c.byCaller(), id, agent, channels.Role(role)))
}

// removeMember handles channels/removeMember.
func (h *Handler) removeMember(ctx context.Context, c *call) (any, error) {
	params, id := c.channelParams(new(failure))
	agent := params.requiredAgent("principalId")
	if err := params.end(); err != nil {
		return nil, err
	}
	return answerWith(h.channels.RemoveMember(ctx, c.byCaller(), id, agent))
}
