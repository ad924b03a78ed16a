package main

import (
	"fmt"
	"strings"
)

// remarks are what a server says of an answer beside the data: that lists in it
// are shorter than they could be, and names in the query that nothing has.
type remarks struct {
	Truncated []struct {
		Path   fieldPath `json:"path"`
		Reason string    `json:"reason"`
		Cursor string    `json:"cursor"`
	} `json:"truncated"`
	Hints []struct {
		Path    fieldPath `json:"path"`
		Message string    `json:"message"`
		Nearest []string  `json:"nearest"`
	} `json:"hints"`
}

// maxCutsTold bounds how many of the places where an answer was cut are named.
const maxCutsTold = 10

// say tells them to the person, away from the data.
func (r *remarks) say(t terminal) {
	for _, cut := range r.Truncated[:min(len(r.Truncated), maxCutsTold)] {
		more := ""
		if cut.Cursor != "" {
			more = fmt.Sprintf("; go on with after: %q", cut.Cursor)
		}
		t.sayf("truncated: %s, by the budget's %s%s", cut.Path, strings.ToLower(cut.Reason), more)
	}
	if more := len(r.Truncated) - maxCutsTold; more > 0 {
		t.sayf("truncated: %d more lists", more)
	}
	for _, hint := range r.Hints {
		meant := ""
		if len(hint.Nearest) > 0 {
			meant = "; meant " + strings.Join(hint.Nearest, " or ") + "?"
		}
		t.sayf("hint: %s: %s%s", hint.Path, hint.Message, meant)
	}
}

// fieldPath leads to a field of an answer: names, and indexes of lists.
type fieldPath []any

func (p fieldPath) String() string {
	parts := make([]string, len(p))
	for i, part := range p {
		parts[i] = fmt.Sprint(part)
	}
	return strings.Join(parts, ".")
}
