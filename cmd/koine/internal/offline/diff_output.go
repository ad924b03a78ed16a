package offline

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/assertions"
	"koine/kg"
)

// diffPrinter prints differences as a stream.
type diffPrinter struct {
	t                       cli.Terminal
	out                     *bufio.Writer
	format                  cli.OutputFlags
	csv                     *csv.Writer
	added, removed, changed uint64
}

func newDiffPrinter(t cli.Terminal, format cli.OutputFlags) *diffPrinter {
	p := &diffPrinter{t: t, out: bufio.NewWriter(t.Out), format: format}
	if format.CSV {
		p.csv = csv.NewWriter(p.out)
		_ = p.csv.Write(diffColumns) // the writer keeps its error until Flush
	}
	return p
}

// printedAny reports whether any difference was printed.
func (p *diffPrinter) printedAny() bool { return p.added+p.removed+p.changed > 0 }

func (p *diffPrinter) printDifference(d *assertions.Difference) error {
	switch {
	case !d.Was:
		p.added++
	case !d.Is:
		p.removed++
	default:
		p.changed++
	}
	switch {
	case p.format.JSON:
		return p.printJSON(d)
	case p.format.CSV:
		return p.printRows(d)
	}
	return p.printText(d)
}

// finishOutput flushes the output and prints the number of differing statements.
func (p *diffPrinter) finishOutput() error {
	if p.csv != nil {
		p.csv.Flush()
		if err := p.csv.Error(); err != nil {
			return err
		}
	}
	if err := p.out.Flush(); err != nil {
		return err
	}
	if p.printedAny() {
		p.t.Notef("%s added, %s removed, %s with other assertions", cli.FormatCount(p.added), cli.FormatCount(p.removed), cli.FormatCount(p.changed))
	}
	return nil
}

// printText prints a statement as a line with its sign, followed by its assertions.
func (p *diffPrinter) printText(d *assertions.Difference) error {
	sign, color := " ", ""
	switch {
	case !d.Was:
		sign, color = "+", cli.Green
	case !d.Is:
		sign, color = "-", cli.Red
	}
	err := p.printLine(color, sign+" "+statementText(&d.Quad))
	for i := range d.Before {
		if err == nil {
			err = p.printLine(cli.Red, "-     "+assertionText(&d.Before[i]))
		}
	}
	for i := range d.After {
		if err == nil {
			err = p.printLine(cli.Green, "+     "+assertionText(&d.After[i]))
		}
	}
	return err
}

func (p *diffPrinter) printLine(color, text string) error {
	_, err := fmt.Fprintln(p.out, p.t.Colorize(color, cli.SingleLine(text)))
	return err
}

// statementText formats a statement in N-Quads. The caller must escape characters that
// control a terminal.
func statementText(q *kg.Quad) string {
	text := q.Subject.String() + " " + q.Predicate.String() + " " + q.Object.String()
	if q.Graph != kg.DefaultGraph {
		text += " " + q.Graph.String()
	}
	return text + " ."
}

// maxEmbeddingText bounds the text of an embedding in a line.
const maxEmbeddingText = 80

func assertionText(a *assertions.Assertion) string {
	parts := []string{string(a.Source)}
	if a.HasCertainty {
		parts = append(parts, "certainty "+certaintyText(a))
	}
	parts = append(parts, timeText(a.Time))
	if !a.Validity.From.IsZero() {
		parts = append(parts, "valid from "+timeText(a.Validity.From))
	}
	if !a.Validity.Until.IsZero() {
		parts = append(parts, "valid to "+timeText(a.Validity.Until))
	}
	if a.Provenance != nil {
		parts = append(parts, "provenance "+string(a.Provenance))
	}
	if a.Embedding != nil {
		parts = append(parts, "embedding "+kg.Excerpt(a.Embedding.String(), maxEmbeddingText))
	}
	if a.Justification != "" {
		parts = append(parts, strconv.Quote(a.Justification))
	}
	return strings.Join(parts, ", ")
}

func certaintyText(a *assertions.Assertion) string {
	if !a.HasCertainty {
		return ""
	}
	return strconv.FormatFloat(a.Certainty, 'g', -1, 64)
}

// embeddingText returns the embedding of an assertion in JSON, "" for none.
func embeddingText(a *assertions.Assertion) string {
	if a.Embedding == nil {
		return ""
	}
	text, _ := json.Marshal(a.Embedding) // its numbers are finite
	return string(text)
}

// timeText formats a time as xsd:dateTime, "" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return kg.DateTime(t).Value()
}

// diffJSON is a difference as --json prints it.
type diffJSON struct {
	Change    string          `json:"change"` // added, removed or asserted
	Subject   string          `json:"subject"`
	Predicate string          `json:"predicate"`
	Object    string          `json:"object"` // subject, predicate and object in N-Triples notation
	Graph     *string         `json:"graph"`  // null for the default graph
	Before    []assertionJSON `json:"before"`
	After     []assertionJSON `json:"after"`
}

type assertionJSON struct {
	Source        string          `json:"source"`
	Certainty     *float64        `json:"certainty,omitempty"`
	Time          string          `json:"time"`
	ValidFrom     string          `json:"validFrom,omitempty"`
	ValidTo       string          `json:"validTo,omitempty"`
	Provenance    json.RawMessage `json:"provenance,omitempty"`
	Justification string          `json:"justification,omitempty"`
	Embedding     *kg.Embedding   `json:"embedding,omitempty"`
}

func (p *diffPrinter) printJSON(d *assertions.Difference) error {
	out := diffJSON{
		Change: changeName(d), Subject: d.Subject.String(), Predicate: d.Predicate.String(), Object: d.Object.String(),
		Before: assertionsJSON(d.Before), After: assertionsJSON(d.After),
	}
	if d.Graph != kg.DefaultGraph {
		name := d.Graph.String()
		out.Graph = &name
	}
	line, err := cli.EncodeJSON(out)
	if err == nil {
		_, err = p.out.Write(line)
	}
	return err
}

func changeName(d *assertions.Difference) string {
	switch {
	case !d.Was:
		return "added"
	case !d.Is:
		return "removed"
	}
	return "asserted"
}

func assertionsJSON(list []assertions.Assertion) []assertionJSON {
	out := make([]assertionJSON, len(list))
	for i := range list {
		a := &list[i]
		out[i] = assertionJSON{
			Source: string(a.Source), Time: timeText(a.Time), ValidFrom: timeText(a.Validity.From), ValidTo: timeText(a.Validity.Until),
			Provenance: a.Provenance, Justification: a.Justification, Embedding: a.Embedding,
		}
		if a.HasCertainty {
			out[i].Certainty = &a.Certainty
		}
	}
	return out
}

var diffColumns = []string{"change", "subject", "predicate", "object", "graph", "side", "source", "certainty", "time", "validFrom", "validTo", "provenance", "justification", "embedding"}

// printRows prints a row for each assertion that differs, and one row for a statement
// without assertions.
func (p *diffPrinter) printRows(d *assertions.Difference) error {
	graph := ""
	if d.Graph != kg.DefaultGraph {
		graph = d.Graph.String()
	}
	statement := []string{changeName(d), d.Subject.String(), d.Predicate.String(), d.Object.String(), graph}
	if len(d.Before)+len(d.After) == 0 {
		return p.csv.Write(append(statement, make([]string, len(diffColumns)-len(statement))...))
	}
	for _, side := range []struct {
		name string
		list []assertions.Assertion
	}{{"before", d.Before}, {"after", d.After}} {
		for i := range side.list {
			a := &side.list[i]
			row := append(statement[:len(statement):len(statement)], side.name, string(a.Source), certaintyText(a), timeText(a.Time),
				timeText(a.Validity.From), timeText(a.Validity.Until), string(a.Provenance), a.Justification, embeddingText(a))
			if err := p.csv.Write(row); err != nil {
				return err
			}
		}
	}
	return nil
}
