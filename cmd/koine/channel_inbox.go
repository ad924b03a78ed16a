package main

import (
	"context"
	"errors"
	"fmt"

	"koine/client"
)

// channelInbox prints the messages that are addressed to the caller.
type channelInbox struct {
	serverFlags
	From  string `help:"Print only messages after this position." placeholder:"POSITION"`
	Count int    `help:"Maximum number of messages to print." placeholder:"N"`
	outputFlags
}

// Help is shown by --help.
func (channelInbox) Help() string {
	return `Prints messages addressed to you or to one of your roles, from all channels that you may read, and messages to everyone in channels that you are a member of, the oldest first. Each line begins with the id of the channel and continues as in koine channel history. A request is [open] until it is [answered] by anyone, or expires; [read] marks what you have acknowledged. The last line prints the position to continue from with --from.

With --json, messages have the form of koine channel history --json, and receiptStatus: pending, delivered, read or expired.

Examples:
  koine channel inbox
  koine channel inbox --json | jq -r 'select(.messageType == "request" and .answeredBy == null) | .id'`
}

const inboxMessages = `query($first: Int, $after: Position) { inbox(first: $first, after: $after) { nodes { ...message receiptStatus } position hasNextPage } } ` + messageFields

// inboxPage is one page of the inbox.
type inboxPage struct {
	Inbox struct {
		Nodes       []*graphQLMessage
		Position    string
		HasNextPage bool
	}
}

// Run prints a line for each message.
func (c *channelInbox) Run(ctx context.Context, t terminal) error {
	if c.Count < 0 {
		return usageError{errors.New("--count must not be negative")}
	}
	server, err := c.openClient(ctx)
	if err != nil {
		return err
	}
	ask := map[string]any{"first": channelPage}
	if c.From != "" {
		ask["after"] = c.From
	}
	if err := c.beginMessages(t); err != nil {
		return err
	}
	for seen := 0; ; {
		if c.Count > 0 {
			ask["first"] = min(c.Count-seen, channelPage)
		}
		var page inboxPage
		if err := server.GraphQL(ctx, inboxMessages, ask, &page); err != nil {
			return c.explainBadPosition(err)
		}
		if err := c.printMessages(ctx, t, server, page.Inbox.Nodes); err != nil {
			return err
		}
		seen += len(page.Inbox.Nodes)
		ask["after"] = page.Inbox.Position
		if !page.Inbox.HasNextPage || c.Count > 0 && seen >= c.Count {
			t.sayf("Continue with --from %s", page.Inbox.Position)
			return nil
		}
	}
}

// explainBadPosition adds a hint to the error of a position that the server does not
// recognize.
func (c *channelInbox) explainBadPosition(err error) error {
	var e *client.Error
	if c.From == "" || !errors.As(err, &e) || e.Reason != client.PositionGone {
		return err
	}
	told := *e
	told.Hint = "--from takes the position that koine channel inbox printed last; without it, the whole inbox is printed."
	return &told
}

func (c *channelInbox) printMessages(ctx context.Context, t terminal, server *client.Client, nodes []*graphQLMessage) error {
	list := make([]*client.Message, len(nodes))
	var held []*client.Message // messages with facts: their review status is looked up
	for i, from := range nodes {
		var err error
		if list[i], err = from.clientMessage(); err != nil {
			return err
		}
		if mayHaveFate(list[i]) && c.outputFlags == (outputFlags{}) {
			held = append(held, list[i])
		}
	}
	known := lookupFates(ctx, server, held)
	for i, m := range list {
		if c.outputFlags != (outputFlags{}) {
			if err := c.printMessage(t, m); err != nil {
				return err
			}
			continue
		}
		from := nodes[i]
		if m.Retracts != "" {
			m.Retracts = fmt.Sprint(from.Retracts.Sequence)
		}
		read := ""
		if from.ReceiptStatus == "READ" {
			read = "read"
		}
		if _, err := fmt.Fprintf(t.out, "%s  %s\n", m.ChannelID, messageLine(m, requestNote(from), read, factsNote(m, known))); err != nil {
			return err
		}
	}
	return nil
}

// requestNote returns the status of a request: open, answered or expired. It is "" for
// other messages.
func requestNote(m *graphQLMessage) string {
	switch {
	case m.MessageType != "REQUEST" || m.Withheld != "":
		return ""
	case m.AnsweredBy.ID != "":
		return "answered"
	case m.ReceiptStatus == "EXPIRED": // its channel was closed
		return "expired"
	}
	return "open"
}
