package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// A search that is followed tells each entity and message once over servers that are killed, to
// those who may read it, and a match finds the same.
func TestSearchChangedAcrossServers(t *testing.T) {
	dir := t.TempDir()
	s, url := startServerOn(t, dir)
	call := func(name, method, params string) string {
		t.Helper()
		_, text := asAgent(t, url+"/a2a", name, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
		if strings.Contains(text, `"error"`) {
			t.Fatalf("%s: %s", method, text)
		}
		return text
	}
	add := func(name, text string) {
		t.Helper()
		call("ann", "knowledge/update", fmt.Sprintf(`{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:x:%s"},"predicate":{"id":"urn:x:note"},"object":{"value":%q}}}]}`, name, text))
	}
	follow := func(name, resume string) func() (hit, position string) {
		next := streamOf(t, url+"/a2a", name, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":%q}}`,
			`subscription { searchChanged(query: "lake", resume: "`+resume+`") { ... on SearchChange { hits { entity { iri } } position } } }`))
		return func() (string, string) {
			t.Helper()
			for {
				line := next()
				var e struct {
					Result struct {
						ChangeMetadata struct {
							Data *struct {
								SearchChanged struct {
									Hits     []struct{ Entity struct{ Iri string } }
									Position string
								}
							}
						}
					}
				}
				if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data:")), &e); err != nil {
					t.Fatal(line, err)
				}
				if d := e.Result.ChangeMetadata.Data; d != nil { // with the last statement of the commit
					if len(d.SearchChanged.Hits) != 1 {
						t.Fatal(line)
					}
					return d.SearchChanged.Hits[0].Entity.Iri, d.SearchChanged.Position
				}
			}
		}
	}
	var channel struct {
		Result struct{ Channel struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(call("ann", "channels/create", `{"name":"lab","members":[{"principalId":"bob"}]}`)), &channel); err != nil {
		t.Fatal(err)
	}
	positions := map[string]string{"bob": "earliest", "eve": "earliest"}
	for round := range 3 {
		entity := fmt.Sprintf("lake%d", round)
		add("other", fmt.Sprintf("a river %d", round))
		add(entity, "A lake")
		call("ann", "channels/publish", fmt.Sprintf(`{"channelId":%q,"parts":[{"text":"the lake of round %d"}]}`, channel.Result.Channel.ID, round))
		add(entity+"-last", "The lakes")
		if round == 1 { // before anybody has read of it
			s, url = startedAgain(t, s, os.Kill, dir)
		}
		for name := range positions {
			next := follow(name, positions[name])
			want := []string{"urn:x:" + entity, "urn:koine:message:", "urn:x:" + entity + "-last"}
			if name == "eve" {
				want = []string{want[0], want[2]}
			}
			for _, prefix := range want {
				var hit string
				if hit, positions[name] = next(); !strings.HasPrefix(hit, prefix) {
					t.Fatalf("round %d: %s is told %s, want %s", round, name, hit, prefix)
				}
			}
			answer := call(name, "knowledge/query", fmt.Sprintf(`{"query":%q}`, `{ match(pattern: {text: {var: "x", query: "lake"}}, view: {allGraphs: true}) { totalCount } }`))
			if want := fmt.Sprintf(`"totalCount":%d`, (round+1)*len(want)); !strings.Contains(answer, want) {
				t.Errorf("round %d: the match of %s is %s, want %s", round, name, answer, want)
			}
		}
		s, url = startedAgain(t, s, os.Kill, dir)
	}
}
