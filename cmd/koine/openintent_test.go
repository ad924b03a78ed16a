package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// sdkDirectory is the environment variable with the directory of another copy of the SDK of
// OpenIntent, and sdkRequired the one that makes the absence of httpx an error, in CI.
const (
	sdkDirectory = "KOINE_OPENINTENT_SDK"
	sdkRequired  = "KOINE_OPENINTENT_REQUIRED"
)

// openIntentSDK returns the directory of the SDK, or skips the test.
func openIntentSDK(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a test with Python; -short leaves it out")
	}
	dir := os.Getenv(sdkDirectory)
	if dir == "" {
		dir = "../../internal/third_party/openintent-sdk"
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "openintent", "client.py"))
	}
	if err != nil {
		t.Fatalf("the SDK of OpenIntent is missing: %v", err)
	}
	err = exec.Command("/usr/bin/python3", "-c", "import httpx").Run()
	if err != nil && os.Getenv(sdkRequired) != "" {
		t.Fatalf("Debian's python3-httpx is missing: %v", err)
	}
	if err != nil {
		t.Skipf("SKIPPED: the unmodified SDK of OpenIntent did not run against koine: %v; install python3-httpx", err)
	}
	return dir
}

// runSDK runs testdata/sdk/methods.py with the SDK.
func runSDK(t *testing.T, url, key string, args ...string) {
	t.Helper()
	sdk := openIntentSDK(t)
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(time.Minute))
	defer cancel()
	program := sdkProgram(ctx, sdk, "methods.py", append([]string{url, key}, args...)...)
	if out, err := program.CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// sdkProgram is a program of the dialect's testdata with the SDK.
func sdkProgram(ctx context.Context, sdk, name string, args ...string) *exec.Cmd {
	program := exec.CommandContext(ctx, "/usr/bin/python3", append([]string{"../../internal/dialect/openintent/testdata/sdk/" + name}, args...)...)
	program.Env = append(os.Environ(), "PYTHONPATH="+sdk, "PYTHONDONTWRITEBYTECODE=1")
	return program
}

// The unmodified SDK calls its methods of tiers A to C with one key that acts for its
// agents. Those that fail inside the client are left out: complete_intent and Worker swap
// the arguments of set_status, on_message is never called, and classes decorated with
// Agent have no channels.
func TestOpenIntentSDK(t *testing.T) {
	openIntentSDK(t)
	k := startKnowing(t, "--auth", "keys")
	key, _ := k.create(`{agentId: "dev", actFor: ["*"]}`)
	runSDK(t, k.url, key)
}

// Agents of the unmodified SDK handle assignments: what one returns is in the state of the
// intent, and another one answers ask().
func TestOpenIntentSDKAgents(t *testing.T) {
	openIntentSDK(t)
	k := startKnowing(t, "--auth", "keys")
	key, _ := k.create(`{agentId: "dev", actFor: ["*"]}`)
	runSDK(t, k.url, key, "agents")
}

// The program of docs/openintent.md prints what the page shows.
func TestOpenIntentDocument(t *testing.T) {
	sdk := openIntentSDK(t)
	page := document(t, "docs/openintent.md")
	found := regexp.MustCompile("(?s)```python\n(.*?)```.*?\n\\$ PYTHONPATH=path/to/the/sdk python3 program.py \\S+\n(.*?)```").FindStringSubmatch(page)
	if found == nil {
		t.Fatal("docs/openintent.md has no program with its output")
	}
	_, url := startServer(t, "--demo")
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(time.Minute))
	defer cancel()
	program := exec.CommandContext(ctx, "/usr/bin/python3", "-c", found[1], url)
	program.Env = append(os.Environ(), "PYTHONPATH="+sdk, "PYTHONDONTWRITEBYTECODE=1")
	out, err := program.CombinedOutput()
	if err != nil || string(out) != found[2] {
		t.Errorf("%v\n%s\nthe page shows\n%s", err, out, found[2])
	}
}

// In open mode, below a prefix.
func TestOpenIntentSDKInOpenMode(t *testing.T) {
	openIntentSDK(t)
	_, url := startServer(t, "--openintent-prefix", "/oi")
	runSDK(t, url+"/oi", "dev-key-001")
}

// The programs of RFC-0021 run unchanged: the adapter calls their handlers for messages,
// sends what these return, and gives them channels.
func TestProgramsOfRFC0021(t *testing.T) {
	sdk := openIntentSDK(t)
	k := startKnowing(t, "--auth", "keys")
	key, _ := k.create(`{agentId: "dev", actFor: ["*"]}`)
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(time.Minute))
	defer cancel()
	adapter, err := filepath.Abs("../../client/python")
	if err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(ctx, "/usr/bin/python3", "-m", "koine_openintent", filepath.Join(adapter, "testdata", "rfc0021.py"), k.url, key)
	program.Env = append(os.Environ(), "PYTHONPATH="+adapter+":"+sdk, "PYTHONDONTWRITEBYTECODE=1")
	if out, err := program.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "ok\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The endpoint that an agent registers gets the messages for it, as the events of its stream
// have them, also those of while the endpoint or the server was away: the server is killed
// with SIGKILL and started again.
func TestOpenIntentEndpoint(t *testing.T) {
	type post struct{ body, agent, key string }
	posts, away := make(chan post, 100), make(chan struct{})
	var open atomic.Bool
	open.Store(true)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open.Load() {
			select {
			case away <- struct{}{}:
			default:
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		posts <- post{string(body), r.Header.Get("X-Agent-ID"), r.Header.Get("Idempotency-Key")}
	}))
	defer endpoint.Close()
	dir := t.TempDir()
	s, url := startServerOn(t, dir, "--allow-private-webhooks")
	call := func(method, path, who, body string) (answer map[string]any) {
		t.Helper()
		status, text := ask(t, method, url+"/api/v1"+path, who, body)
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status >= 300 {
			t.Fatal(status, text, err)
		}
		return answer
	}
	call(http.MethodPost, "/agents/register", "bob", `{"agent_id":"bob","endpoint":"`+endpoint.URL+`/in"}`)
	intent := call(http.MethodPost, "/intents", "ann", `{"title":"Q1"}`)["id"].(string)
	send := func(body string) map[string]any {
		return call(http.MethodPost, "/intents/"+intent+"/channels/progress/messages", "ann", body)
	}
	expect := func(sent map[string]any) {
		t.Helper()
		select {
		case got := <-posts:
			sent["intent_id"] = intent
			var told map[string]any
			if err := json.Unmarshal([]byte(got.body), &told); err != nil || !reflect.DeepEqual(told, sent) || got.agent != "bob" || got.key != sent["id"] {
				t.Errorf("the endpoint got %v, %v; want %v", got, err, sent)
			}
		case <-time.After(slowtest.Slack(30 * time.Second)):
			t.Fatal("the endpoint got nothing")
		}
	}
	first := send(`{"sender":"ann","payload":{"n":1}}`)
	expect(first)
	send(`{"sender":"ann","to":"cy","payload":{"n":0}}`)
	open.Store(false)
	second := send(`{"sender":"ann","to":"bob","message_type":"request","payload":{"n":2}}`)
	<-away
	if err := s.process.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	open.Store(true)
	_, url = startServerOn(t, dir, "--allow-private-webhooks")
	third := send(`{"sender":"ann","message_type":"broadcast","payload":{"n":3}}`)
	// Of what was delivered shortly before the kill, a repetition has the same key.
	select {
	case got := <-posts:
		if got.key != first["id"] {
			posts <- got
		}
	case <-time.After(slowtest.Slack(30 * time.Second)):
	}
	expect(second)
	expect(third)
}
