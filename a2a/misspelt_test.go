package a2a_test

import (
	"strings"
	"testing"
)

// The error for a misspelt member suggests a similar name if there is one.
func TestMisspeltMembers(t *testing.T) {
	s := newTestServer(t)
	update := func(statement, rest string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1}` + statement + `}}]` + rest + `}}`
	}
	const ofStatement = "Known members are subject, predicate, object, graph, certainty, validFrom, validTo, provenance."
	const ofUpdate = "Known members are mutations, sourceAgentId, taskId, sessionId, justification, metadata."
	for _, c := range []struct{ request, field, hint string }{
		{update(`,"certanty":0.5`, ""), "mutations[0].statement.certanty", "Did you mean certainty?"},
		{update(`,"Certainty":0.5`, ""), "mutations[0].statement.Certainty", "Did you mean certainty?"},
		{update(`,"crtanty":0.5`, ""), "mutations[0].statement.crtanty", "Did you mean certainty?"},
		{update(`,"crtany":0.5`, ""), "mutations[0].statement.crtany", ofStatement}, // three slips
		{update(`,"confidence":0.5`, ""), "mutations[0].statement.confidence", ofStatement},
		{update("", `,"justificaton":"x"`), "justificaton", "Did you mean justification?"},
		{update("", `,"metadata":{"koine":{"dryrun":true}}`), "metadata.koine.dryrun", "Did you mean dryRun?"},
		{update("", `,"x":1`), "x", ofUpdate},
		{strings.Replace(update("", ""), "mutations", "patches", 1), "patches", ofUpdate},
		{update("", `,"`+strings.Repeat("m", 41)+`":1`), strings.Repeat("m", 41), ofUpdate},
		{`{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":"{ revision }","requiredCertainity":1}}`, "requiredCertainity", "Did you mean requiredCertainty?"},
		{`{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":"{ revision }","maxAgeSecond":1}}`, "maxAgeSecond", "Did you mean maxAgeSeconds?"},
	} {
		got := s.post(t, c.request)
		want := `"field":"` + c.field + `","detail":"unknown member","hint":"` + c.hint + `"}}}`
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant …%s", got, want)
		}
	}
}
