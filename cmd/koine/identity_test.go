package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"koine/cmd/koine/internal/cli"
)

// knowing is a server that knows its callers.
type knowing struct {
	t     *testing.T
	s     *server
	url   string
	admin string   // the first administrator's key
	said  []string // every answer so far
}

var keyText = regexp.MustCompile(`ak_(?:live|test)_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})`)

func startKnowing(t *testing.T, args ...string) *knowing {
	t.Helper()
	s, url := startServer(t, args...)
	key := keyText.FindString(s.log.String())
	if key == "" {
		t.Fatalf("the server told no key: %s", s.log)
	}
	return &knowing{t: t, s: s, url: url, admin: key}
}

// send sends a request and notes the answer.
func (k *knowing) send(method, path, credential, body string, headers ...string) (int, string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), cli.RequestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, k.url+path, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	answer := fmt.Sprint(response.Header) + string(text)
	k.said = append(k.said, answer)
	return response.StatusCode, string(text)
}

func (k *knowing) graphql(credential, query string) string {
	k.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		k.t.Fatal(err)
	}
	_, text := k.send("POST", "/graphql", credential, string(body), "Accept", "application/json")
	return text
}

// create creates a key; its secret is part of no other answer.
func (k *knowing) create(input string) (key, id string) {
	k.t.Helper()
	text := k.graphql(k.admin, `mutation { createApiKey(input: `+input+`) { secret } }`)
	k.said = k.said[:len(k.said)-1]
	found := keyText.FindStringSubmatch(text)
	if found == nil {
		k.t.Fatalf("no key was made: %s", text)
	}
	return found[0], found[1]
}

// stream opens a stream and gives a function that waits for its last event.
func (k *knowing) stream(method, path, credential, body string, headers ...string) (last func() string) {
	k.t.Helper()
	r, err := http.NewRequestWithContext(k.t.Context(), method, k.url+path, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+credential)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		k.t.Fatalf("%s: %s %s", path, response.Status, text)
	}
	return func() string {
		k.t.Helper()
		ended := make(chan string, 1)
		go func() {
			event := ""
			for lines := bufio.NewScanner(response.Body); lines.Scan(); {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					event = data
				}
			}
			ended <- event
		}()
		select {
		case event := <-ended:
			k.said = append(k.said, event)
			return event
		case <-time.After(cli.RequestTimeout):
			k.t.Fatalf("%s did not end", path)
			return ""
		}
	}
}

const (
	followQuery = `subscription { statementChanged { __typename } }`
	followBody  = `{"query":"` + followQuery + `"}`
	followCall  = `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"` + followQuery + `"}}`
)

// socket opens a WebSocket with the payload of its first message, and follows the
// changes on it.
func (k *knowing) socket(header http.Header, payload string) *websocket.Conn {
	k.t.Helper()
	conn, response, err := websocket.Dial(k.t.Context(), k.url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: header})
	if err != nil {
		k.t.Fatal(err, response)
	}
	k.t.Cleanup(func() { _ = conn.CloseNow() })
	k.write(conn, `{"type":"connection_init"`+payload+`}`)
	return conn
}

func (k *knowing) write(conn *websocket.Conn, text string) {
	k.t.Helper()
	if err := conn.Write(k.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		k.t.Fatal(err)
	}
}

func (k *knowing) read(conn *websocket.Conn) (string, error) {
	ctx, cancel := context.WithTimeout(k.t.Context(), cli.RequestTimeout)
	defer cancel()
	_, text, err := conn.Read(ctx)
	return string(text), err
}

func (k *knowing) wantClose(what string, conn *websocket.Conn, code websocket.StatusCode, reason string) {
	k.t.Helper()
	for {
		_, err := k.read(conn)
		if err == nil {
			continue // a message that was on its way
		}
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != code || closed.Reason != reason {
			k.t.Errorf("%s: closed with %v, want %d %s", what, err, code, reason)
		}
		return
	}
}

// Every kind of stream ends with its credential, with the reason.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	for _, how := range []struct {
		name, reason, message string
		code                  websocket.StatusCode
		closed                string
		end                   func(id string)
	}{
		{"revoked", "UNAUTHENTICATED", "the key was revoked", 4401, "Unauthorized", func(id string) {
			k.graphql(k.admin, `mutation { revokeApiKey(input: {keyId: "`+id+`"}) { key { state } } }`)
		}},
		{"rotated", "UNAUTHENTICATED", "the key has expired", 4401, "Unauthorized", func(id string) {
			k.graphql(k.admin, `mutation { rotateApiKey(input: {keyId: "`+id+`"}) { replaced { state } } }`)
		}},
		{"suspended", "PERMISSION_DENIED", "the agent agent://suspended is suspended", 4403, "Forbidden", func(string) {
			k.graphql(k.admin, `mutation { updateAgent(input: {agentId: "suspended", status: SUSPENDED}) { agent { status } } }`)
		}},
	} {
		key, id := k.create(`{agentId: "` + how.name + `"}`)
		subscribe := k.stream("POST", "/a2a", key, followCall)
		changes := k.stream("GET", "/changes", key, "")
		distinct := k.stream("POST", "/graphql", key, followBody)
		_, token := k.send("PUT", "/graphql", key, "", "Accept", "text/plain")
		single := k.stream("GET", "/graphql", key, "", "X-GraphQL-Event-Stream-Token", token)
		if status, text := k.send("POST", "/graphql", key, strings.TrimSuffix(followBody, "}")+`,"extensions":{"operationId":"1"}}`, "X-GraphQL-Event-Stream-Token", token); status != 202 {
			t.Fatalf("%s: operation on the single connection: %d %s", how.name, status, text)
		}
		byPayload := k.socket(nil, `,"payload":{"authorization":"Bearer `+key+`"}`)
		byHeader := k.socket(http.Header{"X-Api-Key": {key}}, "")
		for _, conn := range []*websocket.Conn{byPayload, byHeader} {
			if text, err := k.read(conn); text != `{"type":"connection_ack"}` {
				t.Fatalf("%s: got %s, %v", how.name, text, err)
			}
			k.write(conn, `{"id":"1","type":"subscribe","payload":`+followBody+`}`)
		}
		how.end(id)
		for name, last := range map[string]func() string{"knowledge/subscribe": subscribe, "/changes": changes, "graphql-sse": distinct} {
			if event := last(); !strings.Contains(event, how.reason) || !strings.Contains(event, how.message) {
				t.Errorf("%s, %s: the last event is %q, want %s: %s", how.name, name, event, how.reason, how.message)
			}
		}
		// That protocol has no event for the whole stream; the next one is refused.
		if event := single(); event != "" {
			t.Errorf("%s, graphql-sse, single: the last event is %q", how.name, event)
		}
		k.wantClose(how.name+", by payload", byPayload, how.code, how.closed)
		k.wantClose(how.name+", by header", byHeader, how.code, how.closed)
		if text := k.graphql(key, `{ me { id } }`); !strings.Contains(text, how.reason) {
			t.Errorf("%s: the next request: %s", how.name, text)
		}
	}
}

// Nothing is done on a socket before its caller is known.
func TestSocketNeedsACredential(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	k.wantClose("nothing", k.socket(nil, ""), 4401, "Unauthorized")
	k.wantClose("a wrong key", k.socket(nil, `,"payload":{"authorization":"Bearer ak_live_x"}`), 4401, "Unauthorized")
	k.wantClose("an agent that it may not act for", k.socket(nil, `,"payload":{"authorization":"Bearer `+k.admin+`","x-agent-id":"smith"}`), 4403, "Forbidden")
	conn, _, err := websocket.Dial(t.Context(), k.url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		t.Fatal(err)
	}
	k.write(conn, `{"id":"1","type":"subscribe","payload":{"query":"{ me { id } }"}}`)
	k.wantClose("an operation first", conn, 4401, "Unauthorized")
	// A stream that was reserved with one key is not used with another's rights.
	key, _ := k.create(`{agentId: "admin"}`)
	_, token := k.send("PUT", "/graphql", k.admin, "", "Accept", "text/plain")
	if status, text := k.send("POST", "/graphql", key, `{"query":"{ me { id } }","extensions":{"operationId":"1"}}`, "X-GraphQL-Event-Stream-Token", token); status != 401 {
		t.Errorf("another key of the same agent: %d %s", status, text)
	}
}

// signHS256 makes a token.
func signHS256(secret []byte, claims map[string]any) string {
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(map[string]any{"alg": "HS256", "kid": "s"}) + "." + part(claims)
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Requests with keys and tokens leave no secret behind: not in the log at its finest, an
// answer, a metric, the graphs, or the files.
func TestNoSecretIsTold(t *testing.T) {
	secret := []byte("a-secret-that-nobody-may-ever-see")
	jwks := filepath.Join(t.TempDir(), "jwks.json")
	set := `{"keys":[{"kty":"oct","kid":"s","k":"` + base64.RawURLEncoding.EncodeToString(secret) + `"}]}`
	if err := os.WriteFile(jwks, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	k := startKnowing(t, "--data", data, "--auth", "keys,jwt", "--log-level", "debug", "--jwks", jwks, "--jwt-issuer", "i", "--jwt-audience", "a", "--jwt-algorithm", "HS256")
	claims := map[string]any{"iss": "i", "aud": "a", "sub": "token-bearer", "exp": time.Now().Add(time.Hour).Unix(), "roles": []string{"x"}}
	token := signHS256(secret, claims)
	claims["exp"] = time.Now().Add(-time.Hour).Unix()
	expired := signHS256(secret, claims)
	dora, id := k.create(`{agentId: "dora", actFor: ["*"], name: "laptop"}`)
	other, otherID := k.create(`{agentId: "chen", mode: TEST}`)
	wrong := dora[:len(dora)-4] + "0000"
	if text := k.graphql(token, `{ me { id method roles } }`); !strings.Contains(text, `{"id":"agent://token-bearer","method":"jwt","roles":["x"]}`) {
		t.Errorf("the token is %s", text)
	}

	const change = `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"justification":"j","mutations":[{"op":"add","statement":{"subject":{"id":"urn:x:s"},"predicate":{"id":"urn:x:p"},"object":{"value":1}}}],"metadata":{"securityToken":"%s","x":1}}}`
	for _, credential := range []string{k.admin, dora, other, token, expired, wrong, token + "x", ""} {
		k.graphql(credential, `{ me { id agent { id } } agents { nodes { id name roles } } apiKeys(includeEnded: true) { nodes { id name agent: agentId } } }`)
		for _, further := range []string{other, token, expired, wrong, dora} {
			k.send("POST", "/", credential, fmt.Sprintf(change, further))
			k.send("POST", "/a2a", credential, strings.Replace(followCall, `"params":{`, `"params":{"unknown":1,"metadata":{"securityToken":"`+further+`"},`, 1))
		}
		k.send("POST", "/", credential, `{"jsonrpc":"2.0","id":1,"method":"knowledge/nothing","params":{}}`)
		k.send("GET", "/data?graphs=x", credential, "")
		k.send("GET", "/metrics", credential, "")
		k.send("GET", "/changes?wrong=1", credential, "")
		k.send("GET", "/nothing", "", "", "X-API-Key", credential)
		k.send("POST", "/graphql", "", `{"query":"{ me { id } }"}`, "Authorization", "Basic "+credential)
		k.send("POST", "/graphql", credential, `{"query":"{ me { id } }"}`, "X-API-Key", credential)
		conn := k.socket(nil, `,"payload":{"authorization":"Bearer `+credential+`"}`)
		text, err := k.read(conn)
		k.said = append(k.said, text, fmt.Sprint(err))
		_ = conn.CloseNow()
	}
	k.graphql(k.admin, `mutation { revokeApiKey(input: {keyId: "`+id+`"}) { key { id agent: agentId } } }`)
	k.graphql(k.admin, `mutation { rotateApiKey(input: {keyId: "`+otherID+`"}) { key { id } replaced { id } } }`)
	if all := k.graphql(k.admin, `{ statements(view: {allGraphs: true}, first: 1000) { nodes { id predicate } } changes(after: "earliest", first: 1000, view: {allGraphs: true}) { nodes { statement { id } } } }`); !strings.Contains(all, "keyHash") {
		t.Errorf("the keys are not among all statements: %.300s", all)
	}
	if _, system := k.send("GET", "/data?graph=urn:koine:graph:system", k.admin, "", "Accept", "application/n-quads"); !strings.Contains(system, "keyHash") {
		t.Errorf("the keys are not in the system graph: %.300s", system)
	}
	for _, credential := range []string{token, other} {
		if _, system := k.send("GET", "/data?graph=urn:koine:graph:system", credential, ""); strings.Contains(system, "keyHash") {
			t.Errorf("others read the system graph: %.300s", system)
		}
	}
	k.send("GET", "/metrics", k.admin, "")
	if err := k.s.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-k.s.ended; err != nil {
		t.Fatal(err)
	}

	log := strings.Replace(k.s.log.String(), k.admin, "", 1) // told once, when it was made
	if !strings.Contains(log, "level=DEBUG msg=request") {
		t.Error("the log does not have the requests")
	}
	part := func(key string) string { return keyText.FindStringSubmatch(key)[2] }
	secrets := map[string]string{
		"the administrator's key": part(k.admin), "dora's key": part(dora), "chen's key": part(other), "the wrong key": part(wrong)[:39],
		"the token": token[strings.LastIndex(token, ".")+1:], "the expired token": expired[strings.LastIndex(expired, ".")+1:],
		"the shared secret": string(secret), "the shared secret, encoded": base64.RawURLEncoding.EncodeToString(secret),
	}
	for name, text := range secrets {
		if strings.Contains(log, text) {
			t.Errorf("the log tells %s", name)
		}
		for _, answer := range k.said {
			if strings.Contains(answer, text) {
				t.Errorf("an answer tells %s: %.300s", name, answer)
			}
		}
		for _, file := range filesBelow(t, data) {
			if content, err := os.ReadFile(file); err != nil || bytes.Contains(content, []byte(text)) {
				t.Errorf("%s tells %s (%v)", file, name, err)
			}
		}
	}
}

func filesBelow(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	return files
}
