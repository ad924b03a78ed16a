package main

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// A JSON Web Token is accepted as a bearer: of a request, of a socket, and in its first
// frame. Requests with it are those of its subject; one that has ended, or was issued by
// another party, is refused.
func TestRESTTokens(t *testing.T) {
	secret := []byte("a-secret-of-at-least-thirty-two-bytes")
	jwks := filepath.Join(t.TempDir(), "jwks.json")
	set := `{"keys":[{"kty":"oct","kid":"s","k":"` + base64.RawURLEncoding.EncodeToString(secret) + `"}]}`
	if err := os.WriteFile(jwks, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	k := startKnowing(t, "--auth", "keys,jwt", "--jwks", jwks, "--jwt-issuer", "i", "--jwt-audience", "a", "--jwt-algorithm", "HS256")
	token := func(secret, audience string, lasts time.Duration) string {
		return signHS256([]byte(secret), map[string]any{"iss": "i", "aud": audience, "sub": "ann", "exp": time.Now().Add(lasts).Unix()})
	}
	good := token(string(secret), "a", time.Hour)
	bad := map[string]string{
		"ended":            token(string(secret), "a", -time.Hour),
		"of another maker": token("another-secret-of-thirty-two-bytes-", "a", time.Hour),
		"for others":       token(string(secret), "b", time.Hour),
	}
	dial := func(token string) (*websocket.Conn, *http.Response, error) {
		h := http.Header{}
		if token != "" {
			h.Set("Authorization", "Bearer "+token)
		}
		conn, response, err := websocket.Dial(t.Context(), k.url+"/rest/ws", &websocket.DialOptions{HTTPHeader: h})
		if err == nil {
			t.Cleanup(func() { _ = conn.CloseNow() })
		}
		return conn, response, err
	}
	for name, token := range bad {
		if status, text := k.send(http.MethodGet, "/rest/agents", token, ""); status != http.StatusUnauthorized || !strings.HasPrefix(text, `{"error":{"code":"AUTHENTICATION_ERROR"`) {
			t.Errorf("one %s: got %d %s", name, status, text)
		}
		if _, response, err := dial(token); err == nil || response == nil || response.StatusCode != http.StatusUnauthorized {
			t.Errorf("a socket with one %s: %v", name, err)
		}
	}
	status, text := k.send(http.MethodPost, "/rest/agents/koine/messages", good, `{"message":[{"type":"text","content":"help"}]}`)
	if status != http.StatusAccepted {
		t.Fatalf("got %d %s", status, text)
	}
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(text)
	_, text = k.send(http.MethodGet, "/rest/messages/"+id+".1", good, "")
	tells(t, text, `"from":"ann"`)
	if status, text := k.send(http.MethodGet, "/rest/agents", k.admin, ""); status != http.StatusOK {
		t.Errorf("a key beside tokens: %d %s", status, text)
	}

	const ask = `{"type":"task.updated","requestId":1,"task":{"id":"none"}}`
	for name, first := range map[string]string{"a header": "", "a frame": `{"type":"auth","authorization":"Bearer ` + good + `"}`} {
		with := good
		if first != "" {
			with = ""
		}
		c, _, err := dial(with)
		if err != nil {
			t.Fatal(err)
		}
		if first != "" {
			k.write(c, first)
		}
		k.write(c, ask)
		got, err := k.read(c)
		for err == nil && strings.Contains(got, `"type":"task.completed"`) { // of the message above
			got, err = k.read(c)
		}
		if err != nil || !strings.Contains(got, `"code":"TASK_NOT_FOUND"`) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	c, _, err := dial("")
	if err != nil {
		t.Fatal(err)
	}
	k.write(c, `{"type":"auth","authorization":"Bearer `+bad["ended"]+`"}`)
	for {
		got, err := k.read(c)
		if err == nil && strings.Contains(got, `"code":"AUTHENTICATION_ERROR"`) {
			continue
		}
		if err == nil {
			t.Errorf("a frame with one that ended: %s", got)
			break
		}
		if code := websocket.CloseStatus(err); code != 4401 {
			t.Errorf("a frame with one that ended: closed with %d (%v)", code, err)
		}
		break
	}
}
