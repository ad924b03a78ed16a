package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/graph"
	"koine/graph/transport"
	"koine/internal/sse"
	"koine/kg"
)

// Public clients that keep objects by id show the past and the present beside each other:
// Apollo Client 3 and 4 and urql's Graphcache, as their caches have it.
func TestNormalizingClients(t *testing.T) {
	b := newBench(t, graph.Options{})
	said := func(certainty float64, value int64) kg.Patch {
		p := add(iri("s"), iri("p"), kg.Integer(value))
		p.Op, p.Certainty, p.HasCertainty = kg.Replace, certainty, true
		return p
	}
	b.update(said(0.25, 1))
	past := b.store.Head().Revision
	b.update(said(0.5, 1))
	b.update(said(0.75, 1))
	b.update(said(1, 2))
	streams := sse.New(sse.Options{})
	server := httptest.NewServer(transport.NewHandler(b.deps(streams), transport.Options{}))
	t.Cleanup(func() {
		if err := streams.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		b.settle()
		server.Close()
	})
	type statement struct{ Certainty float64 }
	type entity struct {
		ID    string
		Value float64
		Out   struct{ Nodes []statement }
	}
	for _, client := range []string{"apollo3", "apollo4", "graphcache"} {
		t.Run(client, func(t *testing.T) {
			lines := node(t, "caches.mjs", server.URL, client, iri("s").Value(), iri("p").Value(), strconv.FormatUint(uint64(past), 10))
			var values, statements struct{ Now, Before entity }
			var history struct {
				Entity struct {
					History struct {
						Nodes []struct {
							Statement statement
							Previous  []statement
						}
					}
				}
			}
			for i, to := range []any{&values, &statements, &history} {
				if err := json.Unmarshal([]byte(lines[i]), to); err != nil {
					t.Fatalf("%v: %s", err, lines[i])
				}
			}
			if values.Now.Value != 2 || values.Before.Value != 1 {
				t.Errorf("the cache shows %s", lines[0])
			}
			if statements.Now.Out.Nodes[0].Certainty != 1 || statements.Before.Out.Nodes[0].Certainty != 0.25 {
				t.Errorf("the cache shows %s", lines[1])
			}
			var certainties []float64
			for _, n := range history.Entity.History.Nodes {
				certainties = append(certainties, n.Statement.Certainty)
			}
			if !slices.Equal(certainties, []float64{1, 0.75, 0.5, 0.25}) {
				t.Errorf("the cache shows the history %v: %s", certainties, lines[2])
			}
		})
	}
}

// Public clients that join the pages of a connection in their cache have the whole list:
// Apollo Client 3 and 4 with relayStylePagination, and urql's Graphcache with
// relayPagination, of channels and messages, forward and backward.
func TestPagingClients(t *testing.T) {
	b, service, id := newConversing(t)
	server := b.serve(t, transport.Options{}, sse.Options{})
	names, texts := []string{"lab"}, []string{}
	for i := range 5 {
		name, text := fmt.Sprint("channel ", i), fmt.Sprint("message ", i)
		if _, err := service.Create(t.Context(), ann, channel.Draft{Name: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := service.Publish(t.Context(), ann, channels.Publication{Channel: id, Parts: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"text":%q}`, text))}}); err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, name), append(texts, text)
	}
	for _, client := range []string{"apollo3", "apollo4", "graphcache"} {
		t.Run(client, func(t *testing.T) {
			for i, line := range node(t, "pages.mjs", server.URL, client, string(id)) {
				var got []string
				if err := json.Unmarshal([]byte(line), &got); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				if want := [][]string{names, texts, texts}[i]; !slices.Equal(got, want) {
					t.Errorf("the cache has %q, want %q", got, want)
				}
			}
		})
	}
}

// The Relay compiler accepts the schema, with fragments on entities, channels and messages
// that can be refetched by id, and with lists of them that it reads page by page.
func TestRelayCompiler(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"src", "out"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source, err := os.ReadFile("clients/relay/refetchable.js")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"src/refetchable.js": string(source), "schema.graphql": newBench(t, graph.Options{}).engine.SDL(),
		"relay.json": `{"src": "./src", "language": "javascript", "schema": "./schema.graphql", "artifactDirectory": "./out"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compiler, err := filepath.Abs("clients/node_modules/relay-compiler/cli.js")
	if err != nil {
		t.Fatal(err)
	}
	nodeIn(t, dir, compiler, "relay.json")
	for _, query := range []string{"refetchableEntityQuery", "refetchableChannelQuery", "refetchableMessageQuery", "refetchableMessagesQuery"} {
		made, err := os.ReadFile(filepath.Join(dir, "out", query+".graphql.js"))
		if err != nil || !strings.Contains(string(made), "node(id: $id)") {
			t.Errorf("%s: %v, %.500s", query, err, made)
		}
	}
}
