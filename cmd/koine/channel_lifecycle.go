package main

import (
	"context"
	"errors"
	"fmt"

	"koine/client"
)

// oneChannel names the channel that a command works on.
type oneChannel struct {
	Channel string `arg:"" help:"Id or name of the channel."`
	serverFlags
	Scope string `help:"Scope of the channel, if its name is not unique." placeholder:"ID"`
}

// openChannel connects to the server and resolves the id of the channel. If open is set,
// open channels take precedence over closed ones of the same name.
func (c *oneChannel) openChannel(ctx context.Context, open bool) (server *client.Client, id string, err error) {
	if server, err = c.openClient(ctx); err == nil {
		id, err = findChannel(ctx, server, c.Scope, c.Channel, open)
	}
	return server, id, err
}

// changedChannel names a channel that a command changes and then prints.
type changedChannel struct {
	oneChannel
	JSON bool `help:"Print the channel as JSON, in the form of channels/get."`
}

// printChannel prints the id of the channel, or with --json the channel.
func (c *changedChannel) printChannel(t terminal, is *client.Channel) error {
	if c.JSON {
		return printJSON(t.out, fmt.Appendf(nil, `{"channel":%s}`, is.Raw), true)
	}
	_, err := fmt.Fprintln(t.out, is.ID)
	return err
}

// renameChannel renames a channel.
type renameChannel struct {
	changedChannel
	Name    string `arg:"" help:"New name of the channel."`
	Another bool   `help:"Rename the channel even if an open channel in the list has the same name."`
}

// Run prints the channel.
func (c *renameChannel) Run(ctx context.Context, t terminal) error {
	if c.Name == "" {
		return usageError{errors.New("the name of the channel is empty")}
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
	return c.printChannel(t, is)
}

// closeChannel closes a channel: it stays readable.
type closeChannel struct {
	changedChannel
	Reason string `help:"Reason, for readers of the channel." placeholder:"TEXT"`
}

// Run prints the channel.
func (c *closeChannel) Run(ctx context.Context, t terminal) error {
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
func (c *deleteChannel) Run(ctx context.Context, t terminal) error {
	server, id, err := c.openChannel(ctx, anyState)
	if err != nil {
		return err
	}
	if err := server.DeleteChannel(ctx, id); err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.out, id)
	return err
}
