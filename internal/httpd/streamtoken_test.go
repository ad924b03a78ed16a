package httpd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"koine/internal/caller"
	"koine/internal/httpd"
	"koine/internal/slowtest"
	"koine/kg"
)

// streamServer knows two keys, and streams until the request ends.
type streamServer struct {
	running
	log *bytes.Buffer
	mu  sync.Mutex // guards the following fields and log
	end map[string]func(error)
}

func startStreams(t *testing.T) *streamServer {
	t.Helper()
	f := &streamServer{log: new(bytes.Buffer), end: map[string]func(error){}}
	s := newServer(httpd.Options{AllowOrigins: []string{"https://app.example"},
		Logger: slog.New(slog.NewTextHandler(&lockedWriter{&f.mu, f.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Admit: func(_ context.Context, credential string, end func(error)) (kg.Principal, func(), error) {
			if !strings.HasPrefix(credential, "key-") {
				return kg.Principal{}, nil, kg.Errorf(kg.CodeUnauthenticated, "no such key")
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.end[credential] = end
			return kg.Principal{ID: kg.AgentID("agent://" + credential[4:]), Method: "key", ActFor: []kg.AgentID{"agent://other"}}, func() {}, nil
		}})
	s.Handle("/changes", httpd.Plain, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by := caller.From(r.Context())
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s %s %s %s\n\n", by.Principal.ID, by.Acting(), r.URL.RawQuery, r.RequestURI)
		w.(http.Flusher).Flush()
		if r.URL.Query().Get("live") != "" {
			<-r.Context().Done()
			fmt.Fprintf(w, "data: %v\n\n", context.Cause(r.Context()))
		}
	}))
	s.Handle("/data", httpd.Plain, whoami)
	s.HandleStream("/changes")
	f.running = run(t, s)
	return f
}

// token requests a token and returns the address that it opens.
func (f *streamServer) token(t *testing.T, what string, headers ...string) (token, address string) {
	t.Helper()
	resp, body := do(t, f.running, "POST", "/stream-token", `{"url":"`+what+`"}`, append(headers, "Content-Type: application/json", "X-API-Key: key-ann")...)
	var made struct {
		Token, URL  string
		ExpiresInMs int64
	}
	if err := json.Unmarshal([]byte(body), &made); err != nil || resp.StatusCode != 201 || made.Token == "" || made.ExpiresInMs != 60_000 || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s: got %s %s", what, resp.Status, body)
	}
	return made.Token, made.URL
}

const events = "Accept: text/event-stream"

// A token opens its one stream, once, for its creator; no handler and no log sees it.
func TestStreamToken(t *testing.T) {
	f := startStreams(t)
	token, address := f.token(t, "/changes?graph=urn:a&after=x%20y", "X-Agent-ID: other")
	if want := "/changes?graph=urn:a&after=x%20y&streamToken=" + token; address != want {
		t.Errorf("got %s, want %s", address, want)
	}
	resp, body := do(t, f.running, "GET", address, "", events, "Origin: https://app.example")
	if want := "data: agent://ann agent://other graph=urn:a&after=x%20y /changes?graph=urn:a&after=x%20y\n\n"; resp.StatusCode != 200 || body != want {
		t.Errorf("got %s %q, want %q", resp.Status, body, want)
	}
	if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "https://app.example" {
		t.Errorf("the page may not read the stream: %q", got)
	}
	if exposed := resp.Header.Get("Access-Control-Expose-Headers"); !strings.Contains(exposed, "Koine-Position") || !strings.Contains(exposed, "Koine-Revision") || !strings.Contains(exposed, "Koine-Unknown-Names") {
		t.Errorf("exposed are %s", exposed)
	}
	if resp.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Error("the answer lets an address go out as a Referer")
	}
	if resp, body := do(t, f.running, "GET", address, "", events); resp.StatusCode != 401 || !strings.Contains(body, "the stream token was used") || strings.Contains(body, token) {
		t.Errorf("the second time: got %s %s", resp.Status, body)
	}
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	if f.mu.Lock(); strings.Contains(f.log.String(), token) || !strings.Contains(f.log.String(), "path=/changes") {
		t.Errorf("the log:\n%s", f.log)
	}
	f.mu.Unlock()
}

// A token does not open anything else, and the attempt consumes it.
func TestStreamTokenForSomethingElse(t *testing.T) {
	f := startStreams(t)
	for _, row := range []struct{ name, method, path, accept string }{
		{"another query", "GET", "/changes?graph=urn:b", events},
		{"more of a query", "GET", "/changes?graph=urn:a&graph=urn:b", events},
		{"no query", "GET", "/changes?", events},
		{"another path", "GET", "/data?graph=urn:a", events},
		{"another method", "POST", "/changes?graph=urn:a", events},
		{"no stream", "GET", "/changes?graph=urn:a", "Accept: application/json"},
	} {
		token, _ := f.token(t, "/changes?graph=urn:a")
		if resp, body := do(t, f.running, row.method, row.path+"&streamToken="+token, "", row.accept); resp.StatusCode != 401 {
			t.Errorf("%s: got %s %s", row.name, resp.Status, body)
		}
		if resp, _ := do(t, f.running, "GET", "/changes?graph=urn:a&streamToken="+token, "", events); resp.StatusCode != 401 {
			t.Errorf("%s: the token is still good", row.name)
		}
	}
	for _, body := range []string{``, `{}`, `{"url":""}`, `{"url":"/data"}`, `{"url":"/stream-token"}`, `{"url":"https://elsewhere.example/changes"}`, `{"url":"//elsewhere/changes"}`,
		`{"url":"/changes?streamToken=x"}`, `{"url":"/changes?%zz"}`, `{"url":"/changes#x"}`, `{"url":"/changes?` + strings.Repeat("x", httpd.MaxStreamURLBytes) + `"}`} {
		if resp, answer := do(t, f.running, "POST", "/stream-token", body, "Content-Type: application/json", "X-API-Key: key-ann"); resp.StatusCode != 400 {
			t.Errorf("%.60s: got %s %s", body, resp.Status, answer)
		}
	}
	if resp, body := do(t, f.running, "POST", "/stream-token", `{"url":"/changes"}`, "Content-Type: application/json"); resp.StatusCode != 401 {
		t.Errorf("without a credential: got %s %s", resp.Status, body)
	}
	if resp, body := do(t, f.running, "POST", "/stream-token", `{"url":"/changes"}`, "Content-Type: text/plain", "X-API-Key: key-ann"); resp.StatusCode != 400 {
		t.Errorf("a form of another site: got %s %s", resp.Status, body)
	}
}

// The stream ends with the credential.
func TestStreamTokenEndsWithTheCredential(t *testing.T) {
	f := startStreams(t)
	_, address := f.token(t, "/changes?live=1")
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+f.addr+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	f.mu.Lock()
	end := f.end["key-ann"]
	f.mu.Unlock()
	end(kg.Errorf(kg.CodeUnauthenticated, "the key was revoked"))
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "the key was revoked") {
		t.Errorf("got %s, %v", text, err)
	}
}

// One caller has half of the unused tokens, and open mode has none.
func TestStreamTokenBounds(t *testing.T) {
	slowtest.Long(t)
	f := startStreams(t)
	ask := func(key string) int {
		resp, _ := do(t, f.running, "POST", "/stream-token", `{"url":"/changes"}`, "Content-Type: application/json", "X-API-Key: "+key)
		return resp.StatusCode
	}
	for range httpd.MaxStreamTokens / 2 {
		if got := ask("key-ann"); got != 201 {
			t.Fatalf("within the share: got %d", got)
		}
	}
	if got := ask("key-ann"); got != 429 {
		t.Errorf("past the share: got %d", got)
	}
	if got := ask("key-bob"); got != 201 {
		t.Errorf("another caller: got %d", got)
	}
	open := newServer(httpd.Options{})
	if resp, body := do(t, run(t, open), "POST", "/stream-token", `{"url":"/changes"}`, "Content-Type: application/json"); resp.StatusCode != 404 {
		t.Errorf("in open mode: got %s %s", resp.Status, body)
	}
}
