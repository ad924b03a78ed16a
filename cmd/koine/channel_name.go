package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"koine/client"
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
		return "", exitError{fmt.Errorf("channel %q does not exist\nkoine channel list prints the channels that you may see", text), exitRefused}
	case 1:
		return found[0].ID, nil
	}
	return "", exitError{fmt.Errorf("%d channels have the name %q: pass an id%s", len(found), text, channelLines(found)), exitRefused}
}

func isChannelID(text string) bool {
	_, err := uuid.Parse(text)
	return err == nil || strings.HasPrefix(text, "chan:")
}

// nameFree reports an error if the name has the form of a channel id, or if an open
// channel has it.
func nameFree(ctx context.Context, server *client.Client, name string) error {
	if isChannelID(name) {
		return usageError{fmt.Errorf("%q has the form of a channel id and cannot be a name", name)}
	}
	found, err := channelsNamed(ctx, server, "", name)
	if err != nil {
		return err
	}
	if found = stillOpen(found); len(found) > 0 {
		return exitError{fmt.Errorf("the name %q is taken by an open channel: pass --another to use it again%s", name, channelLines(found)), exitRefused}
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
		fmt.Fprintf(&b, "\n  %s  %s  %s  created %s by %s", c.ID, c.Visibility, channelStatus(c.ClosedAt), atMilli(c.CreatedAt), singleLine(c.CreatedBy))
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
			return nil, exitError{fmt.Errorf("you have access to more than %d scopes: name the scope of %q with --scope", maxNamedScopes, name), exitRefused}
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
