package main

import (
	"context"
	"strings"
	"time"

	"koine/client"
	"koine/kg"
)

// invitedChannel is a channel that the caller is invited to, as it is printed as JSON. Its
// field names are those of channels/get, which does not return invitations.
type invitedChannel struct {
	ID         string `json:"id"`
	Name       string `json:"name,omitempty"`
	Visibility string `json:"visibility"`
	ScopeID    string `json:"scopeId,omitempty"`
	ClosedAt   int64  `json:"closedAt,omitempty"` // a closed channel can still be joined and read
	InvitedBy  string `json:"invitedBy"`
	InvitedAt  int64  `json:"invitedAt"`
}

const channelsInvitedTo = `query($first: Int, $after: Cursor, $visibility: ChannelVisibility, $member: String, $scope: ID) {
  me { actingFor }
  channels(invited: true, first: $first, after: $after, visibility: $visibility, member: $member, scopeId: $scope) {
    nodes { id name visibility scopeId closed: closedAt invitations { agent invitedBy invitedAt } } pageInfo { hasNextPage endCursor } } }`

// invitedPage is one page of the channels that the caller is invited to.
type invitedPage struct {
	Me       struct{ ActingFor string }
	Channels struct {
		Nodes []struct {
			invitedChannel
			Closed      time.Time
			Invitations []struct {
				Agent     string
				InvitedBy string
				InvitedAt time.Time
			}
		}
		PageInfo struct {
			HasNextPage bool
			EndCursor   string
		}
	}
}

// invitedChannels returns the channels of the page, each with the caller's invitation. A
// channel may have invitations for other agents too.
func (p *invitedPage) invitedChannels() (list []invitedChannel) {
	self := actingFor(p.Me.ActingFor)
	for _, node := range p.Channels.Nodes {
		one := node.invitedChannel
		one.Visibility, one.ClosedAt = strings.ToLower(one.Visibility), milliOf(node.Closed)
		for _, i := range node.Invitations {
			if kg.CanonicalAgent(i.Agent) == self {
				one.InvitedBy, one.InvitedAt = i.InvitedBy, milliOf(i.InvitedAt)
			}
		}
		list = append(list, one)
	}
	return list
}

// printInvitations prints a line for each channel that the caller is invited to.
func (c *listChannels) printInvitations(ctx context.Context, t terminal, server *client.Client) error {
	ask := map[string]any{"first": channelPage}
	for name, value := range map[string]string{"visibility": strings.ToUpper(c.Visibility), "member": c.Member, "scope": c.Scope} {
		if value != "" {
			ask[name] = value
		}
	}
	var list []invitedChannel
	for more := true; more; {
		var page invitedPage
		if err := server.GraphQL(ctx, channelsInvitedTo, ask, &page); err != nil {
			return err
		}
		list = append(list, page.invitedChannels()...)
		ask["after"] = page.Channels.PageInfo.EndCursor
		more = page.Channels.PageInfo.HasNextPage
	}
	if c.JSON {
		for _, one := range list {
			text, err := encodeJSON(one)
			if err == nil {
				err = printJSON(t.out, text, true)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	b := &table{columns: []string{"ID", "VISIBILITY", "STATUS", "INVITED", "BY", "NAME"}}
	for _, one := range list {
		b.rows = append(b.rows, []string{one.ID, one.Visibility, channelStatus(one.ClosedAt), atMilli(one.InvitedAt), one.InvitedBy, one.Name})
	}
	if err := c.printList(ctx, t, server, nil, b); err != nil {
		return err
	}
	if len(list) > 0 && !c.CSV {
		t.sayf("Accept with koine channel join ID")
	}
	return nil
}
