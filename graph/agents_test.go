package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"koine/graph"
	"koine/internal/agents"
	"koine/internal/operation"
	"koine/kg"
)

// An agent registers, is found by its capabilities, changes its card, and deregisters.
func TestRegistrationOfAgents(t *testing.T) {
	b := newBench(t, graph.Options{})
	self := &agents.Record{ID: kg.System, Name: "koine", Registration: &agents.Registration{Capabilities: []string{"weather"}}}
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: testPrefixes(t), Agents: agents.NewDirectory(b.store, agents.DirectoryOptions{Self: self})}, graph.Options{})
	want := func(p kg.Principal, query, answer string) {
		t.Helper()
		var got json.RawMessage
		b.dataAs(p, query, &got)
		var wanted bytes.Buffer
		if err := json.Compact(&wanted, []byte(answer)); err != nil {
			t.Fatal(err)
		}
		if string(got) != wanted.String() {
			t.Errorf("%s:\ngot  %s\nwant %s", query, got, &wanted)
		}
	}
	want(nobody, `mutation { registerAgent(input: {card: {name: "Dora", description: "d", version: "1", role: "r", endpoint: "http://x/", capabilities: ["weather"],
		skills: [{id: "s", name: "S", own: 1}], parameters: {a: 1}, auth: {b: 2}, limits: {c: 3}, metadata: {big: 9007199254740993}, own: [true]}}) {
		id name status registration { description version role endpoint capabilities skills parameters auth limits metadata other updatedAt } } }`,
		`{"registerAgent":{"id":"agent://dora","name":"Dora","status":"ACTIVE","registration":{"description":"d","version":"1","role":"r","endpoint":"http://x/",
		"capabilities":["weather"],"skills":[{"id":"s","name":"S","own":1}],"parameters":{"a":1},"auth":{"b":2},"limits":{"c":3},"metadata":{"big":9007199254740993},
		"other":{"own":[true]},"updatedAt":null}}}`)
	want(root, `mutation { registerAgent(input: {id: "bot", card: {capabilities: ["weather"]}}) { name registration { description skills metadata other } } }`,
		`{"registerAgent":{"name":null,"registration":{"description":null,"skills":[],"metadata":null,"other":null}}}`)
	const found = `{ agents(capability: "weather") { id } none: agents(capability: "none") { id } page: agents(capability: "weather", first: 1, after: "bot") { id } }`
	want(nobody, found, `{"agents":[{"id":"agent://bot"},{"id":"agent://dora"}],"none":[],"page":[{"id":"agent://dora"}]}`)
	want(nobody, `mutation { updateAgent(input: {id: "dora", name: "D", card: {version: "2", own: null, limits: {n: 9007199254740993}}}) { name registration { version other limits } } }`,
		`{"updateAgent":{"name":"D","registration":{"version":"2","other":null,"limits":{"n":9007199254740993}}}}`)
	want(nobody, `mutation { deregisterAgent(id: "dora") { name registration { version } } }`, `{"deregisterAgent":{"name":"D","registration":null}}`)
	want(nobody, `{ agents(capability: "weather") { id } agent(id: "dora") { id registration { version } } }`,
		`{"agents":[{"id":"agent://bot"}],"agent":{"id":"agent://dora","registration":null}}`)
}

func TestRegistrationsThatAreRefused(t *testing.T) {
	b := newBench(t, graph.Options{})
	check := func(query, code, field string) {
		t.Helper()
		result := b.engine.Execute(context.Background(), operation.Request{Query: query, Principal: nobody})
		if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != code || field != "" && result.Errors[0].Extensions["field"] != field {
			t.Errorf("%s: got %v, want %s at %s", query, result.Errors, code, field)
		}
	}
	for _, query := range []string{
		`mutation { registerAgent(input: {card: {}}) { id } }`, `mutation { deregisterAgent(id: "dora") { id } }`, `{ agents(capability: "x") { id } }`,
		`mutation { updateAgent(input: {id: "dora", card: {}}) { id } }`,
	} {
		check(query, "NOT_FOUND", "") // no agent can register here
	}
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: testPrefixes(t), Agents: agents.NewDirectory(b.store, agents.DirectoryOptions{})}, graph.Options{})
	for _, row := range []struct{ query, code, field string }{
		{`mutation { registerAgent(input: {card: 1}) { id } }`, "INVALID", ""},
		{`mutation { registerAgent(input: {card: {capabilities: 1}}) { id } }`, "INVALID", "input.card.capabilities"},
		{`mutation { registerAgent(input: {card: {endpoint: "x"}}) { id } }`, "INVALID", "input.card.endpoint"},
		{`mutation { registerAgent(input: {id: "dora", card: {id: "bot"}}) { id } }`, "INVALID", "input.id"},
		{`mutation { registerAgent(input: {id: "bot", card: {}}) { id } }`, "PERMISSION_DENIED", "input.id"},
		{`mutation { updateAgent(input: {id: "dora", card: {}}) { id } }`, "AGENT_NOT_FOUND", "input.id"},
		{`mutation { updateAgent(input: {id: "dora", card: 1}) { id } }`, "INVALID", "input.card"},
		{`mutation { deregisterAgent(id: "dora") { id } }`, "AGENT_NOT_FOUND", "id"},
		{`{ agents(capability: "") { id } }`, "INVALID", "capability"},
	} {
		check(row.query, row.code, row.field)
	}
}
