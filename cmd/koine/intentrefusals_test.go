package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/dialect/openintent"
)

// A stream of OpenIntent without a credential answers 401, one past the number of streams of
// a principal 429 with Retry-After: for each kind, under both spellings, byte for byte, and not
// before the delay that keeps the SDK from asking at once, for ever. Other paths of the
// protocol answer the same without a delay.
func TestOpenIntentRefusals(t *testing.T) {
	k := startKnowing(t, "--auth", "keys", "--principal-streams", "1")
	key, _ := k.create(`{agentId: "bob"}`)
	get := func(path, key string) (*http.Response, time.Duration) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, k.url+path, nil)
		if err != nil {
			t.Error(err)
			return nil, 0
		}
		if key != "" {
			r.Header.Set("X-API-Key", key)
		}
		began := time.Now()
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return nil, 0
		}
		t.Cleanup(func() { response.Body.Close() })
		return response, time.Since(began)
	}
	made := func(path, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.url+openintent.Root+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {key}}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answer struct{ ID string }
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.ID == "" {
			t.Fatal(response.Status, err)
		}
		return answer.ID
	}
	ids := map[string]string{"agents": "bob", "intents": made("/intents", `{"title":"Q1"}`), "portfolios": made("/portfolios", `{"name":"all"}`)}
	ids["channels"] = made("/intents/"+ids["intents"]+"/channels", `{"name":"progress"}`)
	open, _ := get(openintent.Root+"/agents/bob/subscribe", key)
	if open == nil || open.StatusCode != http.StatusOK {
		t.Fatalf("the stream that is allowed: %v", open)
	}
	const (
		unauthenticated = `{"detail":"Invalid or missing API key","message":"Invalid or missing API key","code":"UNAUTHENTICATED"}`
		limited         = `{"detail":"the server has too many open streams; try again later","message":"the server has too many open streams; try again later","code":"OVERLOADED"}`
	)
	check := func(path, key string, status int, body, retry string, delay time.Duration) {
		response, took := get(path, key)
		if response == nil {
			return
		}
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != status || strings.TrimSpace(string(text)) != body || response.Header.Get("Content-Type") != "application/json" || response.Header.Get("Retry-After") != retry {
			t.Errorf("%s: %v, got %s %s, Retry-After %q, %s; want %d %s, %q", path, err, response.Status, response.Header.Get("Content-Type"), response.Header.Get("Retry-After"), text, status, body, retry)
		}
		if took < delay {
			t.Errorf("%s: %d came after %v, want %v", path, status, took, delay)
		}
	}
	var all sync.WaitGroup
	for _, pattern := range openintent.StreamPaths() {
		path := strings.TrimPrefix(pattern, "GET ")
		for kind, id := range ids {
			if strings.Contains(path, "/"+kind+"/") {
				path = strings.ReplaceAll(path, "{id}", id)
			}
		}
		all.Go(func() { check(path, "", http.StatusUnauthorized, unauthenticated, "", refusalDelay) })
		all.Go(func() { check(path, key, http.StatusTooManyRequests, limited, "5", refusalDelay) })
	}
	all.Wait()
	check(openintent.Root+"/intents", "", http.StatusUnauthorized, unauthenticated, "", 0)
	check(openintent.Root+"/channels/x/messages", "wrong", http.StatusUnauthorized, unauthenticated, "", 0)
}
