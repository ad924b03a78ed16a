package online

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/graph/limit"
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
		fmt.Fprintf(&b, "  retracts %s", cli.SingleLine(m.Retracts))
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
			return cli.StripControls(*part.Text)
		}
		if part.Data != nil {
			raw = part.Data
		}
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return cli.StripControls(string(raw))
	}
	return cli.StripControls(b.String())
}

// printMessage prints a message as a line, JSON or CSV.
func printMessage(ctx context.Context, t cli.Terminal, server *client.Client, m *client.Message, out cli.OutputFlags) error {
	return printMessages(ctx, t, server, []*client.Message{m}, out)
}

// printMessages prints several messages and looks up their fates in batches.
func printMessages(ctx context.Context, t cli.Terminal, server *client.Client, list []*client.Message, out cli.OutputFlags) error {
	var known messageFates
	if out == (cli.OutputFlags{}) {
		known = lookupFates(ctx, server, list)
	}
	for _, m := range list {
		if out != (cli.OutputFlags{}) {
			if err := printMessageAs(t, out, m); err != nil {
				return err
			}
			continue
		}
		if n := known[m.ID].Retracts.Sequence; n > 0 {
			m.Retracts = fmt.Sprint(n)
		}
		if _, err := fmt.Fprintln(t.Out, messageLine(m, factsNote(m, known))); err != nil {
			return err
		}
	}
	return nil
}

// messageColumns are the CSV columns of messages.
var messageColumns = []string{"channel", "sequence", "id", "time", "author", "type", "recipient", "withheld", "text"}

// beginMessages writes the CSV header.
func beginMessages(t cli.Terminal, o cli.OutputFlags) error {
	if !o.CSV {
		return nil
	}
	return cli.PrintRow(t.Out, messageColumns)
}

// printMessage prints a message as a line, JSON or CSV.
func printMessageAs(t cli.Terminal, o cli.OutputFlags, m *client.Message) error {
	if o.JSON {
		return cli.PrintJSON(t.Out, m.Raw, true)
	}
	texts := make([]string, len(m.Parts))
	for i, part := range m.Parts {
		texts[i] = partText(part)
	}
	return cli.PrintRow(t.Out, []string{m.ChannelID, strconv.FormatInt(m.Sequence, 10), m.ID, time.UnixMilli(m.Timestamp).UTC().Format(time.RFC3339Nano),
		m.Author, m.Type, m.Recipient, m.Withheld, strings.Join(texts, "\n")})
}

// factsNoteHelp documents the notes of factsNote in help texts.
const factsNoteHelp = `[2 facts] marks the facts of a message, [2 facts proposed] facts pending review, and [2 facts, none asserted] those of a retracted message, as far as you may read them.`

// mayHaveFate reports whether the facts of a message may differ from its event: they were held
// for review, or the message was retracted.
func mayHaveFate(m *client.Message) bool {
	return m.ProposalID != "" || m.FactCount > 0 && m.Withheld == "retracted"
}

// factsNote returns the note about a message's facts, with their state if it is not the
// usual one; "" without facts.
func factsNote(m *client.Message, known messageFates) string {
	if m.FactCount == 0 && m.ProposalID == "" {
		return ""
	}
	note := "facts"
	switch {
	case m.FactCount == 1:
		note = "1 fact"
	case m.FactCount > 1:
		note = fmt.Sprintf("%d facts", m.FactCount)
	}
	now, ok := known[m.ID]
	if !ok || !mayHaveFate(m) {
		return note
	}
	status, stand := now.Proposal.Status, len(now.Facts)
	switch {
	case status == "PENDING":
		return note + " proposed"
	case status != "" && status != "APPLIED":
		return note + " " + strings.ToLower(status)
	case m.Withheld == "retracted" && stand == 0:
		return note + ", none asserted"
	case m.Withheld == "retracted" && stand < m.FactCount:
		return fmt.Sprintf("%s, %d asserted", note, stand)
	case m.Withheld == "retracted":
		return note + ", all asserted"
	case status != "" || stand > 0:
		return note + " approved"
	}
	return note + " proposed" // the outcome is not visible to the caller
}

// messageFate is the later state of a message, which only GraphQL reports, not the message's event.
type messageFate struct {
	Facts    nodesOf[struct{}] // still asserted; at most maxFactsCounted
	Proposal struct{ Status string }
	Retracts struct{ Sequence int64 }
}

// messageFates maps message ids to fates.
type messageFates map[string]messageFate

// maxFactsCounted is the number of facts fetched per message: the largest page that a server
// returns.
const maxFactsCounted = 1000

// lookupFates looks up the proposals, remaining facts and retractions of messages, in
// queries of as many root fields as a server accepts. Messages whose lookup fails are left
// out.
func lookupFates(ctx context.Context, server *client.Client, list []*client.Message) messageFates {
	out := messageFates{}
	lookups := slices.DeleteFunc(slices.Clone(list), func(m *client.Message) bool { return m.Retracts == "" && !mayHaveFate(m) })
	for some := range slices.Chunk(lookups, limit.DefaultRootFields) {
		if out.queryFates(ctx, server, some) == nil || len(some) == 1 {
			continue
		}
		for i := range some { // one by one: a failing message must not hide the others
			if ctx.Err() != nil {
				return out
			}
			_ = out.queryFates(ctx, server, some[i:i+1])
		}
	}
	return out
}

// queryFates adds the fates of the messages in list, by one query.
func (f messageFates) queryFates(ctx context.Context, server *client.Client, list []*client.Message) error {
	var declared, fields strings.Builder
	variables := map[string]any{}
	for i, m := range list {
		name := fmt.Sprintf("m%d", i)
		variables[name] = m.ID
		fmt.Fprintf(&declared, "$%s: ID! ", name)
		fmt.Fprintf(&fields, " %s: message(id: $%s) {", name, name)
		if m.Retracts != "" {
			fields.WriteString(" retracts { sequence }")
		}
		if mayHaveFate(m) {
			fmt.Fprintf(&fields, " facts(first: %d) { nodes { __typename } } proposal { status }", maxFactsCounted)
		}
		fields.WriteString(" }")
	}
	var answer messageFates
	if err := server.GraphQL(ctx, "query("+declared.String()+") {"+fields.String()+" }", variables, &answer); err != nil {
		return err
	}
	for i, m := range list {
		f[m.ID] = answer[fmt.Sprintf("m%d", i)]
	}
	return nil
}
