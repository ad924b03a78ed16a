package main

import (
	"context"
	"strings"
)

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
	Member string `arg:"" name:"agent" help:"Agent to remove."`
}

// Help is shown by --help.
func (removeMember) Help() string {
	return `Owners may remove any member, and members themselves. The last owner cannot be removed.`
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
