package main

import (
	"context"
	"errors"
	"fmt"

	"koine/channels"
	"koine/client"
	"koine/kg"
)

// channelPlace says where something was said.
type channelPlace struct {
	Scope string `help:"The scope that the channel is in, where others have the name too." placeholder:"ID"`
	To    string `help:"The channel of yourself and this agent." placeholder:"AGENT"`
}

// find gives the id of the channel that is named so, or of that with --to.
func (in channelPlace) find(ctx context.Context, server *client.Client, text string) (id string, err error) {
	switch {
	case in.To != "" && text != "":
		return "", usageError{errors.New("--to says which channel: leave the other out")}
	case in.To != "" && in.Scope != "":
		return "", usageError{errors.New("the channel of two agents is in no scope: leave --scope or --to out")}
	case in.To != "":
		return direct(ctx, server, in.To)
	case text == "":
		return "", usageError{errors.New("say which: a channel, or --to an agent")}
	}
	return find(ctx, server, in.Scope, text)
}

// direct is the id of the channel of the caller and another agent.
func direct(ctx context.Context, server *client.Client, other string) (id string, err error) {
	var answer struct {
		Me struct{ ActingFor string }
	}
	if err := server.GraphQL(ctx, `{ me { actingFor } }`, nil, &answer); err != nil {
		return "", err
	}
	self := kg.CanonicalAgent(answer.Me.ActingFor)
	if self == "" {
		self = kg.Anonymous
	}
	return string(channels.DirectID(self, kg.CanonicalAgent(other))), nil
}

// maxNamedScopes bounds how many scopes are looked through for a name.
const maxNamedScopes = 200

// namedInScopes are the ids of the channels in scopes that have the name.
func namedInScopes(ctx context.Context, server *client.Client, name string) (found []string, err error) {
	scopes, err := scopesOf(ctx, server)
	if err != nil {
		return nil, err
	}
	for i, scope := range scopes {
		if i == maxNamedScopes {
			return nil, exitError{fmt.Errorf("you have access to more than %d scopes: say by --scope in which one %q is", maxNamedScopes, name), exitRefused}
		}
		in, err := named(ctx, server, scope, name)
		if errors.Is(err, client.Reason(kg.CodeScopeNotFound)) {
			continue // access to it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		found = append(found, in...)
	}
	return found, nil
}

// scopesOf are those that the caller has access to, up to one more than are looked
// through.
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

// sequenceOf tells which message of its channel the id names: its sequence, or the
// id where it cannot be read.
func sequenceOf(ctx context.Context, server *client.Client, id string) string {
	var answer struct{ Message struct{ Sequence int64 } }
	err := server.GraphQL(ctx, `query($id: ID!) { message(id: $id) { sequence } }`, map[string]any{"id": id}, &answer)
	if err != nil || answer.Message.Sequence == 0 {
		return id
	}
	return fmt.Sprint(answer.Message.Sequence)
}
