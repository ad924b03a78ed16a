package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/graph"
	"koine/graph/limit"
	"koine/kg"
)

// A failing field of a channel or message is null, and fails alone: its error has the path
// to it, at any place of the channel in the answer.
func TestFieldsOfChannelsFailAlone(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := c.lab("PRIVATE")
	first := c.say("ann", id, "hello", "")
	c.say("ann", id, "again", "")
	const bad = `messages(sinceSequence: 1, sinceTime: "2026-01-01T00:00:00Z") { nodes { text } }`
	const all = `entities(where: {type: {eq: "koine:Message"}}, view: {allGraphs: true})`
	for _, row := range []struct{ name, query, data, errors string }{
		{"of a channel", `{ channel(id: "CHANNEL") { name ` + bad + ` } }`,
			`{"channel":{"name":"lab","messages":null}}`, `channel.messages INVALID sinceTime`},
		{"beside one that is good", `{ channel(id: "CHANNEL") { bad: ` + bad + ` messages(first: 1) { nodes { text } } } }`,
			`{"channel":{"bad":null,"messages":{"nodes":[{"text":"hello"}]}}}`, `channel.bad INVALID sinceTime`},
		{"of a message", `{ message(id: "MESSAGE") { text replies(first: 0) { nodes { text } } } }`,
			`{"message":{"text":"hello","replies":null}}`, `message.replies INVALID first`},
		{"in a list", `{ channel(id: "CHANNEL") { messages { nodes { text replies(first: 0) { nodes { text } } } } } }`,
			`{"channel":{"messages":{"nodes":[{"text":"hello","replies":null},{"text":"again","replies":null}]}}}`,
			`channel.messages.nodes[0].replies INVALID first; channel.messages.nodes[1].replies INVALID first`},
		{"what it asserts", `{ message(id: "MESSAGE") { text facts(first: 1001) { nodes { predicate } } } }`,
			`{"message":{"text":"hello","facts":null}}`, `message.facts LIMIT_EXCEEDED <nil>`},
		{"of a channel that is an entity", `{ it: entity(iri: "urn:koine:channel:CHANNEL", view: {allGraphs: true}) { label: value(predicate: "koine:channelName") asChannel { name ` + bad + ` } } }`,
			`{"it":{"label":"lab","asChannel":{"name":"lab","messages":null}}}`, `it.asChannel.messages INVALID sinceTime`},
		{"alone in it", `{ entity(iri: "urn:koine:channel:CHANNEL", view: {allGraphs: true}) { asChannel { ` + bad + ` } } }`,
			`{"entity":{"asChannel":{"messages":null}}}`, `entity.asChannel.messages INVALID sinceTime`},
		{"of messages that are entities", `{ ` + all + ` { nodes { m: asMessage { text replies(first: 0) { nodes { text } } } } } }`,
			`{"entities":{"nodes":[{"m":{"text":"hello","replies":null}},{"m":{"text":"again","replies":null}}]}}`,
			`entities.nodes[0].m.replies INVALID first; entities.nodes[1].m.replies INVALID first`},
		{"in an entity in a message in an entity", `{ ` + all + ` { nodes { asMessage { text entity { asMessage { replies(first: 0) { nodes { text } } } } } } } }`,
			`{"entities":{"nodes":[{"asMessage":{"text":"hello","entity":{"asMessage":{"replies":null}}}},{"asMessage":{"text":"again","entity":{"asMessage":{"replies":null}}}}]}}`,
			`entities.nodes[0].asMessage.entity.asMessage.replies INVALID first; entities.nodes[1].asMessage.entity.asMessage.replies INVALID first`},
		{"under a budget", `query @budget(maxTokens: 2000) { channel(id: "CHANNEL") { name ` + bad + ` } }`,
			`{"channel":{"name":"lab","messages":null}}`, `channel.messages INVALID sinceTime`},
	} {
		result := c.ask("ann", "%s", strings.NewReplacer("CHANNEL", id, "MESSAGE", first).Replace(row.query))
		var errs []string
		for _, e := range result.Errors {
			errs = append(errs, fmt.Sprintf("%s %v %v", e.Path, e.Extensions["code"], e.Extensions["field"]))
		}
		slices.Sort(errs) // the fields of a list are read at once
		c.want(row.name, string(result.Data), row.data)
		c.want(row.name+", errors", strings.Join(errs, "; "), row.errors)
	}
	refused := c.ask("ann", `query @budget(maxTokens: 2000) { entity(iri: "urn:koine:channel:%s", view: {allGraphs: true}) { asChannel { name `+bad+` } } }`, id)
	c.want("inside of what is given whole", string(refused.Data), `{"entity":{"asChannel":{"name":"lab","messages":null}}}`)
	if len(refused.Errors) != 1 {
		t.Errorf("got %v", refused.Errors)
	}
}

// An answer in which very many objects have failed has failed.
func TestManyFailures(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	id := channel.ID(c.lab("PRIVATE"))
	by := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	for n := 1; n <= 101; n++ {
		if _, err := c.service.Publish(t.Context(), by, channels.Publication{Channel: id, Parts: []json.RawMessage{[]byte(`{"text":"x"}`)}}); err != nil {
			t.Fatal(err)
		}
		if n < 100 {
			continue
		}
		result := c.ask("ann", `{ entities(where: {type: {eq: "koine:Message"}}, view: {allGraphs: true}, first: 200) { nodes { asMessage { replies(first: 0) { nodes { text } } } } } }`)
		if whole := n > 100; whole != (len(result.Errors) == 2 && result.Errors[1].Extensions["limit"] == "errors" && string(result.Data) == `{"entities":null}`) || !whole && len(result.Errors) != 100 {
			t.Errorf("%d failures: %d errors and %.200s", n, len(result.Errors), result.Data)
		}
	}
}

// A field of an entity or a statement that cannot be planned fails alone, in each
// object; one that must not be null fails what contains it.
func TestPlannedFieldsFailAlone(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	for _, row := range []struct{ query, data, errors string }{
		{`{ entity(iri: "ex:ada") { x: value(predicate: "no iri") y: value(predicate: "ex:name") } }`, `{"entity":{"x":null,"y":"Ada Lovelace"}}`, `entity.x 1:27`},
		{`{ entity(iri: "ex:ada") { out(first: -1) { totalCount } label } revision }`, `{"entity":null,"revision":4}`, `entity.out 1:27`},
		{`{ entities(where: {iri: {in: ["ex:ada", "ex:bob"]}}) { nodes { value(predicate: "ex:name", path: "ex:name") } } }`,
			`{"entities":{"nodes":[{"value":null},{"value":null}]}}`, `entities.nodes[0].value 1:64 entities.nodes[1].value 1:64`},
		{`query @budget(maxBytes: 1000) { entities(where: {iri: {in: ["ex:ada", "ex:bob"]}}) { edges { node { value(predicate: "ex:name", path: "ex:name") } } } }`,
			`{"entities":{"edges":[{"node":{"value":null}},{"node":{"value":null}}]}}`, `entities.edges[0].node.value 1:101 entities.edges[1].node.value 1:101`},
		{`{ statements(where: {predicate: {eq: "ex:name"}}, first: 1) { nodes { subject { value(path: "(") } predicate } } }`,
			`{"statements":{"nodes":[{"subject":{"value":null},"predicate":"https://example.org/name"}]}}`, `statements.nodes[0].subject.value 1:81`},
	} {
		r := b.execute(row.query, "")
		var errs []string
		for _, e := range r.Errors {
			errs = append(errs, fmt.Sprintf("%s %d:%d", e.Path, e.Locations[0].Line, e.Locations[0].Column))
		}
		if got := strings.Join(errs, " "); got != row.errors || string(r.Data) != row.data {
			t.Errorf("%s:\n got %s %s\nwant %s %s", row.query, r.Data, got, row.data, row.errors)
		}
	}
}
