package online

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/internal/names"
	"koine/kg"
)

// shownFields are selected in addition to a subscription's own fields, so that its events
// can be shown as lines or rows. With --json, nothing is added.
type shownFields struct{ text string }

var (
	shownRows     = shownFields{`... on MatchChange { koineColumns: columns koineAdded: added { values } koineRemoved: removed { values } }`}
	shownMessages = shownFields{`... on MessagePublished { koineMessage: message { id channelId sequence timestamp: time author: authorId parts messageType recipient withheld: withheldReason retracts { id sequence } } }`}
)

// shownFieldsOf returns the additional fields of a subscription, nil if it needs none.
func shownFieldsOf(subscription string) *shownFields {
	switch subscription {
	case "matchChanged":
		return &shownRows
	case "messagePublished":
		return &shownMessages
	}
	return nil
}

// addShownFields adds the additional fields of a subscription to its text. A text that needs
// none or does not parse is returned unchanged: the server reports the error.
func addShownFields(text string) (query string, shown *shownFields) {
	document, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil || len(document.Operations) != 1 {
		return text, nil
	}
	set := document.Operations[0].SelectionSet
	if len(set) != 1 {
		return text, nil
	}
	root, ok := set[0].(*ast.Field)
	if !ok {
		return text, nil
	}
	if shown = shownFieldsOf(root.Name); shown == nil {
		return text, nil
	}
	more, err := parser.ParseQuery(&ast.Source{Input: "{" + shown.text + "}"})
	if err != nil {
		panic(err) // the texts are constants
	}
	root.SelectionSet = append(root.SelectionSet, more.Operations[0].SelectionSet...)
	var b strings.Builder
	formatter.NewFormatter(&b).FormatQueryDocument(document)
	return b.String(), shown
}

// addShown adds the additional fields to the subscription s. It leaves s unchanged if the
// server executes trusted documents only: statements are then shown as of any subscription.
func (c *WatchCommand) addShown(ctx context.Context, server *client.Client, s *client.Subscription) error {
	query, shown := addShownFields(s.Query)
	if c.JSON || shown == nil {
		return nil
	}
	switch err := server.GraphQL(ctx, `{ __typename }`, nil, nil); {
	case errors.As(err, new(*client.Error)):
		return nil
	case err != nil:
		return err
	}
	s.Query, c.shown = query, shown
	return nil
}

// shownEvent holds the fields selected by shownFields. It is empty for all but the last
// statement of a commit, which has the rows.
type shownEvent struct {
	KoineColumns []string
	KoineAdded   []struct{ Values []json.RawMessage }
	KoineRemoved []struct{ Values []json.RawMessage }
	KoineMessage *graphQLMessage
}

// decodeShown decodes the additional fields of an event, nil if it has none.
func (e *change) decodeShown() (*shownEvent, error) {
	for _, raw := range e.Metadata.Data { // a subscription has one field
		event := new(shownEvent)
		if err := json.Unmarshal(raw, event); err != nil {
			return nil, cli.InvalidResponse(err)
		}
		return event, nil
	}
	return nil, nil
}

// printShown prints the rows or the message of an event, and reports whether there were any.
func (c *WatchCommand) printShown(t cli.Terminal, e *change) (printed bool, err error) {
	event, err := e.decodeShown()
	switch {
	case err != nil || event == nil:
		return false, err
	case event.KoineMessage != nil:
		return true, c.printMessage(t, event.KoineMessage)
	}
	if c.CSV && !c.headerWritten {
		c.headerWritten = true
		if err := cli.PrintRow(t.Out, slices.Concat(rowColumns[:], event.KoineColumns, rowColumnsAfter[:])); err != nil {
			return false, err
		}
	}
	sign, op := "+", "add"
	if e.Metadata.Snapshot {
		sign, op = "=", "snapshot"
	}
	for _, row := range event.KoineRemoved {
		if err := c.printRow(t, e, "-", "remove", event.KoineColumns, row.Values); err != nil {
			return false, err
		}
	}
	for _, row := range event.KoineAdded {
		if err := c.printRow(t, e, sign, op, event.KoineColumns, row.Values); err != nil {
			return false, err
		}
	}
	return len(event.KoineAdded)+len(event.KoineRemoved) > 0, nil
}

// rowColumns and rowColumnsAfter surround the columns of a pattern in CSV.
var (
	rowColumns      = [...]string{"op", "revision", "time"}
	rowColumnsAfter = [...]string{"actor", "justification"}
)

// printRow prints a row of a pattern that was added, removed, or is part of a snapshot.
func (c *WatchCommand) printRow(t cli.Terminal, e *change, sign, op string, columns []string, values []json.RawMessage) error {
	m := &e.Metadata
	if c.CSV {
		cells := []string{op, strconv.FormatUint(m.Revision, 10), e.timeText()}
		for _, v := range values {
			cells = append(cells, leafText(v))
		}
		return cli.PrintRow(t.Out, append(cells, m.Actor, m.Justification))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", sign, m.Revision)
	for i, v := range values {
		if i < len(columns) {
			fmt.Fprintf(&b, "  %s=%s", columns[i], rowValue(v, c.short))
		}
	}
	if m.Actor != "" {
		fmt.Fprintf(&b, "  by %s", m.Actor)
	}
	if m.Justification != "" {
		fmt.Fprintf(&b, "  (%s)", cli.SingleLine(m.Justification))
	}
	_, err := fmt.Fprintln(t.Out, t.Colorize(changeColors[sign], b.String()))
	return err
}

// rowValue formats a value for a line: an IRI shortened, other texts quoted.
func rowValue(value json.RawMessage, short cli.Shortener) string {
	text := leafText(value)
	if cli.IsNull(value) || value[0] != '"' {
		return text
	}
	if s := short.Shorten(text); s != text || cli.IsLocalName(text) && strings.Contains(text, ":") {
		return cli.SingleLine(s)
	}
	return cli.SingleLine(string(value))
}

// printMessage prints a message like koine channel, preceded by its channel.
func (c *WatchCommand) printMessage(t cli.Terminal, from *graphQLMessage) error {
	m, err := from.clientMessage()
	if err != nil {
		return err
	}
	if c.CSV {
		return printMessageAs(t, c.OutputFlags, m)
	}
	if n := from.Retracts.Sequence; n > 0 {
		m.Retracts = strconv.FormatInt(n, 10)
	}
	_, err = fmt.Fprintf(t.Out, "%s  %s\n", m.ChannelID, messageLine(m))
	return err
}

// serverNames holds the prefixes and schemes registered on a server.
type serverNames struct {
	prefixes *kg.Prefixes
	schemes  []string
}

func (n *serverNames) Prefixes() *kg.Prefixes { return n.prefixes }
func (n *serverNames) KeptSchemes() []string  { return n.schemes }
func (n *serverNames) KnowsScheme(name string) bool {
	_, registered := n.prefixes.Namespace(name)
	return registered || kg.IsScheme(name) || name == "tel" || slices.Contains(n.schemes, strings.ToLower(name))
}

// warnUnknownNames warns about IRIs with neither a registered prefix nor a known URI scheme: most
// are misspelt, and a watch on them stays silent. They are watched all the same, because a
// loaded file may contain such names. If the server refuses the query for them, there is no
// warning.
func warnUnknownNames(ctx context.Context, t cli.Terminal, server *client.Client, iris ...string) error {
	iris = slices.DeleteFunc(iris, func(iri string) bool { return iri == "" })
	if len(iris) == 0 {
		return nil
	}
	var answer struct {
		Vocabulary struct {
			Prefixes []kg.Prefix
			Schemes  []string
		}
	}
	if err := server.GraphQL(ctx, `{ vocabulary { prefixes { name namespace } schemes } }`, nil, &answer); err != nil {
		if errors.As(err, new(*client.Error)) {
			return nil
		}
		return err
	}
	registered := map[string]string{}
	for _, p := range answer.Vocabulary.Prefixes {
		registered[p.Name] = p.Namespace
	}
	prefixes, err := kg.NewPrefixes(registered)
	if err != nil {
		return nil // a newer server allows names unknown here
	}
	census := names.NewCensus(&serverNames{prefixes, answer.Vocabulary.Schemes})
	for _, iri := range iris {
		if term, err := kg.ParseIRI(iri); err == nil {
			census.Add(&kg.Quad{Subject: term})
		}
	}
	for _, u := range census.Unknown() {
		meant := ""
		if len(u.Nearest) > 0 {
			meant = "; did you mean " + strings.Join(u.Nearest, " or ") + "?"
		}
		t.Notef("hint: %s: %s is neither a registered prefix nor a known URI scheme, so no change may ever match%s", cli.SingleLine(u.Example), cli.SingleLine(u.Prefix), meant)
	}
	return nil
}
