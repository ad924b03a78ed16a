package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph/limit"
)

// A task leads to the commits made for it, and they lead to the task: for its participants,
// and only their own visible ones.
func TestTaskCommits(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	before := c.lab("PUBLIC")
	id, _ := c.asks("count", "")
	update := func(who, predicate, more string) {
		t.Helper()
		c.told(who, `mutation { applyPatches(input: {taskId: "%s", justification: "%s" %s, patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:%s"}, object: {value: 1}}}]}) { success } }`, id, predicate, more, predicate)
	}
	update("bob", "counted", "")
	update("eve", "claimed", "") // an agent without a part in it
	c.told("bob", `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:besides"}, object: {value: 1}}}]}) { success } }`)
	public := c.say("ann", before, "look", `, taskId: "`+id+`", patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:said"}, object: {value: 1}}}]`)
	others := c.id("bob", `mutation { createChannel(input: {members: [{agentId: "carol"}]}) { channel { id } } }`)
	private := c.say("bob", others, "psst", `, taskId: "`+id+`", patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:whispered"}, object: {value: 1}}}]`)
	update("bob", "withdrawn", "")
	c.told("bob", `mutation { applyPatches(input: {patches: [{op: remove, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:withdrawn"}, object: {value: 1}}}]}) { success } }`)

	const commits = `{ task(id: "%s") { commits { nodes { commit { actor: actorId taskId justification } message { id } facts { nodes { predicate } } } pageInfo { hasNextPage } } } }`
	node := func(actor, why, message, facts string) string {
		return fmt.Sprintf(`{"commit":{"actor":"agent://%s","taskId":"%s","justification":%s},"message":%s,"facts":{"nodes":[%s]}}`, actor, id, why, message, facts)
	}
	shared := []string{
		node("bob", `"counted"`, "null", `{"predicate":"https://example.org/counted"}`),
		node("ann", "null", `{"id":"`+public+`"}`, `{"predicate":"https://example.org/said"}`),
	}
	whispered := node("bob", "null", `{"id":"`+private+`"}`, `{"predicate":"https://example.org/whispered"}`)
	withdrawn := node("bob", `"withdrawn"`, "null", "")
	list := func(nodes ...string) string {
		return `{"task":{"commits":{"nodes":[` + strings.Join(nodes, ",") + `],"pageInfo":{"hasNextPage":false}}}}`
	}
	c.want("what ann sees", c.told("ann", commits, id), list(append(shared, withdrawn)...))
	c.want("what bob sees", c.told("bob", commits, id), list(append(shared, whispered, withdrawn)...))
	c.want("of another", c.refused("eve", commits, id), "TASK_NOT_FOUND id")

	const pages = `{ task(id: "%s") { commits(first: 2 %s) { nodes { commit { justification } } pageInfo { hasNextPage endCursor } } } }`
	first := c.told("ann", pages, id, "")
	_, cursor, _ := strings.Cut(first, `"endCursor":"`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	c.want("the first page", first, `{"task":{"commits":{"nodes":[{"commit":{"justification":"counted"}},{"commit":{"justification":null}}],"pageInfo":{"hasNextPage":true,"endCursor":"`+cursor+`"}}}}`)
	c.want("the last page", c.told("ann", strings.Replace(pages, "hasNextPage endCursor", "hasNextPage hasPreviousPage", 1), id, `, after: "`+cursor+`"`), `{"task":{"commits":{"nodes":[{"commit":{"justification":"withdrawn"}}],"pageInfo":{"hasNextPage":false,"hasPreviousPage":true}}}}`)
	c.want("a foreign cursor", c.refused("ann", pages, id, `, after: "0"`), "CURSOR_FOREIGN after")
	c.want("too long a page", c.refused("ann", `{ task(id: "%s") { commits(first: 101) { nodes { commit { id } } } } }`, id), "LIMIT_EXCEEDED")

	const facts = `{ statements(where: {subject: {eq: "ex:s"}}, orderBy: [{by: PREDICATE}]) { nodes { predicate tasks { nodes { id } } } } }`
	statement := func(predicate string, made bool) string {
		of := ""
		if made {
			of = `{"id":"` + id + `"}`
		}
		return `{"predicate":"https://example.org/` + predicate + `","tasks":{"nodes":[` + of + `]}}`
	}
	for who, want := range map[string][]string{
		"ann": {statement("besides", false), statement("claimed", false), statement("counted", true), statement("said", true)},
		"eve": {statement("besides", false), statement("claimed", false), statement("counted", false), statement("said", false)},
	} {
		c.want("the tasks of facts for "+who, c.told(who, facts), `{"statements":{"nodes":[`+strings.Join(want, ",")+`]}}`)
	}
	const message = `{ message(id: "%s") { taskId task { id handler: handlerId } } }`
	c.want("the task of a message", c.told("bob", message, public), `{"message":{"taskId":"`+id+`","task":{"id":"`+id+`","handler":"agent://bob"}}}`)
	c.want("for another", c.told("eve", message, public), `{"message":{"taskId":"`+id+`","task":null}}`)
	c.want("for a member", c.told("carol", message, private), `{"message":{"taskId":"`+id+`","task":null}}`)
	c.want("of none", c.told("ann", message, c.say("ann", before, "x", "")), `{"message":{"taskId":null,"task":null}}`)
}
