package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"koine/client"
)

// channelInbox prints what is for oneself.
type channelInbox struct {
	onServer
	From  string `help:"Only what came behind this position." placeholder:"POSITION"`
	Count int    `help:"At most so many." placeholder:"N"`
	JSON  bool   `help:"Print each message as JSON, as GraphQL has it, on a line."`
}

// Help is shown by --help.
func (channelInbox) Help() string {
	return `It prints what others wrote to you or to a role of yours, in all channels that you may read, and what they wrote to everybody where you are a member, the oldest first. The last line tells where to go on with --from.

Examples:
  koine channel inbox
  koine channel inbox --json | jq -r 'select(.messageType == "REQUEST") | .text'`
}

// inboxMessages has what a line shows, and what one wants to know to answer.
const inboxMessages = `query($first: Int, $after: Position) { inbox(first: $first, after: $after) { nodes {
  id channelId sequence time author text parts withheld retracts { sequence } messageType contentType format tags metadata
  recipient recipients correlationId expiresAt replyToId threadId factCount proposalId receiptStatus } position hasNextPage } }`

// inboxPage is what is read at once.
type inboxPage struct {
	Inbox struct {
		Nodes       []json.RawMessage
		Position    string
		HasNextPage bool
	}
}

// Run prints a line for each message.
func (c *channelInbox) Run(ctx context.Context, t terminal) error {
	if c.Count < 0 {
		return usageError{errors.New("--count is not negative")}
	}
	server, err := c.open(ctx)
	if err != nil {
		return err
	}
	ask := map[string]any{"first": channelPage}
	if c.From != "" {
		ask["after"] = c.From
	}
	for seen := 0; ; {
		if c.Count > 0 {
			ask["first"] = min(c.Count-seen, channelPage)
		}
		var page inboxPage
		if err := server.GraphQL(ctx, inboxMessages, ask, &page); err != nil {
			return err
		}
		for _, raw := range page.Inbox.Nodes {
			if err := c.print(ctx, t, server, raw); err != nil {
				return err
			}
		}
		seen += len(page.Inbox.Nodes)
		ask["after"] = page.Inbox.Position
		if !page.Inbox.HasNextPage || c.Count > 0 && seen >= c.Count {
			t.sayf("Go on with --from %s", page.Inbox.Position)
			return nil
		}
	}
}

func (c *channelInbox) print(ctx context.Context, t terminal, server *client.Client, raw json.RawMessage) error {
	if c.JSON {
		return printJSON(t.out, raw, true)
	}
	var m struct {
		ID          string
		ChannelID   string
		Sequence    int64
		Time        time.Time
		Author      string
		Parts       []json.RawMessage
		Withheld    string
		Retracts    struct{ Sequence int64 }
		MessageType string
		Recipient   string
		FactCount   int
		ProposalID  string
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("the server's message: %w", err)
	}
	line := &client.Message{
		ID: m.ID, FactCount: m.FactCount, ProposalID: m.ProposalID,
		Sequence: m.Sequence, Timestamp: m.Time.UnixMilli(), Author: m.Author, Parts: m.Parts,
		Withheld: strings.ToLower(m.Withheld), Type: strings.ToLower(m.MessageType), Recipient: m.Recipient,
	}
	if m.Retracts.Sequence > 0 {
		line.Retracts = fmt.Sprint(m.Retracts.Sequence)
	}
	_, err := fmt.Fprintf(t.out, "%s  %s\n", m.ChannelID, messageLine(line, factsNote(ctx, server, line)))
	return err
}
