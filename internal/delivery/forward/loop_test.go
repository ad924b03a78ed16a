package forward_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	koine "koine/a2a"
	"koine/internal/caller"
	"koine/internal/delivery/forward"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// serve serves bob of an office as koine does, to alice.
func (f *office) serve() string {
	f.t.Helper()
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	bob := koine.NewHandler(koine.Deps{Store: f.store, Tasks: f.tasks, Streams: sse.New(sse.Options{}), Prefixes: prefixes}, koine.Options{}).For(bob.Principal.ID)
	mux := http.NewServeMux()
	mux.Handle("/rpc", bob)
	mux.Handle("/http/", bob.HTTP("/http"))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(caller.With(r.Context(), alice)))
	}))
	f.t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// Two servers that forward to each other end after MaxHops, at the first and at the last of
// their tasks.
func TestLoop(t *testing.T) {
	for _, door := range append(some(), doors03...) {
		t.Run(door.name, func(t *testing.T) {
			one, two := newOffice(t, local()), newOffice(t, local())
			one.set(two.serve()+door.path, door.dialect, door.unary)
			two.set(one.serve()+door.path, door.dialect, door.unary)
			id := one.send(bob, "count")
			failed := one.becomes(id, tasks.Failed)
			if !strings.Contains(statusText(failed), "which is the limit: their agents forward to each other") {
				t.Errorf("failed with %q", statusText(failed))
			}
			loops, all := 0, 0
			for _, f := range []*office{one, two} {
				page, err := f.tasks.List(t.Context(), alice, tasks.Query{Handler: bob.Principal.ID})
				if err != nil {
					t.Fatal(err)
				}
				for i := range page.Tasks {
					all++
					if why := page.Tasks[i].Failure; why != nil && why.Code == tasks.FailureLoop {
						loops++
					}
				}
				f.empty()
			}
			if loops != 1 || all != forward.MaxHops+1 {
				t.Errorf("%d tasks, of which %d say why", all, loops)
			}
		})
	}
}

// koine forwards to koine: a question is asked through both, and answered; a cancellation
// passes through both.
func TestKoineBehindKoine(t *testing.T) {
	for _, door := range append(some(), doors03...) {
		t.Run(door.name, func(t *testing.T) {
			front, behind, s := newOffice(t, local()), newOffice(t, local()), newServer(t)
			front.set(behind.serve()+door.path, door.dialect, door.unary)
			behind.set(s.URL+door.path, forward.Dialect{Binding: door.dialect.Binding, Version: forward.V1}, door.unary)
			id := front.send(bob, "ask")
			front.becomes(id, tasks.InputRequired)
			front.send(bob, "that", id)
			if told := front.becomes(id, tasks.Completed); !strings.HasPrefix(statusText(told), "you said that in ") {
				t.Errorf("told %q", statusText(told))
			}
			id = front.send(bob, "count")
			if done := front.becomes(id, tasks.Completed); textOf(done.Artifacts[0].Parts) != "one|two" {
				t.Errorf("artifacts %+v", done.Artifacts)
			}
			if hops := s.lastHead().Get(koine.HopHeader); hops != "2" {
				t.Errorf("%s hops", hops)
			}
			id = front.send(bob, "wait")
			front.becomes(id, tasks.Working)
			if _, err := front.tasks.Cancel(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
			front.empty()
			behind.empty()
			<-s.agent.ended
		})
	}
}

// The number of hops is read from the header; what is no number is too many.
func TestHopsOfMessage(t *testing.T) {
	f, s := newOffice(t, local()), newServer(t)
	f.set(s.URL+"/rpc", rpc1, true)
	url := f.serve()
	for hops, ends := range map[string]tasks.State{"": tasks.Completed, "0": tasks.Completed, "7": tasks.Completed, "8": tasks.Failed, "9": tasks.Failed, "-1": tasks.Failed, "x": tasks.Failed, "99999999999999999999": tasks.Failed} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/rpc", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"hops-`+hops+`","role":"ROLE_USER","parts":[{"text":"count"}]}}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("A2A-Version", "1.0")
		r.Header.Set(koine.HopHeader, hops)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		_ = resp.Write(&body)
		resp.Body.Close()
		if !strings.Contains(body.String(), "TASK_STATE_"+string(ends)) {
			t.Errorf("%q: %s", hops, body.String())
		}
	}
}
