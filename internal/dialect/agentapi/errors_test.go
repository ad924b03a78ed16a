package agentapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"koine/internal/dialect/agentapi"
	"koine/internal/sse"
	"koine/kg"
)

// The codes of the specification have the corresponding HTTP statuses. (cmd/koine tests
// the refusal of requests without a valid credential, which the server does.)
func TestCodesOfTheText(t *testing.T) {
	s := start(t)
	id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
	for _, row := range []struct {
		who, method, path, body string
		status                  int
		code                    string
	}{
		{"ann", "GET", "/agents/none", "", http.StatusNotFound, "AGENT_NOT_FOUND"},
		{"ann", "POST", "/agents/none/messages", `{"message":[{"type":"text","content":"x"}]}`, http.StatusNotFound, "AGENT_NOT_FOUND"},
		{"eve", "GET", "/tasks/" + id, "", http.StatusNotFound, "TASK_NOT_FOUND"},
		{"ann", "POST", "/agents/bot/messages", `{}`, http.StatusBadRequest, "INVALID_REQUEST"},
		{"ann", "PUT", "/tasks/" + id, `{"state":"pending"}`, http.StatusBadRequest, "INVALID_REQUEST"},
		{"ann", "PUT", "/tasks/" + id, `{"state":"completed"}`, http.StatusForbidden, "AUTHORIZATION_ERROR"},
		{"bot", "DELETE", "/tasks/" + id, "", http.StatusForbidden, "AUTHORIZATION_ERROR"},
	} {
		status, got := s.ask(row.who, row.method, row.path, row.body)
		if status != row.status || !strings.HasPrefix(got, `{"error":{"code":"`+row.code+`","message":"`) || !strings.Contains(got, `"details":{`) {
			t.Errorf("%s %s: got %d %s, want %d %s", row.method, row.path, status, got, row.status, row.code)
		}
	}
	// The failure of an agent without a reason appears in its task.
	if _, got := s.ask("bot", "PUT", "/tasks/"+id, `{"state":"failed"}`); !strings.Contains(got, `"error":{"code":"AGENT_EXECUTION_ERROR"`) {
		t.Errorf("got %s", got)
	}
	if status, got := s.ask("ann", "GET", "/agents/broken", ""); status != http.StatusInternalServerError || !strings.HasPrefix(got, `{"error":{"code":"INTERNAL_SERVER_ERROR"`) || strings.Contains(got, "secret") {
		t.Errorf("got %d %s", status, got)
	}
	// A server that shuts down allows a retry.
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if status, got := s.ask("ann", "GET", "/tasks", ""); status != http.StatusServiceUnavailable || !strings.Contains(got, `"code":"UNAVAILABLE"`) {
		t.Errorf("got %d %s", status, got)
	}
}

// The close code of a socket tells the client the next step.
func TestCloseCodes(t *testing.T) {
	for _, row := range []struct {
		cause error
		want  websocket.StatusCode
	}{
		{sse.ErrClientGone, websocket.StatusNormalClosure},
		{sse.ErrShutdown, websocket.StatusGoingAway},
		{kg.Errorf(kg.CodeClosed, "x"), websocket.StatusGoingAway},
		{sse.ErrSlowConsumer, websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeResync, "x"), websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeAccessChanged, "x"), websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeOverloaded, "x"), websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeRateLimited, "x"), websocket.StatusTryAgainLater},
		{kg.Errorf(kg.CodeUnauthenticated, "x"), 4401},
		{kg.Errorf(kg.CodePermissionDenied, "x"), 4403},
		{kg.Errorf(kg.CodeSourceForbidden, "x"), 4403},
		{errors.New("x"), websocket.StatusInternalError},
		{context.DeadlineExceeded, websocket.StatusInternalError},
	} {
		if got := agentapi.Closing(row.cause); got != row.want {
			t.Errorf("%v: closed with %d, want %d", row.cause, got, row.want)
		}
	}
}
