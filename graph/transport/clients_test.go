package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/slowtest"
	"koine/internal/sse"
	"koine/kg"
)

// node runs a script of clients/ and returns its output, line by line.
func node(t *testing.T, arguments ...string) []string {
	t.Helper()
	return nodeIn(t, "clients", arguments...)
}

// nodeIn runs a script in a directory.
func nodeIn(t *testing.T, dir string, arguments ...string) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("a test with node; -short leaves it out")
	}
	if _, err := os.Stat("clients/node_modules/.package-lock.json"); err != nil {
		t.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(2*time.Minute))
	defer cancel()
	command := exec.CommandContext(ctx, "node", arguments...)
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("node %s: %v\n%s\n%s", strings.Join(arguments, " "), err, out, &stderr)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// panicky is an access policy that panics, once it is on, when one graph is read: a fault
// in the middle of a field.
type panicky struct{ on *atomic.Bool }

func (y panicky) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	if y.on.Load() && graph == iri("panic") && p.ID != "agent://writer" {
		panic("a fault")
	}
	return true
}

// clientServer is a server for the clients, with the requests of their scripts beside
// GraphQL: a commit, and to wait for a number of watchers.
func clientServer(t *testing.T) string {
	var on atomic.Bool
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = panicky{&on} })
	b.update(add(iri("s"), iri("p"), kg.Integer(0)))
	b.update(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: iri("secret"), Predicate: iri("p"), Object: kg.Integer(0), Graph: iri("panic")}})
	streams := sse.New(sse.Options{})
	deps := b.deps(streams)
	deps.Engine = faulty{b.engine}
	mux := http.NewServeMux()
	mux.Handle("/graphql", transport.NewHandler(deps, transport.Options{}))
	commits := 0
	mux.HandleFunc("/control/commit", func(w http.ResponseWriter, _ *http.Request) {
		commits++
		b.update(add(iri("s"), iri("p"), kg.Integer(int64(commits))))
		fmt.Fprint(w, "{}")
	})
	mux.HandleFunc("/control/fault", func(w http.ResponseWriter, r *http.Request) {
		on.Store(r.FormValue("on") == "true")
		fmt.Fprint(w, "{}")
	})
	mux.HandleFunc("/control/watchers", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err != nil {
			t.Error(err)
		}
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for b.store.Stats().Watchers != n {
			select {
			case <-look.C:
			case <-r.Context().Done():
				t.Errorf("there are %d watchers, not %d", b.store.Stats().Watchers, n)
				return
			}
		}
		fmt.Fprint(w, "{}")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		if err := streams.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		b.settle()
		server.Close()
	})
	return server.URL + "/graphql"
}

// auditCount is the number of audits of graphql-http 1.23.1.
const auditCount = 61

// All audits of graphql-http pass, those that are only recommendations as well.
func TestAudits(t *testing.T) {
	passed := 0
	for _, line := range node(t, "audits.mjs", clientServer(t)) {
		var a struct{ ID, Name, Status, Reason string }
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if a.Status != "ok" {
			t.Errorf("%s %s: %s: %s", a.ID, a.Name, a.Status, a.Reason)
			continue
		}
		passed++
	}
	if passed != auditCount {
		t.Errorf("%d audits passed, want %d", passed, auditCount)
	}
}

var scenarios = []string{
	"query", "variables", "mutation", "partial errors", "resolver panic", "engine panic", "subscription complete", "subscription early stop",
	"subscription refused", "error mid-stream", "validation error", "syntax error", "five at once",
}

// The public clients of graphql-sse, in both modes, and of graphql-ws.
func TestClients(t *testing.T) {
	for _, client := range []string{"sse-distinct", "sse-single", "ws"} {
		t.Run(client, func(t *testing.T) {
			got := node(t, "scenarios.mjs", clientServer(t), client)
			slices.Sort(got)
			if diff := cmp.Diff(slices.Sorted(slices.Values(scenarios)), got); diff != "" {
				t.Errorf("scenarios (-want +got):\n%s", diff)
			}
		})
	}
}
