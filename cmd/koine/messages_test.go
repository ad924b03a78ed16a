package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// TestMessagesAreToldEverywhere proves that the messages of a channel are delivered by a
// subscription over SSE, a socket and knowledge/subscribe, earlier ones included, and that
// all of them end when the reader is no member any more.
func TestMessagesAreToldEverywhere(t *testing.T) {
	_, url := startServer(t)
	ask := func(name, document string) string {
		t.Helper()
		body, _ := json.Marshal(map[string]string{"query": document})
		_, text := asAgent(t, url+"/graphql", name, string(body))
		if strings.Contains(text, `"errors"`) {
			t.Fatal(text)
		}
		return text
	}
	var made struct {
		Data struct {
			CreateChannel struct{ Channel struct{ ID string } }
		}
	}
	if err := json.Unmarshal([]byte(ask("ann", `mutation { createChannel(input: {members: [{agentId: "bob"}]}) { channel { id } } }`)), &made); err != nil {
		t.Fatal(err)
	}
	id := made.Data.CreateChannel.Channel.ID
	say := func(text string) {
		t.Helper()
		ask("ann", fmt.Sprintf(`mutation { publishMessage(input: {channelId: "%s", parts: [{text: "%s"}]}) { success } }`, id, text))
	}
	say("before")
	query := fmt.Sprintf(`subscription { messagePublished(where: {channelId: "%s"}, sinceSequence: 0) { ... on MessagePublished { sequence message { text } } } }`, id)
	body, _ := json.Marshal(map[string]string{"query": query})
	call, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "knowledge/subscribe", "params": map[string]string{"subscriptionQuery": query}})
	conn, _, err := websocket.Dial(t.Context(), url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"X-Agent-ID": {"bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	for _, message := range []string{`{"type":"connection_init"}`, `{"id":"1","type":"subscribe","payload":` + string(body) + `}`} {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	socket := func() string {
		_, text, err := conn.Read(t.Context())
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	if text := socket(); !strings.Contains(text, "connection_ack") {
		t.Fatal(text)
	}
	ways := map[string]func() string{"SSE": streamOf(t, url+"/graphql", "bob", string(body)), "a socket": socket, "knowledge/subscribe": streamOf(t, url+"/a2a", "bob", string(call))}
	want := func(parts ...string) {
		t.Helper()
		for way, next := range ways {
			text := next()
			for _, part := range parts {
				if !strings.Contains(text, part) {
					t.Errorf("%s: got %s, want %s", way, text, part)
				}
			}
		}
	}
	want(`"sequence":1,"message":{"text":"before"}`)
	say("after")
	want(`"sequence":2,"message":{"text":"after"}`)
	ask("ann", fmt.Sprintf(`mutation { removeChannelMember(input: {channelId: "%s", agentId: "bob"}) { channel { id } } }`, id))
	want("CHANNEL_NOT_FOUND")
}
