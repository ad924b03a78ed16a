package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

// What is refused at each door is in the audit list, and in the log.
func TestRefusalsAreAudited(t *testing.T) {
	s, url := startServer(t)
	const own = "urn:koine:vocab:made-up"
	for _, request := range []struct{ path, kind, body string }{
		{"/a2a", "application/json", `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"` + own + `"},"object":{"value":1}}}]}}`},
		{"/graphql", "application/json", `{"query":"mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: \"urn:s\"}, predicate: {id: \"` + own + `\"}, object: {value: 1}}}]}) { revision } }"}`},
		{"/data", "application/n-triples", "<urn:s> <" + own + "> <urn:o> .\n"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+request.path, strings.NewReader(request.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", request.kind)
		r.Header.Set("X-Agent-ID", "mallory")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	type list struct {
		Data struct {
			Audit struct {
				Nodes []struct{ Kind, Principal, Reason, Path, Address string }
			}
		}
	}
	var got list
	response, err := http.Post(url+"/graphql", "application/json", strings.NewReader(`{"query":"{ audit { nodes { kind principal reason path address } } }"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range got.Data.Audit.Nodes {
		if e.Kind != "DENIED" || e.Principal != "agent://mallory" || e.Reason != "RESERVED" || e.Address != "127.0.0.1" {
			t.Errorf("got %+v", e)
		}
		seen[e.Path] = true
	}
	for _, path := range []string{"/a2a", "/graphql", "/data"} {
		if !seen[path] {
			t.Errorf("nothing of %s in %+v", path, got)
		}
	}
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	if n := strings.Count(s.log.String(), "msg=refused kind=DENIED reason=RESERVED agent=agent://mallory"); n != 3 {
		t.Errorf("%d lines, want one for each door:\n%s", n, s.log)
	}
}
