package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// TestMessagesAreJudged proves that rules refuse messages over every protocol, that the
// author gets the reason, and that nothing of them is stored.
func TestMessagesAreJudged(t *testing.T) {
	_, url := startServer(t, "--policy", "../../examples/policies/messages.yaml")
	var made struct {
		Data struct {
			CreateChannel struct{ Channel struct{ ID string } }
		}
	}
	if err := json.Unmarshal([]byte(askGraphQL(t, url, "ann", `mutation { createChannel(input: {name: "lab", members: [{agentId: "bob"}]}) { channel { id } } }`)), &made); err != nil {
		t.Fatal(err)
	}
	id := made.Data.CreateChannel.Channel.ID
	const key = "-----BEGIN PRIVATE KEY-----"
	publish := func(more string) string {
		_, text := asAgent(t, url+"/a2a", "ann", `{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"parts":[{"type":"text","text":"`+key+`"}],`+more+`}}`)
		return text
	}
	for what, text := range map[string]string{
		"to a channel":     publish(`"channelId":"` + id + `"`),
		"to an agent":      publish(`"to":"bob"`),
		"to one addressee": publish(`"channelId":"` + id + `","recipient":"bob"`),
		"with facts":       publish(`"channelId":"` + id + `","patches":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1}}}]`),
	} {
		contains(t, what, text, `"error":{"code":-32013,"message":"Keys are not sent in messages: no-keys: the message"`, `"reason":"CONSTRAINT_VIOLATION"`,
			`"verificationStatus":"Rejected - Keys are not sent in messages"`, `Nothing was published. Correct the message`)
	}
	text := askGraphQL(t, url, "ann", fmt.Sprintf(`mutation { publishMessage(input: {channelId: %q, parts: [{text: %q}]}) { success message { id } verificationStatus verificationDetails } }`, id, key))
	contains(t, "GraphQL", text, `{"publishMessage":{"success":false,"message":null,"verificationStatus":"Rejected - Keys are not sent in messages","verificationDetails":"no-keys: the message"}}`)
	var out, errs bytes.Buffer
	if got := run([]string{"channel", "publish", "lab", "this is it: " + key, "--as", "ann", "--url", url}, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs}); got != cli.ExitRefused {
		t.Errorf("the command line ends with %d\n%s%s", got, out.String(), errs.String())
	}
	contains(t, "the command line", errs.String(), "Keys are not sent in messages")
	text = askGraphQL(t, url, "ann", fmt.Sprintf(`mutation { publishMessage(input: {channelId: %q, parts: [{text: "none"}]}) { success message { sequence } } }`, id))
	contains(t, "what follows", text, `{"success":true,"message":{"sequence":1}}`)
}
