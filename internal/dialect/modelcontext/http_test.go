package modelcontext_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"koine/internal/caller"
	"koine/internal/dialect/modelcontext"
	"koine/internal/operation"
	"koine/kg"
)

// silent executes nothing.
type silent struct{}

func (silent) Execute(context.Context, operation.Request) operation.Result {
	return operation.Result{Data: []byte(`{}`)}
}

// naming answers with the agent that asks.
type naming struct{}

func (naming) Execute(_ context.Context, r operation.Request) operation.Result {
	return operation.Result{Data: []byte(`{"me":"` + string(r.Principal.ID) + `"}`)}
}

// Calls at once are each made as the caller of their own request.
func TestCallersAreKeptApart(t *testing.T) {
	h := modelcontext.NewHandler(naming{}, modelcontext.Options{})
	var calls sync.WaitGroup
	for n := range 100 {
		calls.Go(func() {
			agent := kg.AgentID(fmt.Sprintf("agent://a%d", n))
			r := httptest.NewRequest(http.MethodPost, modelcontext.Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"query":"{ me }"}}}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r = r.WithContext(caller.With(r.Context(), caller.Caller{Principal: kg.Principal{ID: agent}}))
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); !strings.Contains(w.Body.String(), `{\"me\":\"`+string(agent)+`\"}`) {
				t.Errorf("%s gets %s", agent, w.Body)
			}
		})
	}
	calls.Wait()
}

// The bound of a request is the bound of its bytes.
func TestBodyBound(t *testing.T) {
	h := modelcontext.NewHandler(silent{}, modelcontext.Options{})
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"query":"{ x }"}`, `}}`
	for _, row := range []struct{ bytes, status int }{{modelcontext.MaxBodyBytes, 200}, {modelcontext.MaxBodyBytes + 1, 413}} {
		body := head + strings.Repeat(" ", row.bytes-len(head)-len(tail)) + tail
		r := httptest.NewRequest(http.MethodPost, modelcontext.Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != row.status {
			t.Errorf("%d bytes: %d %.200s", row.bytes, w.Code, w.Body)
		}
	}
}

// failing panics.
type failing struct{}

func (failing) Execute(context.Context, operation.Request) operation.Result { panic("a fault") }

// A panic ends its call, not the process.
func TestPanicIsContained(t *testing.T) {
	var log bytes.Buffer
	h := modelcontext.NewHandler(failing{}, modelcontext.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r := httptest.NewRequest(http.MethodPost, modelcontext.Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"query":"{ x }"}}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); !strings.Contains(w.Body.String(), `"error":{"code":`) || strings.Contains(w.Body.String(), "a fault") || !strings.Contains(log.String(), "a fault") {
		t.Errorf("%s %s", w.Body, &log)
	}
}
