package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
)

// requestAs sends a request of the bot and returns the status and the body of its answer.
func requestAs(t *testing.T, method, url, kind, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Agent-ID", "bot")
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
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

// At the root the REST protocol's errors are those of all unknown paths, and a request for
// a socket without an upgrade gets the reason.
func TestErrorsOfRESTAtTheRoot(t *testing.T) {
	_, url := startServer(t, "--rest-prefix", "/")
	for _, c := range []struct {
		method, path, kind, body string
		status                   int
		has                      string
	}{
		{"GET", "/nothing", "", "", http.StatusNotFound, `"code":"NOT_FOUND"`},
		{"GET", "/tasks/none", "", "", http.StatusNotFound, `"code":"TASK_NOT_FOUND"`},
		{"GET", "/ws", "", "", http.StatusUpgradeRequired, `"code":"INVALID_REQUEST"`},
		{"POST", "/agents/koine/messages", "text/plain", `{"message":[{"type":"text","content":"help"}]}`, http.StatusUnsupportedMediaType, `"reason":"CONTENT_TYPE"`},
		{"PUT", "/agents/bot", "text/plain", `{"name":"Bot"}`, http.StatusUnsupportedMediaType, `"code":"CONTENT_TYPE"`},
	} {
		if status, text := requestAs(t, c.method, url+c.path, c.kind, c.body); status != c.status || !strings.Contains(text, c.has) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, status, text, c.status, c.has)
		}
	}
	_, url = startServer(t)
	if status, text := requestAs(t, "GET", url+"/nothing", "", ""); status != http.StatusNotFound || strings.Contains(text, `"code":"NOT_FOUND"`) {
		t.Errorf("without the root: %d %s", status, text)
	}
}

// The official Go client finds koine and an agent behind it by each common address, with
// cards of any version.
func TestCardsAreFoundByEachAddress(t *testing.T) {
	for _, card := range []string{"both", "1.0", "0.3"} {
		_, url := startServer(t, "--card", card)
		if status, text := requestAs(t, "PUT", url+"/agents/bot", "application/json", `{"name":"Bot","version":"1"}`); status != http.StatusCreated {
			t.Fatal(text)
		}
		for path, name := range map[string]string{"": "koine", "/": "koine", "/a2a": "koine", "/agents/bot": "Bot", "/agents/bot/": "Bot", "/agents/bot/a2a": "Bot", "/agents/bot/a2a/": "Bot"} {
			status, text := requestAs(t, "GET", strings.TrimSuffix(url+path, "/")+"/.well-known/agent-card.json", "", "")
			if has := strings.Contains(text, `"supportedInterfaces"`); status != http.StatusOK || has != (card != "0.3") {
				t.Errorf("--card %s, %s: %d %s", card, path, status, text)
			}
			if has := strings.Contains(text, `"preferredTransport"`); has != (card != "1.0") {
				t.Errorf("--card %s, %s: %s", card, path, text)
			}
			if card == "0.3" {
				continue // the client that reads it is the JavaScript one
			}
			found, err := agentcard.NewResolver(http.DefaultClient).Resolve(t.Context(), url+path)
			if err != nil || found.Name != name {
				t.Errorf("--card %s, %s: %+v, %v", card, path, found, err)
				continue
			}
			client, err := a2aclient.NewFromCard(t.Context(), found)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.ListTasks(t.Context(), &sdk.ListTasksRequest{}); err != nil {
				t.Errorf("--card %s, %s: %v", card, path, err)
			}
		}
		if status, text := requestAs(t, "GET", url+"/agents/bot/a2a", "", ""); status != http.StatusOK || !strings.Contains(text, `"name":"Bot"`) {
			t.Errorf("the endpoint itself: %d %s", status, text)
		}
		if status, text := requestAs(t, "GET", url+"/agents/.well-known/agent-card.json", "", ""); status != http.StatusNotFound || !strings.Contains(text, "/agents/<id>/") {
			t.Errorf("of nobody: %d %s", status, text)
		}
	}
}

// The official JavaScript clients take a card of their version alone.
func TestOfficialScriptClientsTakeCardsOfOneVersion(t *testing.T) {
	for _, version := range []string{"1.0", "0.3"} {
		runClient(t, version, "JSONRPC", "sdk.mjs", "--conformance-agent", "--allow-private-webhooks", "--card", version)
	}
}
