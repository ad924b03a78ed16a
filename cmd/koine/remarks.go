package main

import (
	"fmt"
	"strings"

	"koine/client"
)

// maxCutsShown bounds the cut lists that are reported one by one.
const maxCutsShown = 10

// printRemarks reports the server's remarks on an answer to standard error: lists cut by a
// budget, and unknown names in the query.
func printRemarks(t terminal, m *client.QueryMetadata) {
	for _, cut := range m.Truncated[:min(len(m.Truncated), maxCutsShown)] {
		more := ""
		if cut.Cursor != "" {
			more = fmt.Sprintf("; continue with after: %q", cut.Cursor)
		}
		t.sayf("truncated: %s, limited by the budget's %s%s", fieldPath(cut.Path), strings.ToLower(cut.Reason), more)
	}
	if more := len(m.Truncated) - maxCutsShown; more > 0 {
		t.sayf("truncated: %d more lists", more)
	}
	for _, hint := range m.Hints {
		meant := ""
		if len(hint.Nearest) > 0 {
			meant = "; did you mean " + strings.Join(hint.Nearest, " or ") + "?"
		}
		t.sayf("hint: %s: %s%s", fieldPath(hint.Path), hint.Message, meant)
	}
}

// fieldPath is the path to a field of an answer: names and list indexes.
type fieldPath []any

func (p fieldPath) String() string {
	parts := make([]string, len(p))
	for i, part := range p {
		parts[i] = fmt.Sprint(part)
	}
	return strings.Join(parts, ".")
}

// joinNames returns the path without list indexes and without edges and nodes.
func (p fieldPath) joinNames() string {
	var parts []string
	for _, part := range p {
		if name, ok := part.(string); ok && name != "nodes" && name != "edges" && name != "node" {
			parts = append(parts, name)
		}
	}
	return strings.Join(parts, ".")
}
