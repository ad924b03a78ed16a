package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/graph/limit"
	"koine/internal/policy"
	"koine/kg"
)

// TestNames proves that an object is found by its id and by the IRI of the entity that stands
// for it, by which entity finds it too, and that an IRI finds no more than the id does.
func TestNames(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	c.record("ann", "Ann")
	lab := c.lab("PRIVATE")
	said := c.say("ann", lab, "one", "")
	direct := c.id("ann", `mutation { publishMessage(input: {to: "bob", parts: [{text: "x"}]}) { message { id: channelId } } }`)
	held := c.told("ann", `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:pay"}, object: {value: 1}}}]}) { proposalId } }`)
	var proposal struct{ ApplyPatches struct{ ProposalID string } }
	c.decode(held, &proposal)
	kiln := c.id("ann", `mutation { createScope(input: {title: "kiln"}) { scope { id } } }`)
	task, _ := c.asks("count", "")
	for _, row := range []struct {
		field, id, iri string
		entity         bool   // the object has a field entity
		unknown        string // the answer for the same id to another caller
	}{
		{"channel", lab, "urn:koine:channel:" + lab, true, "CHANNEL_NOT_FOUND id"},
		{"channel", direct, "urn:koine:channel:" + direct, true, "CHANNEL_NOT_FOUND id"},
		{"message", said, "urn:koine:message:" + said, true, "NOT_FOUND id"},
		{"scope", kiln, "urn:koine:scope:" + kiln, true, "SCOPE_NOT_FOUND id"},
		{"task", task, "urn:koine:task:" + task, true, "TASK_NOT_FOUND id"},
		{"proposal", proposal.ApplyPatches.ProposalID, kg.ProposalGraphPrefix + proposal.ApplyPatches.ProposalID, false, "NOT_FOUND id"},
		{"agent", "agent://ann", "agent://ann", false, ""},
		{"agent", "ann", "agent://ann", false, ""},
	} {
		own := row.id
		if row.field == "agent" {
			own = row.iri
		}
		for _, name := range []string{row.id, row.iri} {
			fields, want := "id", fmt.Sprintf(`{"%s":{"id":"%s"`, row.field, own)
			if row.entity {
				fields, want = "id entity { iri }", want+fmt.Sprintf(`,"entity":{"iri":"%s"}`, row.iri)
			}
			c.want(row.field+" "+name, c.told("ann", `{ %s(id: "%s") { %s } }`, row.field, name, fields), want+"}}")
			if row.unknown != "" {
				c.want(row.field+" "+name+" for others", c.refused("eve", `{ %s(id: "%s") { id } }`, row.field, name), row.unknown)
			}
		}
		// Agents are on record in a graph that administrators read.
		data := string(c.askAs("ann", []string{kg.RoleAdmin}, `{ entity(iri: "%s", view: {allGraphs: true}) { iri } }`, row.iri).Data)
		c.want("the entity "+row.iri, data, `{"entity":{"iri":"`+row.iri+`"}}`)
		for _, wrong := range []string{"urn:koine:channel:", "urn:koine:message:" + lab, "urn:koine:task:urn:koine:task:" + task} {
			if result := c.ask("ann", `{ %s(id: "%s") { id } }`, row.field, wrong); row.field != "agent" && len(result.Errors) != 1 {
				t.Errorf("%s(id: %q) is %s", row.field, wrong, result.Data)
			}
		}
	}

	// An agent is shown without a record, so its id leads back to it.
	c.want("an agent without a record", c.told("ann", `{ agent(id: "zoe") { id } node(id: "agent://zoe") { __typename id ... on Agent { name roles status } } }`),
		`{"agent":null,"node":{"__typename":"Agent","id":"agent://zoe","name":null,"roles":[],"status":null}}`)

	// A graph is named by its IRI, which is the entity's too.
	b := newPoliced(t, policy.Options{})
	p := set("p", 1)
	p.Quad.Graph = iri("g")
	b.update(p, add(iri("g"), iri("title"), kg.String("a graph")))
	for _, name := range []string{"ex:g", iri("g").Value()} {
		var got json.RawMessage
		b.dataAs(root, `{ graph(iri: "`+name+`") { iri } entity(iri: "`+name+`") { iri } }`, &got)
		if want := strings.ReplaceAll(`{"graph":{"iri":"G"},"entity":{"iri":"G"}}`, "G", iri("g").Value()); string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
