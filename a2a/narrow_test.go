package a2a_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"koine/a2a"
	"koine/internal/caller"
	"koine/internal/sse"
	"koine/kg"
)

// narrower stands for the gate: a token is the name of the agent to act for.
type narrower struct {
	mu       sync.Mutex
	end      func(error)
	asked    []string
	released int
}

func (n *narrower) narrow(_ context.Context, c caller.Caller, credential string, end func(error)) (caller.Caller, func(), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked, n.end = append(n.asked, credential), end
	if credential == "wrong" {
		return c, nil, kg.Errorf(kg.CodeUnauthenticated, "the credential is not valid")
	}
	c.Actor = kg.CanonicalAgent(credential)
	return c, func() { n.mu.Lock(); n.released++; n.mu.Unlock() }, nil
}

// post sends a call and returns the answer with its status.
func postCall(t *testing.T, s *testServer, body string) (*http.Response, string) {
	t.Helper()
	response, err := http.Post(s.URL, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func TestSecurityToken(t *testing.T) {
	n := &narrower{}
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{Narrow: n.narrow})
	update := func(metadata string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"knowledge/update","params":{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:x:s"},"predicate":{"id":"urn:x:p"},"object":{"value":1}}}],"metadata":` + metadata + `}}`
	}
	for _, row := range []struct {
		name, metadata string
		status         int
		want           string
		asked          string
	}{
		{"none", `{}`, 200, `"success":true`, ""},
		{"null", `{"securityToken":null}`, 200, `"success":true`, ""},
		{"elsewhere", `{"other":{"securityToken":"smith"}}`, 200, `"success":true`, ""},
		{"a token", `{"securityToken":"smith"}`, 200, `"success":true`, "smith"},
		{"an escape in the name", `{"security\u0054oken":"smith"}`, 200, `"success":true`, "smith"},
		{"wrong", `{"securityToken":"wrong"}`, 401, `{"code":-32011,"message":"the credential is not valid","data":{"reason":"UNAUTHENTICATED"`, "wrong"},
		{"no text", `{"securityToken":7}`, 200, `"code":-32602`, ""},
	} {
		n.asked = nil
		response, text := postCall(t, s, update(row.metadata))
		if response.StatusCode != row.status || !strings.Contains(text, row.want) || strings.Join(n.asked, " ") != row.asked {
			t.Errorf("%s: got %d %s, asked %v", row.name, response.StatusCode, text, n.asked)
		}
		if (response.Header.Get("WWW-Authenticate") != "") != (row.status == 401) {
			t.Errorf("%s: WWW-Authenticate is %q", row.name, response.Header.Get("WWW-Authenticate"))
		}
	}
	if n.released != 2 {
		t.Errorf("released %d times, want 2", n.released)
	}
	// The assertion is made by the agent of the token, and no statement contains the
	// token.
	_, text := postCall(t, s, `{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":"{ statements { nodes { assertedBy } } }"}}`)
	if !strings.Contains(text, `["agent://anonymous","agent://smith"]`) {
		t.Errorf("got %s", text)
	}
}

// A stream ends with the further credential.
func TestStreamEndsWithItsSecurityToken(t *testing.T) {
	n := &narrower{}
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{Narrow: n.narrow})
	go func() {
		s.established(t)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.end(kg.Errorf(kg.CodeUnauthenticated, "the key was revoked"))
	}()
	_, text := postCall(t, s, `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { statementChanged { __typename } }","metadata":{"securityToken":"smith"}}}`)
	var last struct {
		Error struct {
			Code int
			Data struct{ Reason string }
		}
	}
	line := strings.TrimPrefix(strings.TrimSpace(text), "data: ")
	if err := json.Unmarshal([]byte(line), &last); err != nil || last.Error.Code != -32012 || last.Error.Data.Reason != "UNAUTHENTICATED" {
		t.Errorf("got %q, %v", text, err)
	}
}

// The error of an invalid subscription names the schema with the valid ones.
func TestInvalidSubscriptionsAreToldTheWayOut(t *testing.T) {
	s := newTestServer(t)
	for _, text := range []string{"{ revision }", "subscription { nothing }", "subscription {"} {
		got := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"`+text+`"}}`)
		if !strings.Contains(got, `"reason":"INVALID_SUBSCRIPTION"`) || !strings.Contains(got, `"hint":"Use a subscription of the schema at /graphql/schema:`) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
