package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// chatSocket opens a socket of AgentChat that is authenticated with a key.
func (k *knowing) chatSocket(key string) *websocket.Conn {
	k.t.Helper()
	conn, err := (&chatting{k.t, k.url}).connect(k.t.Context(), key, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

// openIntent sends a request to OpenIntent and returns the id in the answer.
func (k *knowing) openIntent(credential, method, path, body string) string {
	k.t.Helper()
	status, text := k.send(method, "/api/v1"+path, credential, body)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || status/100 != 2 {
		k.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return made.ID
}

// dialectStreams are OpenIntent's streams of an agent's own intent, portfolio and channel.
func (k *knowing) dialectStreams(key, agent string) map[string]func() string {
	k.t.Helper()
	intent := k.openIntent(key, "POST", "/intents", `{"title":"Of `+agent+`"}`)
	channel := k.openIntent(key, "POST", "/intents/"+intent+"/channels", `{"name":"own"}`)
	portfolio := k.openIntent(key, "POST", "/portfolios", `{"name":"Of `+agent+`"}`)
	streams := map[string]func() string{}
	for _, of := range []string{"agents/" + agent, "intents/" + intent, "channels/" + channel, "portfolios/" + portfolio} {
		what, id, _ := strings.Cut(of, "/")
		for _, path := range []string{"/" + what + "/" + id + "/subscribe", "/subscribe/" + what + "/" + id} {
			streams[path] = k.stream("GET", "/api/v1"+path, key, "")
		}
	}
	return streams
}

// The streams of OpenIntent and the sockets of AgentChat end with their credential too.
func TestStreamsOfDialectsEndWithTheirCredential(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	for _, row := range []struct {
		name   string
		reason string
		code   websocket.StatusCode
		end    func(id string)
	}{
		{"revoked", "the key was revoked", 4401, func(id string) {
			k.graphql(k.admin, `mutation { revokeApiKey(input: {keyId: "`+id+`"}) { key { state } } }`)
		}},
		{"rotated", "the key has expired", 4401, func(id string) {
			k.graphql(k.admin, `mutation { rotateApiKey(input: {keyId: "`+id+`"}) { replaced { state } } }`)
		}},
		{"suspended", "the agent agent://suspended is suspended", 4403, func(string) {
			k.graphql(k.admin, `mutation { updateAgent(input: {agentId: "suspended", status: SUSPENDED}) { agent { status } } }`)
		}},
	} {
		key, id := k.create(`{agentId: "` + row.name + `"}`)
		streams := k.dialectStreams(key, row.name)
		socket := k.chatSocket(key)
		row.end(id)
		for path, last := range streams {
			if event := last(); event != "" { // the SDK has no event for it
				t.Errorf("%s: %s ends with %q", row.name, path, event)
			}
		}
		k.wantClose(row.name, socket, row.code, row.reason)
		if status, text := k.send("GET", "/api/v1/intents", key, ""); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("%s: OpenIntent's next request: %d %s", row.name, status, text)
		}
		if status, text := k.send("GET", "/agentchat/rooms", key, ""); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("%s: AgentChat's next request: %d %s", row.name, status, text)
		}
	}
	for _, reason := range []string{"UNAUTHENTICATED", "PERMISSION_DENIED"} {
		if line := `msg="stream ended" transport=openintent reason=` + reason; !strings.Contains(k.s.log.String(), line) {
			t.Errorf("the log does not have %q", line)
		}
	}
}

// Streams of OpenIntent end, and sockets of AgentChat leave the room, when their agent
// loses access; nothing that is published afterwards is delivered.
func TestStreamsOfDialectsEndWhenAccessDoes(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	ann, _ := k.create(`{agentId: "ann"}`)
	eve, _ := k.create(`{agentId: "eve"}`)
	intent := k.openIntent(ann, "POST", "/intents", `{"title":"Q1"}`)
	acl := func(entries string) {
		if status, text := k.send("PUT", "/api/v1/intents/"+intent+"/acl", ann, `{"default_policy":"closed","entries":[`+entries+`]}`); status/100 != 2 {
			t.Fatal(status, text)
		}
	}
	acl(`{"principal_id":"eve","permission":"read"}`)
	channel := k.openIntent(ann, "POST", "/intents/"+intent+"/channels", `{"name":"lab","member_policy":"intent","members":["ann","eve"]}`)
	streams := map[string]func() string{}
	for _, path := range []string{"/intents/" + intent + "/subscribe", "/channels/" + channel + "/subscribe"} {
		streams[path] = k.stream("GET", "/api/v1"+path, eve, "")
	}
	socket := k.chatSocket(eve)
	k.say(ann, intent, "before")
	if f := awaitFrame(t, socket, "message"); !strings.Contains(f.Message.Content, "before") {
		t.Errorf("the socket has %+v", f)
	}
	acl("")
	k.openIntent(ann, "PATCH", "/channels/"+channel, `{"members":["ann"]}`)
	k.say(ann, intent, "a secret")
	for path, last := range streams {
		if event := last(); !strings.Contains(event, "before") || strings.Contains(event, "secret") {
			t.Errorf("%s ends with %q", path, event)
		}
	}
	k.write(socket, `{"type":"ping"}`)
	for {
		text, err := k.read(socket)
		if err != nil || strings.Contains(text, "secret") {
			t.Errorf("the socket has %s, %v", text, err)
			break
		}
		if strings.Contains(text, `"pong"`) {
			break
		}
	}
}

// say publishes a message in the channel "lab" of an intent.
func (k *knowing) say(credential, intent, text string) {
	k.t.Helper()
	k.openIntent(credential, "POST", "/intents/"+intent+"/channels/lab/messages", `{"sender":"ann","payload":{"text":"`+text+`"}}`)
}
