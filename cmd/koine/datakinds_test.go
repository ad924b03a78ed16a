package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/kg"
)

// kinds is a store with every kind of data of intents, rooms and agents, and the ids in it.
type kinds struct {
	t               *testing.T
	dir, hook       string
	server          *server
	url             string
	intent, channel string
	portfolio, task string
	embedded        string // a message of bob's with an embedding; the fact urn:embedded of his has one too
	said, private   string // messages of bob's with an audit copy, the second to ann alone
	proposal, waits string // of a held message of bob's
	refused         string // a message that was held, and is no more
}

func (k *kinds) serve(dir string) {
	k.t.Helper()
	k.dir = dir
	k.server, k.url = startServerOn(k.t, dir, "--content-hook", k.hook, "--content-hook-private")
}

// stop ends the server, so that commands can work on its directory.
func (k *kinds) stop() {
	k.t.Helper()
	if err := k.server.process.Process.Signal(os.Interrupt); err != nil {
		k.t.Fatal(err)
	}
	if err := <-k.server.ended; err != nil {
		k.t.Fatalf("the server ended with %v\n%s", err, k.server.log)
	}
}

func (k *kinds) call(who, method, path, body string) string {
	k.t.Helper()
	return callAs(k.t, who, method, k.url+path, body)
}

func (k *kinds) send(who, body string) (id string) {
	k.t.Helper()
	return idIn(k.t, k.call(who, "POST", "/api/v1/channels/"+k.channel+"/messages", body))
}

// hold publishes a message of bob's that is held, and returns its proposal and its id.
func (k *kinds) hold(text string) (proposal, id string) {
	k.t.Helper()
	answer := askGraphQL(k.t, k.url, "bob", fmt.Sprintf(`mutation { publishMessage(input: {channelId: %q, parts: [{text: %q}]}) { proposalId } }`, k.channel, text))
	var made struct {
		Data struct {
			PublishMessage struct{ ProposalID string }
			Proposal       struct{ HeldMessage struct{ MessageID string } }
		}
	}
	if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Data.PublishMessage.ProposalID == "" {
		k.t.Fatalf("held: %s, %v", answer, err)
	}
	proposal = made.Data.PublishMessage.ProposalID
	answer = askGraphQL(k.t, k.url, "rob", fmt.Sprintf(`{ proposal(id: %q) { heldMessage { messageId } } }`, proposal))
	if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Data.Proposal.HeldMessage.MessageID == "" {
		k.t.Fatalf("the proposal: %s, %v", answer, err)
	}
	return proposal, made.Data.Proposal.HeldMessage.MessageID
}

// begin makes the first half of the data.
func (k *kinds) begin() {
	k.t.Helper()
	for _, who := range []string{"ann", "bob"} {
		k.call(who, "POST", "/api/v1/agents/register", fmt.Sprintf(`{"agent_id":%q,"capabilities":["counting"]}`, who))
	}
	k.intent = idIn(k.t, k.call("ann", "POST", "/api/v1/intents", `{"title":"Count the cells","description":"all of them","state":{"phase":1},"constraints":{"by":"noon"}}`))
	at := "/api/v1/intents/" + k.intent
	k.call("ann", "POST", at+"/agents", `{"agent_id":"bob","role":"worker"}`)
	k.call("ann", "POST", at+"/acl/entries", `{"principal_id":"chen","principal_type":"agent","permission":"admin","reason":"helps","expires_at":"2126-01-01T00:00:00"}`)
	k.call("bob", "POST", at+"/leases", `{"scope":"counting","duration_seconds":7200}`)
	k.task = idIn(k.t, k.call("ann", "POST", "/api/v1/tasks", fmt.Sprintf(`{"intent_id":%q,"name":"Collect","input":{"n":1}}`, k.intent)))
	k.channel = idIn(k.t, k.call("ann", "POST", at+"/channels", `{"name":"counting","members":["ann","bob","rob"],"member_policy":"explicit","options":{"audit":true}}`))
	k.said = k.send("bob", `{"sender":"bob","payload":{"note":"said canary"},"metadata":{"trace_id":"t1"}}`)
	answer := askGraphQL(k.t, k.url, "bob", fmt.Sprintf(`mutation { publishMessage(input: {channelId: %q, parts: [{text: "embedded canary"}], embedding: {model: "message-canary", vector: [0.1, -2]}}) { message { id } } }`, k.channel))
	var made struct {
		Data struct {
			PublishMessage struct{ Message struct{ ID string } }
		}
	}
	if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Data.PublishMessage.Message.ID == "" {
		k.t.Fatalf("the embedded message: %s, %v", answer, err)
	}
	k.embedded = made.Data.PublishMessage.Message.ID
	k.embed("fact-canary-of-the-history", 1)
	k.proposal, k.waits = k.hold("odd waiting canary")
	k.call("bob", "PUT", "/agentchat/agents/ann/follow", "")
}

// embed asserts a fact of bob's with an embedding.
func (k *kinds) embed(model string, number int) {
	k.t.Helper()
	contains(k.t, "a fact with an embedding", askGraphQL(k.t, k.url, "bob", fmt.Sprintf(`mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "urn:embedded"}, predicate: {id: "urn:p"}, object: {value: "a fact"}}, embedding: {model: %q, vector: [%d, 0.1]}}]}) { success } }`, model, number)), `"success":true`)
}

// goOn makes the second half.
func (k *kinds) goOn() {
	k.t.Helper()
	at := "/api/v1/intents/" + k.intent
	k.embed("fact-canary", 2) // instead of the first one, which is in the history
	k.private = k.send("bob", `{"sender":"bob","to":"ann","payload":{"note":"private canary"}}`)
	k.send("ann", `{"sender":"ann","payload":{"note":"last canary"}}`)
	k.call("dan", "POST", at+"/access-requests", `{"principal_id":"dan","requested_permission":"admin","reason":"to watch"}`)
	k.portfolio = idIn(k.t, k.call("ann", "POST", "/api/v1/portfolios", `{"name":"Quarter","created_by":"ann","metadata":{}}`))
	k.call("ann", "POST", "/api/v1/portfolios/"+k.portfolio+"/intents", fmt.Sprintf(`{"intent_id":%q,"role":"primary","priority":2}`, k.intent))
	k.call("ann", "PUT", "/agentchat/agents/bob/follow", "")
	for range 12 { // so that there is a score
		question := k.send("ann", `{"sender":"ann","to":"bob","message_type":"request","payload":{"question":"?"}}`)
		k.call("bob", "POST", "/api/v1/channels/"+k.channel+"/messages/"+question+"/reply", `{"sender":"bob","payload":{"answer":1}}`)
	}
	var proposal string
	proposal, k.refused = k.hold("odd refused canary")
	askGraphQL(k.t, k.url, "rob", fmt.Sprintf(`mutation { reviewProposal(input: {proposalId: %q, decision: REJECT, comment: "No."}) { proposal { status } } }`, proposal))
	contains(k.t, "presence", askGraphQL(k.t, k.url, "bob", `mutation { heartbeat(input: {status: BUSY}) { presence { status } } }`), `"BUSY"`)
	for end := time.Now().Add(slowtest.Slack(time.Minute)); ; time.Sleep(20 * time.Millisecond) { // it is written when it lasts
		text := askGraphQL(k.t, k.url, "ann", `{ statements(view: {allGraphs: true}, where: {subject: {eq: "agent://bob"}, predicate: {eq: "urn:koine:vocab:presence"}}) { nodes { object { ... on Literal { value } } } } }`)
		if strings.Contains(text, "busy") || strings.Contains(text, "BUSY") {
			break
		}
		if time.Now().After(end) {
			k.t.Fatalf("the presence of bob is not written: %s", text)
		}
	}
}

// answers are what the readers see: ann the creator, bob a member, chen with a grant that
// expires, eve with what everybody sees.
func (k *kinds) answers() (out []string) {
	k.t.Helper()
	at, room := "/api/v1/intents/"+k.intent, "/api/v1/channels/"+k.channel
	for _, who := range []string{"ann", "bob", "chen", "eve"} {
		for _, path := range []string{
			at, at + "/events?limit=100", at + "/events/verify", at + "/acl", at + "/access-requests", at + "/leases", at + "/agents", at + "/tasks", at + "/channels", at + "/portfolios",
			"/api/v1/tasks/" + k.task, room, room + "/messages", room + "/messages/" + k.said,
			"/api/v1/portfolios/" + k.portfolio, "/api/v1/portfolios/" + k.portfolio + "/intents",
			"/agentchat/agents/bob/followers", "/agentchat/agents/bob/following", "/agentchat/agents/bob/reputation",
		} {
			status, text := ask(k.t, http.MethodGet, k.url+path, who, "")
			out = append(out, fmt.Sprintf("%s %s: %d %s", who, path, status, text))
		}
	}
	for _, who := range []string{"ann", "rob", "bob", "eve"} {
		for _, document := range []string{
			`{ proposal(id: "` + k.proposal + `") { status authorId reason heldMessage { messageId authorId parts } } }`,
			`{ agents { nodes { id presence { status } } } }`,
			`{ message(id: "` + k.embedded + `") { text embedding { model dimension vector } } }`,
			`{ statements(where: {subject: {eq: "urn:embedded"}}) { nodes { object { ... on Literal { value } } assertions { sourceId embedding { model dimension vector } } } } }`,
			`{ intent(id: "` + k.intent + `") { title state version leases { nodes { scope agentId expiresAt } } grants { grantId agentId level expiresAt } accessRequests { nodes { status agentId } } scope { events { nodes { sequence type actorId hash copy } } verifyEvents { verifiedCount lastHash } } } }`,
		} {
			text, _, _ := strings.Cut(askGraphQL(k.t, k.url, who, document), `,"extensions":{"revision":`) // and a position of this log
			out = append(out, fmt.Sprintf("%s %s: %s", who, document, text))
		}
	}
	return out
}

// same compares the answers with those of before.
func (k *kinds) same(what string, want []string) {
	k.t.Helper()
	got := k.answers()
	for i := range got {
		if got[i] != want[i] {
			k.t.Errorf("%s:\n%s\nwas\n%s", what, got[i], want[i])
		}
	}
}

func (k *kinds) check() {
	k.t.Helper()
	contains(k.t, "check", runKoine(k.t, "check", "--data", k.dir), "no damage found")
}

// TestEveryKindOfData proves that intents with their leases, requests, grants, tasks and
// portfolios, audit copies, held messages, following, reputation and presence are known to
// check, backup, restore, erase and the removal of history.
func TestEveryKindOfData(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verdict := `{"verdict":"accept"}`
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "odd ") {
			verdict = `{"verdict":"hold","reason":"odd words"}`
		}
		_, _ = io.WriteString(w, verdict)
	}))
	defer hook.Close()
	dir := t.TempDir()
	k := &kinds{t: t, hook: hook.URL}
	full, more := filepath.Join(dir, "full.koine"), filepath.Join(dir, "more.koine")
	k.serve(filepath.Join(dir, "data"))
	k.begin()
	runKoine(t, "backup", "--url", k.url, "-o", full)
	k.goOn()
	want := k.answers()
	for _, part := range []string{"said canary", "private canary", "odd waiting canary", `"valid":true`, `"scope":"counting"`, `"BUSY"`, `"score":`, `{"model":"message-canary","dimension":2,"vector":[0.1,-2]}`, `{"model":"fact-canary","dimension":2,"vector":[2,0.1]}`} {
		if !slices.ContainsFunc(want, func(text string) bool { return strings.Contains(text, part) }) {
			t.Errorf("no answer has %s", part)
		}
	}
	runKoine(t, "backup", "--url", k.url, "--since", full, "-o", more)
	k.stop()
	k.check()

	runKoine(t, "restore", "--data", filepath.Join(dir, "again"), full, more)
	k.serve(filepath.Join(dir, "again"))
	k.same("restored", want)
	k.stop()
	k.check()

	k.erase(filepath.Join(dir, "erased"), full, more)

	k.dir = filepath.Join(dir, "again")
	forgetHistory(t, k.dir)
	k.check()
	k.serve(k.dir)
	k.same("without the history", want)
	// What goes on does so.
	contains(t, "approval", askGraphQL(t, k.url, "rob", fmt.Sprintf(`mutation { reviewProposal(input: {proposalId: %q, decision: APPROVE}) { proposal { status } } }`, k.proposal)), `"APPLIED"`)
	contains(t, "the message", k.call("ann", "GET", "/api/v1/channels/"+k.channel+"/messages", ""), "odd waiting canary")
	contains(t, "its copy", k.call("ann", "GET", "/api/v1/intents/"+k.intent+"/events?limit=1", ""), "odd waiting canary")
	contains(t, "the chain", k.call("ann", "GET", "/api/v1/intents/"+k.intent+"/events/verify", ""), `"valid":true`)
	if status, text := ask(t, http.MethodPost, k.url+"/api/v1/intents/"+k.intent+"/leases", "chen", `{"scope":"counting"}`); status != http.StatusConflict {
		t.Errorf("a second lease: %d %s", status, text)
	}
	k.stop()
	k.check()
}

// forgetHistory removes all history of a store but its present.
func forgetHistory(t *testing.T, dir string) {
	t.Helper()
	var later time.Duration
	store, err := kg.Open(dir, kg.Options{ReserveBytes: 1, History: time.Minute, Clock: func() time.Time { return time.Now().Add(later) }, Uptime: func() time.Duration { return later }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	later = 48 * time.Hour
	if r, err := store.Maintenance().Retain(t.Context()); err != nil || r.Oldest != store.Head().Revision {
		t.Fatalf("history is removed up to %+v: %v", r, err)
	}
}

// erase erases messages and what an agent said from a restored directory, and checks that nothing
// of the content is left in it.
func (k *kinds) erase(dir, full, more string) {
	k.t.Helper()
	k.dir = dir
	runKoine(k.t, "restore", "--data", dir, full, more)
	for _, step := range []struct {
		text string
		args []string
	}{
		{"message-canary", []string{"--subject", "urn:koine:message:" + k.embedded}},
		{"fact-canary", []string{"--source", "bob", "--graph", "default"}},
		{"said canary", []string{"--subject", "urn:koine:message:" + k.said}},           // with an audit copy
		{"odd waiting canary", []string{"--subject", "urn:koine:message:" + k.waits}},   // held
		{"odd refused canary", []string{"--subject", "urn:koine:message:" + k.refused}}, // in the history
		{"private canary", []string{"--source", "bob", "--graph", "urn:koine:graph:journal:messages:" + k.channel}},
		{"last canary", []string{"--source", "ann", "--messages"}}, // addressed, with an audit copy
	} {
		if !holds(k.t, dir, step.text) {
			k.t.Errorf("%s is not there", step.text)
		}
		runKoine(k.t, append([]string{"erase", "--data", dir}, step.args...)...)
		if holds(k.t, dir, step.text) {
			k.t.Errorf("%s is there after the erasure of %v", step.text, step.args)
		}
		k.check()
	}
	k.serve(dir)
	for _, text := range k.answers() {
		if strings.Contains(text, "canary") {
			k.t.Errorf("after the erasure:\n%s", text)
		}
	}
	contains(k.t, "the chain", k.call("ann", "GET", "/api/v1/intents/"+k.intent+"/events/verify", ""), `"valid":true`)
	contains(k.t, "approval of an erased message", askGraphQL(k.t, k.url, "rob", fmt.Sprintf(`mutation { reviewProposal(input: {proposalId: %q, decision: APPROVE}) { proposal { status conflictReason } } }`, k.proposal)), "no longer exists")
	k.stop()
	k.check()
}

// holds reports whether a file of a directory contains the text.
func holds(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		found = found || bytes.Contains(raw, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
