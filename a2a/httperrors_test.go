package a2a_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
	"koine/kg/kgtest"
)

// overHTTP sends a request of ann over HTTP+JSON, with more headers as "Name: value".
func (s *testServer) overHTTP(t *testing.T, method, path, body string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	head := append([]string{method + " " + path, "X-Agent-ID: ann", "Content-Type: application/json"}, headers...)
	resp := s.send(t, []byte(strings.Join(head, "\n")+"\n\n"+body), nil)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, got
}

// httpError is an error as the official clients read it: those of 1.0 and of Go by
// error.details, the JavaScript client of 0.3 by code.
type httpError struct {
	Code    *int
	Message string
	Error   struct {
		Code            int
		Status, Message string
		Details         []struct {
			Type           string `json:"@type"`
			Reason, Domain string
		}
	}
}

// readsError replays an answer to the official Go client and returns its error.
func readsError(t *testing.T, resp *http.Response, body []byte) error {
	t.Helper()
	replay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(body)
	}))
	defer replay.Close()
	client, err := a2aclient.NewFromEndpoints(t.Context(), []*sdk.AgentInterface{sdk.NewAgentInterface(replay.URL, sdk.TransportProtocolHTTPJSON)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.GetTask(t.Context(), &sdk.GetTaskRequest{ID: "x"})
	return err
}

// wantHTTPError checks an error: its status, its name in google.rpc.Code, its first reason,
// the code of JSON-RPC in 0.3 alone, and what the Go client makes of it.
func wantHTTPError(t *testing.T, resp *http.Response, body []byte, status int, name, reason, domain string, rpc int, known error) {
	t.Helper()
	var e httpError
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatalf("%v: %d %s", err, resp.StatusCode, body)
	}
	if resp.StatusCode != status || e.Error.Code != status || e.Error.Status != name || e.Error.Message == "" || len(e.Error.Details) == 0 {
		t.Fatalf("got %d %s, want %d %s", resp.StatusCode, body, status, name)
	}
	if d := e.Error.Details[0]; d.Type != "type.googleapis.com/google.rpc.ErrorInfo" || d.Reason != reason || d.Domain != domain {
		t.Errorf("got %s, want %s of %s", body, reason, domain)
	}
	switch old := strings.Contains(resp.Request.URL.Path, "/http/v1/"); {
	case !old && (e.Code != nil || e.Message != ""):
		t.Errorf("1.0 has the members of 0.3: %s", body)
	case old && (e.Code == nil || *e.Code != rpc || e.Message != e.Error.Message):
		t.Errorf("got %s, want the code %d", body, rpc)
	}
	if err := readsError(t, resp, body); !errors.Is(err, known) {
		t.Errorf("the Go client reads %v, want %v: %s", err, known, body)
	}
}

// Each error of A2A 1.0, section 5.4, has its HTTP status, its name and its reason (section
// 11.6) over HTTP+JSON. -32006 and -32008 are not koine's to send: it checks what agents
// report when they report it, and no extension of its card is required.
func TestHTTPErrorsOfTheSpecification(t *testing.T) {
	s := newTestServer(t)
	ended := remembered["task"].FindStringSubmatch(s.call(t, "ann", "SendMessage", `{"message":{"messageId":"w","role":"ROLE_USER","parts":[{"text":"do it"}]}}`))[1]
	const precondition = "FAILED_PRECONDITION"
	for _, row := range []struct {
		rpc, status      int
		name, reason     string
		known            error
		method, path     string // below /http
		path03           string // where 0.3 has another
		body, body03     string
		header, endpoint string
	}{
		{rpc: -32001, status: 404, name: "NOT_FOUND", reason: "TASK_NOT_FOUND", known: sdk.ErrTaskNotFound, method: "GET", path: "tasks/none"},
		{rpc: -32002, status: 400, name: precondition, reason: "TASK_NOT_CANCELABLE", known: sdk.ErrTaskNotCancelable, method: "POST", path: "tasks/" + ended + ":cancel"},
		{rpc: -32003, status: 400, name: precondition, reason: "PUSH_NOTIFICATION_NOT_SUPPORTED", known: sdk.ErrPushNotificationNotSupported,
			endpoint: "/bare", method: "GET", path: "tasks/" + ended + "/pushNotificationConfigs"},
		{rpc: -32004, status: 400, name: precondition, reason: "UNSUPPORTED_OPERATION", known: sdk.ErrUnsupportedOperation, method: "POST", path: "tasks/" + ended + ":subscribe"},
		{rpc: -32005, status: 400, name: "INVALID_ARGUMENT", reason: "CONTENT_TYPE_NOT_SUPPORTED", known: sdk.ErrUnsupportedContentType, method: "POST", path: "message:send",
			body:   `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"aGk=","mediaType":"image/png"}]}}`,
			body03: `{"message":{"messageId":"m","role":"ROLE_USER","content":[{"file":{"fileWithBytes":"aGk=","mimeType":"image/png"}}]}}`},
		{rpc: -32007, status: 400, name: precondition, reason: "EXTENDED_AGENT_CARD_NOT_CONFIGURED", known: sdk.ErrExtendedCardNotConfigured,
			endpoint: "/bare", method: "GET", path: "extendedAgentCard", path03: "card"},
		{rpc: -32009, status: 400, name: precondition, reason: "VERSION_NOT_SUPPORTED", known: sdk.ErrVersionNotSupported, method: "GET", path: "tasks/none", header: "A2A-Version: 99.0"},
	} {
		for _, version := range []string{"1.0", "0.3"} {
			t.Run(fmt.Sprint(row.rpc, " in ", version), func(t *testing.T) {
				base, path, body := cmp.Or(row.endpoint, "/a2a")+"/http/", row.path, row.body
				if version == "0.3" {
					base, path, body = base+"v1/", cmp.Or(row.path03, row.path), row.body03
				}
				var headers []string
				if row.header != "" {
					headers = []string{row.header}
				}
				resp, got := s.overHTTP(t, row.method, base+path, body, headers...)
				wantHTTPError(t, resp, got, row.status, row.name, row.reason, "a2a-protocol.org", row.rpc, row.known)
			})
		}
	}
}

// Each kg.Code has one status over HTTP+JSON, in both versions and for streams as for
// answers: a stream that is refused has not begun. A delay is told as Retry-After.
func TestHTTPErrorTable(t *testing.T) {
	var refuse error
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Admit: func(context.Context, kg.Meta) error { return refuse }}}, sse.Options{}, a2a.Options{})
	const ours, theirs = "koine", "a2a-protocol.org"
	type row struct {
		status         int
		name           string
		rpc            int
		known          error
		reason, domain string
	}
	invalid := row{400, "INVALID_ARGUMENT", -32602, sdk.ErrInvalidParams, "", ours}
	denied := row{403, "PERMISSION_DENIED", -31403, sdk.ErrUnauthorized, "", ours}
	busy := row{429, "RESOURCE_EXHAUSTED", -31105, sdk.ErrInternalError, "", ours}
	away := row{503, "UNAVAILABLE", -32603, sdk.ErrInternalError, "", ours}
	again := row{400, "FAILED_PRECONDITION", -32603, sdk.ErrInternalError, "RESYNC", ours}
	internal := row{500, "INTERNAL", -32603, sdk.ErrInternalError, "INTERNAL", ours}
	classes := map[kg.Class]row{
		kg.ClassInvalid: invalid, kg.ClassLimit: invalid, kg.ClassNotFound: invalid, kg.ClassConflict: invalid,
		kg.ClassDenied: denied, kg.ClassRate: busy, kg.ClassUnavailable: away,
	}
	codes := map[kg.Code]row{
		kg.CodeTaskNotFound:    {404, "NOT_FOUND", -32001, sdk.ErrTaskNotFound, "TASK_NOT_FOUND", theirs},
		kg.CodeTaskEnded:       {400, "FAILED_PRECONDITION", -32004, sdk.ErrUnsupportedOperation, "UNSUPPORTED_OPERATION", theirs},
		kg.CodeContentType:     {400, "INVALID_ARGUMENT", -32005, sdk.ErrUnsupportedContentType, "CONTENT_TYPE_NOT_SUPPORTED", theirs},
		kg.CodeUnauthenticated: {401, "UNAUTHENTICATED", -31401, sdk.ErrUnauthenticated, "", ours},
		kg.CodeResync:          again,
		kg.CodeAccessChanged:   again,
		kg.CodeClosed:          {503, "UNAVAILABLE", -32603, sdk.ErrInternalError, "SERVER_SHUTDOWN", ours},
	}
	for _, code := range kgtest.Codes(t, "../kg") {
		want, ok := codes[code]
		if !ok {
			if want, ok = classes[code.Class()]; !ok {
				want = internal
			}
		}
		for _, path := range []string{"/a2a/http/message:send", "/a2a/http/message:stream", "/a2a/http/v1/message:send", "/a2a/http/v1/message:stream"} {
			parts := "parts"
			if strings.Contains(path, "/v1/") {
				parts = "content"
			}
			refuse = &kg.Error{Code: code, Message: "no", RetryAfter: 1500 * time.Millisecond}
			resp, body := s.overHTTP(t, "POST", path, `{"message":{"messageId":"m","role":"ROLE_USER","`+parts+`":[{"text":"x"}]}}`)
			refuse = nil
			wantHTTPError(t, resp, body, want.status, want.name, cmp.Or(want.reason, string(code)), want.domain, want.rpc, want.known)
			if after := resp.Header.Get("Retry-After"); want != internal && after != "2" || want == internal && after != "" {
				t.Errorf("%s: Retry-After %q", code, after)
			}
			if challenge := resp.Header.Get("WWW-Authenticate"); (challenge != "") != (want.status == http.StatusUnauthorized) {
				t.Errorf("%s: WWW-Authenticate %q", code, challenge)
			}
		}
	}
}
