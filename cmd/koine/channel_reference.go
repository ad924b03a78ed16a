package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"koine/channels/channel"
	"koine/client"
	"koine/kg"
)

// channelReference holds the flags that select a channel beside its name.
type channelReference struct {
	Scope string `help:"Scope of the channel, if its name is not unique." placeholder:"ID"`
	To    string `help:"Use the direct channel with this agent." placeholder:"AGENT"`
}

// resolveChannel returns the id of the channel with the id or name text, or of the direct
// channel with --to.
func (in channelReference) resolveChannel(ctx context.Context, server *client.Client, text string) (id string, err error) {
	switch {
	case in.To != "" && text != "":
		return "", usageError{errors.New("--to and a channel are mutually exclusive: omit one of them")}
	case in.To != "" && in.Scope != "":
		return "", usageError{errors.New("a direct channel has no scope: omit --scope or --to")}
	case in.To != "":
		return directChannel(ctx, server, in.To)
	case text == "":
		return "", usageError{errors.New("no channel given: pass one, or --to AGENT")}
	}
	return findChannel(ctx, server, in.Scope, text, preferOpen)
}

// oneMessage names the message that a command works on.
type oneMessage struct {
	Channel string `arg:"" optional:"" help:"Id or name of the channel; not with --to."`
	Message string `arg:"" optional:"" help:"Sequence or id of the message."`
	serverFlags
	channelReference
}

// openChannel connects to the server and resolves the id of the channel.
func (c *oneMessage) openChannel(ctx context.Context) (server *client.Client, id string, err error) {
	channel := c.Channel
	switch {
	case c.messageArgument() == "":
		return nil, "", usageError{errors.New("no message given: pass its sequence or id")}
	case c.Message == "":
		channel = ""
	}
	if server, err = c.openClient(ctx); err == nil {
		id, err = c.resolveChannel(ctx, server, channel)
	}
	return server, id, err
}

// messageArgument returns the argument that names the message: the second, or the first
// with --to.
func (c *oneMessage) messageArgument() string {
	if c.To != "" && c.Message == "" {
		return c.Channel
	}
	return c.Message
}

// directChannel returns the id of the direct channel of the caller and another agent.
func directChannel(ctx context.Context, server *client.Client, other string) (id string, err error) {
	var answer struct {
		Me struct{ ActingFor string }
	}
	if err := server.GraphQL(ctx, `{ me { actingFor } }`, nil, &answer); err != nil {
		return "", err
	}
	return string(channel.DirectID(actingFor(answer.Me.ActingFor), kg.CanonicalAgent(other))), nil
}

// actingFor returns the agent that the field me.actingFor names.
func actingFor(name string) kg.AgentID {
	if self := kg.CanonicalAgent(name); self != "" {
		return self
	}
	return kg.Anonymous
}

// sequenceAt returns the sequence of a message, given its id. It reports an error if the
// message is not in the channel.
func sequenceAt(ctx context.Context, server *client.Client, channel, id string) (int64, error) {
	var answer struct {
		Message struct {
			ChannelID string
			Sequence  int64
		}
	}
	err := server.GraphQL(ctx, `query($id: ID!) { message(id: $id) { channelId sequence } }`, map[string]any{"id": id}, &answer)
	if err == nil && answer.Message.ChannelID != channel {
		err = exitError{fmt.Errorf("message %s does not exist in the channel", stripControls(id)), exitRefused}
	}
	return answer.Message.Sequence, err
}

// sequenceIn parses a sequence. It returns false if the text is a message id.
func sequenceIn(message string) (sequence int64, ok bool) {
	n, err := strconv.ParseInt(message, 10, 64)
	return n, err == nil && n > 0
}

// messageNamed returns the id of a message of a channel, given its sequence or its id.
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
	return "", exitError{fmt.Errorf("message %d does not exist in the channel", n), exitRefused}
}
