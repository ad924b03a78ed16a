package online

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"koine/client"
	"koine/cmd/koine/internal/cli"
)

// WatchCommand follows a subscription through knowledge/subscribe.
type WatchCommand struct {
	Subscription string `arg:"" optional:"" help:"GraphQL subscription (default: all changes, or those that the flags select)."`
	cli.ServerFlags
	From      string            `help:"Where to start: latest, earliest, snapshot (the current state, then changes), or a position (default: what the subscription says, else latest)."`
	Subject   string            `help:"Print only statements about this subject." placeholder:"IRI"`
	Predicate string            `help:"Print only statements with this predicate." placeholder:"IRI"`
	Graph     []string          `help:"Print only statements of this graph; may be repeated. \"default\" is the default graph." placeholder:"IRI" sep:"none"`
	Entity    string            `help:"Print the changes of this entity." placeholder:"IRI"`
	Depth     int               `help:"With --entity: include statements up to this distance (at most 3)." placeholder:"N"`
	Var       map[string]string `help:"Variable of the subscription, as JSON; may be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Count     int               `help:"Exit after this number of events." placeholder:"N"`
	cli.OutputFlags

	short         cli.Shortener
	shown         *shownFields // printed instead of statements
	headerWritten bool         // the CSV header is written
}

// Help is shown by --help.
func (WatchCommand) Help() string {
	return `A lost connection is re-established and resumes where it was: no change is missed or repeated. If the first connection fails, the command fails. If the server cannot resume (its history does not reach back far enough, or your rights have changed), the command prints a line, or with --json {"op":"resync"}, followed by the current state. If a graph was replaced as a whole, only the state of that graph follows; with --entity and with your own subscriptions, all of it. On Ctrl-C, the last line prints the position to continue from with --from.

Each line is a change: added (+), removed (-), replaced (~) or current (=), with the revision, the statement, and its source. A graph that was replaced as a whole is one line (!), followed by its statements. For matchChanged, lines are the rows of the pattern; for messagePublished, messages: watch selects the fields that it prints in addition to those of the subscription. With --json, events contain exactly what was selected.

Examples (with koine serve --demo):
  koine watch
  koine watch --from snapshot --subject finding:1
  koine watch --from snapshot --entity finding:1 --depth 2
  koine watch --csv --predicate rdfs:label
  koine watch --from snapshot 'subscription { matchChanged(pattern: {triples: [{s: "?finding", p: "lab:status", o: "?status"}]}) { __typename } }'
  koine watch --json 'subscription { statementChanged(where: {certainty: {gte: 0.8}}) { __typename } }'`
}

const entityChanges = `subscription Watch($iri: IRI!, $depth: Int!) { entityChanged(iri: $iri, depth: $depth) { __typename } }`

const allChanges = `subscription Watch($where: StatementFilter) { statementChanged(where: $where) { __typename } }`

// Run prints events until ctx is done or the number of events is reached.
func (c *WatchCommand) Run(ctx context.Context, t cli.Terminal) error {
	if err := c.checkFlags(); err != nil {
		return cli.AsUsage(err)
	}
	server, err := c.OpenStream(ctx, t)
	if err != nil {
		return err
	}
	position, seen := "", 0
	subscription := c.newSubscription()
	if err := c.addShown(ctx, server, &subscription); err != nil {
		return err
	}
	if err := c.beginOutput(ctx, t, server); err != nil {
		return err
	}
	subscription.OnPosition = func(from string) { position = from }
	if c.Subscription == "" && c.Entity == "" {
		subscription.RereadGraph = func(ctx context.Context, replaced *client.Change) error {
			return c.rereadGraph(ctx, t, server, replaced)
		}
	}
	for change, err := range server.Subscribe(ctx, subscription) {
		if err != nil {
			return c.endedError(ctx, t, position, err)
		}
		if change.Op == client.OpResync {
			if err := c.printResync(t, nil); err != nil {
				return err
			}
			continue
		}
		printed, err := c.printEvent(t, change.Raw)
		if err != nil {
			return err
		}
		if printed {
			seen++
		}
		if c.Count > 0 && seen >= c.Count {
			printResume(t, cmp.Or(change.Metadata.Position, position))
			return nil
		}
	}
	return nil
}

// printResync marks the beginning of a new snapshot, of one graph or of all. Statements that
// the snapshot does not repeat are gone.
func (c *WatchCommand) printResync(t cli.Terminal, replaced *client.Change) error {
	switch {
	case c.JSON && replaced != nil:
		_, err := fmt.Fprintf(t.Out, "{\"op\":\"resync\",\"graph\":%s}\n", quoteOrNull(replaced.Graph))
		return err
	case c.JSON:
		fmt.Fprintln(t.Out, `{"op":"resync"}`)
	case c.CSV && c.shown == nil:
		row := make([]string, len(changeColumns))
		row[0] = "resync"
		if replaced != nil {
			row[1], row[6] = strconv.FormatUint(replaced.Metadata.Revision, 10), replaced.Graph
		}
		return cli.PrintRow(t.Out, row)
	case replaced != nil:
		fmt.Fprintf(t.Out, "! resync: the current state of %s follows\n", graphText(replaced.Graph, c.short))
	case c.CSV:
		t.Notef("The current state follows.")
	default:
		fmt.Fprintln(t.Out, "! resync: the current state follows")
	}
	return nil
}

// beginOutput fetches the prefixes, or writes the CSV header. Rows have their header written
// with the first row, which determines the columns.
func (c *WatchCommand) beginOutput(ctx context.Context, t cli.Terminal, server *client.Client) (err error) {
	if err := warnUnknownNames(ctx, t, server, append([]string{c.Subject, c.Predicate, c.Entity}, slices.DeleteFunc(slices.Clone(c.Graph), isDefaultGraph)...)...); err != nil {
		return err
	}
	switch {
	case c.CSV && c.shown == nil:
		return cli.PrintRow(t.Out, changeColumns)
	case c.CSV && c.shown == &shownMessages:
		return beginMessages(t, c.OutputFlags)
	}
	if !c.JSON {
		c.short, err = cli.FetchPrefixes(ctx, server)
	}
	return err
}

func (c *WatchCommand) endedError(ctx context.Context, t cli.Terminal, position string, err error) error {
	printResume(t, position)
	if ctx.Err() != nil {
		return nil // Ctrl-C is the normal end
	}
	return c.StreamError(err)
}

// printResume prints the position to resume from. There is none within a snapshot, which
// starts again.
func printResume(t cli.Terminal, position string) {
	if position != "" {
		t.Notef("Continue with --from %s", position)
	}
}

func (c *WatchCommand) newSubscription() client.Subscription {
	s := client.Subscription{Query: c.Subscription, From: c.From, Variables: parseVariables(c.Var)}
	switch {
	case c.Entity != "":
		s.Query = entityChanges
		if c.From == client.Snapshot {
			s.Query = entitySnapshotSubscription
			s.Variables["far"] = c.Depth > 0
		}
		s.Variables["iri"], s.Variables["depth"] = c.Entity, c.Depth
	case c.Subscription == "":
		s.Query = allChanges
		s.Variables["where"] = c.filterInput()
	}
	return s
}

// checkFlags rejects flags that exclude each other.
func (c *WatchCommand) checkFlags() error {
	statements := c.Subject != "" || c.Predicate != "" || len(c.Graph) > 0
	switch {
	case c.Subscription != "" && (statements || c.Entity != ""):
		return errors.New("--subject, --predicate, --graph and --entity cannot be combined with a subscription")
	case c.Entity != "" && statements:
		return errors.New("--entity cannot be combined with --subject, --predicate and --graph")
	case c.Entity == "" && c.Depth != 0:
		return errors.New("--depth requires --entity")
	}
	return nil
}

func (c *WatchCommand) filterInput() map[string]any {
	where := map[string]any{}
	if c.Subject != "" {
		where["subject"] = map[string]any{"eq": c.Subject}
	}
	if c.Predicate != "" {
		where["predicate"] = map[string]any{"eq": c.Predicate}
	}
	if len(c.Graph) > 0 {
		graphs := make([]any, len(c.Graph))
		for i, name := range c.Graph {
			if !isDefaultGraph(name) {
				graphs[i] = name
			}
		}
		where["graph"] = map[string]any{"in": graphs}
	}
	return where
}

// change is the part of an event that a line shows.
type change struct {
	Op        string           `json:"op"`
	Timestamp time.Time        `json:"timestamp"`
	Statement changedStatement `json:"statement"`
	Graph     string           `json:"graph"` // the replaced graph
	Metadata  struct {
		Revision         uint64                     `json:"revision"`
		Actor            string                     `json:"actor"`
		Source           string                     `json:"source"`
		Justification    string                     `json:"justification"`
		Previous         []changedStatement         `json:"previous"`
		StatementRemains bool                       `json:"statementRemains"`
		Snapshot         bool                       `json:"snapshot"`
		Counts           *client.ReplacedCounts     `json:"counts"`
		Data             map[string]json.RawMessage `json:"data"`
		Errors           []struct {
			Message string `json:"message"`
		} `json:"errors"`
	} `json:"changeMetadata"`
}

// changedStatement is a statement that was added or removed.
type changedStatement struct {
	Subject   node     `json:"subject"`
	Predicate node     `json:"predicate"`
	Object    node     `json:"object"`
	Graph     string   `json:"graph"`
	Certainty *float64 `json:"certainty"`
	Source    string   `json:"source"` // source of a removed assertion
}

type node struct {
	ID       string          `json:"id"`
	Value    json.RawMessage `json:"value"`
	Language string          `json:"language"`
}

func (n node) String() string { return n.shortText(nil) }

// shortText returns the node with a shortened IRI.
func (n node) shortText(s cli.Shortener) string {
	switch {
	case n.ID != "":
		return s.Shorten(n.ID)
	case n.Language != "":
		return string(n.Value) + "@" + n.Language
	}
	return string(n.Value)
}

// printEvent prints an event. printed is false if it has nothing to show: the rows of a
// pattern come with the last statement of a commit.
func (c *WatchCommand) printEvent(t cli.Terminal, result json.RawMessage) (printed bool, err error) {
	if c.JSON {
		return true, cli.PrintJSON(t.Out, result, true)
	}
	var e change
	if err := json.Unmarshal(result, &e); err != nil {
		return false, cli.InvalidResponse(err)
	}
	for _, fault := range e.Metadata.Errors {
		t.Notef("%s", fault.Message)
	}
	if e.Op == string(client.OpGraphReplaced) {
		return true, c.printReplaced(t, &e)
	}
	if c.shown != nil {
		return c.printShown(t, &e)
	}
	if e.Metadata.Snapshot && e.Metadata.Source == "" { // the snapshot of an entity, not of statements
		return true, c.printEntitySnapshot(t, &e)
	}
	return true, c.printChange(t, &e)
}

// printEntitySnapshot prints the statements of the entity given by --entity. It prints
// nothing for other subscriptions, whose data --json shows.
func (c *WatchCommand) printEntitySnapshot(t cli.Terminal, e *change) error {
	raw := e.Metadata.Data["entityChanged"]
	if c.Entity == "" || cli.IsNull(raw) {
		return nil
	}
	var s entitySnapshot
	if err := json.Unmarshal(raw, &s); err != nil {
		return cli.InvalidResponse(err)
	}
	return s.printSnapshot(c, t)
}

// printChange writes a change as a line, or as a row of CSV.
func (c *WatchCommand) printChange(t cli.Terminal, e *change) error {
	if c.CSV {
		return cli.PrintRow(t.Out, e.csvCells())
	}
	_, err := fmt.Fprintln(t.Out, t.Colorize(changeColors[e.lineSign()], e.lineText(c.short)))
	return err
}

// changeColumns are the CSV columns of changes.
var changeColumns = []string{"op", "revision", "time", "subject", "predicate", "object", "graph", "certainty", "source", "actor", "justification"}

// csvCells returns the cells for changeColumns, with whole IRIs.
func (e *change) csvCells() []string {
	m, s := &e.Metadata, &e.Statement
	op, certainty := e.Op, ""
	if m.Snapshot {
		op = "snapshot"
	}
	if s.Certainty != nil {
		certainty = strconv.FormatFloat(*s.Certainty, 'g', -1, 64)
	}
	return []string{op, strconv.FormatUint(m.Revision, 10), e.timeText(), s.Subject.String(), s.Predicate.String(), s.Object.String(), s.Graph, certainty, m.Source, m.Actor, m.Justification}
}

// timeText returns the time of the change in RFC 3339, for CSV.
func (e *change) timeText() string {
	if e.Timestamp.IsZero() {
		return ""
	}
	return e.Timestamp.UTC().Format(time.RFC3339Nano)
}

// lineSign returns the first character of the line.
func (e *change) lineSign() string {
	if e.Metadata.Snapshot {
		return "="
	}
	return map[string]string{"add": "+", "remove": "-", "replace": "~"}[e.Op]
}

var changeColors = map[string]string{"+": cli.Green, "-": cli.Red, "~": cli.Yellow, "=": ""}

// lineText formats the change as a line: statement, certainty, source, actor, justification.
func (e *change) lineText(short cli.Shortener) string {
	m, s := &e.Metadata, &e.Statement
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d  %s  %s  %s", e.lineSign(), m.Revision, s.Subject.shortText(short), s.Predicate.shortText(short), s.Object.shortText(short))
	if s.Graph != "" {
		fmt.Fprintf(&b, "  in %s", short.Shorten(s.Graph))
	}
	if s.Certainty != nil {
		fmt.Fprintf(&b, "  %g", *s.Certainty)
	}
	switch {
	case e.Op == "remove":
		fmt.Fprintf(&b, "  of %s  removed by %s", m.Source, m.Actor)
		if m.StatementRemains {
			b.WriteString(", others still assert it")
		}
	case m.Actor != "" && m.Actor != m.Source:
		fmt.Fprintf(&b, "  by %s  recorded by %s", m.Source, m.Actor)
	default:
		fmt.Fprintf(&b, "  by %s", m.Source)
	}
	b.WriteString(removedText(m.Previous, short))
	if m.Justification != "" {
		fmt.Fprintf(&b, "  (%s)", m.Justification)
	}
	return b.String()
}

// printReplaced reports the replacement of a graph. Where CSV has the columns of rows or
// messages, it is a message to the user instead of a row.
func (c *WatchCommand) printReplaced(t cli.Terminal, e *change) error {
	switch {
	case c.CSV && c.shown != nil:
		t.Notef("%s", e.replacedText(c.short))
		return nil
	case c.CSV:
		m := &e.Metadata
		return cli.PrintRow(t.Out, []string{e.Op, strconv.FormatUint(m.Revision, 10), e.timeText(), "", "", "", e.Graph, "", "", m.Actor, m.Justification})
	}
	_, err := fmt.Fprintln(t.Out, t.Colorize(cli.Yellow, e.replacedText(c.short)))
	return err
}

// replacedText describes the replacement of a graph.
func (e *change) replacedText(short cli.Shortener) string {
	m := &e.Metadata
	var b strings.Builder
	fmt.Fprintf(&b, "! %d  %s was replaced", m.Revision, graphText(e.Graph, short))
	if n := m.Counts; n != nil {
		fmt.Fprintf(&b, ": %d statements added, %d removed, it had %d and has %d", n.Added, n.Removed, n.Before, n.After)
	}
	fmt.Fprintf(&b, "  by %s", m.Actor)
	if m.Justification != "" {
		fmt.Fprintf(&b, "  (%s)", cli.SingleLine(m.Justification))
	}
	return b.String()
}

// isDefaultGraph reports whether a value of --graph is the default graph.
func isDefaultGraph(name string) bool { return name == "default" }

// graphText returns a graph's name for a line.
func graphText(name string, short cli.Shortener) string {
	if name == "" {
		return "the default graph"
	}
	return short.Shorten(name)
}

// maxRemovedShown bounds the replaced statements that a line names.
const maxRemovedShown = 3

// removedText lists the statements that a replace removed: object, certainty and source.
func removedText(previous []changedStatement, short cli.Shortener) string {
	var b strings.Builder
	for i, p := range previous[:min(len(previous), maxRemovedShown)] {
		b.WriteString([]string{"  replaces ", ", "}[min(i, 1)])
		b.WriteString(p.Object.shortText(short))
		if p.Certainty != nil {
			fmt.Fprintf(&b, " %g", *p.Certainty)
		}
		fmt.Fprintf(&b, " of %s", p.Source)
	}
	if more := len(previous) - maxRemovedShown; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}
