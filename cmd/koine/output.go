package main

import (
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

// outputFlags select the form of a result: a table by default.
type outputFlags struct {
	JSON bool `help:"Print JSON." xor:"output"`
	CSV  bool `help:"Print CSV with a header." xor:"output" name:"csv"`
}

// table is a result in rows. Cells hold any text; the writers escape or cut it.
type table struct {
	title   string
	columns []string
	rows    [][]string
}

// maxCell is the number of characters of a cell shown on a terminal.
const maxCell = 60

// write writes the table aligned: line breaks become spaces; on a terminal, the header is
// bold and cells are cut.
func (b *table) write(t terminal) error {
	colored, limit := t.hasColor(), 0
	if isTerminal(t.out) {
		limit = maxCell
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(b.columns, "\t"))
	for _, row := range b.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cutCell(singleLine(cell), limit)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if b.title != "" {
		fmt.Fprintln(t.out, b.title)
	}
	first := true
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, " \n")
		if first && colored {
			line = bold + line + plain
		}
		first = false
		if _, err := fmt.Fprintln(t.out, line); err != nil {
			return err
		}
	}
	return nil
}

// writeCSV writes the table as CSV with whole cells.
func (b *table) writeCSV(w io.Writer) error {
	if err := writeRow(w, b.columns); err != nil {
		return err
	}
	return csv.NewWriter(w).WriteAll(b.rows)
}

// writeRow writes one row of CSV.
func writeRow(w io.Writer, row []string) error { return csv.NewWriter(w).WriteAll([][]string{row}) }

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
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// hasColor reports whether results may be colored: on a terminal, unless NO_COLOR is set
// (no-color.org) or the terminal is dumb.
func (t terminal) hasColor() bool {
	f, ok := t.out.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// colorize colors a text if hasColor.
func (t terminal) colorize(color, text string) string {
	if color == "" || !t.hasColor() {
		return text
	}
	return color + text + plain
}

// shortenIRIs returns the table with shortened IRIs.
func (b *table) shortenIRIs(s shortener) *table {
	short := &table{title: b.title, columns: b.columns}
	for _, row := range b.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = s.shorten(cell)
		}
		short.rows = append(short.rows, cells)
	}
	return short
}

// fetchPrefixes fetches the server's prefixes, to shorten IRIs. It returns none if the server
// only executes trusted documents.
func fetchPrefixes(ctx context.Context, server *client.Client) (shortener, error) {
	var answer struct {
		Vocabulary struct{ Prefixes []namePrefix }
	}
	err := server.GraphQL(ctx, `{ vocabulary { prefixes { name namespace } } }`, nil, &answer)
	if err != nil && !errors.As(err, new(*client.Error)) {
		return nil, err
	}
	return newShortener(answer.Vocabulary.Prefixes), nil
}

// printList writes a list in the selected form; raw holds the elements for JSON, one per
// line.
func (o outputFlags) printList(ctx context.Context, t terminal, server *client.Client, raw []json.RawMessage, list *table) error {
	if o.JSON {
		for _, one := range raw {
			if err := printJSON(t.out, one, true); err != nil {
				return err
			}
		}
		return nil
	}
	if o.CSV {
		return list.writeCSV(t.out)
	}
	short, err := fetchPrefixes(ctx, server)
	if err != nil {
		return err
	}
	return list.shortenIRIs(short).write(t)
}

// printWhole is printList with whole IRIs; element returns the value to encode as JSON for a
// row.
func (o outputFlags) printWhole(t terminal, list *table, element func(row int) any) error {
	switch {
	case o.CSV:
		return list.writeCSV(t.out)
	case !o.JSON:
		return list.write(t)
	}
	for i := range list.rows {
		line, err := encodeJSON(element(i))
		if err != nil {
			return err
		}
		if _, err := t.out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// shortener writes IRIs of registered namespaces as prefix:name.
type shortener []namePrefix

type namePrefix struct{ Name, Namespace string }

// newShortener sorts the prefixes, longest namespace first.
func newShortener(prefixes []namePrefix) shortener {
	s := slices.Clone(prefixes)
	slices.SortStableFunc(s, func(a, b namePrefix) int { return len(b.Namespace) - len(a.Namespace) })
	return s
}

// shorten returns prefix:name for an IRI of a registered namespace if that form can be read
// back, and any other text unchanged.
func (s shortener) shorten(text string) string {
	for _, p := range s {
		if local, ok := strings.CutPrefix(text, p.Namespace); ok && isLocalName(local) {
			return p.Name + ":" + local
		}
	}
	return text
}

// isLocalName reports whether a text can follow a prefix without ambiguity.
func isLocalName(text string) bool {
	return text != "" && !strings.ContainsAny(text, " \t\r\n\"<>\\^`{|}")
}

// isNull reports whether a server answered null: the object does not exist or is not
// visible.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// notFoundError returns the error of a command whose subject does not exist.
func notFoundError(format string, args ...any) error {
	return exitError{fmt.Errorf(format, args...), exitRefused}
}
