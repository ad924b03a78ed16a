package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/slowtest"
)

// asAgent posts JSON as an agent and gives status and body.
func asAgent(t *testing.T, url, name, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Agent-ID", name)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// askGraphQL gives the text of an answer to a GraphQL document.
func askGraphQL(t *testing.T, url, name, document string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": document})
	if err != nil {
		t.Fatal(err)
	}
	_, text := asAgent(t, url+"/graphql", name, string(body))
	return text
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %s is not in %s", what, part, text)
		}
	}
}

const payPatch = `{op: replace, statement: {subject: {id: "https://example.org/ann"}, predicate: {id: "https://example.org/salary"}, object: {value: 5000}}}`

// TestAHeldUpdateIsApproved covers the whole way: a rule holds an update, the proposal is
// visible to its readers, its author cannot approve it, another agent does, and it is
// applied; through A2A a rule refuses as docs/reference/knowledge.md requires, and a file that becomes broken
// changes nothing.
func TestAHeldUpdateIsApproved(t *testing.T) {
	slowtest.Long(t)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	shipped, err := os.ReadFile("../../examples/policies/four-eyes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shipped = append(shipped, `
  - name: no-secrets
    on: update
    when: patch.predicate == "https://example.org/secret" && method == "knowledge/update" && has(metadata.purpose) && metadata.purpose == "gossip"
    effect: violation
    message: Secrets are not gossip
  - name: not-today
    on: update
    when: patch.predicate == "https://example.org/secret" && taskId == "t1"
    effect: reject
    message: Not today
  - name: purposes
    on: update
    when: patch.predicate == "https://example.org/purposeful" && metadata.purpose == ""
    effect: review
  - name: no-diff
    on: query
    when: '"diff" in query.fields'
    effect: refuse
    message: Nobody compares
  - name: not-for-dave
    on: read
    when: caller.id == "agent://dave" && statement.predicate == "https://example.org/salary"
    effect: hide
  - name: no-streams
    on: subscribe
    when: caller.id == "agent://guest"
    effect: refuse
    message: Guests do not subscribe
`...)
	if err := os.WriteFile(policy, shipped, 0o600); err != nil {
		t.Fatal(err)
	}
	_, url := startServer(t, "--policy", policy)

	decisions := streamOf(t, url, "ann", `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { proposalChanged { ... on ProposalChange { proposal { status } } } }"}}`)
	dry := askGraphQL(t, url, "ann", `mutation { applyPatches(input: {dryRun: true, patches: [`+payPatch+`]}) { success verificationStatus proposalId } }`)
	contains(t, "a dry run", dry, `"success":true`, `"Pending Review"`, `"proposalId":null`)
	held := askGraphQL(t, url, "ann", `mutation { applyPatches(input: {justification: "a rise", patches: [`+payPatch+`]}) {
		success statementsAffected affectedIds verificationStatus verificationDetails commitId proposalId } }`)
	contains(t, "the held update", held, `"success":true`, `"statementsAffected":0`, `"affectedIds":[]`, `"Pending Review"`, `pay-needs-review`, `Claims about pay are looked at by a second agent"`, `"commitId":null`)
	var answer struct {
		Data struct{ ApplyPatches struct{ ProposalID string } }
	}
	if err := json.Unmarshal([]byte(held), &answer); err != nil || answer.Data.ApplyPatches.ProposalID == "" {
		t.Fatalf("%s: %v", held, err)
	}
	id := answer.Data.ApplyPatches.ProposalID

	contains(t, "the list", askGraphQL(t, url, "bob", `{ proposals(status: PENDING) { pageInfo { hasNextPage } nodes { id status author: authorId patches justification rules requiredApprovals approvalCount reviewerRoles conflictReason } } }`),
		id, `"PENDING"`, `"agent://ann"`, `5000`, `"a rise"`, `"pay-needs-review"`, `"requiredApprovals":1`, `"approvalCount":0`, `"reviewer"`, `"hasNextPage":false`)
	contains(t, "what is pending", askGraphQL(t, url, "bob", `{ statements(view: {includePending: true}) { nodes { predicate pending graph } } }`), `"pending":true`, "urn:koine:graph:pending:"+id)
	contains(t, "what stands", askGraphQL(t, url, "bob", `{ statements { nodes { predicate } } }`), `"nodes":[]`)
	contains(t, "the author approves", askGraphQL(t, url, "ann", `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: APPROVE}) { proposal { status } } }`), `PERMISSION_DENIED`)
	contains(t, "no such proposal", askGraphQL(t, url, "bob", `mutation { withdrawProposal(input: {proposalId: "x"}) { proposal { status } } }`), `NOT_FOUND`)
	contains(t, "another approves", askGraphQL(t, url, "bob", `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: APPROVE, comment: "fine"}) { proposal { status approvalCount appliedRevision reviews { reviewer: reviewerId decision comment } } } }`),
		`"APPLIED"`, `"approvalCount":1`, `"agent://bob"`, `"fine"`)
	contains(t, "what stands now", askGraphQL(t, url, "bob", `{ statements(view: {includePending: true}) { nodes { predicate pending assertedBy } } }`),
		`[{"predicate":"https://example.org/salary","pending":false,"assertedBy":["agent://ann"]}]`)
	contains(t, "from whom it is hidden", askGraphQL(t, url, "dave", `{ statements { nodes { predicate } totalCount } stats { statements } vocabulary { predicates { nodes { iri } } } }`),
		`{"statements":{"nodes":[],"totalCount":0},"stats":{"statements":0},"vocabulary":{"predicates":{"nodes":[]}}}`)
	for _, status := range []string{"PENDING", "APPLIED"} { // through A2A as well
		contains(t, "the author is told", decisions(), `"op":"`, `"data":{"proposalChanged":{"proposal":{"status":"`+status+`"}}}`)
	}
	contains(t, "once more", askGraphQL(t, url, "carol", `mutation { reviewProposal(input: {proposalId: "`+id+`", decision: REJECT}) { proposal { status } } }`), `PROPOSAL_CLOSED`)
	contains(t, "the proposal", askGraphQL(t, url, "ann", `{ proposal(id: "`+id+`") { status endedAt } }`), `"APPLIED"`)

	update := func(extra, predicate string) string {
		status, text := asAgent(t, url, "ann", `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{`+extra+`"mutations":[
			{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"https://example.org/`+predicate+`"},"object":{"value":1}}}]}}`)
		if status != http.StatusOK {
			t.Errorf("%s %s: status %d", extra, predicate, status)
		}
		return text
	}
	contains(t, "held through A2A", update("", "salary"), `"success":true`, `"verificationStatus":"Pending Review"`, `"proposalId":"`)
	contains(t, "rejected", update(`"taskId":"t1",`, "secret"), `"success":false`, `"verificationStatus":"Rejected - Not today"`)
	contains(t, "a violation", update(`"metadata":{"purpose":"gossip"},`, "secret"), `-32013`, `Secrets are not gossip`)
	contains(t, "a rule that cannot be evaluated", update("", "purposeful"), `"success":false`, `Rejected - Rule Failed`, `no such key: purpose`)
	contains(t, "what no rule is about", update("", "open"), `"verificationStatus":"Verified"`)

	status, refused := asAgent(t, url, "ann", `{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":"{ diff(from: 0) { nodes { op } } }"}}`)
	if status != http.StatusOK {
		t.Errorf("a refused query has status %d", status)
	}
	contains(t, "a refused query", refused, `-32013`, `"ALIGNMENT_VIOLATION"`, `Nobody compares`)
	contains(t, "a refused query as GraphQL", askGraphQL(t, url, "ann", `{ d: diff(from: 0) { nodes { op } } }`), `ALIGNMENT_VIOLATION`)
	status, refused = asAgent(t, url, "guest", `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { statementChanged { __typename } }"}}`)
	if status != http.StatusForbidden {
		t.Errorf("a refused subscription has status %d", status)
	}
	contains(t, "a refused subscription", refused, `-32013`, `"ALIGNMENT_VIOLATION"`)

	// A broken file changes nothing; a whole one is in force soon.
	if err := os.WriteFile(policy, []byte("rules:\n  - {name: a, on: update, when: patch.x, effect: reject}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, "held by the old rules", update("", "salary"), `"Pending Review"`)
	if err := os.WriteFile(policy, []byte("rules: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new rules are in force", func() bool { return strings.Contains(update("", "salary"), `"Verified"`) })
}

// TestTheAuthorOfAHeldUpdateIsAskedAgain proves that approving does not restore withdrawn
// rights: those of a revoked key, or of a suspended agent. The update of an author with all
// its rights is applied.
func TestTheAuthorOfAHeldUpdateIsAskedAgain(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("rules:\n  - {name: all, on: update, when: 'true', effect: review}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := startKnowing(t, "--auth", "keys", "--policy", policy)
	bob, _ := k.create(`{agentId: "bob", roles: ["reviewer"]}`)
	for _, row := range []struct{ agent, what, want, conflict string }{
		{"ann", `{ __typename }`, `"APPLIED"`, `"conflictReason":null`},
		{"carl", `mutation { revokeApiKey(input: {keyId: "KEY"}) { key { id } } }`, `"CONFLICTED"`, `the key was revoked`},
		{"dora", `mutation { updateAgent(input: {agentId: "dora", status: SUSPENDED}) { agent { id } } }`, `"CONFLICTED"`, `the agent agent://dora is suspended`},
	} {
		key, name := k.create(`{agentId: "` + row.agent + `"}`)
		held := k.graphql(key, `mutation { applyPatches(input: {patches: [`+payPatch+`]}) { proposalId } }`)
		var answer struct {
			Data struct{ ApplyPatches struct{ ProposalID string } }
		}
		if err := json.Unmarshal([]byte(held), &answer); err != nil || answer.Data.ApplyPatches.ProposalID == "" {
			t.Fatalf("%s: %v", held, err)
		}
		if text := k.graphql(k.admin, strings.ReplaceAll(row.what, "KEY", name)); strings.Contains(text, "errors") {
			t.Fatal(text)
		}
		contains(t, row.agent, k.graphql(bob, `mutation { reviewProposal(input: {proposalId: "`+answer.Data.ApplyPatches.ProposalID+`", decision: APPROVE}) { proposal { status conflictReason } } }`), row.want, row.conflict)
	}
}

// TestRulesAreAskedAtEveryDoor proves that a rule on queries or subscriptions cannot be
// circumvented over protocols without GraphQL, and that a query or subscription is
// evaluated once: its reads are not queries of their own.
func TestRulesAreAskedAtEveryDoor(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(`rules:
  - {name: q, on: query, when: 'caller.id == "agent://guest" && method != "applyPatches"', effect: refuse, message: No queries}
  - {name: s, on: subscribe, when: 'caller.id == "agent://guest"', effect: refuse, message: No streams}
  - {name: export, on: query, when: 'method == "GET /data"', effect: refuse, message: Nothing leaves}
  - {name: feed, on: subscribe, when: 'method == "GET /changes" && query.text == "" && query.fields.size() == 0 && caller.actor == "agent://bob"', effect: refuse, message: Not the feed}
  - {name: plain, on: query, when: 'query.text == ""', effect: refuse, message: Only with a query}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, url := startServer(t, "--policy", policy)
	if text := askGraphQL(t, url, "guest", `mutation { applyPatches(input: {patches: [`+payPatch+`]}) { success } }`); !strings.Contains(text, `"success":true`) {
		t.Fatal(text)
	}
	for _, row := range []struct {
		agent, method, path, body string
		status                    int
		want                      string
	}{
		{"guest", "GET", "/data", "", 403, "No queries"},
		{"guest", "HEAD", "/data", "", 403, ""},
		{"guest", "GET", "/changes", "", 403, "No streams"},
		{"guest", "GET", "/changes?snapshot=true", "", 403, "No queries"},
		{"guest", "GET", "/changes?since=earliest", "", 403, "No streams"},
		{"guest", "POST", "/graphql", `{"query":"{ statements { totalCount } }"}`, 200, "No queries"},
		{"ann", "GET", "/data", "", 403, "Nothing leaves"},
		{"bob", "GET", "/changes", "", 403, "Not the feed"},
		{"ann", "GET", "/changes?snapshot=true", "", 403, "Only with a query"},
		{"ann", "POST", "/graphql", `{"query":"{ statements { totalCount } changes { nodes { op } } diff(from: 0) { nodes { op } } vocabulary { predicates { nodes { iri } } } }"}`, 200, `"totalCount":1`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, url+row.path, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Agent-ID", row.agent)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != row.status || !strings.Contains(string(text), row.want) || row.want == "" && len(text) > 0 {
			t.Errorf("%s %s %s: %d %s, %v", row.agent, row.method, row.path, response.StatusCode, text, err)
		}
		if row.status == 200 && row.agent == "ann" && strings.Contains(string(text), "errors") {
			t.Errorf("%s", text)
		}
	}
	// A subscription that begins with a snapshot reads, and is a subscription.
	lines := streamOf(t, url+"/graphql", "ann", `{"query":"subscription { entityChanged(iri: \"https://example.org/ann\", resume: \"snapshot\") { ... on EntityChange { entity { iri types } } } }"}`)
	contains(t, "the snapshot", lines(), `https://example.org/ann`)
}

// streamOf opens a subscription and gives a function that waits for the next event.
func streamOf(t *testing.T, url, name, body string) (next func() string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("X-Agent-ID", name)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	return func() string {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data:") {
				return lines.Text()
			}
		}
		return "the stream has ended"
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}

func TestABrokenPolicyEndsTheProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte("rules:\n  - {name: a, on: update, when: patch.subjct == '', effect: reject}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args []string
		want int
	}{
		{[]string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--policy", path}, cli.ExitUsage},
		{[]string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--policy", path + ".none"}, cli.ExitUsage},
		{[]string{"rules", "check", path}, cli.ExitRefused},
		{[]string{"rules", "check", path + ".none"}, cli.ExitUsage},
		{[]string{"rules", "check", "../../examples/policies/four-eyes.yaml"}, cli.ExitOK},
	} {
		var out, errs bytes.Buffer
		if got := run(row.args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs}); got != row.want {
			t.Errorf("%q: ended with %d, want %d\n%s", row.args, got, row.want, errs.String())
		}
		if row.want == cli.ExitRefused || row.want == cli.ExitUsage && row.args[0] == "serve" && !strings.HasSuffix(row.args[len(row.args)-1], ".none") {
			contains(t, strings.Join(row.args, " "), errs.String(), "line 2: rule a: when: 1:6: undefined field 'subjct'")
		}
	}
}
