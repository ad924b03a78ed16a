package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"koine/internal/audit"
)

// Refusals of each protocol are in the audit list, and in the log.
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
	response, err := http.Post(url+"/graphql", "application/json", strings.NewReader(`{"query":"{ audit { nodes { kind principal: principalId reason path address } } }"}`))
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

// The next server has the refusals as well, in pages; and the file in between has no
// credential, and only its owner can read it.
func TestRefusalsOutlastTheServer(t *testing.T) {
	dir := t.TempDir()
	k := startKnowing(t, "--auth", "keys", "--data", dir)
	dora, id := k.create(`{agentId: "dora"}`)
	strange := "ak_live_000000000000_0123456789012345678901234567890123456789012"
	k.graphql(strange, `{ me { id } }`)
	k.graphql(dora, `{ audit { nodes { kind } } }`)
	k.graphql(dora, `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "urn:s"}, predicate: {id: "urn:koine:vocab:x"}, object: {value: "private"}}}]}) { revision } }`)
	k.graphql(k.admin, `mutation { revokeApiKey(input: {keyId: "`+id+`"}) { key { state } } }`)
	k.graphql(dora, `{ me { id } }`)
	const asked = `{ audit(first: 2, kinds: [DENIED, AUTHENTICATION]%s) { nodes { time kind principal: principalId actor: actorId reason path address count lastTime requestId } pageInfo { hasNextPage endCursor } } }`
	first := k.graphql(k.admin, fmt.Sprintf(asked, ""))
	if n := strings.Count(first, `"kind"`); n != 2 || !strings.Contains(first, `"hasNextPage":true`) {
		t.Fatalf("%d entries: %s", n, first)
	}
	if err := k.s.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-k.s.ended; err != nil {
		t.Fatal(err, k.s.log)
	}
	text, err := os.ReadFile(filepath.Join(dir, audit.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != 4 {
		t.Errorf("%d lines in the file: %s", n, text)
	}
	for _, key := range []string{dora, strange, k.admin} {
		if parts := keyText.FindStringSubmatch(key); strings.Contains(string(text), parts[2]) {
			t.Errorf("a secret is in the file: %s", text)
		}
	}
	if strings.Contains(string(text), "private") {
		t.Errorf("a literal is in the file: %s", text)
	}
	if st, err := os.Stat(filepath.Join(dir, audit.FileName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", st.Mode(), err)
	}
	k.s, k.url = startServer(t, "--auth", "keys", "--data", dir)
	if again := k.graphql(k.admin, fmt.Sprintf(asked, "")); endCursor.ReplaceAllString(again, "") != endCursor.ReplaceAllString(first, "") {
		t.Errorf("the next server tells\n%s\nthe one before told\n%s", again, first)
	}
	cursor := endCursor.FindStringSubmatch(first)
	if rest := k.graphql(k.admin, fmt.Sprintf(asked, `, after: "`+cursor[1]+`"`)); strings.Count(rest, `"kind"`) != 1 || !strings.Contains(rest, "AUTHENTICATION") {
		t.Errorf("behind it: %s", rest)
	}
}

// endCursor is the cursor in an answer, which is sealed anew each time.
var endCursor = regexp.MustCompile(`"endCursor":"([^"]*)"`)
