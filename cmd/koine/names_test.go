package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Every protocol with updates refuses a name with an unknown prefix in every part of an add
// and of a replace, with the part and the nearest name, and accepts a removal of it.
func TestUnknownPrefixesAtEveryDoor(t *testing.T) {
	_, url := startServer(t, "--demo")
	k := &kit{t, url + "/a2a"}
	channel := k.call("channels/create", `{"name":"room"}`)["channel"].(object)["id"].(string)
	graphql := func(query string, variables string) string {
		response, err := http.Post(url+"/graphql", "application/json", strings.NewReader(fmt.Sprintf(`{"query":%q,"variables":%s}`, query, variables)))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rpc := func(method, params string) string {
		result, failure := k.ask(method, params)
		text, err := json.Marshal([]object{result, failure})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	doors := map[string]func(op, patch string) string{
		"knowledge/update": func(_, patch string) string { return rpc("knowledge/update", `{"mutations":[`+patch+`]}`) },
		"applyPatches": func(_, patch string) string {
			return graphql(`mutation($p: [PatchInput!]!) { applyPatches(input: {patches: $p}) { success } }`, `{"p":[`+patch+`]}`)
		},
		"channels/publish": func(_, patch string) string {
			return rpc("channels/publish", fmt.Sprintf(`{"channelId":%q,"parts":[{"type":"text","text":"x"}],"patches":[%s]}`, channel, patch))
		},
		"publishMessage": func(_, patch string) string {
			return graphql(`mutation($p: [PatchInput!]!) { publishMessage(input: {channelId: "`+channel+`", parts: [{type: "text", text: "x"}], patches: $p}) { success } }`, `{"p":[`+patch+`]}`)
		},
		"data part": func(_, patch string) string {
			return rpc("SendMessage", fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"mutations":[%s]}}]}}`, patch))
		},
	}
	parts := map[string]string{
		"subject":      `{"subject":{"id":"labb:s"},"predicate":{"id":"lab:p"},"object":{"value":1}}`,
		"predicate":    `{"subject":{"id":"lab:s"},"predicate":{"id":"labb:p"},"object":{"value":1}}`,
		"object":       `{"subject":{"id":"lab:s"},"predicate":{"id":"lab:p"},"object":{"id":"labb:o"}}`,
		"graph":        `{"subject":{"id":"lab:s"},"predicate":{"id":"lab:p"},"object":{"value":1},"graph":"labb:g"}`,
		"subject.type": `{"subject":{"id":"lab:s","type":"labb:T"},"predicate":{"id":"lab:p"},"object":{"value":1}}`,
		"object.type":  `{"subject":{"id":"lab:s"},"predicate":{"id":"lab:p"},"object":{"id":"lab:o","type":"labb:T"}}`,
	}
	if answer := graphql(`mutation { createGraph(input: {iri: "labb:g"}) { graph { iri } } }`, `{}`); !strings.Contains(answer, "UNKNOWN_PREFIX") || !strings.Contains(answer, "did you mean lab:") {
		t.Errorf("createGraph: %s", answer)
	}
	doors["knowledge/update"]("add", `{"op":"add","statement":{"subject":{"id":"lab:s"},"predicate":{"id":"lab:bare"},"object":{"value":1}}}`)
	for name, door := range doors {
		if answer := door("add", `{"op":"add","statement":{"subject":{"id":"lab:s"},"predicate":{"id":"bare"},"object":{"value":1}}}`); !strings.Contains(answer, "did you mean lab:bare?") {
			t.Errorf("%s, a predicate without a prefix: %s", name, answer)
		}
		for part, statement := range parts {
			for _, op := range []string{"add", "replace", "remove"} {
				answer := door(op, fmt.Sprintf(`{"op":%q,"statement":%s}`, op, statement))
				refused := strings.Contains(answer, "UNKNOWN_PREFIX") || name == "data part" && strings.Contains(answer, "neither a registered prefix")
				if refused != (op != "remove") {
					t.Errorf("%s, %s of %s: %s", name, op, part, answer)
					continue
				}
				if op == "remove" {
					continue
				}
				for _, want := range []string{"did you mean lab:", "statement." + part} {
					if !strings.Contains(answer, want) {
						t.Errorf("%s, %s of %s: no %q in %s", name, op, part, want, answer)
					}
				}
			}
		}
		answer := door("add", `{"op":"add","statement":{"subject":{"id":"lab:s"},"predicate":{"id":"lab:p"},"object":{"value":"1","type":"labb:int"}}}`)
		if !strings.Contains(answer, "neither a registered prefix") {
			t.Errorf("%s, the datatype of a literal: %s", name, answer)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		request, err := http.NewRequestWithContext(t.Context(), method, url+"/data?graph=https%3A%2F%2Fg.example%2F"+method, strings.NewReader("<foaff:s> <urn:p> <foaff:o> .\n"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/n-triples")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var report struct {
			Statements   int
			UnknownNames []struct {
				Prefix  string
				Count   int
				Nearest []string
			}
		}
		err = json.NewDecoder(response.Body).Decode(&report)
		response.Body.Close()
		if err != nil || report.Statements != 1 || len(report.UnknownNames) != 1 || report.UnknownNames[0].Count != 2 ||
			report.UnknownNames[0].Prefix != "foaff" || response.Header.Get("Koine-Unknown-Names") != "2" {
			t.Errorf("%s /data: %d %+v %v, want one statement with two names that are told", method, response.StatusCode, report, err)
		}
	}
	// Statements with existing names are accepted.
	if answer := doors["knowledge/update"]("add", `{"op":"add","statement":{"subject":{"id":"foaff:s"},"predicate":{"id":"lab:p"},"object":{"value":1}}}`); !strings.Contains(answer, "Verified") {
		t.Errorf("of what stands: %s", answer)
	}
	if answer := doors["knowledge/update"]("add", `{"op":"add","statement":{"subject":{"id":"foaff:other"},"predicate":{"id":"lab:p"},"object":{"value":1}}}`); !strings.Contains(answer, "UNKNOWN_PREFIX") {
		t.Errorf("of what does not stand: %s", answer)
	}
}
