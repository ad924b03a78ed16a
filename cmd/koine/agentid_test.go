package main

import (
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// No protocol accepts an invalid agent id.
func TestAgentIDsAtEveryDoor(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	k.admin, _ = k.create(`{agentId: "root", roles: ["admin"], actFor: ["*"]}`)
	made := k.graphql(k.admin, `mutation { createChannel(input: {name: "lab"}) { channel { id } } }`)
	channel := channelID.FindStringSubmatch(made)
	if channel == nil {
		t.Fatal(made)
	}
	const patch = `{op: add, statement: {subject: {id: "urn:s"}, predicate: {id: "urn:p"}, object: {value: "x"}`
	graphQL := func(before, after string) func(string) string {
		return func(id string) string {
			return k.graphql(k.admin, "mutation { "+before+strconv.QuoteToASCII(id)+after+" }")
		}
	}
	local := t.TempDir()
	doors := map[string]func(id string) string{
		"keys create": func(id string) string {
			out, _ := exec.Command("koine", "keys", "create", "--data", local, "--agent", id).CombinedOutput()
			return string(out)
		},
		"createApiKey": graphQL(`createApiKey(input: {agentId: `, `}) { __typename }`),
		"actFor":       graphQL(`createApiKey(input: {agentId: "ann", actFor: [`, `]}) { __typename }`),
		"X-Agent-ID": func(id string) string {
			_, text := k.send(http.MethodPost, "/graphql", k.admin, `{"query":"{ me { id } }"}`, "X-Agent-ID", id)
			return text
		},
		"registration": func(id string) string {
			_, text := k.send(http.MethodPut, "/agents/"+url.PathEscape(id), k.admin, `{"name":"X"}`)
			return text
		},
		"createChannel": graphQL(`createChannel(input: {members: [{agentId: `, `}]}) { channel { id } }`),
		"addMember":     graphQL(`addChannelMember(input: {channelId: "`+channel[1]+`", agentId: `, `}) { __typename }`),
		"publish to":    graphQL(`publishMessage(input: {to: `, `, parts: [{text: "x"}]}) { __typename }`),
		"policy":        graphQL(`createGraph(input: {readers: [`, `]}) { revision }`),
		"sourceAgentId": graphQL(`applyPatches(input: {patches: [`+patch+`}}], sourceAgentId: `, `}) { success }`),
		"provenance":    graphQL(`applyPatches(input: {patches: [`+patch+`, provenance: {sourceAgentId: `, `}}}]}) { success }`),
	}
	meant := map[string]bool{"policy *": true, "policy role:admin": true, "actFor *": true} // all, and agents with a role
	for door, ask := range doors {
		for _, id := range []string{"*", "role:admin", "../x", "do\u202era", "do\u0301ra", "agent://dora/sub", "urn:koine:x", "chan:direct:x"} {
			refused := strings.Contains(ask(id), "is not an agent id")
			if want := !meant[door+" "+id]; refused != want {
				t.Errorf("%s with %+q: refused is %v: %s", door, id, refused, ask(id))
			}
		}
		if got := ask("dóra"); strings.Contains(got, "is not an agent id") || strings.Contains(got, `"errors"`) {
			t.Errorf("%s with an id that may be: %s", door, got)
		}
	}
}
