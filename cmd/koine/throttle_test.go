package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// limitedAnswer is a refusal, in whatever protocol.
func limitedAnswer(t *testing.T, response *http.Response) (code string) {
	t.Helper()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" || !json.Valid(text) {
		t.Errorf("got %s, Retry-After %q, %s", response.Status, response.Header.Get("Retry-After"), text)
	}
	return string(text)
}

// The limits of an operator hold through the whole server: of updates, at
// whatever door, of streams and sockets, and of what runs on a socket.
func TestLimitsThroughTheServer(t *testing.T) {
	_, url := startServer(t, "--principal-updates", "0.001", "--principal-streams", "1")
	call := func(method, params string) *http.Response {
		t.Helper()
		response, err := http.Post(url+"/a2a", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	const update = `{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":1}}}]}`
	first := call("knowledge/update", update)
	if first.Body.Close(); first.StatusCode != http.StatusOK {
		t.Fatalf("the update that is allowed: %s", first.Status)
	}
	if got := limitedAnswer(t, call("knowledge/update", update)); !strings.Contains(got, `"code":-31105`) || !strings.Contains(got, "updates") {
		t.Errorf("got %s", got)
	}
	response, err := http.Post(url+"/data", "application/n-triples", strings.NewReader("<urn:a> <urn:b> <urn:c> .\n"))
	if err != nil {
		t.Fatal(err)
	}
	limitedAnswer(t, response)

	subscribe(t, url, "subscription { statementChanged { __typename } }", nil)
	if response, err = http.Get(url + "/changes"); err != nil {
		t.Fatal(err)
	}
	limitedAnswer(t, response)
	conn, response, err := websocket.Dial(t.Context(), url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err == nil {
		conn.CloseNow()
		t.Fatal("a socket past the number was opened")
	}
	limitedAnswer(t, response)
}

func TestOperationsOfASocketCount(t *testing.T) {
	_, url := startServer(t, "--principal-requests", "0.3") // three at once
	conn, _, err := websocket.Dial(t.Context(), url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	refused := false
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"connection_init"}`)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"id":"1","type":"subscribe","payload":{"query":"{ __typename }"}}`)); err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			_, text, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			refused = refused || strings.Contains(string(text), `"code":"RATE_LIMITED"`)
			done = strings.Contains(string(text), `"type":"complete"`) || strings.Contains(string(text), `"type":"error"`)
		}
	}
	if !refused {
		t.Error("ten operations of a socket passed a limit of three")
	}
}
