package graph_test

import (
	"encoding/json"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
)

const evidence = `{ statements(where: {predicate: {eq: "ex:%s"}}) { nodes { evidence { nodes { text author: authorId } } } } }`

// TestEvidence proves that a statement leads to the messages that asserted it, for their
// readers only.
func TestEvidence(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	fact := func(p string) string {
		return `, patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:` + p + `"}, object: {id: "ex:o"}, graph: "ex:g"}}]`
	}
	c.say("ann", id, "I saw it", fact("seen"))
	c.say("bob", id, "so did I", fact("seen"))
	c.update(in(iri("g"), by("agent://cy", -1, add(iri("s"), iri("seen"), iri("o")))))
	want := `{"statements":{"nodes":[{"evidence":{"nodes":[{"text":"I saw it","author":"agent://ann"},{"text":"so did I","author":"agent://bob"}]}}]}}`
	c.want("to members", c.told("bob", evidence, "seen"), want)
	c.want("the first", c.told("bob", `{ statements(where: {predicate: {eq: "ex:seen"}}) { nodes { one: evidence(first: 1) { nodes { text } } none: evidence(first: 0) { nodes { id } } } } }`), `{"statements":{"nodes":[{"one":{"nodes":[{"text":"I saw it"}]},"none":{"nodes":[]}}]}}`)
	c.want("too many", c.refused("bob", `{ statements { nodes { evidence(first: 1001) { nodes { id } } } } }`), "LIMIT_EXCEEDED")
	c.want("to others", c.told("eve", evidence, "seen"), `{"statements":{"nodes":[{"evidence":{"nodes":[]}}]}}`)
	c.want("under a budget", c.told("bob", `query @budget(maxTokens: 1000) `+evidence, "seen"), want)
	c.want("around an entity", c.told("bob", `{ entity(iri: "ex:s") { out { nodes { evidence { nodes { sequence facts { nodes { predicate evidence { nodes { text } } } } } } } } } }`),
		`{"entity":{"out":{"nodes":[{"evidence":{"nodes":[{"sequence":1,"facts":{"nodes":[{"predicate":"https://example.org/seen","evidence":{"nodes":[{"text":"I saw it"},{"text":"so did I"}]}}]}},{"sequence":2,"facts":{"nodes":[{"predicate":"https://example.org/seen","evidence":{"nodes":[{"text":"I saw it"},{"text":"so did I"}]}}]}}]}}]}}}`)
	why := `{ why(statement: {subject: {id: "ex:s"}, predicate: {id: "ex:seen"}, object: {id: "ex:o"}, graph: "ex:g"}) { origins { assertion { source: sourceId } message { text } } history { message { sequence channel { name } } } } }`
	c.want("why", c.told("bob", "%s", why), `{"why":{"origins":[{"assertion":{"source":"agent://ann"},"message":{"text":"I saw it"}},{"assertion":{"source":"agent://bob"},"message":{"text":"so did I"}},{"assertion":{"source":"agent://cy"},"message":null}],`+
		`"history":[{"message":null},{"message":{"sequence":2,"channel":{"name":"lab"}}},{"message":{"sequence":1,"channel":{"name":"lab"}}}]}}`)
	c.want("why, to others", c.told("eve", "%s", why), `{"why":{"origins":[{"assertion":{"source":"agent://ann"},"message":null},{"assertion":{"source":"agent://bob"},"message":null},{"assertion":{"source":"agent://cy"},"message":null}],`+
		`"history":[{"message":null},{"message":null},{"message":null}]}}`)

	query := `subscription { statementChanged(where: {predicate: {eq: "ex:heard"}}) { ... on StatementChange { statement { evidence { nodes { text } } } } } }`
	bob, eve := c.hear(t, "bob", query, operation.Resume{}), c.hear(t, "eve", query, operation.Resume{})
	message := c.say("ann", id, "listen", fact("heard"))
	bob.want(`{"statementChanged":{"statement":{"evidence":{"nodes":[{"text":"listen"}]}}}}`)
	eve.want(`{"statementChanged":{"statement":{"evidence":{"nodes":[]}}}}`)

	// A commit that only claims to come with the message is none of it.
	forged := kg.Meta{Principal: kg.Principal{ID: "agent://eve", Method: "key"}, MessageID: message}
	c.commit(forged, in(iri("g"), add(iri("s"), iri("forged"), iri("o"))))
	c.want("forged", c.told("bob", evidence, "forged"), `{"statements":{"nodes":[{"evidence":{"nodes":[]}}]}}`)
	if err := c.store.Maintenance().CutLog(t.Context(), c.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
	c.want("the log was cut", c.told("bob", evidence, "seen"), `{"statements":{"nodes":[{"evidence":{"nodes":[]}}]}}`)
	if r := newBench(t, graph.Options{}).execute(`{ statements { nodes { evidence { nodes { id } } } } }`, ""); len(r.Errors) > 0 {
		t.Errorf("where there are no channels: %v", r.Errors)
	}
}

// TestEvidenceOfHeldFacts proves that facts that were held for review have as evidence the
// message that they were published with.
func TestEvidenceOfHeldFacts(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	var data struct{ PublishMessage struct{ ProposalID string } }
	answer := c.told("ann", `mutation { publishMessage(input: {channelId: "%s", parts: [{text: "a rise"}], patches: [{op: add, statement: {subject: {id: "ex:ann"}, predicate: {id: "ex:pay"}, object: {value: 5}}}]}) { proposalId } }`, id)
	if err := json.Unmarshal([]byte(answer), &data); err != nil {
		t.Fatal(err)
	}
	c.want("before", c.told("bob", evidence, "pay"), `{"statements":{"nodes":[]}}`)
	for _, who := range []string{"rob", "rae"} {
		if got := c.saidTo(who, reviewer, `mutation { reviewProposal(input: {proposalId: "`+data.PublishMessage.ProposalID+`", decision: APPROVE}) { proposal { id } } }`); !strings.Contains(got, "reviewProposal") {
			t.Fatal(got)
		}
	}
	c.want("after", c.told("bob", evidence, "pay"), `{"statements":{"nodes":[{"evidence":{"nodes":[{"text":"a rise","author":"agent://ann"}]}}]}}`)
}
