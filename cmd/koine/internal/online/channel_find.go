package online

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"koine/channels/channel"
	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/kg"
)

// channelPage is the largest page size that the server accepts.
const channelPage = 200

// maxNamed bounds the channels that are searched for a name.
const maxNamed = 50 * channelPage

// maxListed bounds the channels that an error lists.
const maxListed = 20

// The value of findChannel's parameter open: the preference among channels of the same name.
const (
	preferOpen = true  // open channels, if there are any
	anyState   = false // no preference: for commands that cannot be undone, the name must be unique
)

// findChannel returns the id of a channel, given its id or its name. The name is looked up
// in the scope, or if scope is "" among the listed channels and then in all scopes of the
// caller.
func findChannel(ctx context.Context, server *client.Client, scope, text string, open bool) (id string, err error) {
	if isChannelID(text) {
		return text, nil
	}
	found, err := channelsNamed(ctx, server, scope, text)
	if err == nil && len(found) == 0 && scope == "" {
		found, err = namedInScopes(ctx, server, text)
	}
	if err != nil {
		return "", err
	}
	if opened := stillOpen(found); open && len(opened) > 0 {
		found = opened
	}
	switch len(found) {
	case 0:
		return "", cli.Refusedf("channel %q does not exist\nkoine channel list prints the channels that you may see", text)
	case 1:
		return found[0].ID, nil
	}
	return "", cli.Refusedf("%d channels have the name %q: pass an id%s", len(found), text, channelLines(found))
}

func isChannelID(text string) bool {
	_, err := uuid.Parse(text)
	return err == nil || strings.HasPrefix(text, "chan:")
}

// nameFree reports an error if the name has the form of a channel id, or if an open
// channel has it.
func nameFree(ctx context.Context, server *client.Client, name string) error {
	if isChannelID(name) {
		return cli.Usagef("%q has the form of a channel id and cannot be a name", name)
	}
	found, err := channelsNamed(ctx, server, "", name)
	if err != nil {
		return err
	}
	if found = stillOpen(found); len(found) > 0 {
		return cli.Refusedf("the name %q is taken by an open channel: pass --another to use it again%s", name, channelLines(found))
	}
	return nil
}

func stillOpen(list []*client.Channel) []*client.Channel {
	return slices.DeleteFunc(slices.Clone(list), func(c *client.Channel) bool { return c.ClosedAt != 0 })
}

// channelLines formats the channels as lines from which the reader can choose an id.
func channelLines(list []*client.Channel) string {
	var b strings.Builder
	for i, c := range list {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  and %d more", len(list)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s  %s  %s  created %s by %s", c.ID, c.Visibility, channelStatus(c.ClosedAt), atMilli(c.CreatedAt), cli.SingleLine(c.CreatedBy))
	}
	return b.String()
}

// channelsNamed returns the channels with the name in a scope, or among the listed
// channels if scope is "".
func channelsNamed(ctx context.Context, server *client.Client, scope, name string) (found []*client.Channel, err error) {
	looked := 0
	for c, err := range server.ListChannels(ctx, client.ChannelFilter{Scope: scope, PageSize: channelPage}) {
		if err != nil {
			return nil, err
		}
		if c.Name == name {
			found = append(found, c)
		}
		if looked++; looked == maxNamed {
			break
		}
	}
	return found, nil
}

// maxNamedScopes bounds the scopes that are searched for a name.
const maxNamedScopes = 200

// namedInScopes returns the channels with the name in all scopes that the caller has
// access to.
func namedInScopes(ctx context.Context, server *client.Client, name string) (found []*client.Channel, err error) {
	scopes, err := scopesOf(ctx, server)
	if err != nil {
		return nil, err
	}
	for i, scope := range scopes {
		if i == maxNamedScopes {
			return nil, cli.Refusedf("you have access to more than %d scopes: name the scope of %q with --scope", maxNamedScopes, name)
		}
		in, err := channelsNamed(ctx, server, scope, name)
		if errors.Is(err, client.Reason(kg.CodeScopeNotFound)) {
			continue // the caller has lost access since scopesOf
		}
		if err != nil {
			return nil, err
		}
		found = append(found, in...)
	}
	return found, nil
}

// scopesOf returns the ids of the scopes that the caller has access to. It stops after the
// page that exceeds maxNamedScopes.
func scopesOf(ctx context.Context, server *client.Client) (ids []string, err error) {
	for after := any(nil); ; {
		var answer struct {
			Scopes struct {
				Nodes    []struct{ ID string }
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		const query = `query($after: Cursor) { scopes(first: 200, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }`
		if err := server.GraphQL(ctx, query, map[string]any{"after": after}, &answer); err != nil {
			return nil, err
		}
		for _, one := range answer.Scopes.Nodes {
			ids = append(ids, one.ID)
		}
		if !answer.Scopes.PageInfo.HasNextPage || len(ids) > maxNamedScopes {
			return ids, nil
		}
		after = answer.Scopes.PageInfo.EndCursor
	}
}

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
		return "", cli.Usagef("--to and a channel are mutually exclusive: omit one of them")
	case in.To != "" && in.Scope != "":
		return "", cli.Usagef("a direct channel has no scope: omit --scope or --to")
	case in.To != "":
		return directChannel(ctx, server, in.To)
	case text == "":
		return "", cli.Usagef("no channel given: pass one, or --to AGENT")
	}
	return findChannel(ctx, server, in.Scope, text, preferOpen)
}

// oneMessage names the message that a command works on.
type oneMessage struct {
	Channel string `arg:"" optional:"" help:"Id or name of the channel; not with --to."`
	Message string `arg:"" optional:"" help:"Sequence or id of the message."`
	cli.ServerFlags
	channelReference
}

// openChannel connects to the server and resolves the id of the channel.
func (c *oneMessage) openChannel(ctx context.Context) (server *client.Client, id string, err error) {
	channel := c.Channel
	switch {
	case c.messageArgument() == "":
		return nil, "", cli.Usagef("no message given: pass its sequence or id")
	case c.Message == "":
		channel = ""
	}
	if server, err = c.OpenClient(ctx); err == nil {
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
	if err := server.GraphQL(ctx, `{ me { actingFor: actingForId } }`, nil, &answer); err != nil {
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
		err = cli.Refusedf("message %s does not exist in the channel", cli.StripControls(id))
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
	return "", cli.Refusedf("message %d does not exist in the channel", n)
}
