package modelcontext_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/dialect/modelcontext"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// newHandler returns a handler with streams of its own.
func newHandler(t testing.TB, e modelcontext.Executor, o modelcontext.Options) *modelcontext.Handler {
	t.Helper()
	streams := sse.New(sse.Options{})
	h := modelcontext.NewHandler(e, streams, o)
	t.Cleanup(func() {
		h.Close()
		if err := streams.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// unwatched has no subscriptions.
type unwatched struct{}

func (unwatched) Subscribe(context.Context, operation.Request) (operation.Subscription, error) {
	return nil, kg.Errorf(kg.CodeInvalid, "there are none")
}

// silent executes nothing.
type silent struct{ unwatched }

func (silent) Execute(context.Context, operation.Request) operation.Result {
	return operation.Result{Data: []byte(`{}`)}
}

// naming answers with the agent that asks.
type naming struct{ unwatched }

func (naming) Execute(_ context.Context, r operation.Request) operation.Result {
	return operation.Result{Data: []byte(`{"me":"` + string(r.Principal.ID) + strings.Join(r.Principal.Roles, " ") + `"}`)}
}

// Calls at once are each made as the caller of their own request.
func TestCallersAreKeptApart(t *testing.T) {
	h := newHandler(t, naming{}, modelcontext.Options{})
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
	h := newHandler(t, silent{}, modelcontext.Options{})
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
type failing struct{ unwatched }

func (failing) Execute(context.Context, operation.Request) operation.Result { panic("a fault") }

// A panic ends its call, not the process.
func TestPanicIsContained(t *testing.T) {
	var log bytes.Buffer
	h := newHandler(t, failing{}, modelcontext.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r := httptest.NewRequest(http.MethodPost, modelcontext.Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"query":"{ x }"}}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); !strings.Contains(w.Body.String(), `"error":{"code":`) || strings.Contains(w.Body.String(), "a fault") || !strings.Contains(log.String(), "a fault") {
		t.Errorf("%s %s", w.Body, &log)
	}
}

// send sends a request as an agent, in a session if it has an id.
func send(h http.Handler, method, agent, session, body string, roles ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, modelcontext.Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	r = r.WithContext(caller.With(r.Context(), caller.Caller{Principal: kg.Principal{ID: kg.AgentID(agent), Roles: roles}}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	callMe      = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"query","arguments":{"query":"{ me }"}}}`
	subscribe   = `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"koine://schema"}}`
)

// begin begins a session of an agent.
func begin(t *testing.T, h http.Handler, agent string) (session string) {
	t.Helper()
	w := send(h, http.MethodPost, agent, "", initialize)
	session = w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || session == "" {
		t.Fatalf("%s has no session: %d %s", agent, w.Code, w.Body)
	}
	if w := send(h, http.MethodPost, agent, session, initialized); w.Code != http.StatusAccepted {
		t.Fatal(w.Code, w.Body)
	}
	return session
}

// A session is of its caller: for others it is like one that never was. Calls in it are made
// as the caller of their request, and those of an earlier process are answered without it.
func TestSessionIsOfItsCaller(t *testing.T) {
	h := newHandler(t, naming{}, modelcontext.Options{Schema: "type Query"})
	session := begin(t, h, "agent://ann")
	if w := send(h, http.MethodPost, "agent://ann", session, callMe); !strings.Contains(w.Body.String(), `agent://ann`) {
		t.Error(w.Code, w.Body)
	}
	if w := send(h, http.MethodPost, "agent://ann", session, subscribe); !strings.Contains(w.Body.String(), `"result":{}`) {
		t.Error(w.Code, w.Body)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		others := send(h, method, "agent://eve", session, callMe)
		absent := send(h, method, "agent://eve", session+"x", callMe)
		if others.Code != http.StatusNotFound || others.Code != absent.Code || others.Body.String() != absent.Body.String() || fmt.Sprint(others.Header()) != fmt.Sprint(absent.Header()) {
			t.Errorf("%s: %d %s, an absent one %d %s", method, others.Code, others.Body, absent.Code, absent.Body)
		}
	}
	if w := send(h, http.MethodDelete, "agent://ann", session, ""); w.Code != http.StatusNoContent {
		t.Error(w.Code, w.Body)
	}
	if w := send(h, http.MethodPost, "agent://ann", session, callMe); w.Code != http.StatusNotFound {
		t.Error("after its end:", w.Code, w.Body)
	}
	earlier := "0" + session
	if w := send(h, http.MethodPost, "agent://ann", earlier, callMe); !strings.Contains(w.Body.String(), `agent://ann`) {
		t.Error(w.Code, w.Body)
	}
	if w := send(h, http.MethodPost, "agent://ann", earlier, subscribe); !strings.Contains(w.Body.String(), `send initialize first`) {
		t.Error(w.Code, w.Body)
	}
	if w := send(h, http.MethodGet, "agent://ann", earlier, ""); w.Code != http.StatusNotFound {
		t.Error(w.Code, w.Body)
	}
}

// Past the bounds, clients are served without a session; an idle one ends.
func TestSessionsAreBounded(t *testing.T) {
	h := newHandler(t, silent{}, modelcontext.Options{Schema: "type Query"})
	var list []string
	for range modelcontext.MaxSessionsPerCaller {
		list = append(list, begin(t, h, "agent://ann"))
	}
	if w := send(h, http.MethodPost, "agent://ann", "", initialize); w.Code != http.StatusOK || w.Header().Get("Mcp-Session-Id") != "" || !strings.Contains(w.Body.String(), `"protocolVersion":"2025-11-25"`) {
		t.Error(w.Code, w.Header(), w.Body)
	}
	if w := send(h, http.MethodPost, "agent://ann", "", callMe); !strings.Contains(w.Body.String(), `"structuredContent"`) {
		t.Error(w.Code, w.Body)
	}
	begin(t, h, "agent://bob")
	send(h, http.MethodDelete, "agent://ann", list[0], "")
	begin(t, h, "agent://ann")
	h.ExpireSessions()
	for _, id := range list {
		if w := send(h, http.MethodPost, "agent://ann", id, callMe); w.Code != http.StatusNotFound {
			t.Error(w.Code, w.Body)
		}
	}
	for n := range modelcontext.MaxSessions {
		begin(t, h, fmt.Sprintf("agent://a%d", n))
	}
	if w := send(h, http.MethodPost, "agent://late", "", initialize); w.Code != http.StatusOK || w.Header().Get("Mcp-Session-Id") != "" {
		t.Error(w.Code, w.Header(), w.Body)
	}
}

// A session watches a bounded number of resources.
func TestSubscriptionsAreBounded(t *testing.T) {
	h := newHandler(t, silent{}, modelcontext.Options{Schema: "type Query"})
	session := begin(t, h, "agent://ann")
	for n := range modelcontext.MaxSubscriptions + 1 {
		w := send(h, http.MethodPost, "agent://ann", session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"koine://entity/urn:x:%d"}}`, n, n))
		if ok := strings.Contains(w.Body.String(), `"result":{}`); ok != (n < modelcontext.MaxSubscriptions) {
			t.Errorf("subscription %d: %s", n, w.Body)
		}
	}
	send(h, http.MethodPost, "agent://ann", session, `{"jsonrpc":"2.0","id":900,"method":"resources/unsubscribe","params":{"uri":"koine://entity/urn:x:1"}}`)
	if w := send(h, http.MethodPost, "agent://ann", session, `{"jsonrpc":"2.0","id":901,"method":"resources/subscribe","params":{"uri":"koine://entity/urn:x:new"}}`); !strings.Contains(w.Body.String(), `"result":{}`) {
		t.Error(w.Body)
	}
}

// A silent stream has signs of life, of sessions and of the newest protocol.
func TestStreamsBeat(t *testing.T) {
	h := newHandler(t, silent{}, modelcontext.Options{Schema: "type Query", Heartbeat: time.Millisecond})
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	open := func(method, body string, headers ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+modelcontext.Path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i, more := 0, append(headers, "Content-Type", "application/json", "Accept", "application/json, text/event-stream"); i < len(more); i += 2 {
			r.Header.Set(more[i], more[i+1])
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	session := open(http.MethodPost, initialize).Header.Get("Mcp-Session-Id")
	for name, stream := range map[string]*http.Response{
		"of a session": open(http.MethodGet, "", "Mcp-Session-Id", session),
		"listening": open(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["koine://schema"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"),
	} {
		lines := bufio.NewScanner(stream.Body)
		for beats := 0; beats < 3; {
			if !lines.Scan() {
				t.Fatalf("%s ends after %d beats: %v", name, beats, lines.Err())
			}
			if lines.Text() == ": " {
				beats++
			}
		}
		_ = stream.Body.Close()
	}
}
