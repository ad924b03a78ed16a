package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
)

// channelCommand talks in the channels of a server.
type channelCommand struct {
	Create  createChannel  `cmd:"" help:"Make a channel, and print its id."`
	List    listChannels   `cmd:"" help:"List the channels that one is a member of, and the public ones."`
	History channelHistory `cmd:"" help:"Print what was said."`
	Publish publishMessage `cmd:"" help:"Say something."`
	Tail    tailChannel    `cmd:"" help:"Print what is said, as it is said."`
}

// Help is shown by --help.
func (channelCommand) Help() string {
	return `A channel is named by its id, or by its name if only one has it of those that are listed, or, if none has, of those in scopes that you have access to; --scope looks in one scope only. The channel of yourself and another agent has no name and is not listed: --to AGENT is it.

Examples (with koine serve --demo):
  koine channel create lab --member bob --as ann
  koine channel publish lab 'Shall we look at finding 1?' --as ann
  koine channel history lab --as bob
  koine channel tail lab --as bob
  koine channel publish --to bob 'Between the two of us.' --as ann
  koine channel history --to ann --as bob`
}

// wireChannel is what of a channel is shown.
type wireChannel struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Visibility string `json:"visibility"`
	CreatedAt  int64  `json:"createdAt"`
	ClosedAt   int64  `json:"closedAt"`
	Members    []struct {
		PrincipalID string `json:"principalId"`
		Role        string `json:"role"`
	} `json:"members"`
}

// channelPage is the largest that a server gives.
const channelPage = 200

// maxNamedPages bounds how many pages are looked through for a name.
const maxNamedPages = 50

// pages asks page after page of a list, until fn has enough.
func (s *onServer) pages(ctx context.Context, method string, params map[string]any, fn func(raw json.RawMessage) (more bool, err error)) error {
	for {
		var page struct {
			NextPageToken string `json:"nextPageToken"`
		}
		raw, err := s.ask(ctx, method, params, &page)
		if err != nil {
			return err
		}
		if more, err := fn(raw); err != nil || !more || page.NextPageToken == "" {
			return err
		}
		params["pageToken"] = page.NextPageToken
	}
}

// find gives the id of a channel that is named by it, or by its name in a scope or,
// without one, anywhere.
func (s *onServer) find(ctx context.Context, scope, text string) (id string, err error) {
	if _, err := uuid.Parse(text); err == nil || strings.HasPrefix(text, "chan:") {
		return text, nil
	}
	found, err := s.named(ctx, scope, text)
	if err == nil && len(found) == 0 && scope == "" {
		found, err = s.namedInScopes(ctx, text)
	}
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", exitError{fmt.Errorf("there is no channel with the id or the name %q", text), exitRefused}
	case len(found) > 1:
		return "", exitError{fmt.Errorf("%d channels have the name %q: say which by its id\n  %s", len(found), text, strings.Join(found, "\n  ")), exitRefused}
	}
	return found[0], nil
}

// named are the ids of the channels of a scope, or of those that are listed without
// one, that have the name.
func (s *onServer) named(ctx context.Context, scope, name string) (found []string, err error) {
	params := map[string]any{"pageSize": channelPage}
	if scope != "" {
		params["scopeId"] = scope
	}
	looked := 0
	err = s.pages(ctx, "channels/list", params, func(raw json.RawMessage) (bool, error) {
		var page struct{ Channels []wireChannel }
		if err := json.Unmarshal(raw, &page); err != nil {
			return false, err
		}
		for _, c := range page.Channels {
			if c.Name == name {
				found = append(found, c.ID)
			}
		}
		looked++
		return looked < maxNamedPages, nil
	})
	return found, err
}

// createChannel makes a channel.
type createChannel struct {
	Name string `arg:"" optional:"" help:"Its name."`
	onServer
	Public   bool     `help:"Let everybody read it."`
	Member   []string `help:"Somebody who is in it, with a role (owner, moderator, member, observer) if not a member; may be repeated." placeholder:"AGENT[=ROLE]"`
	Metadata string   `help:"Its metadata, a JSON object." placeholder:"JSON"`
	Scope    string   `help:"Make it in this scope." placeholder:"ID"`

	MembersBy string `help:"Who takes part in a channel of a scope: scope (whoever has access to it) or explicit (members only, the default)." enum:"scope,explicit," default:"" placeholder:"scope|explicit"`

	JSON bool `help:"Print the channel as JSON."`
}

// Run prints the id.
func (c *createChannel) Run(ctx context.Context, t terminal) error {
	params := map[string]any{"name": c.Name}
	if c.Public {
		params["visibility"] = "public"
	}
	if c.Scope != "" {
		params["scopeId"] = c.Scope
	}
	if c.MembersBy != "" {
		if c.Scope == "" {
			return usageError{errors.New("--members-by is for a channel in a scope: say --scope too")}
		}
		params["memberPolicy"] = c.MembersBy
	}
	var members []map[string]string
	for _, text := range c.Member {
		agent, role, said := strings.Cut(text, "=")
		m := map[string]string{"principalId": agent}
		if said {
			m["role"] = role
		}
		members = append(members, m)
	}
	params["members"] = members
	if c.Metadata != "" {
		metadata := json.RawMessage(c.Metadata)
		if !json.Valid(metadata) {
			return usageError{errors.New("--metadata is no JSON")}
		}
		params["metadata"] = metadata
	}
	var answer struct{ Channel wireChannel }
	raw, err := c.ask(ctx, "channels/create", params, &answer)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(t.out, raw, true)
	}
	_, err = fmt.Fprintln(t.out, answer.Channel.ID)
	return err
}

// listChannels lists channels.
type listChannels struct {
	onServer
	Visibility string `help:"Only the private, or only the public ones." enum:"private,public," default:"" placeholder:"private|public"`
	Member     string `help:"Only those that this agent is a member of." placeholder:"AGENT"`
	Scope      string `help:"Those of this scope that you may find." placeholder:"ID"`
	JSON       bool   `help:"Print each channel as JSON on a line."`
}

// Help is shown by --help.
func (listChannels) Help() string {
	return `Not listed are the channels of a scope that one takes part in without being a member: see --scope. Channels of two agents are in no list: see --to of publish, history and tail.`
}

// Run prints a line for each.
func (c *listChannels) Run(ctx context.Context, t terminal) error {
	params := map[string]any{"pageSize": channelPage}
	if c.Visibility != "" {
		params["visibility"] = c.Visibility
	}
	if c.Member != "" {
		params["memberId"] = c.Member
	}
	if c.Scope != "" {
		params["scopeId"] = c.Scope
	}
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(table, "ID\tVISIBILITY\tSTATUS\tMEMBERS\tMADE\tNAME")
	}
	err := c.pages(ctx, "channels/list", params, func(raw json.RawMessage) (bool, error) {
		var page struct{ Channels []json.RawMessage }
		if err := json.Unmarshal(raw, &page); err != nil {
			return false, err
		}
		for _, raw := range page.Channels {
			if c.JSON {
				if err := printJSON(t.out, raw, true); err != nil {
					return false, err
				}
				continue
			}
			var one wireChannel
			if err := json.Unmarshal(raw, &one); err != nil {
				return false, err
			}
			members := "-" // they are not shown: every channel has an owner
			if n := len(one.Members); n > 0 {
				members = strconv.Itoa(n)
			}
			status := "open"
			if one.ClosedAt != 0 {
				status = "closed"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", one.ID, one.Visibility, status, members, atMilli(one.CreatedAt), printable(one.Name))
		}
		return true, nil
	})
	return errors.Join(err, table.Flush())
}

// atMilli is a time as lists show it.
func atMilli(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") }
