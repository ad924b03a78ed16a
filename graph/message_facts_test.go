package graph_test

import (
	"strings"
	"testing"

	"koine/graph/limit"
	"koine/kg"
)

// TestMessageFacts proves that a message leads to its own facts, as far as they still hold
// and the caller may read them.
func TestMessageFacts(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id, hidden := c.lab("PUBLIC"), c.lab("PRIVATE")
	fact := func(p, graph string) string {
		return `, patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:` + p + `"}, object: {id: "ex:o"}, graph: "` + graph + `"}}]`
	}
	facts := func(who, message string) string {
		t.Helper()
		return c.told(who, `{ message(id: "%s") { facts { nodes { predicate graph } } } }`, message)
	}
	none, seen := `{"message":{"facts":{"nodes":[]}}}`, `{"message":{"facts":{"nodes":[{"predicate":"https://example.org/seen","graph":"https://example.org/g"}]}}}`

	// A fact of another source only does not belong to the message.
	message := c.say("ann", id, "I saw it", fact("seen", "ex:g"))
	assertion := in(iri("g"), by("agent://cy", -1, add(iri("s"), iri("seen"), iri("o"))))
	c.update(assertion)
	c.want("asserted by two", facts("eve", message), seen)
	withdrawn := in(iri("g"), by("agent://ann", -1, assertion))
	withdrawn.Op = kg.Remove
	c.update(withdrawn)
	c.want("it stands", c.told("eve", `{ statements(where: {predicate: {eq: "ex:seen"}}) { nodes { assertedBy } } }`), `{"statements":{"nodes":[{"assertedBy":["agent://cy"]}]}}`)
	c.want("by another alone", facts("eve", message), none)
	again := c.say("bob", id, "so did I", fact("seen", "ex:g"))
	c.want("the first", facts("eve", message), none)
	c.want("the second", facts("eve", again), seen)

	// A message that is for all may come with facts that are not.
	secret := c.say("bob", id, "you know what", fact("hides", "urn:koine:facts:"+hidden))
	c.want("to a member", facts("ann", secret), `{"message":{"facts":{"nodes":[{"predicate":"https://example.org/hides","graph":"urn:koine:facts:`+hidden+`"}]}}}`)
	c.want("to an outsider", facts("eve", secret), none)

	if err := c.store.Maintenance().CutLog(t.Context(), c.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
	c.want("the log was cut", facts("eve", again), none)
}

// TestForgedEvidenceOfHeldFacts proves that an update that only claims to come with a
// message has no evidence in it, also when it was held and approved.
func TestForgedEvidenceOfHeldFacts(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	message := c.say("ann", c.lab("PUBLIC"), "no rise", "")
	receipt := c.commit(kg.Meta{Principal: kg.Principal{ID: "agent://eve", Method: "key"}, MessageID: message}, add(iri("eve"), iri("pay"), kg.Integer(9)))
	for _, who := range []string{"rob", "rae"} {
		if got := c.saidTo(who, reviewer, `mutation { reviewProposal(input: {proposalId: "`+receipt.ProposalID+`", decision: APPROVE}) { proposal { id } } }`); !strings.Contains(got, "reviewProposal") {
			t.Fatal(got)
		}
	}
	c.want("the fact", c.told("bob", evidence, "pay"), `{"statements":{"nodes":[{"evidence":{"nodes":[]}}]}}`)
	c.want("the message", c.told("bob", `{ message(id: "%s") { facts { nodes { predicate } } } }`, message), `{"message":{"facts":{"nodes":[]}}}`)
}
