package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/client"
)

// channelCommand groups the commands for the channels of a server.
type channelCommand struct {
	Create      createChannel      `cmd:"" help:"Make a channel, and print its id."`
	Add         addMember          `cmd:"" help:"Take an agent into a channel, or give it another role there."`
	Remove      removeMember       `cmd:"" help:"Take an agent out of a channel."`
	Invite      inviteMember       `cmd:"" help:"Let an agent join a channel."`
	Join        joinChannel        `cmd:"" help:"Become a member of a channel."`
	Rename      renameChannel      `cmd:"" help:"Give a channel another name."`
	Close       closeChannel       `cmd:"" help:"Let a channel take no message any more; it is read on."`
	Delete      deleteChannel      `cmd:"" help:"Delete a channel for good: nobody reads it any more."`
	List        listChannels       `cmd:"" help:"List the channels that one is a member of, and the public ones."`
	History     channelHistory     `cmd:"" help:"Print what was said."`
	Publish     publishMessage     `cmd:"" help:"Say something."`
	Retract     retractMessage     `cmd:"" help:"Take back what was said, and its facts if you want."`
	Ask         askInChannel       `cmd:"" help:"Ask something, and print the response."`
	Inbox       channelInbox       `cmd:"" help:"Print what others wrote to you, in all channels."`
	Acknowledge acknowledgeMessage `cmd:"" help:"Say that what is for you was read, or arrived."`
	Tail        tailChannel        `cmd:"" help:"Print what is said, as it is said."`
}

// Help is shown by --help.
func (channelCommand) Help() string {
	return `A channel is named by its id, or by its name if only one has it of those that are listed, or, if none has, of those in scopes that you have access to; --scope looks in one scope only. Where an open one has the name, closed ones count only for rename and delete. The channel of yourself and another agent has no name and is not listed: --to AGENT is it.

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
	Name string `arg:"" help:"Its name."`
	serverFlags
	Another  bool     `help:"Make it also where one that is open and listed has the name; only their ids tell them apart then."`
	Public   bool     `help:"Let everybody read it."`
	Member   []string `help:"Somebody who is in it, with a role (owner, moderator, member, observer) if not a member; may be repeated." placeholder:"AGENT[=ROLE]"`
	Metadata string   `help:"Its metadata, a JSON object." placeholder:"JSON"`
	Scope    string   `help:"Make it in this scope." placeholder:"ID"`
	Once     string   `help:"A key of your own: the same command with the same key makes one channel, however often it runs. It does not look whether the name is free." placeholder:"KEY"`

	MembersBy string `help:"Who takes part in a channel of a scope: scope (whoever has access to it) or explicit (members only, the default)." enum:"scope,explicit," default:"" placeholder:"scope|explicit"`

	JSON bool `help:"Print the channel as JSON."`
}

// Run creates the channel and prints its id.
func (c *createChannel) Run(ctx context.Context, t terminal) error {
	wish, err := c.newChannelInput()
	if err != nil {
		return usageError{err}
	}
	server, err := c.openClient(ctx)
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
	if c.JSON {
		return printJSON(t.out, fmt.Appendf(nil, `{"channel":%s}`, made.Raw), true)
	}
	_, err = fmt.Fprintln(t.out, made.ID)
	return err
}

func (c *createChannel) newChannelInput() (client.NewChannel, error) {
	wish := client.NewChannel{Name: c.Name, Scope: c.Scope, MemberPolicy: c.MembersBy, IdempotencyKey: c.Once}
	if c.Name == "" {
		return wish, errors.New("a channel needs a name")
	}
	if c.Public {
		wish.Visibility = "public"
	}
	if c.MembersBy != "" && c.Scope == "" {
		return wish, errors.New("--members-by is for a channel in a scope: say --scope too")
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
		return wish, errors.New("--metadata is not a JSON object")
	}
	return wish, nil
}

// listChannels lists channels.
type listChannels struct {
	serverFlags
	Visibility string `help:"Only the private, or only the public ones." enum:"private,public," default:"" placeholder:"private|public"`
	Member     string `help:"Only those that this agent is a member of." placeholder:"AGENT"`
	Scope      string `help:"Those of this scope that you may find." placeholder:"ID"`
	Invited    bool   `help:"Only those that you are invited to, with who invited you."`
	outputFlags
}

// Help is shown by --help.
func (listChannels) Help() string {
	return `Not listed are the channels of a scope that one takes part in without being a member: see --scope. Channels of two agents are in no list: see --to of publish, history and tail.

What one is invited to is accepted with koine channel join. With --invited and --json a line has id, name, visibility, scopeId, closedAt, invitedBy and invitedAt.

Examples:
  koine channel list --visibility public
  koine channel list --invited`
}

// Run prints a line for each channel.
func (c *listChannels) Run(ctx context.Context, t terminal) error {
	server, err := c.openClient(ctx)
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
			err = printJSON(t.out, one.Raw, true)
		}
		if err != nil {
			return err
		}
		found = append(found, one)
	}
	if c.JSON {
		return nil
	}
	return c.printList(ctx, t, server, nil, channelTable(found))
}

// channelTable has a row for each channel. The column for the reason of closing is present
// if any channel has one.
func channelTable(list []*client.Channel) *table {
	b := &table{columns: []string{"ID", "VISIBILITY", "STATUS", "MEMBERS", "MADE", "NAME"}}
	why := slices.ContainsFunc(list, func(c *client.Channel) bool { return c.ClosedReason != "" })
	if why {
		b.columns = append(b.columns, "WHY CLOSED")
	}
	for _, c := range list {
		row := channelRow(c)
		if why {
			row = append(row, c.ClosedReason)
		}
		b.rows = append(b.rows, row)
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
