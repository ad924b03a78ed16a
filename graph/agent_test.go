package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/agents"
	"koine/internal/operation"
	"koine/kg"
)

// record puts an agent on record.
func (b *bench) record(name string, display string) {
	b.t.Helper()
	id := kg.CanonicalAgent(name)
	if result := b.runAs(root, `mutation { createApiKey(input: {agentId: "`+name+`", roles: ["potter"]}) { secret } }`); len(result.Errors) > 0 {
		b.t.Fatal(result.Errors)
	}
	owner := kg.CanonicalAgent("olga")
	if _, err := agents.NewService(b.store).Update(b.t.Context(), kg.Meta{Principal: root, Actor: root.ID}, id, agents.Change{Name: &display, Owner: &owner}); err != nil {
		b.t.Fatal(err)
	}
}

// shown is all that a query shows of an agent's record.
const shown = `{ id name owner { id name } ownerId roles status createdAt registration { description } statementCount }`

// snapshots counts the snapshots that a query takes: each asks the clock for the time once.
func (c *conversing) snapshots(query string) int {
	c.t.Helper()
	before := c.clock.seconds()
	c.told("ann", "%s", query)
	return c.clock.seconds() - before
}

// TestAgentsAreReadOnce proves that the id of an agent costs no read, and its record one for
// each agent and operation, however often it is shown.
func TestAgentsAreReadOnce(t *testing.T) {
	c := newConversing(t, limit.Limits{Complexity: 1 << 30})
	c.record("ann", "Ann")
	c.record("bob", "Bob")
	id := c.lab("PRIVATE")
	for i := range 40 {
		c.say([]string{"ann", "bob"}[i%2], id, fmt.Sprint(i), fmt.Sprintf(`, patches: [{op: add, statement: {subject: {id: "ex:s%d"}, predicate: {id: "ex:p"}, object: {value: 1}, graph: "ex:g"}}]`, i))
	}
	for _, list := range []struct{ of, id, agent string }{
		{`channel(id: "` + id + `") { messages(first: 40) { nodes { %s } } }`, `authorId`, `author`},
		{`statements(first: 40, where: {predicate: "ex:p"}) { nodes { assertions { %s } } }`, `sourceId`, `source`},
		{`changes(first: 40, after: "earliest", where: {predicate: "ex:p"}) { nodes { commit { %s } } }`, `actorId`, `actor`},
	} {
		query := func(selected string) string { return "{ " + fmt.Sprintf(list.of, selected) + " }" }
		plain := c.snapshots(query(list.id))
		if got := c.snapshots(query(list.agent + " { id __typename presence { status } }")); got != plain {
			t.Errorf("%s { id } takes %d snapshots, %s takes %d", list.agent, got, list.id, plain)
		}
		if got := c.snapshots(query(list.agent + " { name roles } again: " + list.agent + " { status owner { id } }")); got != plain+2 {
			t.Errorf("%s { name } takes %d snapshots, want %d for the list and one for each of two agents", list.agent, got, plain)
		}
	}
}

// TestAgentsAreTheSameEverywhere proves that an agent is shown as agent(id) shows it, to the
// same caller, wherever it is named: in what tables write and in what is planned.
func TestAgentsAreTheSameEverywhere(t *testing.T) {
	c := newConversing(t, limit.Limits{Complexity: 1 << 30})
	c.record("ann", "Ann")
	id := c.lab("PRIVATE")
	c.say("ann", id, "one", `, recipient: "bob", patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 1}, graph: "ex:g"}}]`)
	c.told("ann", `mutation { inviteAgent(input: {channelId: "%s", agentId: "cy"}) { channel { id } } }`, id)
	task, _ := c.asks("count", "")
	held := c.ask("ann", `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:pay"}, object: {value: 1}}}]}) { proposalId } }`)
	var proposal struct{ ApplyPatches struct{ ProposalID string } }
	c.decode(string(held.Data), &proposal)
	for _, who := range []string{"bob", "ann"} {
		record := func(agent string) string {
			data := strings.TrimSuffix(strings.TrimPrefix(c.told(who, `{ agent(id: "%s") %s }`, agent, shown), `{"agent":`), "}")
			if data == "null" {
				data = `{"id":"` + string(kg.CanonicalAgent(agent)) + `","name":null,"owner":null,"ownerId":null,"roles":[],"status":null,"createdAt":null,"registration":null,"statementCount":null}`
			}
			return data
		}
		ann, bob := record("ann"), record("bob")
		if who == "ann" && !strings.Contains(ann, `"name":"Ann","owner":{"id":"agent://olga","name":null},"ownerId":"agent://olga","roles":["potter"],"status":"ACTIVE"`) {
			t.Fatalf("the record is %s", ann)
		}
		if who == "bob" {
			bob = strings.Replace(bob, `"statementCount":null`, `"statementCount":0`, 1) // its own
		}
		const statements = `statements(where: {predicate: "ex:p"}`
		for _, row := range []struct{ query, want string }{
			{`{ channel(id: "` + id + `") { createdBy ` + shown + ` createdById } }`, `{"channel":{"createdBy":` + ann + `,"createdById":"agent://ann"}}`},
			{`{ channel(id: "` + id + `") { members { nodes { agent ` + shown + ` agentId } } } }`, `{"channel":{"members":{"nodes":[{"agent":` + ann + `,"agentId":"agent://ann"},{"agent":` + bob + `,"agentId":"agent://bob"}]}}}`},
			{`{ channel(id: "` + id + `") { invitations { nodes { invitedBy ` + shown + ` agentId } } } }`, `{"channel":{"invitations":{"nodes":[{"invitedBy":` + ann + `,"agentId":"agent://cy"}]}}}`},
			{`{ channel(id: "` + id + `") { messages { nodes { author ` + shown + ` recipients ` + shown + ` recipientIds } } messageCounts { author ` + shown + ` } } }`,
				`{"channel":{"messages":{"nodes":[{"author":` + ann + `,"recipients":[` + bob + `],"recipientIds":["agent://bob"]}]},"messageCounts":[{"author":` + ann + `}]}}`},
			{`{ task(id: "` + task + `") { creator ` + shown + ` handler { id } messages(first: 1) { nodes { author ` + shown + ` } } } }`,
				`{"task":{"creator":` + ann + `,"handler":{"id":"agent://bob"},"messages":{"nodes":[{"author":` + ann + `}]}}}`},
			{`{ ` + statements + `) { nodes { assertions { source ` + shown + ` sourceId } } } }`, `{"statements":{"nodes":[{"assertions":[{"source":` + ann + `,"sourceId":"agent://ann"}]}]}}`},
			{`{ ` + statements + `, budget: {maxBytes: 10000}) { nodes { assertions { source ` + shown + ` } } } }`, `{"statements":{"nodes":[{"assertions":[{"source":` + ann + `}]}]}}`},
			{`{ changes(after: "earliest", where: {predicate: "ex:p"}) { nodes { commit { principal ` + shown + ` actor ` + shown + ` } statement { assertions { source ` + shown + ` } } } } }`,
				`{"changes":{"nodes":[{"commit":{"principal":` + ann + `,"actor":` + ann + `},"statement":{"assertions":[{"source":` + ann + `}]}}]}}`},
			{`{ why(statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 1}, graph: "ex:g"}) { origins { assertion { source ` + shown + ` } commit { actor ` + shown + ` } } } }`,
				`{"why":{"origins":[{"assertion":{"source":` + ann + `},"commit":{"actor":` + ann + `}}]}}`},
		} {
			c.want(who+": "+row.query, c.told(who, "%s", row.query), row.want)
		}
		for _, row := range []struct{ query, want string }{
			{`statementChanged(where: {predicate: "ex:p"}, resume: "earliest") { ... on StatementChange { commit { actor ` + shown + ` } statement { assertions { source ` + shown + ` } } } }`,
				`{"commit":{"actor":` + ann + `},"statement":{"assertions":[{"source":` + ann + `}]}}`},
			{`entityChanged(iri: "ex:s", resume: "earliest") { ... on EntityChange { commit { principal ` + shown + ` } } }`, `{"commit":{"principal":` + ann + `}}`},
			{`matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}, resume: "earliest") { ... on MatchChange { commit { principal ` + shown + ` } } }`, `{"commit":{"principal":` + ann + `}}`},
		} {
			f := c.hear(t, who, `subscription { e: `+row.query+` }`, operation.Resume{})
			f.want(`{"e":` + row.want + `}`)
		}
		if who == "ann" {
			c.want("a proposal", c.told(who, `{ proposal(id: "%s") { author %s actor { id } } }`, proposal.ApplyPatches.ProposalID, shown), `{"proposal":{"author":`+ann+`,"actor":{"id":"agent://ann"}}}`)
			f := c.hear(t, who, `subscription { e: proposalChanged(resume: "earliest") { ... on ProposalChange { proposal { author `+shown+` } commit { actor `+shown+` } } } }`, operation.Resume{})
			f.want(`{"e":{"proposal":{"author":` + ann + `},"commit":{"actor":` + ann + `}}}`)
		}
	}
	if log := c.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}

// TestAgentsAfterAMutation proves that a field of a mutation shows the records that the
// fields before it have left.
func TestAgentsAfterAMutation(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	c.record("ann", "Ann")
	id := c.lab("PRIVATE")
	say := func(alias string) string {
		return alias + `: publishMessage(input: {channelId: "` + id + `", parts: [{text: "x"}]}) { message { author { name } } } `
	}
	c.want("names", c.told("ann", `mutation { %s n: updateAgent(input: {agentId: "ann", name: "Anna"}) { agent { name } } %s }`, say("a"), say("b")),
		`{"a":{"message":{"author":{"name":"Ann"}}},"n":{"agent":{"name":"Anna"}},"b":{"message":{"author":{"name":"Anna"}}}}`)
}

// TestAgentOfAReplacement proves that the agents of a commit that replaced a graph are shown,
// in a list and as an event.
func TestAgentOfAReplacement(t *testing.T) {
	b := newBench(t, graph.Options{})
	id := kg.CanonicalAgent("loader")
	b.record("loader", "Loader")
	start := b.store.Head()
	replaceAll(t, b.store, iri("g"), 0, kg.MaxPatches+1)
	const replaced = `... on GraphReplaced { commit { actor { name } actorId principal { id name } } }`
	const commit = `{"commit":{"actor":{"name":"Loader"},"actorId":"agent://loader","principal":{"id":"agent://koine","name":null}}}`
	f := b.follow(t, `subscription { e: statementChanged { `+replaced+` } }`, "", operation.Resume{Start: operation.After, After: start})
	f.want(`{"e":` + commit + `}`)
	var got json.RawMessage
	b.dataAs(root, fmt.Sprintf(`{ changes(after: %q) { events { %s } } }`, b.store.FormatPosition(start), replaced), &got)
	if string(got) != `{"changes":{"events":[`+commit+`]}}` {
		t.Errorf("of %s: got %s", id, got)
	}
}

// TestAgentsOfACredential proves that "*" is no agent that the caller may act for.
func TestAgentsOfACredential(t *testing.T) {
	b := newBench(t, graph.Options{})
	p := kg.Principal{ID: "agent://svc", Method: "key", ActFor: []kg.AgentID{"*", "agent://ann"}}
	var got json.RawMessage
	b.dataAs(p, `{ me { id actingFor { id name } actingForId actFor { id } actForIds } }`, &got)
	if want := `{"me":{"id":"agent://svc","actingFor":{"id":"agent://svc","name":null},"actingForId":"agent://svc","actFor":[{"id":"agent://ann"}],"actForIds":["*","agent://ann"]}}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
