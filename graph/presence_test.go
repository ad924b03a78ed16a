package graph_test

import (
	"context"
	"testing"
	"time"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/policy"
	"koine/internal/presence"
	"koine/kg"
)

// newPresent is a bench with presence, which is written at once.
func newPresent(t *testing.T) (*bench, *presence.Tracker) {
	t.Helper()
	policies := policy.New(policy.Options{})
	tracker := presence.New(presence.Options{Settle: 1, WriteInterval: 1, AgentWriteInterval: 1})
	b := newBench(t, graph.Options{}, func(o *kg.Options) {
		o.Access = policies
		o.OnSystemChange = func(c *kg.Commit) {
			policies.Follow(c)
			tracker.Follow(c)
		}
	})
	if err := tracker.Load(t.Context(), b.store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tracker.Close)
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: testPrefixes(t), Presence: tracker}, graph.Options{})
	return b, tracker
}

type shownPresence struct {
	Status string
	Since  *time.Time
}

// A heartbeat reports the presence of an agent and its status; every caller sees it at the
// agent.
func TestHeartbeat(t *testing.T) {
	b, tracker := newPresent(t)
	var beat struct {
		Heartbeat struct{ Presence shownPresence }
	}
	b.dataAs(nobody, `mutation { heartbeat(input: {status: BUSY}) { presence { status since } } }`, &beat)
	since := beat.Heartbeat.Presence.Since
	if beat.Heartbeat.Presence.Status != "BUSY" || since == nil || !tracker.Get(nobody.ID).Since.Equal(*since) {
		t.Errorf("the heartbeat: %+v", beat)
	}
	other := kg.Principal{ID: "agent://eve", Method: "key"}
	var shown struct {
		Agent struct {
			Status   string
			Presence shownPresence
		}
		Agents struct {
			Nodes []struct {
				ID       string
				Presence shownPresence
			}
		}
	}
	const query = `{ agent(id: "dora") { status presence { status since } } agents { nodes { id presence { status since } } } }`
	b.dataAs(other, query, &shown)
	if p := shown.Agent.Presence; p.Status != "BUSY" || !p.Since.Equal(*since) || shown.Agent.Status != "ACTIVE" {
		t.Errorf("the agent: %+v", shown.Agent)
	}
	if len(shown.Agents.Nodes) != 1 || shown.Agents.Nodes[0].Presence.Status != "BUSY" {
		t.Errorf("the agents: %+v", shown.Agents)
	}
	b.dataAs(nobody, `mutation { heartbeat(input: {}) { presence { status since } } }`, &beat)
	if beat.Heartbeat.Presence.Status != "BUSY" || !beat.Heartbeat.Presence.Since.Equal(*since) {
		t.Errorf("one without a status: %+v", beat)
	}
	b.dataAs(nobody, `mutation { heartbeat(input: {status: OFFLINE}) { presence { status since } } }`, &beat)
	if beat.Heartbeat.Presence.Status != "OFFLINE" {
		t.Errorf("the last one: %+v", beat)
	}
	b.dataAs(root, `mutation { createApiKey(input: {agentId: "chen"}) { secret } }`, &struct{}{})
	b.dataAs(other, `{ agent(id: "chen") { presence { status since } } }`, &shown)
	if p := shown.Agent.Presence; p.Status != "OFFLINE" || p.Since != nil {
		t.Errorf("an agent that was never there: %+v", p)
	}
}

// A caller may report the presence of agents that it may act for, and of no others.
func TestHeartbeatForAnother(t *testing.T) {
	b, tracker := newPresent(t)
	beat := func(p kg.Principal, actor kg.AgentID) operation.Result {
		return b.engine.Execute(context.Background(), operation.Request{Query: `mutation { heartbeat(input: {}) { presence { status } } }`, Principal: p, Actor: actor})
	}
	if got := beat(root, "agent://dora"); len(got.Errors) > 0 || tracker.Get("agent://dora").Status != presence.Online || tracker.Get(root.ID).Status != presence.Offline {
		t.Errorf("for another: %v", got.Errors)
	}
	if got := beat(nobody, "agent://chen"); len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "SOURCE_FORBIDDEN" || tracker.Get("agent://chen").Status != presence.Offline {
		t.Errorf("without the right to: %v", got.Errors)
	}
}

// Without presence, none is reported.
func TestNoPresence(t *testing.T) {
	b := newBench(t, graph.Options{})
	if got := b.runAs(nobody, `mutation { heartbeat(input: {}) { presence { status } } }`); len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "NOT_FOUND" {
		t.Errorf("got %v", got.Errors)
	}
	b.dataAs(root, `mutation { createApiKey(input: {agentId: "chen"}) { secret } }`, &struct{}{})
	var shown struct {
		Agent struct{ Presence *shownPresence }
	}
	b.dataAs(nobody, `{ agent(id: "chen") { presence { status } } }`, &shown)
	if shown.Agent.Presence != nil {
		t.Errorf("got %+v", shown.Agent.Presence)
	}
}

// Written presence is statements like others: every admitted caller matches and follows
// them.
func TestPresenceAsStatements(t *testing.T) {
	b, _ := newPresent(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	sub, err := b.engine.Subscribe(ctx, operation.Request{Principal: nobody, Query: `subscription { statementChanged(where: {predicate: {eq: "urn:koine:vocab:presence"}}, view: {graphs: ["urn:koine:graph:journal:presence"]}) {
		... on StatementChange { op statement { subject { iri } object { ... on Literal { value } } } previous { object { ... on Literal { value } } } } } }`})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	f := tailOf(t, sub, cancel)
	b.dataAs(root, `mutation { heartbeat(input: {status: BUSY}) { presence { status } } }`, &struct{}{})
	f.want(`{"statementChanged":{"op":"add","statement":{"subject":{"iri":"agent://root"},"object":{"value":"BUSY"}},"previous":[]}}`)
	b.wantAs(nobody, `{ match(pattern: {triples: [{s: "?agent", p: "urn:koine:vocab:presence", o: "?status"}]}, view: {graphs: ["urn:koine:graph:journal:presence"]}) { nodes { values } } }`,
		`{"match":{"nodes":[{"values":["agent://root","BUSY"]}]}}`)
	b.wantAs(nobody, `{ match(pattern: {triples: [{s: "?agent", p: "urn:koine:vocab:presence", o: "?status"}]}) { nodes { values } } }`, `{"match":{"nodes":[]}}`)
	b.dataAs(root, `mutation { heartbeat(input: {status: OFFLINE}) { presence { status } } }`, &struct{}{})
	f.want(`{"statementChanged":{"op":"replace","statement":{"subject":{"iri":"agent://root"},"object":{"value":"OFFLINE"}},"previous":[{"object":{"value":"BUSY"}}]}}`)
}
