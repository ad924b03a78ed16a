package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"koine/client"
)

// publishMessage publishes a message.
type publishMessage struct {
	publishInput
	Facts   string `help:"File with the facts of the message: a JSON array of patches, as in knowledge/update." placeholder:"FILE" type:"path"`
	Type    string `help:"Type of the message: request, response, notify or broadcast." enum:"request,response,notify,broadcast," default:"" placeholder:"TYPE"`
	Answers string `help:"Request that the message responds to, by sequence or id." placeholder:"MESSAGE"`
	ReplyTo string `help:"Message that this one replies to, by sequence or id." placeholder:"MESSAGE"`
}

// Help is shown by --help.
func (publishMessage) Help() string {
	return `Prints the sequence and the id of the message, and with --to the id of the channel.

If its facts are refused, the message is not published. Standard error reports the outcome of the facts.

Examples:
  koine channel publish lab 'Shall we look at finding 1?'
  git log -1 | koine channel publish lab
  koine channel publish lab 'I measured it again.' --facts measured.json --once run-17
  koine channel publish lab '4 days.' --answers 7
  koine channel publish --to bob 'Between the two of us.'`
}

// Run publishes the message.
func (c *publishMessage) Run(ctx context.Context, t terminal) error {
	if c.Answers != "" && c.Type != "" && c.Type != "response" {
		return usageError{fmt.Errorf("--answers publishes a response, not a %s: omit --type or --answers", c.Type)}
	}
	if err := c.checkFlags(); err != nil {
		return usageError{err}
	}
	server, err := c.openClient(ctx)
	if err != nil {
		return err
	}
	p, err := c.newPublication(ctx, t, server)
	if err != nil {
		return err
	}
	made, err := server.Publish(ctx, p)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(t.out, made.Raw, true)
	}
	if made.Replayed {
		t.sayf("The message was published before; nothing has changed.")
	}
	if made.VerificationStatus != "" {
		t.sayf("%s", stripControls(factsLine(made)))
	}
	line := fmt.Sprintf("%d  %s", made.Message.Sequence, made.Message.ID)
	if c.To != "" {
		line += "  " + made.Message.ChannelID
	}
	_, err = fmt.Fprintln(t.out, line)
	return err
}

func (c *publishMessage) newPublication(ctx context.Context, t terminal, server *client.Client) (p client.Publication, err error) {
	if p, err = c.basePublication(ctx, t, server); err != nil {
		return p, err
	}
	p.Type = c.Type
	if c.Answers != "" {
		p.Type = "response"
	}
	if p.CorrelationID, err = c.resolveMessage(ctx, server, p.Channel, c.Answers); err != nil {
		return p, err
	}
	if p.ReplyToID, err = c.resolveMessage(ctx, server, p.Channel, c.ReplyTo); err != nil {
		return p, err
	}
	if c.Facts != "" {
		p.Patches, err = factsIn(c.Facts)
	}
	return p, err
}

// factsLine describes the outcome of the facts in a published message.
func factsLine(p *client.Published) string {
	text := fmt.Sprintf("facts: %s, %d affected", p.VerificationStatus, p.StatementsAffected)
	if p.Replayed {
		text = "facts: " + p.VerificationStatus
	}
	if p.ProposalID != "" {
		text = fmt.Sprintf("facts: %s as proposal %s", p.VerificationStatus, p.ProposalID)
	}
	if p.VerificationDetails != "" {
		text += "\n" + p.VerificationDetails
	}
	return text
}

// factsIn reads the patches in a JSON file.
func factsIn(file string) (patches []client.Patch, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError{fmt.Errorf("--facts: %w", err)}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, exitError{fmt.Errorf("--facts: %s is not a JSON array of patches: %w", file, err), exitRefused}
	}
	for _, raw := range list {
		patches = append(patches, client.RawPatch(raw))
	}
	return patches, nil
}
