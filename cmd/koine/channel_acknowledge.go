package main

import (
	"context"
	"encoding/json"
	"fmt"

	"koine/client"
)

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
func (c *acknowledgeMessage) Run(ctx context.Context, t terminal) error {
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
	const mutation = `mutation($input: AcknowledgeMessagesInput!) { acknowledgeMessages(input: $input) { id readMarker unread { count hasMore } } }`
	var answer struct{ AcknowledgeMessages json.RawMessage }
	if err := server.GraphQL(ctx, mutation, map[string]any{"input": input}, &answer); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(t.out, fmt.Appendf(nil, `{"channel":%s}`, answer.AcknowledgeMessages), true)
	}
	_, err = fmt.Fprintln(t.out, id)
	return err
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
