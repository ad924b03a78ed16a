package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"koine/cmd/koine/internal/cli"
	"koine/internal/presence"
	"koine/internal/slowtest"
	"koine/kg"
)

// Every kind of stream makes its agent present, for as long as it is open, and no other
// agent.
func TestStreamsArePresence(t *testing.T) {
	slowtest.Long(t)
	k := startKnowing(t, "--auth", "keys")
	presence := func(agent string) string {
		return k.graphql(k.admin, `{ agent(id: "`+agent+`") { presence { status } } }`)
	}
	is := func(status string) string { return `{"data":{"agent":{"presence":{"status":"` + status + `"}}}` }
	ways := map[string]func(key string){
		"subscribe": func(key string) { k.stream("POST", "/a2a", key, followCall) },
		"changes":   func(key string) { k.stream("GET", "/changes", key, "") },
		"channel": func(key string) {
			id := channelID.FindStringSubmatch(k.graphql(key, `mutation { createChannel(input: {name: "room"}) { channel { id } } }`))
			if id == nil {
				t.Fatal("no channel was made")
			}
			k.stream("POST", "/a2a", key, `{"jsonrpc":"2.0","id":1,"method":"channels/stream","params":{"channelId":"`+id[1]+`"}}`)
		},
		"distinct": func(key string) { k.stream("POST", "/graphql", key, followBody) },
		"single": func(key string) {
			_, token := k.send("PUT", "/graphql", key, "", "Accept", "text/plain")
			k.stream("GET", "/graphql", key, "", "X-GraphQL-Event-Stream-Token", token)
		},
		"header": func(key string) {
			if text, err := k.read(k.socket(http.Header{"X-Api-Key": {key}}, "")); text != `{"type":"connection_ack"}` {
				t.Errorf("got %s, %v", text, err)
			}
		},
		"payload": func(key string) {
			if text, err := k.read(k.socket(nil, `,"payload":{"authorization":"Bearer `+key+`"}`)); text != `{"type":"connection_ack"}` {
				t.Errorf("got %s, %v", text, err)
			}
		},
	}
	gone := map[string]bool{}         // agents without a stream that may still be present
	revoke := func(name, id string) { // which ends its streams
		k.graphql(k.admin, `mutation { revokeApiKey(input: {keyId: "`+id+`"}) { key { state } } }`)
		gone[name] = true
	}
	for name, open := range ways {
		key, id := k.create(`{agentId: "` + name + `"}`)
		if got := presence(name); !strings.HasPrefix(got, is("OFFLINE")) {
			t.Errorf("%s, before: %s", name, got)
		}
		open(key)
		if got := presence(name); !strings.HasPrefix(got, is("ONLINE")) {
			t.Errorf("%s, with a stream: %s", name, got)
		}
		revoke(name, id)
	}
	gateway, id := k.create(`{agentId: "gateway", actFor: ["worker"]}`)
	k.create(`{agentId: "worker"}`)
	k.stream("GET", "/changes", gateway, "", "X-Agent-ID", "worker")
	if got := presence("worker"); !strings.HasPrefix(got, is("ONLINE")) {
		t.Errorf("who is acted for: %s", got)
	}
	if got := presence("gateway"); !strings.HasPrefix(got, is("OFFLINE")) {
		t.Errorf("who acts for it: %s", got)
	}
	revoke("worker", id)
	for deadline := time.Now().Add(cli.RequestTimeout + time.Minute); len(gone) > 0; time.Sleep(20 * time.Millisecond) {
		for name := range gone {
			if strings.HasPrefix(presence(name), is("OFFLINE")) {
				delete(gone, name)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there without a stream: %v", gone)
		}
	}
}

// A writing agent is not idle: the source of the update, if it is admitted.
func TestWhoWritesIsNotIdle(t *testing.T) {
	const ann, bob, gateway = kg.AgentID("agent://ann"), kg.AgentID("agent://bob"), kg.AgentID("agent://gateway")
	for what, row := range map[string]struct {
		meta    kg.Meta
		refused bool
		want    string // of the three
	}{
		"for itself":  {kg.Meta{Principal: kg.Principal{ID: ann}}, false, "ONLINE IDLE IDLE"},
		"for another": {kg.Meta{Principal: kg.Principal{ID: gateway}, Actor: bob}, false, "IDLE ONLINE IDLE"},
		"too much":    {kg.Meta{Principal: kg.Principal{ID: ann}}, true, "IDLE IDLE IDLE"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := slog.New(slog.DiscardHandler)
				who, err := (&identityFlags{Auth: "open"}).newIdentity(t.Context(), log)
				if err != nil {
					t.Fatal(err)
				}
				serve := new(serveCommand)
				serve.DefaultGraph, serve.NewGraphs = "read-write", "read-write"
				trust, err := serve.newTrust(log, who)
				if err != nil {
					t.Fatal(err)
				}
				defer trust.close()
				o := kg.Options{Governor: kg.Governor{Admit: func(context.Context, kg.Meta) error {
					if row.refused {
						return kg.Errorf(kg.CodeRateLimited, "too many updates")
					}
					return nil
				}}}
				trust.govern(&o.Governor)
				is := func() (text []string) {
					for _, agent := range []kg.AgentID{ann, bob, gateway} {
						text = append(text, string(trust.presence.Get(agent).Status))
					}
					return text
				}
				for _, agent := range []kg.AgentID{ann, bob, gateway} {
					defer trust.presence.Connect(agent)()
				}
				time.Sleep(presence.DefaultIdleAfter)
				if got := strings.Join(is(), " "); got != "IDLE IDLE IDLE" {
					t.Errorf("before: %s", got)
				}
				if err := o.Admit(t.Context(), row.meta); (err != nil) != row.refused {
					t.Error(err)
				}
				if got := strings.Join(is(), " "); got != row.want {
					t.Errorf("after it: %s, want %s", got, row.want)
				}
			})
		})
	}
}

// Deregistering an agent removes the written state of its presence, at once.
func TestDeregisteredHasNoPresence(t *testing.T) {
	slowtest.Long(t)
	_, url := startServer(t)
	written := func() string {
		return askGraphQL(t, url, "eve", `{ match(pattern: {triples: [{s: "?agent", p: "koine:presence", o: "?status"}]}, view: {graphs: ["urn:koine:graph:journal:presence"]}) { nodes { values } } }`)
	}
	if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	askGraphQL(t, url, "bot", `mutation { heartbeat(input: {status: BUSY}) { presence { status } } }`)
	eventually(t, "it is written down", func() bool { return strings.Contains(written(), `["agent://bot","BUSY"]`) })
	if status, text := ask(t, http.MethodDelete, url+"/agents/bot", "bot", ""); status != http.StatusNoContent {
		t.Fatal(status, text)
	}
	if got := written(); !strings.HasPrefix(got, `{"data":{"match":{"nodes":[]}}`) {
		t.Errorf("afterwards: %s", got)
	}
}

var channelID = regexp.MustCompile(`"id":"([^"]+)"`)

var presenceSince = regexp.MustCompile(`"status":"BUSY","since":"([^"]+)"`)

// The written presence counts after a kill, until the time to return is over; and names
// without a record leave nothing.
func TestPresenceAfterAKill(t *testing.T) {
	slowtest.Long(t)
	dir := t.TempDir()
	s, url := startServer(t, "--data", dir)
	ask := func(agent, query string) string {
		t.Helper()
		k := &knowing{t: t, url: url}
		_, text := k.send("POST", "/graphql", "", fmt.Sprintf(`{"query": %q}`, query), "X-Agent-ID", agent, "Accept", "application/json")
		return text
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/changes", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Agent-ID", "just-a-name")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := ask("dora", `{ agents { nodes { id } } }`); !strings.HasPrefix(got, `{"data":{"agents":{"nodes":[]}}`) {
		t.Errorf("a stream of just a name: %s", got)
	}
	since := presenceSince.FindStringSubmatch(ask("dora", `mutation { heartbeat(input: {status: BUSY}) { presence { status since } } }`))
	if since == nil {
		t.Fatal("no heartbeat")
	}
	const written = `{ match(pattern: {triples: [{s: "?agent", p: "koine:presence", o: "?status"}]}, view: {graphs: ["urn:koine:graph:journal:presence"]}) { nodes { values } } }`
	want := `{"data":{"match":{"nodes":[{"values":["agent://dora","BUSY"]}]}}`
	eventually(t, "it is written", func() bool { return strings.HasPrefix(ask("eve", written), want) })
	if err := s.process.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	_, url = startServer(t, "--data", dir)
	got := ask("eve", `{ agent(id: "dora") { presence { status since } } }`)
	if again := presenceSince.FindStringSubmatch(got); again == nil || again[1] != since[1] {
		t.Errorf("after the kill: %s, before it BUSY since %s", got, since[1])
	}
	if got := ask("eve", written); !strings.HasPrefix(got, want) || !strings.Contains(got, `"revision":2`) {
		t.Errorf("after the kill the graph says %s", got)
	}
}
