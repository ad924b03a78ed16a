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
	Channel *string `arg:"" optional:"" help:"The channel, by its id or name; not with --to."`
	Text    *string `arg:"" optional:"" help:"What to say; - or nothing reads standard input."`
	serverFlags
	Scope     string   `help:"The scope that the channel is in, where others have the name too." placeholder:"ID"`
	To        string   `help:"Say it to this agent, in the channel of the two of you." placeholder:"AGENT"`
	Recipient string   `help:"Whom it is addressed to: an agent or role:NAME, and then nobody else but the author reads it; or *." placeholder:"AGENT"`
	Data      []string `help:"A further part of the message, with this JSON as its data; may be repeated." placeholder:"JSON" sep:"none"`
	Once      string   `help:"Publish it once, however often this is run with the same key." placeholder:"KEY"`
	Thread    string   `help:"The thread that it belongs to." placeholder:"TEXT"`
	Tag       []string `help:"A tag; may be repeated." placeholder:"TEXT"`
	Why       string   `help:"Why, for the log." placeholder:"TEXT"`
	JSON      bool     `help:"Print the server's answer as JSON."`
}

// checkFlags reports an error if arguments or flags exclude each other.
func (c *publishInput) checkFlags() error {
	switch {
	case c.To != "" && c.Text != nil:
		return errors.New("--to and a channel are mutually exclusive: leave the channel out, and put the text into quotes")
	case c.To != "" && c.Scope != "":
		return errors.New("a direct channel is in no scope: leave --scope or --to out")
	case c.To == "" && (c.Channel == nil || *c.Channel == ""):
		return errors.New("no channel is given: name one, or pass --to AGENT")
	}
	if text := c.textArgument(); text != nil && *text == "" && len(c.Data) == 0 {
		return errors.New("the text is empty: say something, or leave it out to read standard input")
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
			return nil, usageError{errors.New("--data is not JSON: " + data)}
		}
		parts = append(parts, client.DataPart(json.RawMessage(data)))
	}
	return parts, nil
}
