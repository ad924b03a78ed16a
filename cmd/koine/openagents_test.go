package main

import (
	"net/http"
	"strings"
	"testing"
)

// whoLooksAtAgents requests everything readable about agent://bot, with part of the answer
// to other callers.
var whoLooksAtAgents = []struct{ method, path, body, told string }{
	{"GraphQL", "", `{ agents { nodes { id name owner: ownerId roles status createdAt statementCount presence { status } registration { description capabilities limits metadata other registeredAt } } } }`, `"description":"for all"`},
	{"GraphQL", "", `{ agent(id: "bot") { name statementCount } }`, `{"name":"Bot","statementCount":null}`},
	{"GraphQL", "", `{ agents(capability: "weather") { nodes { id } } }`, `"id":"agent://bot"`},
	{"GET", "/agents", "", `"id":"bot"`},
	{"GET", "/agents/bot", "", `"description":"for all"`},
	{"GET", "/agents/bot/.well-known/agent-card.json", "", `"for all"`},
	{"GraphQL", "", `{ match(first: 100, pattern: {triples: [{s: "agent://bot", p: "?p", o: "?o"}]}, view: {allGraphs: true}) { nodes { values } } }`, `for all`},
	{"GET", "/data?format=nq&graph=urn:koine:graph:agents", "", `for all`},
	// Not for other callers.
	{"GET", "/agents/bot/webhook", "", `SOURCE_FORBIDDEN`},
	{"GET", "/agents/bot/upstream", "", `AGENT_NOT_FOUND`},
	{"GET", "/data?format=nq&graph=urn:koine:graph:journal:upstreams", "", `GRAPH_NOT_FOUND`},
	{"GraphQL", "", `{ apiKeys { nodes { id } } }`, `PERMISSION_DENIED`},
	{"GET", "/data?format=nq&graph=urn:koine:graph:journal:mailhooks", "", `GRAPH_NOT_FOUND`},
	{"GET", "/data?format=nq&graph=urn:koine:graph:system", "", `GRAPH_NOT_FOUND`},
	{"GraphQL", "", `{ graph(iri: "urn:koine:graph:system") { iri } }`, `"graph":null`},
	{"GraphQL", "", `{ graph(iri: "urn:koine:graph:journal:mailhooks") { iri } }`, `"graph":null`},
	{"GraphQL", "", `{ statements(view: {graphs: ["urn:koine:graph:system", "urn:koine:graph:journal:mailhooks", "urn:koine:graph:journal:upstreams"]}) { totalCount } }`, `"totalCount":0`},
}

// All admitted callers read registered agents, and no others. Their addresses and their
// keys are hidden.
func TestAgentsAreForEverybodyLetIn(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	bot, botKey := k.create(`{agentId: "bot"}`)
	eve, _ := k.create(`{agentId: "eve"}`)
	if status, text := k.send(http.MethodPut, "/agents/bot", bot, `{"name":"Bot","description":"for all","capabilities":["weather"],"limits":{"tasks":3}}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	const hook = `{"url":"https://hook.invalid/secret-path","token":"secret-token","authentication":{"scheme":"Bearer","credentials":"secret-credentials"}}`
	if status, text := k.send(http.MethodPut, "/agents/bot/webhook", bot, hook); status != http.StatusOK {
		t.Fatal(status, text)
	}
	if status, text := k.send(http.MethodPut, "/agents/bot/upstream", k.admin, hook[:strings.Index(hook, `"token"`)]+hook[strings.Index(hook, `"authentication"`):]); status != http.StatusOK {
		t.Fatal(status, text)
	}
	for _, row := range whoLooksAtAgents {
		got := k.overhear(eve, row.method, row.path, row.body)
		if !strings.Contains(got, row.told) {
			t.Errorf("%s %s %s: eve is told %s, want %s", row.method, row.path, row.body, got, row.told)
		}
		for _, secret := range []string{"secret-", "hook.invalid", "mailHook", botKey, "urn:koine:vocab:key"} {
			if strings.Contains(strings.ReplaceAll(got, row.path, ""), secret) {
				t.Errorf("%s %s %s: eve is told of %q: %s", row.method, row.path, row.body, secret, got)
			}
		}
		if path := row.path; row.method == "GET" && !strings.HasSuffix(path, "agent-card.json") {
			if status, text := k.send(http.MethodGet, path, "", ""); status != http.StatusUnauthorized || strings.Contains(text, "for all") {
				t.Errorf("who is not let in gets of %s %d %s", path, status, text)
			}
		}
	}
	if text := k.graphql("", `{ agents { nodes { id } } }`); !strings.Contains(text, "UNAUTHENTICATED") || strings.Contains(text, "bot") {
		t.Errorf("who is not let in is told %s", text)
	}
	// It exists, sealed.
	kept := k.overhear(k.admin, "GET", "/data?format=nq&graph=urn:koine:graph:journal:mailhooks", "") + k.overhear(k.admin, "GET", "/data?format=nq&graph=urn:koine:graph:journal:upstreams", "")
	if !strings.Contains(kept, "urn:koine:vocab:mailHook") || !strings.Contains(kept, "urn:koine:vocab:upstream") || strings.Contains(kept, "secret-") || strings.Contains(kept, "hook.invalid") {
		t.Errorf("an administrator reads %s", kept)
	}
}
