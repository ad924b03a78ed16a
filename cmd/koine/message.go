package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"koine/client"
)

// messageLine is a message for people: number, time, author, and what was said. Lines
// of a text behind its first are indented.
func messageLine(m *client.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d  %s  %s", m.Sequence, atMilli(m.Timestamp), m.Author)
	if m.Type != "" {
		fmt.Fprintf(&b, "  %s", m.Type)
	}
	if m.Recipient != "" {
		fmt.Fprintf(&b, "  to %s", m.Recipient)
	}
	if m.Retracts != "" {
		fmt.Fprintf(&b, "  retracts %s", printable(m.Retracts))
	}
	if m.Withheld != "" {
		fmt.Fprintf(&b, "  (%s)", m.Withheld)
	}
	for _, part := range m.Parts {
		b.WriteString("  ")
		b.WriteString(strings.ReplaceAll(partText(part), "\n", "\n    "))
	}
	return b.String()
}

// partText is the text of a part, in whatever form A2A has for it, or its data, or
// the part as it is, as JSON on a line.
func partText(raw json.RawMessage) string {
	var part struct {
		Text *string         `json:"text"`
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &part) == nil {
		if part.Text != nil {
			return printable(*part.Text)
		}
		if part.Data != nil {
			raw = part.Data
		}
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return printable(string(raw))
	}
	return printable(b.String())
}

// printable is a text that somebody else wrote without what would steer a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// printMessage prints a message as people, or as programs read it.
func printMessage(ctx context.Context, t terminal, server *client.Client, m *client.Message, asJSON bool) error {
	if asJSON {
		return printJSON(t.out, m.Raw, true)
	}
	if m.Retracts != "" {
		m.Retracts = sequenceOf(ctx, server, m.Retracts)
	}
	_, err := fmt.Fprintln(t.out, messageLine(m))
	return err
}

// channelHistory prints what was said.
type channelHistory struct {
	Channel string `arg:"" optional:"" help:"The channel, by its id or name; not with --to."`
	onServer
	channelPlace
	Since  int64    `help:"Only what comes after this sequence." placeholder:"N"`
	Before int64    `help:"Only what comes before this sequence." placeholder:"N"`
	Author []string `help:"Only what this agent said; may be repeated." placeholder:"AGENT"`
	Last   int      `help:"Only the last so many." placeholder:"N"`
	Count  int      `help:"At most so many." placeholder:"N"`
	JSON   bool     `help:"Print each message as JSON on a line."`
}

// Run prints a line for each message, the oldest first.
func (c *channelHistory) Run(ctx context.Context, t terminal) error {
	if c.Last < 0 || c.Count < 0 || c.Since < 0 || c.Before < 0 {
		return usageError{errors.New("--since, --before, --last and --count are not negative")}
	}
	if c.Last > 0 && c.Count > 0 {
		return usageError{errors.New("--last and --count exclude each other")}
	}
	server, err := c.open(ctx)
	if err != nil {
		return err
	}
	id, err := c.find(ctx, server, c.Channel)
	if err != nil {
		return err
	}
	most := max(c.Last, c.Count) // 0 for all
	filter := client.HistoryFilter{Since: c.Since, Before: c.Before, Authors: c.Author, Newest: c.Last > 0, PageSize: channelPage}
	if most > 0 {
		filter.PageSize = min(most, channelPage)
	}
	var last []*client.Message // of --last, the newest first
	seen := 0
	for m, err := range server.History(ctx, id, filter) {
		if err == nil && c.Last == 0 {
			err = printMessage(ctx, t, server, m, c.JSON)
		}
		if err != nil {
			return err
		}
		if c.Last > 0 {
			last = append(last, m)
		}
		if seen++; seen == most {
			break
		}
	}
	for _, m := range slices.Backward(last) {
		if err := printMessage(ctx, t, server, m, c.JSON); err != nil {
			return err
		}
	}
	return nil
}

// publishMessage says something.
type publishMessage struct {
	Channel string `arg:"" optional:"" help:"The channel, by its id or name; not with --to."`
	Text    string `arg:"" optional:"" help:"What to say; - or nothing reads standard input."`
	onServer
	Scope     string   `help:"The scope that the channel is in, where others have the name too." placeholder:"ID"`
	To        string   `help:"Say it to this agent, in the channel of the two of you." placeholder:"AGENT"`
	Data      []string `help:"A further part of the message, with this JSON as its data; may be repeated." placeholder:"JSON" sep:"none"`
	Facts     string   `help:"Facts that come with the message: a file with a JSON array of patches, as in knowledge/update." placeholder:"FILE" type:"path"`
	Once      string   `help:"Publish it once, however often this is run with the same key." placeholder:"KEY"`
	Type      string   `help:"What the message is for: request, response, notify or broadcast." enum:"request,response,notify,broadcast," default:"" placeholder:"TYPE"`
	Recipient string   `help:"Whom it is addressed to: an agent or role:NAME, and then nobody else but the author reads it; or *." placeholder:"AGENT"`
	Answers   string   `help:"The request that it answers: it is a response." placeholder:"MESSAGE"`
	ReplyTo   string   `help:"The message that it replies to." placeholder:"MESSAGE"`
	Thread    string   `help:"The thread that it belongs to." placeholder:"TEXT"`
	Tag       []string `help:"A tag; may be repeated." placeholder:"TEXT"`
	Why       string   `help:"Why, for the log." placeholder:"TEXT"`
	JSON      bool     `help:"Print the server's answer as JSON."`
}

// Help is shown by --help.
func (publishMessage) Help() string {
	return `It prints the sequence and the id of the message, and with --to the id of the channel.

Facts that are refused take the message along; what became of others is told on standard error.

Examples:
  koine channel publish lab 'Shall we look at finding 1?'
  git log -1 | koine channel publish lab
  koine channel publish lab 'I measured it again.' --facts measured.json --once run-17
  koine channel publish --to bob 'Between the two of us.'`
}

// Run publishes the message.
func (c *publishMessage) Run(ctx context.Context, t terminal) error {
	if err := c.check(); err != nil {
		return usageError{err}
	}
	server, err := c.open(ctx)
	if err != nil {
		return err
	}
	p, err := c.publication(ctx, t, server)
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
		t.sayf("It was published before; nothing is new.")
	}
	if made.VerificationStatus != "" {
		t.sayf("%s", printable(factsLine(made)))
	}
	line := fmt.Sprintf("%d  %s", made.Message.Sequence, made.Message.ID)
	if c.To != "" {
		line += "  " + made.Message.ChannelID
	}
	_, err = fmt.Fprintln(t.out, line)
	return err
}

// factsLine says what became of the facts that came with a message.
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

// check refuses flags that do not go together.
func (c *publishMessage) check() error {
	switch {
	case c.Answers != "" && c.Type != "" && c.Type != "response":
		return fmt.Errorf("what answers a request is a response, and no %s: leave --type or --answers out", c.Type)
	case c.To != "" && c.Text != "":
		return errors.New("--to says where: leave the channel out, and put the text into quotes")
	case c.To != "" && c.Scope != "":
		return errors.New("the channel of two agents is in no scope: leave --scope or --to out")
	case c.To == "" && c.Channel == "":
		return errors.New("say where: a channel, or --to an agent")
	}
	return nil
}

func (c *publishMessage) publication(ctx context.Context, t terminal, server *client.Client) (p client.Publication, err error) {
	p = client.Publication{
		To: c.To, IdempotencyKey: c.Once, Type: c.Type, Recipient: c.Recipient, CorrelationID: c.Answers,
		ReplyToID: c.ReplyTo, ThreadID: c.Thread, Tags: c.Tag, Justification: c.Why,
	}
	if c.Answers != "" {
		p.Type = "response"
	}
	text := c.Text
	if c.To != "" {
		text = c.Channel
	} else if p.Channel, err = find(ctx, server, c.Scope, c.Channel, openOnes); err != nil {
		return p, err
	}
	if p.Parts, err = c.parts(t, text); err != nil {
		return p, err
	}
	if c.Facts != "" {
		p.Patches, err = factsIn(c.Facts)
	}
	return p, err
}

// factsIn are the patches in a file.
func factsIn(file string) (patches []client.Patch, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, usageError{fmt.Errorf("%s is no JSON array of patches: %w", file, err)}
	}
	for _, raw := range list {
		patches = append(patches, client.RawPatch(raw))
	}
	return patches, nil
}

// parts are the text, unless there is data only, and the data.
func (c *publishMessage) parts(t terminal, text string) (parts []any, err error) {
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
