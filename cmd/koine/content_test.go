package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// TestContentIsScanned proves the answers of the protocols to each verdict of a content
// hook, that a repeated key gets the same answer without another call, and that a held
// message is published when it is approved.
func TestContentIsScanned(t *testing.T) {
	var calls atomic.Int32
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		verdict := `{"verdict":"accept","tags":["seen"]}`
		switch {
		case bytes.Contains(body, []byte("bad canary")):
			verdict = `{"verdict":"reject","reason":"Not here"}`
		case bytes.Contains(body, []byte("odd canary")):
			verdict = `{"verdict":"hold","reason":"odd words"}`
		}
		_, _ = io.WriteString(w, verdict)
	}))
	defer hook.Close()
	dir := t.TempDir()
	_, url := startServerOn(t, dir, "--content-hook", hook.URL, "--content-hook-private")
	var made struct {
		Data struct {
			CreateChannel struct{ Channel struct{ ID string } }
		}
	}
	if err := json.Unmarshal([]byte(askGraphQL(t, url, "ann", `mutation { createChannel(input: {name: "lab", members: [{agentId: "bob"}, {agentId: "rob"}]}) { channel { id } } }`)), &made); err != nil {
		t.Fatal(err)
	}
	id := made.Data.CreateChannel.Channel.ID
	rpc := func(text, key string) string {
		_, answer := asAgent(t, url+"/a2a", "bob", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":%q,"parts":[{"type":"text","text":%q}],"idempotencyKey":%q}}`, id, text, key))
		return answer
	}
	gql := func(text, key string) string {
		return askGraphQL(t, url, "bob", fmt.Sprintf(`mutation { publishMessage(input: {channelId: %q, parts: [{text: %q}], idempotencyKey: %q}) { success replayed message { sequence tags } verificationStatus verificationDetails proposalId } }`, id, text, key))
	}
	contains(t, "accepted", rpc("fine", "a1"), `"sequence":1`, `"tags":["seen"]`)
	contains(t, "accepted", gql("fine", "a2"), `"success":true`, `"sequence":2,"tags":["seen"]`)
	for what, text := range map[string]string{"rejected": rpc("bad canary", "r"), "rejected again": rpc("bad canary", "r")} {
		contains(t, what, text, `"error":{"code":-32013,"message":"Not here: content hook"`, `"reason":"CONSTRAINT_VIOLATION"`, `"verificationStatus":"Rejected - Not here"`)
	}
	contains(t, "rejected", gql("bad canary", "r2"), `"success":false,"replayed":false,"message":null,"verificationStatus":"Rejected - Not here"`)
	contains(t, "rejected again", gql("bad canary", "r2"), `"success":false,"replayed":true,"message":null,"verificationStatus":"Rejected - Not here"`)
	held := rpc("odd canary", "h")
	contains(t, "held", held, `"error":{"code":-31102,"message":"message is held for review in the proposal `, `"reason":"CONTENT_HELD"`, `"proposalId":"`)
	var e struct {
		Error struct{ Data struct{ ProposalID string } }
	}
	if err := json.Unmarshal([]byte(held), &e); err != nil {
		t.Fatal(err)
	}
	proposal := e.Error.Data.ProposalID
	before := calls.Load()
	if again := rpc("odd canary", "h"); again != held {
		t.Errorf("held again:\n%s\nwant\n%s", again, held)
	}
	contains(t, "held again", gql("odd canary", "h"), `"error`) // another request: without a type
	if n := calls.Load(); n != before {
		t.Errorf("a repetition called the hook %d times", n-before)
	}
	contains(t, "held", gql("odd canary", "h2"), `"success":false,"replayed":false,"message":null,"verificationStatus":"Pending Review"`, `"proposalId":"`)
	contains(t, "the proposal", askGraphQL(t, url, "rob", fmt.Sprintf(`{ proposal(id: %q) { status authorId reason heldMessage { channelId authorId parts tags } } }`, proposal)),
		`"status":"PENDING","authorId":"agent://bob","reason":"content hook: odd words"`, `"authorId":"agent://bob","parts":[{"type":"text","text":"odd canary"}]`)
	if text := askGraphQL(t, url, "eve", fmt.Sprintf(`{ proposal(id: %q) { heldMessage { parts } } }`, proposal)); strings.Contains(text, "canary") {
		t.Errorf("an outsider reads %s", text)
	}
	var out, errs bytes.Buffer
	if got := run([]string{"channel", "publish", "lab", "odd canary", "--as", "bob", "--url", url}, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs}); got != cli.ExitRefused {
		t.Errorf("the command line ends with %d\n%s%s", got, out.String(), errs.String())
	}
	contains(t, "the command line", errs.String(), "held for review in the proposal", "CONTENT_HELD")
	approve := fmt.Sprintf(`mutation { reviewProposal(input: {proposalId: %q, decision: APPROVE}) { proposal { status heldMessage { messageId } } } }`, proposal)
	contains(t, "its author", askGraphQL(t, url, "bob", approve), "PERMISSION_DENIED")
	contains(t, "another", askGraphQL(t, url, "rob", approve), `"status":"APPLIED","heldMessage":null`)
	contains(t, "a repetition", rpc("odd canary", "h"), `"sequence":3`, `"replayed":true`)
}
