package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"

	"koine/client"
)

// OutputFlags select the form of a result: a table by default.
type OutputFlags struct {
	JSON bool `help:"Print JSON." xor:"output"`
	CSV  bool `help:"Print CSV with a header." xor:"output" name:"csv"`
}

// Table is a result in rows. Cells hold any text; the writers escape or cut it.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// maxCell is the number of characters of a cell shown on a terminal.
const maxCell = 60

// Print writes the table aligned: line breaks become spaces; on a terminal, the header is
// bold and cells are cut.
func (b *Table) Print(t Terminal) error {
	colored, limit := t.hasColor(), 0
	if isTerminal(t.Out) {
		limit = maxCell
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(b.Columns, "\t"))
	for _, row := range b.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cutCell(SingleLine(cell), limit)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if b.Title != "" {
		fmt.Fprintln(t.Out, b.Title)
	}
	first := true
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, " \n")
		if first && colored {
			line = bold + line + plain
		}
		first = false
		if _, err := fmt.Fprintln(t.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// PrintCSV writes the table as CSV with whole cells.
func (b *Table) PrintCSV(w io.Writer) error {
	if err := PrintRow(w, b.Columns); err != nil {
		return err
	}
	return csv.NewWriter(w).WriteAll(b.Rows)
}

// PrintRow writes one row of CSV.
func PrintRow(w io.Writer, row []string) error { return csv.NewWriter(w).WriteAll([][]string{row}) }

// cutCell cuts a text to limit characters and marks the cut; 0 means no limit.
func cutCell(text string, limit int) string {
	if limit == 0 || utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// ANSI escape sequences.
const (
	bold   = "\x1b[1m"
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// hasColor reports whether results may be colored: on a terminal, unless NO_COLOR is set
// (no-color.org) or the terminal is dumb.
func (t Terminal) hasColor() bool {
	f, ok := t.Out.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Colorize colors a text if hasColor.
func (t Terminal) Colorize(color, text string) string {
	if color == "" || !t.hasColor() {
		return text
	}
	return color + text + plain
}

// ShortenIRIs returns the table with shortened IRIs.
func (b *Table) ShortenIRIs(s Shortener) *Table {
	short := &Table{Title: b.Title, Columns: b.Columns}
	for _, row := range b.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = s.Shorten(cell)
		}
		short.Rows = append(short.Rows, cells)
	}
	return short
}

// FetchPrefixes fetches the server's prefixes, to shorten IRIs. It returns none if the server
// only executes trusted documents.
func FetchPrefixes(ctx context.Context, server *client.Client) (Shortener, error) {
	var answer struct {
		Vocabulary struct{ Prefixes []NamePrefix }
	}
	err := server.GraphQL(ctx, `{ vocabulary { prefixes { name namespace } } }`, nil, &answer)
	if err != nil && !errors.As(err, new(*client.Error)) {
		return nil, err
	}
	return NewShortener(answer.Vocabulary.Prefixes), nil
}

// PrintList writes a list in the selected form; raw holds the elements for JSON, one per
// line.
func (o OutputFlags) PrintList(ctx context.Context, t Terminal, server *client.Client, raw []json.RawMessage, list *Table) error {
	if o.JSON {
		for _, one := range raw {
			if err := PrintJSON(t.Out, one, true); err != nil {
				return err
			}
		}
		return nil
	}
	if o.CSV {
		return list.PrintCSV(t.Out)
	}
	short, err := FetchPrefixes(ctx, server)
	if err != nil {
		return err
	}
	return list.ShortenIRIs(short).Print(t)
}

// PrintWhole is PrintList with whole IRIs; element returns the value to encode as JSON for a
// row.
func (o OutputFlags) PrintWhole(t Terminal, list *Table, element func(row int) any) error {
	switch {
	case o.CSV:
		return list.PrintCSV(t.Out)
	case !o.JSON:
		return list.Print(t)
	}
	for i := range list.Rows {
		line, err := EncodeJSON(element(i))
		if err != nil {
			return err
		}
		if _, err := t.Out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// Shortener writes IRIs of registered namespaces as prefix:name.
type Shortener []NamePrefix

// NamePrefix is a prefix and the namespace that it stands for.
type NamePrefix struct{ Name, Namespace string }

// NewShortener sorts the prefixes, longest namespace first.
func NewShortener(prefixes []NamePrefix) Shortener {
	s := slices.Clone(prefixes)
	slices.SortStableFunc(s, func(a, b NamePrefix) int { return len(b.Namespace) - len(a.Namespace) })
	return s
}

// Shorten returns prefix:name for an IRI of a registered namespace if that form can be read
// back, and any other text unchanged.
func (s Shortener) Shorten(text string) string {
	for _, p := range s {
		if local, ok := strings.CutPrefix(text, p.Namespace); ok && IsLocalName(local) {
			return p.Name + ":" + local
		}
	}
	return text
}

// IsLocalName reports whether a text can follow a prefix without ambiguity.
func IsLocalName(text string) bool {
	return text != "" && !strings.ContainsAny(text, " \t\r\n\"<>\\^`{|}")
}

// IsNull reports whether a server answered null: the object does not exist or is not
// visible.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// PrintJSON writes JSON on one line, or indented.
func PrintJSON(w io.Writer, raw json.RawMessage, compact bool) error {
	var b bytes.Buffer
	var err error
	if compact {
		err = json.Compact(&b, raw)
	} else {
		err = json.Indent(&b, raw, "", "  ")
	}
	if err != nil {
		return InvalidResponse(err)
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// EncodeJSON encodes a value as JSON without escaping HTML in embedded JSON.
func EncodeJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, InvalidResponse(err)
	}
	return b.Bytes(), nil
}
