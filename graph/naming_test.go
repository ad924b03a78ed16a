package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph"
)

// Prefixes and URI schemes change by one commit each.
func TestNamesAreChanged(t *testing.T) {
	b := newBench(t, graph.Options{})
	many := strings.Repeat(`"x", `, graph.MaxSchemesAtOnce+1)
	for _, row := range []struct{ mutation, want string }{
		{`registerPrefix(input: {name: "own", namespace: "urn:own:"}) { revision }`, `{"registerPrefix":{"revision":1}}`},
		{`changeSchemes(input: {allow: ["IPFS", "doi"]}) { schemes revision }`, `{"changeSchemes":{"schemes":["doi","ipfs"],"revision":2}}`},
		{`changeSchemes(input: {allow: ["ar"], forbid: ["doi"]}) { schemes revision }`, `{"changeSchemes":{"schemes":["ar","ipfs"],"revision":3}}`},
		{`changeSchemes(input: {}) { schemes revision }`, `{"changeSchemes":{"schemes":["ar","ipfs"],"revision":3}}`},
		{`changeSchemes(input: {allow: ["x"], forbid: ["none"]}) { revision }`, `NOT_FOUND input.forbid URI scheme "none" is not registered`},
		{`changeSchemes(input: {forbid: ["https"]}) { revision }`, `INVALID input.forbid the URI scheme https is built in and cannot be removed`},
		{`changeSchemes(input: {allow: [` + many + `]}) { revision }`, `LIMIT_EXCEEDED input.allow allow has 101 schemes; at most 100 are allowed`},
		{`changeSchemes(input: {forbid: [` + many + `]}) { revision }`, `LIMIT_EXCEEDED input.forbid forbid has 101 schemes; at most 100 are allowed`},
		{`removePrefix(input: {name: "none"}) { revision }`, `NOT_FOUND input.name prefix "none" is not registered`},
		{`removePrefix(input: {name: "own"}) { schemes revision }`, `{"removePrefix":{"schemes":["ar","ipfs"],"revision":4}}`},
	} {
		b.wantAs(root, fmt.Sprintf(`mutation { %s }`, row.mutation), row.want)
	}
	b.wantAs(nobody, `mutation { changeSchemes(input: {allow: ["x"]}) { revision } }`, `PERMISSION_DENIED input.allow only an administrator may change prefixes and URI schemes`)
	if c, err := b.store.Commit(t.Context(), root, 3); err != nil || c.Justification != "Allow URI schemes: ar. Forbid URI schemes: doi" {
		t.Errorf("the commit is %+v, %v", c, err)
	}
}
