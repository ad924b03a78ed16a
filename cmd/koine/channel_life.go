package main

import (
	"context"
	"errors"
	"fmt"

	"koine/client"
)

// oneChannel names a channel of which something becomes.
type oneChannel struct {
	Channel string `arg:"" help:"The channel, by its id or name."`
	onServer
	Scope string `help:"The scope that the channel is in, where others have the name too." placeholder:"ID"`
}

// find reaches the server, and gives the id.
func (c *oneChannel) find(ctx context.Context, open bool) (server *client.Client, id string, err error) {
	if server, err = c.open(ctx); err == nil {
		id, err = find(ctx, server, c.Scope, c.Channel, open)
	}
	return server, id, err
}

// renameChannel gives a channel another name.
type renameChannel struct {
	oneChannel
	Name    string `arg:"" help:"Its new name."`
	Another bool   `help:"Also where one that is open and listed has the name; only their ids tell them apart then."`
}

// Run prints the id.
func (c *renameChannel) Run(ctx context.Context, t terminal) error {
	if c.Name == "" {
		return usageError{errors.New("a channel needs a name")}
	}
	server, id, err := c.find(ctx, allOnes)
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
	if _, err := server.UpdateChannel(ctx, id, client.ChannelChange{ExpectedVersion: is.Version, Name: c.Name}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.out, id)
	return err
}

// closeChannel ends the talk in a channel.
type closeChannel struct {
	oneChannel
	Reason string `help:"Why, for those who read it later." placeholder:"TEXT"`
}

// Run prints the id.
func (c *closeChannel) Run(ctx context.Context, t terminal) error {
	server, id, err := c.find(ctx, openOnes)
	if err != nil {
		return err
	}
	input := map[string]any{"channelId": id}
	if c.Reason != "" {
		input["reason"] = c.Reason
	}
	const mutation = `mutation($input: CloseChannelInput!) { closeChannel(input: $input) { id } }`
	if err := server.GraphQL(ctx, mutation, map[string]any{"input": input}, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.out, id)
	return err
}

// deleteChannel takes a channel away.
type deleteChannel struct{ oneChannel }

// Run prints the id.
func (c *deleteChannel) Run(ctx context.Context, t terminal) error {
	server, id, err := c.find(ctx, allOnes)
	if err != nil {
		return err
	}
	if err := server.DeleteChannel(ctx, id); err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.out, id)
	return err
}
