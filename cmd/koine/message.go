package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"koine/client"
)

// messageLine formats a message for people: number, time, author, notes, content.
// Continuation lines of a text are indented.
func messageLine(m *client.Message, notes ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d  %s  %s", m.Sequence, atMilli(m.Timestamp), m.Author)
	if m.Type != "" {
		fmt.Fprintf(&b, "  %s", m.Type)
	}
	if m.Recipient != "" {
		fmt.Fprintf(&b, "  to %s", m.Recipient)
	}
	if m.Retracts != "" {
		fmt.Fprintf(&b, "  retracts %s", singleLine(m.Retracts))
	}
	if m.Withheld != "" {
		fmt.Fprintf(&b, "  (%s)", m.Withheld)
	}
	for _, note := range notes {
		if note != "" {
			fmt.Fprintf(&b, "  [%s]", note)
		}
	}
	for _, part := range m.Parts {
		b.WriteString("  ")
		b.WriteString(strings.ReplaceAll(partText(part), "\n", "\n    "))
	}
	return b.String()
}

// partText returns the text of a part in any of A2A's forms, else its data, else the whole
// part as compact JSON.
func partText(raw json.RawMessage) string {
	var part struct {
		Text *string         `json:"text"`
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &part) == nil {
		if part.Text != nil {
			return stripControls(*part.Text)
		}
		if part.Data != nil {
			raw = part.Data
		}
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return stripControls(string(raw))
	}
	return stripControls(b.String())
}

// stripControls replaces the control characters in untrusted text that could steer a
// terminal.
func stripControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// singleLine is stripControls for one line and one column: it replaces line breaks and tabs too.
func singleLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\t', '\u2028', '\u2029':
			return unicode.ReplacementChar
		}
		return r
	}, stripControls(text))
}

// printMessage prints a message as a line, JSON or CSV.
func printMessage(ctx context.Context, t terminal, server *client.Client, m *client.Message, out outputFlags) error {
	return printMessages(ctx, t, server, []*client.Message{m}, out)
}

// printMessages prints several messages and looks up their fates in batches.
func printMessages(ctx context.Context, t terminal, server *client.Client, list []*client.Message, out outputFlags) error {
	var known messageFates
	if out == (outputFlags{}) {
		known = lookupFates(ctx, server, list)
	}
	for _, m := range list {
		if out != (outputFlags{}) {
			if err := out.printMessage(t, m); err != nil {
				return err
			}
			continue
		}
		if n := known[m.ID].Retracts.Sequence; n > 0 {
			m.Retracts = fmt.Sprint(n)
		}
		if _, err := fmt.Fprintln(t.out, messageLine(m, factsNote(m, known))); err != nil {
			return err
		}
	}
	return nil
}

// channelHistory prints the messages of a channel.
type channelHistory struct {
	Channel string `arg:"" optional:"" help:"Id or name of the channel; not with --to."`
	serverFlags
	channelReference
	Since  int64    `help:"Print only messages after this sequence." placeholder:"N"`
	Before int64    `help:"Print only messages before this sequence." placeholder:"N"`
	Author []string `help:"Print only messages of this agent; may be repeated." placeholder:"AGENT"`
	Last   int      `help:"Print only this number of the newest messages." placeholder:"N"`
	Count  int      `help:"Maximum number of messages to print." placeholder:"N"`
	outputFlags
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
func (c *channelHistory) Run(ctx context.Context, t terminal) error {
	if c.Last < 0 || c.Count < 0 || c.Since < 0 || c.Before < 0 {
		return usageError{errors.New("--since, --before, --last and --count must not be negative")}
	}
	if c.Last > 0 && c.Count > 0 {
		return usageError{errors.New("--last and --count are mutually exclusive")}
	}
	server, err := c.openClient(ctx)
	if err != nil {
		return err
	}
	id, err := c.resolveChannel(ctx, server, c.Channel)
	if err != nil {
		return err
	}
	if err := c.beginMessages(t); err != nil {
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
			if err := printMessages(ctx, t, server, list, c.outputFlags); err != nil {
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
	if failed := printMessages(ctx, t, server, list, c.outputFlags); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if c.outputFlags == (outputFlags{}) {
		sayClosed(ctx, t, server, id)
	}
	return nil
}

// messageColumns are the CSV columns of messages.
var messageColumns = []string{"channel", "sequence", "id", "time", "author", "type", "recipient", "withheld", "text"}

// beginMessages writes the CSV header.
func (o outputFlags) beginMessages(t terminal) error {
	if !o.CSV {
		return nil
	}
	return writeRow(t.out, messageColumns)
}

// printMessage prints a message as a line, JSON or CSV.
func (o outputFlags) printMessage(t terminal, m *client.Message) error {
	if o.JSON {
		return printJSON(t.out, m.Raw, true)
	}
	texts := make([]string, len(m.Parts))
	for i, part := range m.Parts {
		texts[i] = partText(part)
	}
	return writeRow(t.out, []string{m.ChannelID, strconv.FormatInt(m.Sequence, 10), m.ID, time.UnixMilli(m.Timestamp).UTC().Format(time.RFC3339Nano),
		m.Author, m.Type, m.Recipient, m.Withheld, strings.Join(texts, "\n")})
}
