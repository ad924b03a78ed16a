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
		skills: [{id: "s", name: "S", own: 1}], parameters: {a: 1}, auth: {b: 2}, limits: {c: 3}, metadata: {big: 9007199254740993}, own: [true]}}) { agent {
		id name status registration { description version role endpoint capabilities skills parameters auth limits metadata other updatedAt } } } }`,
		`{"registerAgent":{"agent":{"id":"agent://dora","name":"Dora","status":"ACTIVE","registration":{"description":"d","version":"1","role":"r","endpoint":"http://x/",
		"capabilities":["weather"],"skills":[{"id":"s","name":"S","own":1}],"parameters":{"a":1},"auth":{"b":2},"limits":{"c":3},"metadata":{"big":9007199254740993},
		"other":{"own":[true]},"updatedAt":null}}}}`)
	want(root, `mutation { registerAgent(input: {agentId: "bot", card: {capabilities: ["weather"]}}) { agent { name registration { description skills metadata other } } } }`,
		`{"registerAgent":{"agent":{"name":null,"registration":{"description":null,"skills":[],"metadata":null,"other":null}}}}`)
	const found = `{ agents(capability: "weather") { nodes { id } } none: agents(capability: "none") { nodes { id } } page: agents(capability: "weather", last: 1) { nodes { id } } }`
	want(nobody, found, `{"agents":{"nodes":[{"id":"agent://bot"},{"id":"agent://dora"}]},"none":{"nodes":[]},"page":{"nodes":[{"id":"agent://dora"}]}}`)
	want(nobody, `mutation { updateAgent(input: {agentId: "dora", name: "D", card: {version: "2", own: null, limits: {n: 9007199254740993}}}) { agent { name registration { version other limits } } } }`,
		`{"updateAgent":{"agent":{"name":"D","registration":{"version":"2","other":null,"limits":{"n":9007199254740993}}}}}`)
	want(nobody, `mutation { deregisterAgent(input: {agentId: "dora"}) { agent { name registration { version } } } }`, `{"deregisterAgent":{"agent":{"name":"D","registration":null}}}`)
	want(nobody, `{ agents(capability: "weather") { nodes { id } } agent(id: "dora") { id registration { version } } }`,
		`{"agents":{"nodes":[{"id":"agent://bot"}]},"agent":{"id":"agent://dora","registration":null}}`)
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
		`mutation { registerAgent(input: {card: {}}) { agent { id } } }`, `mutation { deregisterAgent(input: {agentId: "dora"}) { agent { id } } }`, `{ agents(capability: "x") { nodes { id } } }`,
		`mutation { updateAgent(input: {agentId: "dora", card: {}}) { agent { id } } }`,
	} {
		check(query, "NOT_FOUND", "") // no agent can register here
	}
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: testPrefixes(t), Agents: agents.NewDirectory(b.store, agents.DirectoryOptions{})}, graph.Options{})
	for _, row := range []struct{ query, code, field string }{
		{`mutation { registerAgent(input: {card: 1}) { agent { id } } }`, "INVALID", ""},
		{`mutation { registerAgent(input: {card: {capabilities: 1}}) { agent { id } } }`, "INVALID", "input.card.capabilities"},
		{`mutation { registerAgent(input: {card: {endpoint: "x"}}) { agent { id } } }`, "INVALID", "input.card.endpoint"},
		{`mutation { registerAgent(input: {agentId: "dora", card: {id: "bot"}}) { agent { id } } }`, "INVALID", "input.agentId"},
		{`mutation { registerAgent(input: {agentId: "bot", card: {}}) { agent { id } } }`, "PERMISSION_DENIED", "input.agentId"},
		{`mutation { updateAgent(input: {agentId: "dora", card: {}}) { agent { id } } }`, "AGENT_NOT_FOUND", "input.agentId"},
		{`mutation { updateAgent(input: {agentId: "dora", card: 1}) { agent { id } } }`, "INVALID", "input.card"},
		{`mutation { deregisterAgent(input: {agentId: "dora"}) { agent { id } } }`, "AGENT_NOT_FOUND", "input.agentId"},
		{`{ agents(capability: "") { nodes { id } } }`, "INVALID", "capability"},
	} {
		check(row.query, row.code, row.field)
	}
}
