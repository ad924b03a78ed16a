package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
)

// message is what of a message is shown.
type message struct {
	ID        string            `json:"id"`
	Channel   string            `json:"channelId"`
	Sequence  int64             `json:"sequence"`
	Timestamp int64             `json:"timestamp"`
	Author    string            `json:"author"`
	Parts     []json.RawMessage `json:"parts"`
	Type      string            `json:"messageType"`
	Recipient string            `json:"recipient"`
	Withheld  string            `json:"withheld"`
	Retracts  string            `json:"retracts"`
}

// line is the message for people: number, time, author, and what was said. Lines
// of a text behind its first are indented.
func (m *message) line() string {
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
func (s *onServer) printMessage(ctx context.Context, t terminal, raw json.RawMessage, asJSON bool) (sequence int64, err error) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return 0, fmt.Errorf("the server's message: %w", err)
	}
	if asJSON {
		return m.Sequence, printJSON(t.out, raw, true)
	}
	if m.Retracts != "" {
		m.Retracts = s.sequenceOf(ctx, m.Retracts)
	}
	_, err = fmt.Fprintln(t.out, m.line())
	return m.Sequence, err
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
	id, err := c.findIn(ctx, c.channelPlace, c.Channel)
	if err != nil {
		return err
	}
	most := max(c.Last, c.Count) // 0 for all
	params := map[string]any{"channelId": id, "pageSize": channelPage}
	if most > 0 {
		params["pageSize"] = min(most, channelPage)
	}
	if c.Since > 0 {
		params["sinceSequence"] = c.Since
	}
	if c.Before > 0 {
		params["beforeSequence"] = c.Before
	}
	if len(c.Author) > 0 {
		params["authorIds"] = c.Author
	}
	if c.Last > 0 {
		params["order"] = "desc"
	}
	var last []json.RawMessage // of --last, the newest first
	printed := 0
	err = c.pages(ctx, "channels/history", params, func(raw json.RawMessage) (bool, error) {
		var page struct{ Events []json.RawMessage }
		if err := json.Unmarshal(raw, &page); err != nil {
			return false, err
		}
		for _, event := range page.Events {
			if most > 0 && printed == most {
				return false, nil
			}
			printed++
			if c.Last > 0 {
				last = append(last, event)
				continue
			}
			if _, err := c.printMessage(ctx, t, event, c.JSON); err != nil {
				return false, err
			}
		}
		return most == 0 || printed < most, nil
	})
	for i := len(last) - 1; i >= 0 && err == nil; i-- {
		_, err = c.printMessage(ctx, t, last[i], c.JSON)
	}
	return err
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
	Recipient string   `help:"Whom it is addressed to: an agent, role:NAME or *." placeholder:"AGENT"`
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
	params, err := c.params(ctx, t)
	if err != nil {
		return err
	}
	var answer struct {
		Event               message
		Replayed            bool
		StatementsAffected  int
		VerificationStatus  string
		VerificationDetails string
		ProposalID          string
	}
	raw, err := c.ask(ctx, "channels/publish", params, &answer)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(t.out, raw, true)
	}
	if answer.Replayed {
		t.sayf("It was published before; nothing is new.")
	}
	if s := answer.VerificationStatus; s != "" {
		text := fmt.Sprintf("facts: %s, %d affected", s, answer.StatementsAffected)
		if answer.Replayed {
			text = "facts: " + s
		}
		if answer.ProposalID != "" {
			text = fmt.Sprintf("facts: %s as proposal %s", s, answer.ProposalID)
		}
		if answer.VerificationDetails != "" {
			text += "\n" + answer.VerificationDetails
		}
		t.sayf("%s", printable(text))
	}
	line := fmt.Sprintf("%d  %s", answer.Event.Sequence, answer.Event.ID)
	if c.To != "" {
		line += "  " + answer.Event.Channel
	}
	_, err = fmt.Fprintln(t.out, line)
	return err
}

func (c *publishMessage) params(ctx context.Context, t terminal) (map[string]any, error) {
	params, text := map[string]any{}, c.Text
	if c.Answers != "" {
		if c.Type != "" && c.Type != "response" {
			return nil, usageError{fmt.Errorf("what answers a request is a response, and no %s: leave --type or --answers out", c.Type)}
		}
		c.Type = "response"
	}
	switch {
	case c.To != "" && text != "":
		return nil, usageError{errors.New("--to says where: leave the channel out, and put the text into quotes")}
	case c.To != "" && c.Scope != "":
		return nil, usageError{errors.New("the channel of two agents is in no scope: leave --scope or --to out")}
	case c.To != "":
		params["to"], text = c.To, c.Channel
	case c.Channel == "":
		return nil, usageError{errors.New("say where: a channel, or --to an agent")}
	default:
		id, err := c.find(ctx, c.Scope, c.Channel)
		if err != nil {
			return nil, err
		}
		params["channelId"] = id
	}
	parts, err := c.parts(t, text)
	if err != nil {
		return nil, err
	}
	params["parts"] = parts
	for _, m := range []struct{ name, value string }{
		{"idempotencyKey", c.Once}, {"messageType", c.Type}, {"recipient", c.Recipient}, {"correlationId", c.Answers},
		{"replyToId", c.ReplyTo}, {"threadId", c.Thread}, {"justification", c.Why},
	} {
		if m.value != "" {
			params[m.name] = m.value
		}
	}
	if len(c.Tag) > 0 {
		params["tags"] = c.Tag
	}
	if c.Facts != "" {
		text, err := os.ReadFile(c.Facts)
		if err != nil {
			return nil, err
		}
		var patches []json.RawMessage
		if err := json.Unmarshal(text, &patches); err != nil {
			return nil, usageError{fmt.Errorf("%s is no JSON array of patches: %w", c.Facts, err)}
		}
		params["patches"] = patches
	}
	return params, nil
}

// parts are the text, unless there is data only, and the data.
func (c *publishMessage) parts(t terminal, text string) (parts []any, err error) {
	if text != "" || len(c.Data) == 0 {
		if text, err = textOf(t, text, ""); err != nil {
			return nil, err
		}
		parts = append(parts, map[string]string{"type": "text", "text": strings.TrimSuffix(text, "\n")})
	}
	for _, data := range c.Data {
		if !json.Valid([]byte(data)) {
			return nil, usageError{errors.New("--data is no JSON: " + data)}
		}
		parts = append(parts, map[string]any{"type": "data", "data": json.RawMessage(data)})
	}
	return parts, nil
}
