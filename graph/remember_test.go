package graph_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"koine/graph/limit"
)

func rememberIn(facts, more string) string {
	return fmt.Sprintf(`mutation { remember(input: {facts: %q%s}) { entities { label made } known { subject { id } object { id value } } update { success statementsAffected verificationStatus proposalId } } }`, facts, more)
}

func TestRememberFindsOrMakes(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	const facts = "(Ada)\n  a ex:Person\n  ex:wrote (Note G), \"a text\" [0.4]\n"
	answer := func(entities, known string, affected int, status string) string {
		return fmt.Sprintf(`{"remember":{"entities":[%s],"known":[%s],"update":{"success":true,"statementsAffected":%d,"verificationStatus":%q,"proposalId":null}}}`, entities, known, affected, status)
	}
	both := func(made bool) string {
		return fmt.Sprintf(`{"label":"Ada","made":%v},{"label":"Note G","made":%v}`, made, made)
	}
	if got, want := c.told("ann", "%s", rememberIn(facts, `, dryRun: true`)), answer(both(true), "", 5, "Verified"); got != want {
		t.Errorf("a dry run: got %s, want %s", got, want)
	}
	for range 2 { // the second is the answer to the key
		c.told("ann", "%s", rememberIn(facts, `, idempotencyKey: "k", certainty: 0.9`))
	}
	if got, want := c.told("ann", "%s", `{ statements(where: {predicate: "ex:wrote"}) { nodes { certainty } } }`),
		`{"statements":{"nodes":[{"certainty":0.9},{"certainty":0.4}]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.want("another request under the key", c.refused("ann", "%s", rememberIn("(Ada) ex:p 1", `, idempotencyKey: "k"`)), "IDEMPOTENCY_CONFLICT input.idempotencyKey")
	c.want("a wrong line", c.refused("ann", "%s", rememberIn("Ada ex:p 1", "")), "INVALID input.facts")
	c.want("a wrong graph", c.refused("ann", "%s", rememberIn("(Ada) ex:p 1", `, graph: "x"`)), "INVALID input.graph")
	c.want("an unknown prefix", c.refused("ann", "%s", rememberIn("(Ada) ex:p 1\n(Ada) foo:p 2", "")), "UNKNOWN_PREFIX input.facts[1].predicate")
	c.want("its own vocabulary", c.refused("ann", "%s", rememberIn("(Ada) koine:role 2", "")), "RESERVED input.facts[0]")
}

// An update that is held makes its entities when it is approved.
func TestRememberIsHeldForReview(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	got := c.told("ann", "%s", rememberIn("(Ada) ex:pay (Bob)", ""))
	if !strings.Contains(got, `"statementsAffected":0,"verificationStatus":"Pending Review","proposalId":"`) {
		t.Fatalf("got %s, want a proposal", got)
	}
	if got := c.told("ann", `{ entities(where: {label: {eq: "Ada"}}) { nodes { iri } } }`); got != `{"entities":{"nodes":[]}}` {
		t.Errorf("before the review: %s", got)
	}
}

// Requests at the same time, each with a verifier, make one entity.
func TestRememberAtTheSameTime(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	var wait sync.WaitGroup
	for n := range 16 {
		wait.Go(func() {
			if r := c.ask(fmt.Sprint("agent", n), "%s", rememberIn("(Ada)\n  a ex:Person\n", "")); len(r.Errors) > 0 {
				t.Error(r.Errors)
			}
		})
	}
	wait.Wait()
	if got := c.told("ann", `{ entities(where: {label: {eq: "Ada"}}) { totalCount } }`); got != `{"entities":{"totalCount":1}}` {
		t.Errorf("got %s, want one entity", got)
	}
}
