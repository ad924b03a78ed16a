package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"koine/client"
)

// publishInput holds the arguments and flags that ask and publish share.
type publishInput struct {
	Channel *string `arg:"" optional:"" help:"Id or name of the channel; not with --to."`
	Text    *string `arg:"" optional:"" help:"Text of the message; - or no text reads standard input."`
	serverFlags
	Scope     string   `help:"Scope of the channel, if its name is not unique." placeholder:"ID"`
	To        string   `help:"Publish in the direct channel with this agent." placeholder:"AGENT"`
	Recipient string   `help:"Recipient: an agent or role:NAME, and then only the recipients and the author can read the message; or * for all members." placeholder:"AGENT"`
	Data      []string `help:"JSON data to add to the message as a part; may be repeated." placeholder:"JSON" sep:"none"`
	Once      string   `help:"Idempotency key: commands with the same key publish one message." placeholder:"KEY"`
	Thread    string   `help:"Thread of the message." placeholder:"TEXT"`
	Tag       []string `help:"Tag of the message; may be repeated." placeholder:"TEXT"`
	Why       string   `help:"Justification for the history." placeholder:"TEXT"`
	JSON      bool     `help:"Print the response as JSON."`
}

// checkFlags reports an error if arguments or flags exclude each other.
func (c *publishInput) checkFlags() error {
	switch {
	case c.To != "" && c.Text != nil:
		return errors.New("--to and a channel are mutually exclusive: omit the channel, and quote the text")
	case c.To != "" && c.Scope != "":
		return errors.New("a direct channel has no scope: omit --scope or --to")
	case c.To == "" && (c.Channel == nil || *c.Channel == ""):
		return errors.New("no channel given: pass one, or --to AGENT")
	}
	if text := c.textArgument(); text != nil && *text == "" && len(c.Data) == 0 {
		return errors.New("the text is empty: pass one, or omit it to read standard input")
	}
	return nil
}

// textArgument returns the text argument, nil if it is absent.
func (c *publishInput) textArgument() *string {
	if c.To != "" {
		return c.Channel // with --to the first argument is the text
	}
	return c.Text
}

func (c *publishInput) basePublication(ctx context.Context, t terminal, server *client.Client) (p client.Publication, err error) {
	p = client.Publication{To: c.To, Recipient: c.Recipient, IdempotencyKey: c.Once, ThreadID: c.Thread, Tags: c.Tag, Justification: c.Why}
	if c.To == "" {
		if p.Channel, err = findChannel(ctx, server, c.Scope, *c.Channel, preferOpen); err != nil {
			return p, err
		}
	}
	text := ""
	if given := c.textArgument(); given != nil {
		text = *given
	}
	p.Parts, err = c.messageParts(t, text)
	return p, err
}

// resolveMessage returns the id of the earlier message that a flag names. The channel is
// the one that the new message goes to, "" with --to.
func (c *publishInput) resolveMessage(ctx context.Context, server *client.Client, channel, message string) (id string, err error) {
	if _, ok := sequenceIn(message); ok && channel == "" {
		if channel, err = directChannel(ctx, server, c.To); err != nil {
			return "", err
		}
	}
	return messageNamed(ctx, server, channel, message)
}

// messageParts returns a text part, unless --data alone is given, and a part for each
// --data.
func (c *publishInput) messageParts(t terminal, text string) (parts []any, err error) {
	if text != "" || len(c.Data) == 0 {
		if text, err = readText(t, text, ""); err != nil {
			return nil, err
		}
		parts = append(parts, client.TextPart(strings.TrimSuffix(text, "\n")))
	}
	for _, data := range c.Data {
		if !json.Valid([]byte(data)) {
			return nil, usageError{errors.New("--data must be JSON, not " + data)}
		}
		parts = append(parts, client.DataPart(json.RawMessage(data)))
	}
	return parts, nil
}
