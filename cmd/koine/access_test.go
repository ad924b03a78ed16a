package main

import (
	"strings"
	"testing"
)

// The streams of a server, each by its own protocol, end when an owner withdraws their
// access; nothing hidden is delivered by then.
func TestStreamsEndWhenSightChanges(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	dora, _ := k.create(`{agent: "dora"}`)
	eve, _ := k.create(`{agent: "eve", roles: ["guest"]}`)
	if got := k.graphql(dora, `mutation { createGraph(input: {iri: "agent://dora/notes", readers: ["role:guest"]}) { revision } }`); !strings.Contains(got, "revision") {
		t.Fatal(got)
	}
	last := map[string]func() string{
		"knowledge/subscribe": k.stream("POST", "/a2a", eve, followCall),
		"changes":             k.stream("GET", "/changes", eve, ""),
	}
	for _, change := range []string{
		`setGraphPolicy(input: {iri: "agent://dora/notes", readers: []}) { revision }`,
		`applyPatches(input: {patches: [{op: add, statement: {subject: {id: "urn:s"}, predicate: {id: "urn:p"}, object: {value: "secret"}, graph: "agent://dora/notes"}}]}) { revision }`,
	} {
		if got := k.graphql(dora, `mutation { `+change+` }`); strings.Contains(got, "errors") {
			t.Fatal(got)
		}
	}
	for name, end := range last {
		if got := end(); !strings.Contains(got, "ACCESS_CHANGED") || strings.Contains(got, "secret") {
			t.Errorf("%s: ended with %s", name, got)
		}
	}
}
