package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"koine/internal/slowtest"
)

// limitedAnswer is a refusal, in any protocol.
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

// The limits of an operator hold through the whole server: of updates, over every protocol,
// of streams and sockets, and of operations on a socket.
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

// The quota of stored statements holds for every protocol, and removals free it.
func TestStatementsOfAnAgent(t *testing.T) {
	_, url := startServer(t, "--principal-statements", "2")
	post := func(path, contentType, body, want string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("X-Agent-ID", "ann")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || !strings.Contains(string(text), want) || want != "" && (!strings.Contains(string(text), "LIMIT_EXCEEDED") || !strings.Contains(string(text), "may back 2")) {
			t.Errorf("%s %s: got %s %s, want %s", path, body, response.Status, text, want)
		}
		if (response.StatusCode < 300) != (want == "" || path != "/data") {
			t.Errorf("%s %s: %s", path, body, response.Status)
		}
	}
	update := func(op, object, want string) {
		t.Helper()
		post("/a2a", "application/json", `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[{"op":"`+op+`","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":`+object+`}}}]}}`, want)
	}
	update("add", "1", "")
	update("add", "2", "")
	update("add", "3", `"code":-32602`)
	post("/graphql", "application/json", `{"query":"mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: \"urn:s\"}, predicate: {id: \"urn:p\"}, object: {value: 3}}}]}) { revision } }"}`, `"limit":"statements"`)
	post("/data", "application/n-triples", "<urn:a> <urn:b> <urn:c> .\n", "LIMIT_EXCEEDED")
	update("remove", "1", "")
	update("add", "3", "")

	response, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	for _, want := range []string{"koine_store_source_statements_max 2\n", "koine_store_source_statements_bound 2\n", "koine_store_source_statements_refused_total 3\n", "koine_store_sources 1\n"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("the metrics lack %q (%v)", want, err)
		}
	}
}

// An import completes at any length, and counts in proportion.
func TestImportsCountInProportion(t *testing.T) {
	slowtest.Long(t)
	_, url := startServer(t, "--principal-updates", "0.11") // two at once, and one every nine seconds
	send := func(from, to int) *http.Response {
		t.Helper()
		var text strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&text, "<urn:s:%d> <urn:p> <urn:o> .\n", i)
		}
		response, err := http.Post(url+"/data?default", "application/n-triples", strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	response := send(0, 50_001) // six
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("the import: %s %s", response.Status, text)
	}
	response = send(0, 1)
	limitedAnswer(t, response) // by itself, the import would have left one
}

func TestSharesThatMayBeSaid(t *testing.T) {
	said := func(n int64) *int64 { return &n }
	for _, row := range []struct {
		flag               *int64
		open               bool
		statements, graphs uint64
		ok                 bool
	}{
		{nil, true, 0, 0, true}, {nil, false, principalStatements, principalGraphs, true}, {said(0), false, 0, 0, true}, {said(7), true, 7, 7, true},
		{said(maxShare), false, maxShare, maxShare, true}, {said(maxShare + 1), false, 0, 0, false}, {said(-1), false, 0, 0, false},
	} {
		statements, graphs, err := throttleFlags{PrincipalStatements: row.flag, PrincipalGraphs: row.flag}.principalQuotas(row.open)
		if statements != row.statements || graphs != row.graphs || (err == nil) != row.ok {
			t.Errorf("%+v: got %d, %d, %v", row, statements, graphs, err)
		}
	}
}

// An agent creates as many graphs as it may, and no more.
func TestGraphsOfAnAgent(t *testing.T) {
	_, url := startServer(t, "--principal-graphs", "1")
	create := func(agent string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/graphql", strings.NewReader(`{"query":"mutation { createGraph(input: {}) { graph { iri } } }"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Agent-ID", agent)
		response, err := http.DefaultClient.Do(request)
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
	for _, agent := range []string{"ann", "bob"} {
		if got := create(agent); strings.Contains(got, "errors") {
			t.Errorf("%s: %s", agent, got)
		}
		if got := create(agent); !strings.Contains(got, `"code":"LIMIT_EXCEEDED"`) || !strings.Contains(got, `"limit":"graphs"`) {
			t.Errorf("%s, once more: %s", agent, got)
		}
	}
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

// A throttled call of the channels extension is its RateLimitError, with HTTP 200.
func TestLimitsOfChannels(t *testing.T) {
	_, url := startServer(t, "--principal-updates", "0.2", "--principal-histories", "0.001")
	call := func(method, params string) string {
		t.Helper()
		response, err := http.Post(url+"/a2a", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", method, response.Status, text, err)
		}
		return string(text)
	}
	var made struct {
		Result struct{ Channel struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(call("channels/create", `{}`)), &made); err != nil || made.Result.Channel.ID == "" {
		t.Fatal(err)
	}
	about := `{"channelId":"` + made.Result.Channel.ID + `"`
	limited := func(text string) bool {
		return strings.Contains(text, `"error":{"code":-31105,`) && strings.Contains(text, `"reason":"RATE_LIMITED"`) && strings.Contains(text, `"retryAfterMs":`)
	}
	call("channels/publish", about+`,"parts":[{"text":"one"}]}`) // two at once, and one more in five seconds
	for n := 0; !limited(call("channels/publish", about+`,"parts":[{"text":"again"}]}`)); n++ {
		if n == 1000 {
			t.Fatal("publishing has no limit")
		}
	}
	call("channels/history", about+"}")
	if got := call("channels/history", about+"}"); !limited(got) {
		t.Errorf("the second read of history: got %s", got)
	}
}
