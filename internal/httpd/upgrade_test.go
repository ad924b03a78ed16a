package httpd_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"koine/internal/httpd"
)

// An upgraded connection outlives the stall timeout, takes no place among the requests
// in progress, and is counted with its own status. A foreign page is refused.
func TestUpgrade(t *testing.T) {
	const stall = 20 * time.Millisecond
	s := newServer(httpd.Options{StallTimeout: stall, MaxRequests: 1})
	s.HandleRPC(whoami)
	s.Handle("/socket", httpd.GraphQL, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		for {
			kind, text, err := conn.Read(r.Context())
			if err != nil || conn.Write(r.Context(), kind, text) != nil {
				return
			}
		}
	}))
	r := run(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for origin, reason := range map[string]string{"http://evil.example": "ORIGIN_FORBIDDEN", "null": "ORIGIN_FORBIDDEN", "http://127.0.0.1:1": "ORIGIN_FORBIDDEN"} {
		_, response, err := websocket.Dial(ctx, "ws://"+r.addr+"/socket", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
		if err == nil || response == nil || response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %v, %v, want 403 %s", origin, response, err, reason)
		}
	}
	_, response, err := websocket.Dial(ctx, "ws://"+r.addr+"/socket", &websocket.DialOptions{Host: "evil.example"})
	if err == nil || response == nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("by a foreign name: got %v, %v", response, err)
	}

	conn, _, err := websocket.Dial(ctx, "ws://"+r.addr+"/socket", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"http://" + r.addr}}})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * stall)
	if resp, body := do(t, r, "POST", "/", ""); resp.StatusCode != 200 {
		t.Errorf("a request beside the socket: got %d %s", resp.StatusCode, body)
	}
	if err := conn.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, text, err := conn.Read(ctx); err != nil || string(text) != "hello" {
		t.Errorf("got %q, %v", text, err)
	}
	_ = conn.Close(websocket.StatusNormalClosure, "")
	const line = `koine_http_requests_total{method="GET",route="/socket",status="101"} 1`
	for deadline := time.Now().Add(patience); ; {
		_, body := do(t, r, "GET", "/metrics", "")
		if strings.Contains(body, line) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the metrics have no %s", line)
		}
	}
}
