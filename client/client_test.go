package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"koine/client"
)

// Features missing in the agent card are refused before anything is sent.
func TestCardRefuses(t *testing.T) {
	asked := 0
	card := `{"name": "parrot", "url": "http://elsewhere.example/rpc", "capabilities": {}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/agent-card.json" {
			fmt.Fprint(w, card)
			return
		}
		asked++
	}))
	defer server.Close()
	ctx := bounded(t)
	if _, err := client.Open(ctx, server.URL, client.Options{Requires: []client.Capability{client.Channels}}); !errors.Is(err, client.CapabilityMissing) || !strings.Contains(err.Error(), `"parrot"`) || !strings.Contains(err.Error(), "the channels extension") {
		t.Errorf("required: %v", err)
	}
	c := open(t, server.URL, "")
	_, queried := c.Query(ctx, client.Query{Text: "{ x }"}, nil)
	_, updated := c.Update(ctx, client.Update{})
	_, created := c.CreateChannel(ctx, client.NewChannel{})
	_, asking := c.Ask(ctx, client.Publication{}, 0)
	refusals := []error{queried, updated, created, asking}
	for _, err := range c.Subscribe(ctx, client.Subscription{}) {
		refusals = append(refusals, err)
	}
	for _, err := range c.Stream(ctx, "x", client.StreamOptions{}) {
		refusals = append(refusals, err)
	}
	for _, err := range c.ListChannels(ctx, client.ChannelFilter{}) {
		refusals = append(refusals, err)
	}
	if len(refusals) != 7 || asked != 0 {
		t.Errorf("%d refusals, %d requests", len(refusals), asked)
	}
	for _, err := range refusals {
		if !errors.Is(err, client.CapabilityMissing) {
			t.Error(err)
		}
	}
	card = `{"name": "parrot", "capabilities": {"knowledgeGraph": true, "knowledgeGraphQueryLanguages": ["sparql"]}, "url": "http://elsewhere.example/rpc"}`
	if _, err := open(t, server.URL, "").Query(ctx, client.Query{Text: "{ x }"}, nil); !errors.Is(err, client.CapabilityMissing) || !strings.Contains(err.Error(), "sparql") {
		t.Errorf("language: %v", err)
	}
	card = `{"name": "parrot"}`
	if _, err := client.Open(ctx, server.URL, client.Options{}); !errors.Is(err, client.CapabilityMissing) {
		t.Errorf("no address: %v", err)
	}
	card = `[]`
	if _, err := client.Open(ctx, server.URL, client.Options{}); err == nil {
		t.Error("a list is taken for a card")
	}
	if _, err := client.Open(ctx, "ftp://x", client.Options{}); err == nil {
		t.Error("ftp is taken")
	}
}

// A credential goes to the address that was opened only.
func TestCredentialStays(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked elsewhere") }))
	defer elsewhere.Close()
	paths := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths[r.URL.Path] = r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/.well-known/agent-card.json":
			fmt.Fprintf(w, `{"name": "parrot", "url": "%s/rpc", "capabilities": {"knowledgeGraph": true}}`, elsewhere.URL)
		default:
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	c, err := client.Open(bounded(t), server.URL, client.Options{Key: "ak_test_x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Query(bounded(t), client.Query{Text: "{ x }"}, nil); err == nil {
		t.Error("a redirection is an answer")
	}
	if paths["/rpc"] != "Bearer ak_test_x" {
		t.Errorf("asked with %v", paths)
	}
}

func TestQueryAndUpdate(t *testing.T) {
	s := start(t)
	ctx, c := bounded(t), open(t, s.URL, "dora")
	var answer struct{ Entity struct{ Label string } }
	meta, err := c.Query(ctx, client.Query{
		Text: "query($id: IRI!) { entity(iri: $id) { label } }", Variables: map[string]any{"id": "finding:1"},
		RequiredCertainty: 0.1, MaxAge: 100 * 365 * 24 * time.Hour, Budget: client.Budget{MaxBytes: 10000},
	}, &answer)
	if err != nil || answer.Entity.Label != "Water in the crystal costs capacity" || meta.Revision == 0 || meta.Position == "" {
		t.Fatalf("%+v %+v %v", answer, meta, err)
	}
	var raw json.RawMessage
	if _, err := c.Query(ctx, client.Query{Text: `{ entity(iri: "finding:1") { label } }`, At: "1"}, &raw); err != nil || !strings.HasPrefix(string(raw), `{"entity":`) {
		t.Errorf("%s %v", raw, err)
	}
	var refused *client.Error
	if _, err := c.Query(ctx, client.Query{Text: "{ entitty }"}, nil); !errors.As(err, &refused) || refused.Code != -32010 || len(refused.Errors) == 0 {
		t.Errorf("%v", err)
	}
	if _, err := c.Query(ctx, client.Query{Text: "{ __typename }", MinRevision: 0, RequiredCertainty: 2}, nil); !errors.Is(err, client.Invalid) {
		t.Errorf("%v", err)
	}
	u := client.Update{
		Patches:       []client.Patch{client.Add("finding:1", "lab:status", client.Text("doubtful")).Certain(0.4).OfClass("lab:Finding")},
		Justification: "Read it again", IdempotencyKey: "reread-1",
	}
	made, err := c.Update(ctx, u)
	if err != nil || !made.Success || made.StatementsAffected != 2 || made.Held() || made.Replayed {
		t.Fatalf("%+v %v", made, err)
	}
	if again, err := c.Update(ctx, u); err != nil || !again.Replayed || again.Revision != made.Revision {
		t.Errorf("%+v %v", again, err)
	}
	u.Patches[0] = client.Add("finding:1", "lab:status", client.Text("other"))
	if _, err := c.Update(ctx, u); !errors.Is(err, client.IdempotencyConflict) || errors.Is(err, client.NotFound) {
		t.Errorf("%v", err)
	}
	if dry, err := c.Update(ctx, client.Update{Patches: []client.Patch{client.Remove("finding:1", "lab:status", client.Text("doubtful"))}, DryRun: true}); err != nil || !dry.DryRun || dry.StatementsAffected != 1 {
		t.Errorf("%+v %v", dry, err)
	}
	if _, err := c.Update(ctx, client.Update{Patches: []client.Patch{client.Replace("finding:1", "lab:status", client.Text("x"))}, ExpectedRevision: 1}); !errors.Is(err, client.RevisionConflict) {
		t.Errorf("%v", err)
	}
	if _, err := c.Update(ctx, client.Update{}); !errors.Is(err, client.Invalid) {
		t.Errorf("%v", err)
	}
}

// A request sent while the server is down has one effect, when it is up again.
func TestUpdateAcrossServers(t *testing.T) {
	s := start(t)
	retrying := make(chan error, 100)
	c, err := client.Open(t.Context(), s.URL, client.Options{Agent: "dora", Retry: client.Retry{MinWait: time.Millisecond, MaxWait: 10 * time.Millisecond, Attempts: -1, OnRetry: func(err error, _ time.Duration) {
		select {
		case retrying <- err:
		default:
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	made := make(chan error, 1)
	go func() {
		result, err := c.Update(bounded(t), client.Update{Patches: []client.Patch{client.Add("finding:1", "lab:seen", client.Value(1))}})
		if err == nil && result.StatementsAffected != 1 {
			err = fmt.Errorf("%+v", result)
		}
		made <- err
	}()
	<-retrying
	s.Restart()
	if err := <-made; err != nil {
		t.Error(err)
	}
	s.Kill()
	if _, err := client.Open(t.Context(), s.URL, client.Options{}); err == nil {
		t.Error("a server that is away was opened")
	}
}

func TestA2A(t *testing.T) {
	s := start(t)
	ctx := bounded(t)
	c, err := open(t, s.URL, "dora").A2A(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
	}()
	testA2A(t, ctx, c)
}
