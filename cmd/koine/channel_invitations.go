package main

import (
	"context"

	"koine/client"
)

// inviteMember invites an agent to a channel.
type inviteMember struct {
	changedChannel
	Member string `arg:"" name:"agent" help:"Agent to invite."`
}

// Help is shown by --help.
func (inviteMember) Help() string {
	return `An invited agent finds the channel, and becomes a member with koine channel join. Owners may invite; if everyone may join the channel, members may as well.`
}

// Run prints the channel.
func (c *inviteMember) Run(ctx context.Context, t terminal) error {
	server, id, err := c.openChannel(ctx, preferOpen)
	if err != nil {
		return err
	}
	return c.runMutation(ctx, t, server, "inviteMember", "InvitationInput", map[string]any{"channelId": id, "principalId": c.Member})
}

// joinChannel makes the caller a member of a channel.
type joinChannel struct{ changedChannel }

// Help is shown by --help.
func (joinChannel) Help() string {
	return `You must be invited to the channel, or everyone may join it.

Examples:
  koine channel list --invited
  koine channel join lab`
}

// Run prints the channel.
func (c *joinChannel) Run(ctx context.Context, t terminal) error {
	server, err := c.openClient(ctx)
	if err != nil {
		return err
	}
	id, err := invitedTo(ctx, server, c.Scope, c.Channel)
	if err != nil {
		return err
	}
	if id == "" {
		if id, err = findChannel(ctx, server, c.Scope, c.Channel, preferOpen); err != nil {
			return err
		}
	}
	return c.runMutation(ctx, t, server, "joinChannel", "JoinChannelInput", map[string]any{"channelId": id})
}

// invitedTo returns the id of the channel of this name that the caller is invited to. It
// is "" if there is no such channel or more than one. Only the first page of invitations
// is searched.
func invitedTo(ctx context.Context, server *client.Client, scope, name string) (id string, err error) {
	var answer struct {
		Channels struct {
			Nodes []struct{ ID, Name, ScopeID string }
		}
	}
	const query = `query($first: Int) { channels(invited: true, first: $first) { nodes { id name scopeId } } }`
	if err := server.GraphQL(ctx, query, map[string]any{"first": channelPage}, &answer); err != nil {
		return "", err
	}
	for _, c := range answer.Channels.Nodes {
		switch {
		case c.Name != name || scope != "" && c.ScopeID != scope:
		case id != "":
			return "", nil
		default:
			id = c.ID
		}
	}
	return id, nil
}
