package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"koine/cmd/koine/internal/cli"
)

// The streams of a server, each by its own protocol, end when an owner withdraws their
// access; nothing hidden is delivered by then.
func TestStreamsEndWhenSightChanges(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	dora, _ := k.create(`{agentId: "dora"}`)
	eve, _ := k.create(`{agentId: "eve", roles: ["guest"]}`)
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
	// The operator finds the change that ended them.
	line := regexp.MustCompile(`level=INFO msg="stream ended" transport=(\S+) reason=RESYNC cause=ACCESS_CHANGED request=\S+ agent=agent://eve method=(\S+) position=\S+ revision=\d+\n`)
	for end := time.Now().Add(cli.RequestTimeout); len(line.FindAllString(k.s.log.String(), -1)) < len(last) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	var ended []string
	for _, parts := range line.FindAllStringSubmatch(k.s.log.String(), -1) {
		ended = append(ended, parts[1]+" "+parts[2])
	}
	if slices.Sort(ended); !slices.Equal(ended, []string{"changes changes", "json-rpc knowledge/subscribe"}) {
		t.Errorf("logged %q", ended)
	}
	_, metrics := k.send("GET", "/metrics", k.admin, "")
	for _, want := range []string{`koine_streams_ended_total{reason="RESYNC",transport="changes"} 1`, `koine_rpc_calls_total{code="-32012",method="knowledge/subscribe"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no metric %s", want)
		}
	}
	audit := k.graphql(k.admin, `{ audit(kinds: [POLICY, ADMIN, CHANNEL], since: "2026-01-01T00:00:00Z", until: "2100-01-01T00:00:00Z", first: 1) { nodes { time kind revision principal: principalId justification } } }`)
	found := regexp.MustCompile(`"kind":"POLICY","revision":(\d+),"principal":"agent://dora"`).FindStringSubmatch(audit)
	if found == nil {
		t.Fatalf("audit: %s", audit)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	if got := k.graphql(k.admin, fmt.Sprintf(`{ changes(since: %d, until: %d, view: {allGraphs: true}) { nodes { op statement { subject { id } predicate object { ... on Literal { value } } graph } } } }`, n-1, n)); !strings.Contains(got, `"op":"remove"`) || !strings.Contains(got, `"predicate":"urn:koine:vocab:graphReader","object":{"value":"role:guest"}`) {
		t.Errorf("the change is %s", got)
	}
}
