package a2a_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"koine/a2a"
	"koine/internal/sse"
	"koine/internal/wiretest"
	"koine/kg"
)

// The complete error table of base A2A: each kg.Code in both versions. A reason of
// A2A's own has A2A's domain, and koine's reason beside it if that says more.
func TestBaseErrorTable(t *testing.T) {
	var refuse error
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Admit: func(context.Context, kg.Meta) error { return refuse }}}, sse.Options{}, a2a.Options{})
	const ours, theirs = "koine", "a2a-protocol.org"
	for _, row := range []struct {
		code           kg.Code
		rpc            int
		unary, stream  int // HTTP statuses
		reason, domain string
		cause          string
	}{
		{kg.CodeTaskNotFound, -32001, 200, 200, "", theirs, ""},
		{kg.CodeTaskEnded, -32004, 200, 200, "UNSUPPORTED_OPERATION", theirs, "TASK_ENDED"},
		{kg.CodeContentType, -32005, 200, 200, "CONTENT_TYPE_NOT_SUPPORTED", theirs, "CONTENT_TYPE"},
		{kg.CodeAgentNotFound, -32602, 200, 200, "", ours, ""},
		{kg.CodeInvalid, -32602, 200, 200, "", ours, ""},
		{kg.CodeLimitExceeded, -32602, 200, 200, "", ours, ""},
		{kg.CodeCursorForeign, -32602, 200, 200, "", ours, ""},
		{kg.CodeCursorGone, -32602, 200, 200, "", ours, ""},
		{kg.CodePositionGone, -32602, 200, 200, "", ours, ""},
		{kg.CodeJudgeLimit, -32602, 200, 200, "", ours, ""},
		{kg.CodePermissionDenied, -31403, 200, 403, "", ours, ""},
		{kg.CodeSourceForbidden, -31403, 200, 403, "", ours, ""},
		{kg.CodeReserved, -31403, 200, 403, "", ours, ""},
		{kg.CodeConstraintViolation, -31403, 200, 403, "", ours, ""},
		{kg.CodeAlignmentViolation, -31403, 200, 403, "", ours, ""},
		{kg.CodeUnauthenticated, -31401, 401, 401, "", ours, ""},
		{kg.CodeRateLimited, -31105, 429, 429, "", ours, ""},
		{kg.CodeOverloaded, -31105, 429, 429, "", ours, ""},
		{kg.CodeResync, -32603, 200, 200, "", ours, ""},
		{kg.CodeAccessChanged, -32603, 200, 200, "RESYNC", ours, "ACCESS_CHANGED"},
		{kg.CodeTimeout, -32603, 200, 200, "", ours, ""},
		{kg.CodeDiskFull, -32603, 200, 200, "", ours, ""},
		{kg.CodeReadOnly, -32603, 200, 200, "", ours, ""},
		{kg.CodeLogDamaged, -32603, 200, 200, "", ours, ""},
		{kg.CodeOutcomeUnknown, -32603, 200, 200, "", ours, ""},
		{kg.CodeClosed, -32603, 200, 200, "SERVER_SHUTDOWN", ours, ""},
		{kg.CodeInternal, -32603, 200, 200, "", ours, ""},
	} {
		for _, method := range []string{"SendMessage", "message/send", "SendStreamingMessage", "message/stream", "CancelTask", "tasks/cancel"} {
			status, kind, rpc, reason, part := row.unary, "application/json", row.rpc, cmp.Or(row.reason, string(row.code)), `{"text":"x"}`
			switch method {
			case "SendStreamingMessage", "message/stream":
				if status = row.stream; status == http.StatusOK {
					kind = "text/event-stream\ndata: " // a stream of the error alone
				}
			case "CancelTask", "tasks/cancel":
				if row.code == kg.CodeTaskEnded {
					rpc, reason = -32002, "TASK_NOT_CANCELABLE"
				}
			}
			role := "ROLE_USER"
			if strings.Contains(method, "/") {
				role, part = "user", `{"kind":"text","text":"x"}`
			}
			params := fmt.Sprintf(`{"message":{"messageId":"m","role":%q,"parts":[%s]}}`, role, part)
			if strings.HasSuffix(strings.ToLower(method), "cancel") || method == "CancelTask" {
				params = fmt.Sprintf(`{"id":%q}`, s.waiting(t))
			}
			refuse = &kg.Error{Code: row.code, Message: "no", RetryAfter: 1500 * time.Millisecond}
			got := s.call(t, "ann", method, params)
			refuse = nil
			info := fmt.Sprintf(`"data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":%q,"domain":%q`, reason, row.domain)
			if !strings.HasPrefix(got, fmt.Sprintf("%d %s", status, kind)) || !strings.Contains(got, fmt.Sprintf(`"error":{"code":%d,`, rpc)) ||
				!strings.Contains(got, info) || row.cause != "" && !strings.Contains(got, fmt.Sprintf(`"cause":%q`, row.cause)) {
				t.Errorf("%s of %s: got %swant %d %s, %d, %s", row.code, method, got, status, kind, rpc, info)
			}
		}
	}
}

// waiting creates an open task of ann.
func (s *testServer) waiting(t *testing.T) string {
	t.Helper()
	got := s.call(t, "ann", "SendMessage", `{"message":{"messageId":"w","role":"ROLE_USER","parts":[{"text":"ask"}]}}`)
	id := remembered["task"].FindStringSubmatch(got)
	if id == nil {
		t.Fatal(got)
	}
	return id[1]
}

// Each error of A2A and JSON-RPC occurs in a conversation of each version, under A2A's
// name.
func TestEveryBaseErrorIsOnTheWire(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range wiretest.Exchanges(t) {
		method, e := methodOf.FindStringSubmatch(x.Step), errorOnWire.FindStringSubmatch(x.Answer)
		if method == nil || e == nil || !strings.HasPrefix(filepath.Base(x.File), "core_") {
			continue
		}
		version := "1.0"
		if strings.Contains(method[1], "/") {
			version = "0.3"
		}
		seen[fmt.Sprintf("%s %s %s", version, e[1], e[2])] = true
	}
	for _, version := range []string{"1.0", "0.3"} {
		for _, want := range []string{
			"-32001 TASK_NOT_FOUND", "-32002 TASK_NOT_CANCELABLE", "-32003 PUSH_NOTIFICATION_NOT_SUPPORTED", "-32004 UNSUPPORTED_OPERATION",
			"-32005 CONTENT_TYPE_NOT_SUPPORTED", "-32007 EXTENDED_AGENT_CARD_NOT_CONFIGURED", "-32009 VERSION_NOT_SUPPORTED",
			"-32602 INVALID", "-32603 INTERNAL", "-31403 PERMISSION_DENIED", // -32006 and -32008 are not koine's to send
		} {
			if !seen[version+" "+want] {
				t.Errorf("no conversation of %s has %s", version, want)
			}
		}
	}
}

var (
	methodOf    = regexp.MustCompile(`"method":"([A-Za-z/]+)"`)
	errorOnWire = regexp.MustCompile(`"error":{"code":(-\d+),.*?"data":\[{"@type":"[^"]+","reason":"([A-Z_]+)"`)
)
