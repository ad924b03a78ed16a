package modelcontext_test

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/dialect/modelcontext"
	"koine/internal/operation"
	"koine/kg"
)

// patience is the longest time for a request: a stream that should be refused does not end.
const patience = 10 * time.Second

// sendAs sends a request of a principal in a session.
func sendAs(h http.Handler, p kg.Principal, method, session, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, modelcontext.Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(caller.With(ctx, caller.Caller{Principal: p})))
	return w
}

// A session serves the credential that began it, and one with the same rights; any other finds
// none, and ends it.
func TestSessionEndsWithItsRights(t *testing.T) {
	token := kg.Principal{ID: "agent://ann", Method: "jwt", Roles: []string{"a", "b"}, ActFor: []kg.AgentID{"agent://x", "agent://y"}}
	key := kg.Principal{ID: "agent://ann", Method: "key", Key: "k1", Roles: []string{"a"}}
	for _, row := range []struct {
		name        string
		first, then kg.Principal
		goesOn      bool
	}{
		{"the same token", token, token, true},
		{"a renewed token", token, kg.Principal{ID: token.ID, Method: "jwt", Roles: []string{"b", "a"}, ActFor: []kg.AgentID{"agent://y", "agent://x"}}, true},
		{"a token without a role", token, kg.Principal{ID: token.ID, Method: "jwt", Roles: []string{"a"}, ActFor: token.ActFor}, false},
		{"a token with one more role", token, kg.Principal{ID: token.ID, Method: "jwt", Roles: []string{"a", "b", "c"}, ActFor: token.ActFor}, false},
		{"a token without agents to act for", token, kg.Principal{ID: token.ID, Method: "jwt", Roles: token.Roles}, false},
		{"the same key", key, key, true},
		{"another key", key, kg.Principal{ID: key.ID, Method: "key", Key: "k2", Roles: key.Roles}, false},
		{"a token after a key", key, kg.Principal{ID: key.ID, Method: "jwt", Roles: key.Roles}, false},
	} {
		for _, method := range []string{http.MethodPost, http.MethodDelete} {
			h := newHandler(t, naming{}, modelcontext.Options{Schema: "type Query"})
			session := sendAs(h, row.first, http.MethodPost, "", initialize).Header().Get("Mcp-Session-Id")
			absent := sendAs(h, row.then, method, session+"x", callMe)
			got := sendAs(h, row.then, method, session, callMe)
			if goesOn := got.Code != http.StatusNotFound; goesOn != row.goesOn || !goesOn && got.Body.String() != absent.Body.String() {
				t.Errorf("%s, %s: %d %s", row.name, method, got.Code, got.Body)
			}
			if method == http.MethodPost {
				if after := sendAs(h, row.first, method, session, callMe); (after.Code == http.StatusOK) != row.goesOn {
					t.Errorf("%s, the first credential afterwards: %d %s", row.name, after.Code, after.Body)
				}
			}
		}
	}
}

// following counts its subscriptions, which last as long as their context.
type following struct {
	silent
	open atomic.Int32
}

func (f *following) Subscribe(ctx context.Context, _ operation.Request) (operation.Subscription, error) {
	f.open.Add(1)
	return &followed{ctx, f}, nil
}

type followed struct {
	ctx context.Context
	by  *following
}

func (f *followed) Events() iter.Seq2[operation.Event, error] {
	return func(func(operation.Event, error) bool) { <-f.ctx.Done() }
}

func (f *followed) Position() kg.Position { return kg.Position{} }
func (f *followed) Close()                { f.by.open.Add(-1) }

// wantOpen waits for a number of subscriptions.
func (f *following) wantOpen(t *testing.T, want int32) {
	t.Helper()
	for deadline := time.Now().Add(patience); f.open.Load() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d subscriptions are open, want %d", f.open.Load(), want)
		}
	}
}

// The watchers of a session end with it, so that nobody hears what only an earlier credential
// may read.
func TestWatchersEndWithTheirRights(t *testing.T) {
	f := &following{}
	h := newHandler(t, f, modelcontext.Options{Schema: "type Query"})
	first, then := kg.Principal{ID: "agent://ann", Method: "jwt", Roles: []string{"r"}}, kg.Principal{ID: "agent://ann", Method: "jwt"}
	session := sendAs(h, first, http.MethodPost, "", initialize).Header().Get("Mcp-Session-Id")
	if w := sendAs(h, first, http.MethodPost, session, initialized); w.Code != http.StatusAccepted {
		t.Fatal(w.Code, w.Body)
	}
	if w := sendAs(h, first, http.MethodPost, session, `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"koine://entity/urn:x:1"}}`); !strings.Contains(w.Body.String(), `"result":{}`) {
		t.Fatal(w.Code, w.Body)
	}
	f.wantOpen(t, 1)
	if w := sendAs(h, then, http.MethodGet, session, ""); w.Code != http.StatusNotFound {
		t.Errorf("the stream for a credential with fewer roles: %d %s", w.Code, w.Body)
	}
	f.wantOpen(t, 0)
}
