package graph_test

import (
	"context"
	"strings"
	"testing"

	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

// TestChannelsUnderAViewAndABudget proves that channels are not presented as of another
// revision, and count for the budget of the query.
func TestChannelsUnderAViewAndABudget(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	first := c.say("ann", id, "hello", "")
	for range 9 {
		c.say("ann", id, strings.Repeat("x", 100), `, replyToId: "`+first+`"`)
	}
	ask := func(query string, at kg.Revision, budget operation.Budget) (string, map[string]any) {
		t.Helper()
		result := c.engine.Execute(context.Background(), operation.Request{
			Query: query, Principal: kg.Principal{ID: "agent://bob", Method: "key"}, View: kg.View{At: at}, Budget: budget,
		})
		if len(result.Errors) > 1 {
			t.Fatalf("%s: %v", query, result.Errors)
		}
		if len(result.Errors) == 0 {
			return string(result.Data), nil
		}
		return string(result.Data), result.Errors[0].Extensions
	}
	then, head := kg.Revision(2), c.store.Head().Revision
	for _, field := range []string{
		`channel(id: "` + id + `") { name }`, `channels { nodes { name } }`, `message(id: "` + first + `") { text }`, `inbox { nodes { text } }`,
		`scopes { nodes { id } }`, `scope(id: "x") { id }`, `globalRestrictions { nodes { agent: agentId } }`,
	} {
		for _, query := range []string{`{ ` + field + ` }`, `query { ...f } fragment f on Query { a: ` + field + ` }`} {
			if _, e := ask(query, then, operation.Budget{}); e["code"] != "INVALID" && e["code"] != string(kg.CodeInvalid) || e["field"] != "view.at" {
				t.Errorf("%s at revision %d: %v", query, then, e)
			}
		}
	}
	// As entities they are read at any revision, and fields that lead to them from there
	// have the present state.
	data, e := ask(`{ entities(where: {type: {eq: "koine:Message"}}, view: {allGraphs: true}) { nodes { asMessage { text } } } }`, then, operation.Budget{})
	if e != nil || strings.Count(data, "text") != 1 || !strings.Contains(data, "hello") {
		t.Errorf("entities at revision %d: %s, %v", then, data, e)
	}

	messages := `{ channel(id: "` + id + `") { messages { nodes { text replies { nodes { id } } } } } }`
	whole, e := ask(messages, 0, operation.Budget{})
	if e != nil || strings.Count(whole, "text") != 10 {
		t.Fatalf("without a budget: %s, %v", whole, e)
	}
	for name, row := range map[string]struct {
		budget operation.Budget
		fits   bool
	}{
		"enough to read":     {operation.Budget{MaxStatements: 5000}, true},
		"too little to read": {operation.Budget{MaxStatements: 20}, false},
		"enough to say":      {operation.Budget{MaxBytes: len(whole)}, true},
		"too little to say":  {operation.Budget{MaxBytes: len(whole) - 1}, false},
	} {
		data, e := ask(messages, 0, row.budget)
		if row.fits && (e != nil || data != whole) || !row.fits && (e["code"] != string(kg.CodeBudgetExceeded) || strings.Contains(data, "text")) {
			t.Errorf("%s: %s, %v", name, data, e)
		}
	}
	// A channel of others does not count.
	if data, e := ask(`{ channel(id: "none") { name } }`, 0, operation.Budget{MaxStatements: 1}); e["code"] != string(kg.CodeChannelNotFound) {
		t.Errorf("what is not there: %s, %v at %d", data, e, head)
	}
}
