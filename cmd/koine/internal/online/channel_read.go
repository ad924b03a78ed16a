package online

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/kg"
)

// channelHistory prints the messages of a channel.
type channelHistory struct {
	Channel string `arg:"" optional:"" help:"Id or name of the channel; not with --to."`
	cli.ServerFlags
	channelReference
	Since  int64    `help:"Print only messages after this sequence." placeholder:"N"`
	Before int64    `help:"Print only messages before this sequence." placeholder:"N"`
	Author []string `help:"Print only messages of this agent; may be repeated." placeholder:"AGENT"`
	Last   int      `help:"Print only this number of the newest messages." placeholder:"N"`
	Count  int      `help:"Maximum number of messages to print." placeholder:"N"`
	cli.OutputFlags
}

// Help is shown by --help.
func (channelHistory) Help() string {
	return `Each line has the sequence, the time, the author and the content of a message. ` + factsNoteHelp + `

Examples:
  koine channel history lab
  koine channel history lab --last 20
  koine channel history --to bob --json`
}

// Run prints a line for each message, the oldest first.
func (c *channelHistory) Run(ctx context.Context, t cli.Terminal) error {
	if c.Last < 0 || c.Count < 0 || c.Since < 0 || c.Before < 0 {
		return cli.Usagef("--since, --before, --last and --count must not be negative")
	}
	if c.Last > 0 && c.Count > 0 {
		return cli.Usagef("--last and --count are mutually exclusive")
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	id, err := c.resolveChannel(ctx, server, c.Channel)
	if err != nil {
		return err
	}
	if err := beginMessages(t, c.OutputFlags); err != nil {
		return err
	}
	most := max(c.Last, c.Count) // 0: no limit
	filter := client.HistoryFilter{Since: c.Since, Before: c.Before, Authors: c.Author, Newest: c.Last > 0, PageSize: channelPage}
	if most > 0 {
		filter.PageSize = min(most, channelPage)
	}
	var list []*client.Message // not yet printed: a page, or with --last all, newest first
	seen := 0
	for m, failed := range server.History(ctx, id, filter) {
		if err = failed; err != nil {
			break
		}
		list = append(list, m)
		if seen++; seen == most {
			break
		}
		if c.Last == 0 && len(list) == filter.PageSize {
			if err := printMessages(ctx, t, server, list, c.OutputFlags); err != nil {
				return err
			}
			list = nil
		}
	}
	if c.Last > 0 {
		if err != nil {
			return err
		}
		slices.Reverse(list)
	}
	if failed := printMessages(ctx, t, server, list, c.OutputFlags); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if c.OutputFlags == (cli.OutputFlags{}) {
		sayClosed(ctx, t, server, id)
	}
	return nil
}

// tailChannel prints the messages of a channel as they are published.
type tailChannel struct {
	Channel string `arg:"" optional:"" help:"Id or name of the channel; not with --to."`
	cli.ServerFlags
	channelReference
	Since *int64 `help:"Start after this sequence; 0 prints all messages (default: the newest)." placeholder:"N"`
	Count int    `help:"Exit after this number of messages." placeholder:"N"`
	cli.OutputFlags
}

// Help is shown by --help.
func (tailChannel) Help() string {
	return `Prints messages in the form of koine channel history. A lost connection is re-established and resumes where it was: no message is missed or repeated. The command exits when the channel is closed, or on Ctrl-C; the last line prints the sequence to continue from with --since.

Examples:
  koine channel tail lab
  koine channel tail lab --since 0 --json`
}

// Run prints messages until it is interrupted or has printed --count messages.
func (c *tailChannel) Run(ctx context.Context, t cli.Terminal) error {
	if c.Since != nil && *c.Since < 0 {
		return cli.Usagef("--since must not be negative")
	}
	server, err := c.OpenStream(ctx, t)
	if err != nil {
		return err
	}
	id, err := c.resolveChannel(ctx, server, c.Channel)
	if err != nil {
		return err
	}
	last, err := c.startSequence(ctx, server, id)
	if err != nil {
		return err
	}
	if err := beginMessages(t, c.OutputFlags); err != nil {
		return err
	}
	seen := 0
	for m, err := range server.Stream(ctx, id, client.StreamOptions{Since: last}) {
		if err != nil {
			return c.endOfTail(ctx, t, last, err)
		}
		if err := printMessage(ctx, t, server, m, c.OutputFlags); err != nil {
			return err
		}
		last = m.Sequence
		if seen++; c.Count > 0 && seen >= c.Count {
			t.Notef("Continue with --since %d", last)
			return nil
		}
	}
	return nil
}

func (c *tailChannel) endOfTail(ctx context.Context, t cli.Terminal, last int64, err error) error {
	if errors.Is(err, client.Reason(kg.CodeChannelClosed)) {
		t.Notef("The channel is closed and takes no new messages.")
		return nil
	}
	if since, ok := resumeSequence(last, err); ok {
		t.Notef("Continue with --since %d", since)
	}
	if ctx.Err() != nil {
		return nil // Ctrl-C is the normal end
	}
	return c.StreamError(err)
}

// resumeSequence returns the sequence after which the caller can resume, given the error
// that ended the stream. It returns false if there is none: the server rejected the
// sequence.
func resumeSequence(last int64, err error) (since int64, ok bool) {
	var refused *client.Error
	switch {
	case errors.Is(err, client.Invalid):
		return 0, false // the sequence is beyond the newest, which the error names
	case errors.As(err, &refused) && refused.Reason == client.PositionGone && refused.OldestSequence > 0:
		return refused.OldestSequence - 1, true
	}
	return last, true
}

// startSequence returns the sequence after which the stream starts: --since, or the
// newest. The newest is read first so that the last line can name a sequence even if no
// message arrives.
func (c *tailChannel) startSequence(ctx context.Context, server *client.Client, id string) (int64, error) {
	if c.Since != nil {
		return *c.Since, nil
	}
	for m, err := range server.History(ctx, id, client.HistoryFilter{Newest: true, PageSize: 1}) {
		if err != nil {
			return 0, err
		}
		return m.Sequence, nil
	}
	return 0, nil
}

// channelInbox prints the messages that are addressed to the caller.
type channelInbox struct {
	cli.ServerFlags
	From  string `help:"Print only messages after this position." placeholder:"POSITION"`
	Count int    `help:"Maximum number of messages to print." placeholder:"N"`
	cli.OutputFlags
}

// Help is shown by --help.
func (channelInbox) Help() string {
	return `Prints messages addressed to you or to one of your roles, from all channels that you may read, and messages to everyone in channels that you are a member of, the oldest first. Each line begins with the id of the channel and continues as in koine channel history. A request is [open] until it is [answered] by anyone, or expires; [read] marks what you have acknowledged. The last line prints the position to continue from with --from.

With --json, messages have the form of koine channel history --json, and receiptStatus: pending, delivered, read or expired.

Examples:
  koine channel inbox
  koine channel inbox --json | jq -r 'select(.messageType == "request" and .answeredBy == null) | .id'`
}

const inboxMessages = `query($first: Int, $after: Cursor) { inbox(first: $first, after: $after) { nodes { ...message receiptStatus } pageInfo { endCursor hasNextPage } } } ` + messageFields

// inboxPage is one page of the inbox.
type inboxPage struct {
	Inbox struct {
		Nodes    []*graphQLMessage
		PageInfo struct {
			EndCursor   string // a position
			HasNextPage bool
		}
	}
}

// Run prints a line for each message.
func (c *channelInbox) Run(ctx context.Context, t cli.Terminal) error {
	if c.Count < 0 {
		return cli.Usagef("--count must not be negative")
	}
	server, err := c.OpenClient(ctx)
	if err != nil {
		return err
	}
	ask := map[string]any{"first": channelPage}
	if c.From != "" {
		ask["after"] = c.From
	}
	if err := beginMessages(t, c.OutputFlags); err != nil {
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
		ask["after"] = page.Inbox.PageInfo.EndCursor
		if !page.Inbox.PageInfo.HasNextPage || c.Count > 0 && seen >= c.Count {
			t.Notef("Continue with --from %s", page.Inbox.PageInfo.EndCursor)
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

func (c *channelInbox) printMessages(ctx context.Context, t cli.Terminal, server *client.Client, nodes []*graphQLMessage) error {
	list := make([]*client.Message, len(nodes))
	var held []*client.Message // messages with facts: their review status is looked up
	for i, from := range nodes {
		var err error
		if list[i], err = from.clientMessage(); err != nil {
			return err
		}
		if mayHaveFate(list[i]) && c.OutputFlags == (cli.OutputFlags{}) {
			held = append(held, list[i])
		}
	}
	known := lookupFates(ctx, server, held)
	for i, m := range list {
		if c.OutputFlags != (cli.OutputFlags{}) {
			if err := printMessageAs(t, c.OutputFlags, m); err != nil {
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
		if _, err := fmt.Fprintf(t.Out, "%s  %s\n", m.ChannelID, messageLine(m, requestNote(from), read, factsNote(m, known))); err != nil {
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

// acknowledgeMessage marks a message as read, or as delivered.
type acknowledgeMessage struct {
	oneMessage
	Delivered bool `help:"Mark as delivered, not as read."`
	UpTo      bool `help:"Mark all earlier messages addressed to you as well."`
	JSON      bool `help:"Print the state of the channel as JSON."`
}

// Help is shown by --help.
func (acknowledgeMessage) Help() string {
	return `Marks a message addressed to you as read, or with --delivered as delivered. koine channel inbox shows what you have read; readers of the channel see it in GraphQL (Message.receipts). No other command marks messages. Messages that are read remain so. Expired messages, and messages in closed channels, cannot be marked.

Prints the id of the channel; with --json also readMarker (the sequence up to which it is read) and unread (the number of messages after it), as in GraphQL (Channel). Read marks are stored at once, delivered marks within a second.

Examples:
  koine channel acknowledge lab 7
  koine channel acknowledge lab 7 --up-to
  koine channel acknowledge --to bob 2 --delivered`
}

// Run acknowledges the messages and prints the id of the channel.
func (c *acknowledgeMessage) Run(ctx context.Context, t cli.Terminal) error {
	server, id, err := c.openChannel(ctx)
	if err != nil {
		return err
	}
	input := map[string]any{"channelId": id, "status": "READ"}
	if c.Delivered {
		input["status"] = "DELIVERED"
	}
	if err := c.selectMessages(ctx, server, id, input); err != nil {
		return err
	}
	const mutation = `mutation($input: AcknowledgeMessagesInput!) { acknowledgeMessages(input: $input) { channel { id readMarker unread { count hasMore } } } }`
	var answer struct {
		AcknowledgeMessages struct{ Channel json.RawMessage }
	}
	if err := server.GraphQL(ctx, mutation, map[string]any{"input": input}, &answer); err != nil {
		return err
	}
	return printChannel(t, c.JSON, id, answer.AcknowledgeMessages.Channel)
}

// selectMessages adds the messages to acknowledge to the input of the mutation: one by its
// id, or with --up-to all up to a sequence.
func (c *acknowledgeMessage) selectMessages(ctx context.Context, server *client.Client, channel string, input map[string]any) (err error) {
	n, ok := sequenceIn(c.messageArgument())
	switch {
	case c.UpTo && ok:
		input["upToSequence"] = n
	case c.UpTo:
		input["upToSequence"], err = sequenceAt(ctx, server, channel, c.messageArgument())
	default:
		var id string
		id, err = messageNamed(ctx, server, channel, c.messageArgument())
		input["messageIds"] = []string{id}
	}
	return err
}

// sayClosed prints the reason for which the channel was closed, if one was given.
func sayClosed(ctx context.Context, t cli.Terminal, server *client.Client, id string) {
	if c, err := server.GetChannel(ctx, id); err == nil && c.ClosedReason != "" {
		t.Notef("Reason for closing: %s", cli.SingleLine(c.ClosedReason))
	}
}
