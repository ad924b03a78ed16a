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
	Delivered bool `help:"It arrived, and was not read yet."`
	UpTo      bool `help:"With it all before it that is for you."`
	JSON      bool `help:"Print as JSON what of the channel is read now."`
}

// Help is shown by --help.
func (acknowledgeMessage) Help() string {
	return `A message that is for you was read, or with --delivered only arrived: koine channel inbox shows what was read, and those who read the channel see it in GraphQL (Message.receipts). Nothing says so by itself. What was read stays so; what has expired cannot be acknowledged any more, nor anything in a channel that was closed.

It prints the id of the channel, with --json also readMarker, up to which sequence it is read, and unread, how many messages behind that wait, as GraphQL has it (Channel). What was read is written down then; what arrived is up to a second later.

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
	const mutation = `mutation($input: AcknowledgeMessagesInput!) { acknowledgeMessages(input: $input) { id readMarker unread { count more } } }`
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
