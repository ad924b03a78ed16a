package online

import (
	"context"
	"fmt"
	"strings"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// oneChannel names the channel that a command works on.
type oneChannel struct {
	Channel string `arg:"" help:"Id or name of the channel."`
	cli.ServerFlags
	Scope string `help:"Scope of the channel, if its name is not unique." placeholder:"ID"`
}

// openChannel connects to the server and resolves the id of the channel. If open is set,
// open channels take precedence over closed ones of the same name.
func (c *oneChannel) openChannel(ctx context.Context, open bool) (server *client.Client, id string, err error) {
	if server, err = c.OpenClient(ctx); err == nil {
		id, err = findChannel(ctx, server, c.Scope, c.Channel, open)
	}
	return server, id, err
}

// changedChannel names a channel that a command changes and then prints.
type changedChannel struct {
	oneChannel
	JSON bool `help:"Print the channel as JSON, in the form of channels/get."`
}

// renameChannel renames a channel.
type renameChannel struct {
	changedChannel
	Name    string `arg:"" help:"New name of the channel."`
	Another bool   `help:"Rename the channel even if an open channel in the list has the same name."`
}

// Run prints the channel.
func (c *renameChannel) Run(ctx context.Context, t cli.Terminal) error {
	if c.Name == "" {
		return cli.Usagef("the name of the channel is empty")
	}
	server, id, err := c.openChannel(ctx, anyState)
	if err != nil {
		return err
	}
	is, err := server.GetChannel(ctx, id)
	if err != nil {
		return err
	}
	if !c.Another && is.Scope == "" && is.Name != c.Name {
		if err := nameFree(ctx, server, c.Name); err != nil {
			return err
		}
	}
	if is, err = server.UpdateChannel(ctx, id, client.ChannelChange{ExpectedVersion: is.Version, Name: c.Name}); err != nil {
		return err
	}
	return printChannel(t, c.JSON, is.ID, is.Raw)
}

// closeChannel closes a channel: it stays readable.
type closeChannel struct {
	changedChannel
	Reason string `help:"Reason, for readers of the channel." placeholder:"TEXT"`
}

// Run prints the channel.
func (c *closeChannel) Run(ctx context.Context, t cli.Terminal) error {
	server, id, err := c.openChannel(ctx, preferOpen)
	if err != nil {
		return err
	}
	input := map[string]any{"channelId": id}
	if c.Reason != "" {
		input["reason"] = c.Reason
	}
	return c.runMutation(ctx, t, server, "closeChannel", "CloseChannelInput", input)
}

// deleteChannel deletes a channel.
type deleteChannel struct{ oneChannel }

// Run deletes the channel and prints its id.
func (c *deleteChannel) Run(ctx context.Context, t cli.Terminal) error {
	server, id, err := c.openChannel(ctx, anyState)
	if err != nil {
		return err
	}
	if err := server.DeleteChannel(ctx, id); err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.Out, id)
	return err
}

// addMember adds an agent to a channel.
type addMember struct {
	changedChannel
	Member string `arg:"" name:"agent[=role]" help:"Agent to add, with a role (owner, moderator, member, observer; default: member)."`
}

// Help is shown by --help.
func (addMember) Help() string {
	return `Requires an owner of the channel. A member gets the given role, or becomes an ordinary member without one.

Examples:
  koine channel add lab chen
  koine channel add lab chen=moderator`
}

// Run prints the channel.
func (c *addMember) Run(ctx context.Context, t cli.Terminal) error {
	server, id, err := c.openChannel(ctx, preferOpen)
	if err != nil {
		return err
	}
	agent, role, _ := strings.Cut(c.Member, "=")
	is, err := server.AddMember(ctx, id, agent, role)
	if err != nil {
		return err
	}
	return printChannel(t, c.JSON, is.ID, is.Raw)
}

// removeMember removes an agent from a channel.
type removeMember struct {
	changedChannel
	Member string `arg:"" name:"agent" help:"Agent to remove."`
}

// Help is shown by --help.
func (removeMember) Help() string {
	return `Owners may remove any member, and members themselves. The last owner cannot be removed.`
}

// Run prints the channel.
func (c *removeMember) Run(ctx context.Context, t cli.Terminal) error {
	server, id, err := c.openChannel(ctx, preferOpen)
	if err != nil {
		return err
	}
	is, err := server.RemoveMember(ctx, id, c.Member)
	if err != nil {
		return err
	}
	return printChannel(t, c.JSON, is.ID, is.Raw)
}

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
func (c *inviteMember) Run(ctx context.Context, t cli.Terminal) error {
	server, id, err := c.openChannel(ctx, preferOpen)
	if err != nil {
		return err
	}
	return c.runMutation(ctx, t, server, "inviteAgent", "InvitationInput", map[string]any{"channelId": id, "agentId": c.Member})
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
func (c *joinChannel) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
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
