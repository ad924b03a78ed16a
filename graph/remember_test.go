package graph_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"koine/graph/limit"
	"koine/internal/operation"
	"koine/kg"
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
	_, id, _ := strings.Cut(got, `"proposalId":"`)
	id, _, _ = strings.Cut(id, `"`)
	for reviewer, want := range []string{"PENDING", "APPLIED"} {
		r := c.engine.Execute(t.Context(), operation.Request{
			Query:     fmt.Sprintf(`mutation { reviewProposal(input: {proposalId: %q, decision: APPROVE}) { proposal { status } } }`, id),
			Principal: kg.Principal{ID: kg.AgentID(fmt.Sprint("agent://reviewer", reviewer)), Roles: []string{kg.RoleAdmin}, Method: "key"},
		})
		if len(r.Errors) > 0 || !strings.Contains(string(r.Data), want) {
			t.Fatalf("got %s, %v, want %s", r.Data, r.Errors, want)
		}
	}
	if got := c.told("ann", `{ entities(where: {label: {eq: "Ada"}}) { totalCount } }`); got != `{"entities":{"totalCount":1}}` {
		t.Errorf("after the review: %s", got)
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

// put replaces the values of an entity by IRI, by key, and by label and class.
func TestPutReplaces(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	put := func(input string) string {
		return c.told("ann", "%s", `mutation { put(input: {`+input+`}) { entities { label made } update { statementsAffected } } }`)
	}
	answer := func(entity string, affected int) string {
		return fmt.Sprintf(`{"put":{"entities":[%s],"update":{"statementsAffected":%d}}}`, entity, affected)
	}
	values := `properties: [{predicate: "ex:size", objects: [{value: 1}, {value: %d}]}]`
	for _, row := range []struct{ input, entity string }{
		{`id: "ex:a", type: "ex:Thing", `, ""},
		{`key: {predicate: "ex:isbn", objects: [{value: "978"}]}, type: "ex:Book", `, `{"label":"978","made":%v}`},
		{`label: "Ada", type: "ex:Person", `, `{"label":"Ada","made":%v}`},
	} {
		entity := func(made bool) string {
			if row.entity == "" {
				return ""
			}
			return fmt.Sprintf(row.entity, made)
		}
		first := row.input + fmt.Sprintf(values, 2)
		made := 3
		if row.entity != "" {
			made++
		}
		c.want("first "+row.input, put(first), answer(entity(true), made))
		c.want("again "+row.input, put(first), answer(entity(false), 0))
		c.want("other values "+row.input, put(row.input+fmt.Sprintf(values, 3)), answer(entity(false), 2))
	}
	c.want("by nothing", c.refused("ann", "%s", `mutation { put(input: {properties: []}) { update { revision } } }`), "INVALID")
	c.want("a key of two", c.refused("ann", "%s", `mutation { put(input: {key: {predicate: "ex:isbn", objects: []}, properties: []}) { update { revision } } }`), "INVALID input.key.objects")
	c.want("a wrong value", c.refused("ann", "%s", `mutation { put(input: {id: "ex:a", properties: [{predicate: "ex:p", objects: [{}]}]}) { update { revision } } }`), "INVALID input.properties[0].objects[0]")
}

func TestDefineAndWords(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	triples := `mutation { remember(input: {triples: [["Ada", "wrote", "Note G"], ["Ada", "wrote", "Note A"]]}) { contradictions { kind statementCount } } }`
	c.want("a new word", c.refused("ann", "%s", triples), "INVALID input.triples[0]")
	define := `mutation { define(input: {label: "wrote", comment: "is the author of"}) { entities { label made } } }`
	c.want("define", c.told("ann", "%s", define), `{"define":{"entities":[{"label":"wrote","made":true}]}}`)
	c.want("define again", c.told("ann", "%s", define), `{"define":{"entities":[{"label":"wrote","made":false}]}}`)
	found := c.told("ann", "%s", `{ entities(where: {label: {eq: "wrote"}}) { nodes { iri } } }`)
	_, found, _ = strings.Cut(found, `"iri":"`)
	iri, _, _ := strings.Cut(found, `"`)
	c.told("ann", "%s", rememberIn("<"+iri+"> a owl:FunctionalProperty", ""))
	c.want("the word", c.told("ann", "%s", triples), `{"remember":{"contradictions":[{"kind":"FUNCTIONAL","statementCount":2}]}}`)
}
