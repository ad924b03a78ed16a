package client_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"koine/client"
)

// A writer takes more patches than an update may have, and repeated under its key it
// changes nothing.
func TestWriterSplits(t *testing.T) {
	s := start(t)
	ctx, c := bounded(t), open(t, s.URL, "ann")
	n := client.MaxPatches + 1
	for round, affected := range []int{n, n} { // the second answers with the result of the first
		w, err := c.NewWriter(client.Update{IdempotencyKey: "import-1", Justification: "import"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := w.Write(ctx, client.Add(fmt.Sprintf("https://example.org/%d", i), "https://example.org/p", client.Text("x"))); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(ctx); err != nil || w.Affected != affected || w.Position == "" {
			t.Errorf("round %d: %d affected at %q, %v, want %d", round, w.Affected, w.Position, err, affected)
		}
	}
	var read struct{ Statements struct{ TotalCount int } }
	if _, err := c.Query(ctx, client.Query{Text: `{ statements(where: {predicate: {eq: "https://example.org/p"}}) { totalCount } }`}, &read); err != nil || read.Statements.TotalCount != n {
		t.Errorf("%d statements, %v, want %d", read.Statements.TotalCount, err, n)
	}
}

// Patches of many bytes are split before the body is too large for the server.
func TestWriterSplitsBytes(t *testing.T) {
	s := start(t)
	ctx, c := bounded(t), open(t, s.URL, "ann")
	w, err := c.NewWriter(client.Update{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 400<<10)
	for i := range 12 { // 4.7 MiB
		if err := w.Write(ctx, client.Add(fmt.Sprintf("https://example.org/%d", i), "rdfs:comment", client.Text(text))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(ctx); err != nil || w.Affected != 12 {
		t.Errorf("%d affected, %v, want 12", w.Affected, err)
	}
}

func TestWriterRefuses(t *testing.T) {
	c := open(t, start(t).URL, "ann")
	for name, u := range map[string]client.Update{
		"an expected revision": {ExpectedRevision: 1},
		"patches":              {Patches: []client.Patch{client.Add("urn:s", "rdfs:label", client.Text("x"))}},
	} {
		if _, err := c.NewWriter(u); !errors.Is(err, client.Invalid) {
			t.Errorf("%s: %v, want INVALID", name, err)
		}
	}
}

// A program that stores its position in a file resumes after the events that it handled.
func TestPositionFile(t *testing.T) {
	s := start(t)
	ctx, c := bounded(t), open(t, s.URL, "ann")
	path := filepath.Join(t.TempDir(), "position")
	write := func(text string) {
		t.Helper()
		if _, err := c.Update(ctx, client.Update{Patches: []client.Patch{client.Add("https://example.org/s", "rdfs:label", client.Text(text))}}); err != nil {
			t.Fatal(err)
		}
	}
	handle := func(n int) (seen []string) {
		t.Helper()
		f, err := client.OpenPositionFile(path)
		if err != nil {
			t.Fatal(err)
		}
		moved := ""
		sub := f.Resume(client.Subscription{
			Query: `subscription { statementChanged(where: {subject: {eq: "https://example.org/s"}}) { __typename } }`, From: client.Earliest,
			OnPosition: func(from string) { moved = from },
		})
		for change, err := range c.Subscribe(ctx, sub) {
			if err != nil {
				t.Fatal(err)
			}
			if len(seen) == n { // the loop has come back, so that the last one counts as handled
				break
			}
			seen = append(seen, fmt.Sprint(change.Statement.Object.Value))
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if f.Position() == "" || moved != f.Position() {
			t.Errorf("the position is %q, and Moved was told %q", f.Position(), moved)
		}
		return seen
	}
	write("a")
	write("b")
	write("c")
	if got := handle(2); fmt.Sprint(got) != `[a b]` {
		t.Errorf("first %v, want a and b", got)
	}
	write("d")
	if got := handle(1); fmt.Sprint(got) != `[c]` {
		t.Errorf("then %v, want c", got)
	}
	if list, err := filepath.Glob(path + "*"); err != nil || len(list) != 1 {
		t.Errorf("the directory holds %v, %v, want the file alone", list, err)
	}
	if _, err := client.OpenPositionFile(filepath.Dir(path)); err == nil {
		t.Error("a directory was opened as a position file")
	}
	gone, err := client.OpenPositionFile(filepath.Join(t.TempDir(), "absent", "position"))
	if err != nil {
		t.Fatal(err)
	}
	gone.Resume(client.Subscription{}).OnPosition("x")
	if err := gone.Save(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Save into a directory that does not exist: %v", err)
	}
}
