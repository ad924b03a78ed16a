package main

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
	"koine/internal/names"
	"koine/kg"
)

// shownFields are what watch asks for beside what a subscription selects, so that it can
// show its events as lines or rows. JSON is as it was asked for.
type shownFields struct{ text string }

var (
	shownRows     = shownFields{`... on MatchChange { koineColumns: columns koineAdded: added { values } koineRemoved: removed { values } }`}
	shownMessages = shownFields{`... on MessagePublished { koineMessage: message { id channelId sequence time author parts messageType recipient withheld retracts { id sequence } } }`}
)

// shownOf are those of a subscription.
func shownOf(subscription string) *shownFields {
	switch subscription {
	case "matchChanged":
		return &shownRows
	case "messagePublished", "inboxPublished", "memberMessagePublished", "scopeMessagePublished":
		return &shownMessages
	}
	return nil
}

// addShownFields adds to a subscription what watch shows of its events. One that has nothing
// to add, or cannot be read here, stays as it is: the server says what is wrong with it.
func addShownFields(text string) (asked string, shown *shownFields) {
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
	if shown = shownOf(root.Name); shown == nil {
		return text, nil
	}
	more, err := parser.ParseQuery(&ast.Source{Input: "{" + shown.text + "}"})
	if err != nil {
		panic(err) // they are constants
	}
	root.SelectionSet = append(root.SelectionSet, more.Operations[0].SelectionSet...)
	var b strings.Builder
	formatter.NewFormatter(&b).FormatQueryDocument(document)
	return b.String(), shown
}

// addShown has a subscription select what is shown of it. A server that executes trusted
// documents only does not take it: there the statements are shown, as of others.
func (c *watchCommand) addShown(ctx context.Context, server *client.Client, s *client.Subscription) error {
	asked, shown := addShownFields(s.Query)
	if c.JSON || shown == nil {
		return nil
	}
	switch err := server.GraphQL(ctx, `{ __typename }`, nil, nil); {
	case errors.As(err, new(*client.Error)):
		return nil
	case err != nil:
		return err
	}
	s.Query, c.shown = asked, shown
	return nil
}

// shownEvent is what shownFields select. Of an event without them it is empty: of a
// commit, the rows come with the last of its statements.
type shownEvent struct {
	KoineColumns []string
	KoineAdded   []struct{ Values []json.RawMessage }
	KoineRemoved []struct{ Values []json.RawMessage }
	KoineMessage *graphQLMessage
}

// shownIn is what an event has of them, nil for nothing.
func (e *change) shownIn() (*shownEvent, error) {
	for _, raw := range e.Metadata.Data { // the one field of a subscription
		event := new(shownEvent)
		if err := json.Unmarshal(raw, event); err != nil {
			return nil, fmt.Errorf("the server's event: %w", err)
		}
		return event, nil
	}
	return nil, nil
}

// printShown prints an event's rows or its message, and reports whether it had some.
func (c *watchCommand) printShown(t terminal, e *change) (printed bool, err error) {
	event, err := e.shownIn()
	switch {
	case err != nil || event == nil:
		return false, err
	case event.KoineMessage != nil:
		return true, c.printMessage(t, event.KoineMessage)
	}
	if c.CSV && !c.begun {
		c.begun = true
		if err := writeRow(t.out, slices.Concat(rowColumns[:], event.KoineColumns, rowColumnsBehind[:])); err != nil {
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

// Columns of CSV around those of a pattern.
var (
	rowColumns       = [...]string{"op", "revision", "time"}
	rowColumnsBehind = [...]string{"actor", "justification"}
)

// printRow prints a row of a pattern that came, went or stands.
func (c *watchCommand) printRow(t terminal, e *change, sign, op string, columns []string, values []json.RawMessage) error {
	m := &e.Metadata
	if c.CSV {
		cells := []string{op, strconv.FormatUint(m.Revision, 10), e.timeText()}
		for _, v := range values {
			cells = append(cells, leafText(v))
		}
		return writeRow(t.out, append(cells, m.Actor, m.Justification))
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
		fmt.Fprintf(&b, "  (%s)", onLine(m.Justification))
	}
	_, err := fmt.Fprintln(t.out, t.colorize(changeColors[sign], b.String()))
	return err
}

// rowValue is a value on a line: an IRI is shortened, and a text that is none is quoted.
func rowValue(value json.RawMessage, short shortener) string {
	text := leafText(value)
	if isNull(value) || value[0] != '"' {
		return text
	}
	if s := short.shorten(text); s != text || isLocalName(text) && strings.Contains(text, ":") {
		return onLine(s)
	}
	return onLine(string(value))
}

// printMessage prints a message, as koine channel does, with its channel.
func (c *watchCommand) printMessage(t terminal, from *graphQLMessage) error {
	m, err := from.clientMessage()
	if err != nil {
		return err
	}
	if c.CSV {
		return c.outputFlags.printMessage(t, m)
	}
	if n := from.Retracts.Sequence; n > 0 {
		m.Retracts = strconv.FormatInt(n, 10)
	}
	_, err = fmt.Fprintf(t.out, "%s  %s\n", m.ChannelID, messageLine(m))
	return err
}

// namesOnServer are the names that a server knows.
type namesOnServer struct {
	prefixes *kg.Prefixes
	schemes  []string
}

func (n *namesOnServer) Prefixes() *kg.Prefixes { return n.prefixes }
func (n *namesOnServer) KeptSchemes() []string  { return n.schemes }
func (n *namesOnServer) KnowsScheme(name string) bool {
	_, registered := n.prefixes.Namespace(name)
	return registered || kg.IsScheme(name) || name == "tel" || slices.Contains(n.schemes, strings.ToLower(name))
}

// warnOfNames tells which of the IRIs have neither a registered prefix nor a known URI
// scheme: to follow them is most often to wait for nothing. They are followed all the
// same, as a file that was loaded may have such names. A server that refuses the question
// is not asked again.
func warnOfNames(ctx context.Context, t terminal, server *client.Client, iris ...string) error {
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
		return nil // of a server that knows more than this program
	}
	census := names.NewCensus(&namesOnServer{prefixes, answer.Vocabulary.Schemes})
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
		t.sayf("hint: %s: %s is neither a registered prefix nor a known URI scheme, so that nothing may ever come%s", onLine(u.Example), onLine(u.Prefix), meant)
	}
	return nil
}
