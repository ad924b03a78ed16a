package main

import (
	"context"
	"strings"
)

// addMember adds an agent to a channel.
type addMember struct {
	changedChannel
	Member string `arg:"" name:"agent[=role]" help:"Who is to be in it, with a role (owner, moderator, member, observer) if not a member."`
}

// Help is shown by --help.
func (addMember) Help() string {
	return `Its owners may. Who is in it already gets the role, and is a member where none is said.

Examples:
  koine channel add lab chen
  koine channel add lab chen=moderator`
}

// Run prints the channel.
func (c *addMember) Run(ctx context.Context, t terminal) error {
	server, id, err := c.openChannel(ctx, preferOpen)
	if err != nil {
		return err
	}
	agent, role, _ := strings.Cut(c.Member, "=")
	is, err := server.AddMember(ctx, id, agent, role)
	if err != nil {
		return err
	}
	return c.printChannel(t, is)
}

// removeMember removes an agent from a channel.
type removeMember struct {
	changedChannel
	Member string `arg:"" name:"agent" help:"Who is to be in it no more."`
}

// Help is shown by --help.
func (removeMember) Help() string {
	return `Its owners may, and each member itself; the last owner stays.`
}

// Run prints the channel.
func (c *removeMember) Run(ctx context.Context, t terminal) error {
	server, id, err := c.openChannel(ctx, preferOpen)
	if err != nil {
		return err
	}
	is, err := server.RemoveMember(ctx, id, c.Member)
	if err != nil {
		return err
	}
	return c.printChannel(t, is)
}
