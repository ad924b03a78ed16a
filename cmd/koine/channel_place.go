package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"koine/channels"
	"koine/client"
	"koine/kg"
)

// channelReference says where something was said.
type channelReference struct {
	Scope string `help:"The scope that the channel is in, where others have the name too." placeholder:"ID"`
	To    string `help:"The channel of yourself and this agent." placeholder:"AGENT"`
}

// resolveChannel gives the id of the channel that is named so, or of that with --to.
func (in channelReference) resolveChannel(ctx context.Context, server *client.Client, text string) (id string, err error) {
	switch {
	case in.To != "" && text != "":
		return "", usageError{errors.New("--to says which channel: leave the other out")}
	case in.To != "" && in.Scope != "":
		return "", usageError{errors.New("the channel of two agents is in no scope: leave --scope or --to out")}
	case in.To != "":
		return directChannel(ctx, server, in.To)
	case text == "":
		return "", usageError{errors.New("say which: a channel, or --to an agent")}
	}
	return findChannel(ctx, server, in.Scope, text, preferOpen)
}

// oneMessage names a message of which something becomes.
type oneMessage struct {
	Channel string `arg:"" optional:"" help:"The channel, by its id or name; not with --to."`
	Message string `arg:"" optional:"" help:"The message, by its sequence or id."`
	onServer
	channelReference
}

// openChannel reaches the server, and gives the id of the channel.
func (c *oneMessage) openChannel(ctx context.Context) (server *client.Client, id string, err error) {
	channel := c.Channel
	switch {
	case c.messageArgument() == "":
		return nil, "", usageError{errors.New("say which message, by its sequence or id")}
	case c.Message == "":
		channel = ""
	}
	if server, err = c.openClient(ctx); err == nil {
		id, err = c.resolveChannel(ctx, server, channel)
	}
	return server, id, err
}

// messageArgument is the one that was named: with --to alone it is the first argument.
func (c *oneMessage) messageArgument() string {
	if c.To != "" && c.Message == "" {
		return c.Channel
	}
	return c.Message
}

// directChannel is the id of the channel of the caller and another agent.
func directChannel(ctx context.Context, server *client.Client, other string) (id string, err error) {
	var answer struct {
		Me struct{ ActingFor string }
	}
	if err := server.GraphQL(ctx, `{ me { actingFor } }`, nil, &answer); err != nil {
		return "", err
	}
	return string(channels.DirectID(actingFor(answer.Me.ActingFor), kg.CanonicalAgent(other))), nil
}

// actingFor is the agent that me.actingFor names.
func actingFor(name string) kg.AgentID {
	if self := kg.CanonicalAgent(name); self != "" {
		return self
	}
	return kg.Anonymous
}

// sequenceAt is the sequence of the message of the channel that has the id.
func sequenceAt(ctx context.Context, server *client.Client, channel, id string) (int64, error) {
	var answer struct {
		Message struct {
			ChannelID string
			Sequence  int64
		}
	}
	err := server.GraphQL(ctx, `query($id: ID!) { message(id: $id) { channelId sequence } }`, map[string]any{"id": id}, &answer)
	if err == nil && answer.Message.ChannelID != channel {
		err = exitError{fmt.Errorf("there is no message %s in the channel", stripControls(id)), exitRefused}
	}
	return answer.Message.Sequence, err
}

// sequenceIn is the sequence that names a message, unless the text is an id.
func sequenceIn(message string) (sequence int64, ok bool) {
	n, err := strconv.ParseInt(message, 10, 64)
	return n, err == nil && n > 0
}

// messageNamed is the id of the message of a channel that is named by its sequence. Any
// other text is an id.
func messageNamed(ctx context.Context, server *client.Client, channel, message string) (id string, err error) {
	n, ok := sequenceIn(message)
	if !ok {
		return message, nil
	}
	for m, err := range server.History(ctx, channel, client.HistoryFilter{Before: n + 1, Newest: true, PageSize: 1}) {
		if err != nil {
			return "", err
		}
		if m.Sequence == n {
			return m.ID, nil
		}
		break
	}
	return "", exitError{fmt.Errorf("there is no message %d in the channel", n), exitRefused}
}
