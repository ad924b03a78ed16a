package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"koine/client"
	"koine/cmd/koine/internal/cli"
	"koine/graph/limit"
)

// The receipts of the messages of a history are requested together, in as few requests as
// the server's bound on one allows.
func TestHistoryAsksForFatesTogether(t *testing.T) {
	_, text := startServer(t)
	at, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(at)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/graphql" && bytes.Contains(body, []byte("message(id:")) {
			asked.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	ctx := t.Context()
	ann, err := client.Open(ctx, text, client.Options{Agent: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	made, err := ann.CreateChannel(ctx, client.NewChannel{})
	if err != nil {
		t.Fatal(err)
	}
	const messages = limit.DefaultRootFields/2 + 1 // and as many that retract them: one more than in one request
	for i := range messages {
		fact := client.Add(fmt.Sprintf("urn:s%d", i), "urn:p", client.Value(i))
		p, err := ann.Publish(ctx, client.Publication{Channel: made.ID, Parts: []any{client.TextPart("see")}, Patches: []client.Patch{fact}})
		if err != nil {
			t.Fatal(err)
		}
		input := map[string]any{"channelId": made.ID, "messageId": p.Message.ID, "withdrawFacts": i == 0}
		if err := ann.GraphQL(ctx, `mutation($input: RetractMessageInput!) { retractMessage(input: $input) { success } }`, map[string]any{"input": input}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, only := range []string{"--count", "--last"} {
		asked.Store(0)
		var out, said strings.Builder
		args := []string{"channel", "history", made.ID, only, "200", "--as", "ann", "--url", front.URL}
		if code := execute(ctx, args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said}); code != cli.ExitOK {
			t.Fatalf("ends with %d and says %q", code, said.String())
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2*messages {
			t.Fatalf("%d lines", len(lines))
		}
		for i, line := range lines {
			want := "[1 fact, all asserted]"
			switch {
			case i == 0:
				want = "[1 fact, none asserted]"
			case i%2 == 1:
				want = fmt.Sprintf("  retracts %d  ", i)
			}
			if !strings.Contains(line, want) {
				t.Errorf("%s: want %q", line, want)
			}
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("%s: asked %d times", only, n)
		}
	}
}

// One message of which nothing can be learned is not in the way of the others.
func TestFateThatCannotBeLearned(t *testing.T) {
	const failed = `{"errors": [{"message": "no", "extensions": {"code": "INTERNAL"}}]}`
	const card = `{"name": "actor", "url": "http://x/rpc", "capabilities": {"knowledgeGraph": true, "messaging": {"channels": {"version": "0.1"}}}}`
	const events = `{"result": {"events": [{"kind": "messageEvent", "id": "a", "sequence": 1, "retracts": "x"}, {"kind": "messageEvent", "id": "b", "sequence": 2}, {"kind": "messageEvent", "id": "c", "sequence": 3, "retracts": "y"}]}}`
	var out, said strings.Builder
	args := []string{"channel", "history", "chan:direct:1", "--url", acting(t, card, events, failed, failed, `{"data": {"m0": {"retracts": {"sequence": 7}}}}`, `{"result": {"channel": {"id": "chan:direct:1"}}}`)}
	code := execute(t.Context(), args, cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &said})
	if code != cli.ExitOK || !strings.Contains(out.String(), "retracts x") || !strings.Contains(out.String(), "retracts 7") {
		t.Errorf("ends with %d, prints %q and says %q", code, out.String(), said.String())
	}
}
