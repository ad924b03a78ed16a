package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"koine/client"
)

// publishInput is something to be said, and where.
type publishInput struct {
	Channel *string `arg:"" optional:"" help:"The channel, by its id or name; not with --to."`
	Text    *string `arg:"" optional:"" help:"What to say; - or nothing reads standard input."`
	onServer
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

// checkFlags refuses flags that do not go together.
func (c *publishInput) checkFlags() error {
	switch {
	case c.To != "" && c.Text != nil:
		return errors.New("--to says where: leave the channel out, and put the text into quotes")
	case c.To != "" && c.Scope != "":
		return errors.New("the channel of two agents is in no scope: leave --scope or --to out")
	case c.To == "" && (c.Channel == nil || *c.Channel == ""):
		return errors.New("say where: a channel, or --to an agent")
	}
	if text := c.textArgument(); text != nil && *text == "" && len(c.Data) == 0 {
		return errors.New("the text is empty: say something, or leave it out to read standard input")
	}
	return nil
}

// textArgument is what was given to say, nil if nothing was.
func (c *publishInput) textArgument() *string {
	if c.To != "" {
		return c.Channel // the first argument, where no channel is one
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

// resolveMessage is the id of the message that a flag names, in the channel that it is said
// in, which is "" with --to.
func (c *publishInput) resolveMessage(ctx context.Context, server *client.Client, channel, message string) (id string, err error) {
	if _, ok := sequenceIn(message); ok && channel == "" {
		if channel, err = directChannel(ctx, server, c.To); err != nil {
			return "", err
		}
	}
	return messageNamed(ctx, server, channel, message)
}

// messageParts are the text, unless there is data only, and the data.
func (c *publishInput) messageParts(t terminal, text string) (parts []any, err error) {
	if text != "" || len(c.Data) == 0 {
		if text, err = textOf(t, text, ""); err != nil {
			return nil, err
		}
		parts = append(parts, client.TextPart(strings.TrimSuffix(text, "\n")))
	}
	for _, data := range c.Data {
		if !json.Valid([]byte(data)) {
			return nil, usageError{errors.New("--data is no JSON: " + data)}
		}
		parts = append(parts, client.DataPart(json.RawMessage(data)))
	}
	return parts, nil
}
