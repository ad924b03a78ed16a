package online

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/kg"
)

// ChannelCommand groups the commands for the channels of a server.
type ChannelCommand struct {
	Create      createChannel      `cmd:"" help:"Create a channel and print its id."`
	Add         addMember          `cmd:"" help:"Add a member to a channel, or change its role."`
	Remove      removeMember       `cmd:"" help:"Remove a member from a channel."`
	Invite      inviteMember       `cmd:"" help:"Invite an agent to a channel."`
	Join        joinChannel        `cmd:"" help:"Join a channel."`
	Rename      renameChannel      `cmd:"" help:"Rename a channel."`
	Close       closeChannel       `cmd:"" help:"Close a channel: it stays readable."`
	Delete      deleteChannel      `cmd:"" help:"Delete a channel: it can no longer be read."`
	List        listChannels       `cmd:"" help:"List your channels and the public ones."`
	History     channelHistory     `cmd:"" help:"Print the messages of a channel."`
	Publish     publishMessage     `cmd:"" help:"Publish a message."`
	Retract     retractMessage     `cmd:"" help:"Retract a message, and optionally its facts."`
	Ask         askInChannel       `cmd:"" help:"Publish a request and print the response."`
	Inbox       channelInbox       `cmd:"" help:"Print the messages addressed to you, from all channels."`
	Acknowledge acknowledgeMessage `cmd:"" help:"Mark messages as read or delivered."`
	Tail        tailChannel        `cmd:"" help:"Print messages as they are published."`
}

// Help is shown by --help.
func (ChannelCommand) Help() string {
	return `A channel is selected by its id, or by its name if that is unique among the listed channels, or else among those of the scopes that you have access to; --scope searches one scope only. Open channels take precedence over closed ones of the same name, except for rename and delete. The direct channel with another agent has no name and is not listed: use --to AGENT.

Examples (with koine serve --demo):
  koine channel create lab --member bob --as ann
  koine channel publish lab 'Shall we look at finding 1?' --as ann
  koine channel add lab chen --as ann
  koine channel history lab --as bob
  koine channel tail lab --as bob
  koine channel publish --to bob 'Between the two of us.' --as ann
  koine channel history --to ann --as bob
  koine channel ask --to bob 'Was it dry?' --as ann
  koine channel inbox --as bob
  koine channel acknowledge lab 3 --as bob
  koine channel retract lab 1 --as ann
  koine channel close lab --as ann`
}

// createChannel creates a channel.
type createChannel struct {
	Name string `arg:"" help:"Name of the channel."`
	cli.ServerFlags
	Another  bool     `help:"Create the channel even if an open channel in the list has the same name."`
	Public   bool     `help:"Let everyone read the channel."`
	Member   []string `help:"Member, with a role (owner, moderator, member, observer; default: member); may be repeated." placeholder:"AGENT[=ROLE]"`
	Metadata string   `help:"Metadata of the channel, a JSON object." placeholder:"JSON"`
	Scope    string   `help:"Scope to create the channel in." placeholder:"ID"`
	Once     string   `help:"Idempotency key: commands with the same key create one channel. The name may already be in use." placeholder:"KEY"`

	MembersBy string `help:"Participants of a channel in a scope: scope (everyone with access to it) or explicit (members only, the default)." enum:"scope,explicit," default:"" placeholder:"scope|explicit"`

	JSON bool `help:"Print the channel as JSON."`
}

// Run creates the channel and prints its id.
func (c *createChannel) Run(ctx context.Context, t cli.Terminal) error {
	wish, err := c.newChannelInput()
	if err != nil {
		return cli.AsUsage(err)
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	if !c.Another && c.Once == "" && c.Scope == "" { // the server enforces unique names in a scope, and a repeated --once finds its own channel
		if err := nameFree(ctx, server, c.Name); err != nil {
			return err
		}
	}
	made, err := server.CreateChannel(ctx, wish)
	if err != nil {
		return err
	}
	return printChannel(t, c.JSON, made.ID, made.Raw)
}

func (c *createChannel) newChannelInput() (client.NewChannel, error) {
	wish := client.NewChannel{Name: c.Name, Scope: c.Scope, MemberPolicy: c.MembersBy, IdempotencyKey: c.Once}
	if c.Name == "" {
		return wish, errors.New("the name of the channel is empty")
	}
	if c.Public {
		wish.Visibility = "public"
	}
	if c.MembersBy != "" && c.Scope == "" {
		return wish, errors.New("--members-by requires --scope")
	}
	for _, text := range c.Member {
		agent, role, _ := strings.Cut(text, "=")
		wish.Members = append(wish.Members, client.Member{Agent: agent, Role: role})
	}
	if c.Metadata == "" {
		return wish, nil
	}
	metadata := json.NewDecoder(strings.NewReader(c.Metadata))
	metadata.UseNumber() // keeps all digits of numbers
	if err := metadata.Decode(&wish.Metadata); err != nil || metadata.More() {
		return wish, errors.New("--metadata must be a JSON object")
	}
	return wish, nil
}

// listChannels lists channels.
type listChannels struct {
	cli.ServerFlags
	Visibility string `help:"List only private or only public channels." enum:"private,public," default:"" placeholder:"private|public"`
	Member     string `help:"List only channels with this member." placeholder:"AGENT"`
	Scope      string `help:"List the channels of this scope that you may find." placeholder:"ID"`
	Invited    bool   `help:"List only channels that you are invited to, and by whom."`
	cli.OutputFlags
}

// Help is shown by --help.
func (listChannels) Help() string {
	return `Channels of a scope are listed only with --scope, unless you are a member. Direct channels are not listed: see --to of publish, history and tail.

Accept an invitation with koine channel join. With --invited and --json, each line has id, name, visibility, scopeId, closedAt, invitedBy and invitedAt.

Examples:
  koine channel list --visibility public
  koine channel list --invited`
}

// Run prints a line for each channel.
func (c *listChannels) Run(ctx context.Context, t cli.Terminal) error {
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	if c.Invited {
		return c.printInvitations(ctx, t, server)
	}
	var found []*client.Channel
	filter := client.ChannelFilter{Visibility: c.Visibility, Member: c.Member, Scope: c.Scope, PageSize: channelPage}
	for one, err := range server.ListChannels(ctx, filter) {
		if err == nil && c.JSON {
			err = cli.PrintJSON(t.Out, one.Raw, true)
		}
		if err != nil {
			return err
		}
		found = append(found, one)
	}
	if c.JSON {
		return nil
	}
	return c.PrintList(ctx, t, server, nil, channelTable(found))
}

// channelTable has a row for each channel. The column for the reason of closing is present
// if any channel has one.
func channelTable(list []*client.Channel) *cli.Table {
	b := &cli.Table{Columns: []string{"ID", "VISIBILITY", "STATUS", "MEMBERS", "CREATED", "NAME"}}
	why := slices.ContainsFunc(list, func(c *client.Channel) bool { return c.ClosedReason != "" })
	if why {
		b.Columns = append(b.Columns, "REASON")
	}
	for _, c := range list {
		row := channelRow(c)
		if why {
			row = append(row, c.ClosedReason)
		}
		b.Rows = append(b.Rows, row)
	}
	return b
}

func channelRow(c *client.Channel) []string {
	members := "-" // the list does not include members; every channel has at least an owner
	if n := len(c.Members); n > 0 {
		members = strconv.Itoa(n)
	}
	return []string{c.ID, c.Visibility, channelStatus(c.ClosedAt), members, atMilli(c.CreatedAt), c.Name}
}

func channelStatus(closedAt int64) string {
	if closedAt != 0 {
		return "closed"
	}
	return "open"
}

// atMilli formats a time in milliseconds since 1970 as lists show it, in UTC.
func atMilli(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z") }

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

const channelsInvitedTo = `query($first: Int, $after: Cursor, $visibility: ChannelVisibility, $member: ID, $scope: ID) {
  me { actingFor: actingForId }
  channels(invited: true, first: $first, after: $after, visibility: $visibility, memberId: $member, scopeId: $scope) {
    nodes { id name visibility scopeId closed: closedAt invitations { nodes { agent: agentId invitedBy: invitedById invitedAt } } } pageInfo { hasNextPage endCursor } } }`

// invitedPage is one page of the channels that the caller is invited to.
type invitedPage struct {
	Me       struct{ ActingFor string }
	Channels struct {
		Nodes []struct {
			invitedChannel
			Closed      time.Time
			Invitations nodesOf[struct {
				Agent     string
				InvitedBy string
				InvitedAt time.Time
			}]
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
func (c *listChannels) printInvitations(ctx context.Context, t cli.Terminal, server *client.Client) error {
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
			text, err := cli.EncodeJSON(one)
			if err == nil {
				err = cli.PrintJSON(t.Out, text, true)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	b := &cli.Table{Columns: []string{"ID", "VISIBILITY", "STATUS", "INVITED", "BY", "NAME"}}
	for _, one := range list {
		b.Rows = append(b.Rows, []string{one.ID, one.Visibility, channelStatus(one.ClosedAt), atMilli(one.InvitedAt), one.InvitedBy, one.Name})
	}
	if err := c.PrintList(ctx, t, server, nil, b); err != nil {
		return err
	}
	if len(list) > 0 && !c.CSV {
		t.Notef("Accept with koine channel join ID")
	}
	return nil
}
