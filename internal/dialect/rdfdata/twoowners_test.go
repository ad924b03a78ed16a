package rdfdata_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"koine/internal/caller"
	"koine/internal/dialect/rdfdata"
	"koine/internal/policy"
	"koine/internal/slowtest"
	"koine/kg"
)

// TestTwoOwnersPutAtOnce has two owners of a graph PUT it at the same time: in one commit and
// as a whole, with If-Match and without.
//
//   - At least one of them is answered 200. With If-Match it is exactly one.
//   - The other is answered 412 (PRECONDITION_FAILED), or 429 with Retry-After while the graph
//     is being replaced as a whole, and its document goes in when it tries again as the error
//     says.
//   - At all times the graph holds the statements of one document, and no mixture.
func TestTwoOwnersPutAtOnce(t *testing.T) {
	slowtest.Long(t)
	policies := policy.New(policy.Options{})
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: policies, OnSystemChange: policies.Follow}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		t.Fatal(err)
	}
	graphs := policy.NewGraphs(store, policies)
	handler := rdfdata.NewHandler(rdfdata.Deps{Store: store, Prefixes: prefixes, Graphs: graphs}, rdfdata.Options{TempDir: t.TempDir()})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := kg.Principal{ID: kg.AgentID(r.Header.Get("X-Agent-Id")), Method: "key"}
		handler.ServeHTTP(w, r.WithContext(caller.With(r.Context(), caller.Caller{Principal: p})))
	}))
	defer server.Close()
	f := &fixture{T: t, store: store, url: server.URL + "/data"}
	owners := [2]string{"agent://dora", "agent://eve"}
	// A document contains its owner and its round: no two of an owner are equal.
	document := func(owner string, round, statements int) string {
		var b strings.Builder
		for i := range statements {
			fmt.Fprintf(&b, "<urn:s%d> <urn:of> \"%s %d\" .\n", i, owner, round)
		}
		return b.String()
	}
	for _, row := range []struct {
		name       string
		statements int
		condition  bool
	}{
		{"small", 200, false},
		{"small with If-Match", 200, true},
		{"whole", kg.MaxPatches + 100, false},
		{"whole with If-Match", kg.MaxPatches + 100, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := *f
			f.T = t
			graph := kg.IRI("urn:g:" + strings.ReplaceAll(row.name, " ", "-"))
			query := "?graph=" + graph.Value()
			root := kg.Meta{Principal: kg.SystemPrincipal()}
			if _, _, err := graphs.Create(t.Context(), root, policy.Creation{Graph: graph, Owners: []policy.Grantee{policy.Grantee(owners[0]), policy.Grantee(owners[1])}}); err != nil {
				t.Fatal(err)
			}
			put := func(owner string, round int, tag string) answer {
				header := []string{"Content-Type: application/n-triples", "X-Agent-Id: " + owner}
				if tag != "" {
					header = append(header, "If-Match: "+tag)
				}
				return f.ask("PUT", query, strings.NewReader(document(owner, round, row.statements)), header...)
			}
			read := func(round int) (owner, tag string) {
				t.Helper()
				a := f.get(query, "X-Agent-Id: "+owners[0])
				text := string(a.body)
				for _, owner := range owners {
					if n := strings.Count(text, fmt.Sprintf(`"%s %d"`, owner, round)); n == row.statements && strings.Count(text, "\n") == n {
						return owner, a.header.Get("ETag")
					}
				}
				t.Fatalf("%d: the graph has %d statements, and is neither document", a.status, strings.Count(text, "\n"))
				return "", ""
			}
			if a := put(owners[0], 0, ""); a.status/100 != 2 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			_, tag := read(0)
			for round := 1; round <= 6; round += 2 {
				if !row.condition {
					tag = ""
				}
				var answers [2]answer
				var both sync.WaitGroup
				for i, owner := range owners {
					both.Go(func() { answers[i] = put(owner, round, tag) })
				}
				both.Wait()
				won, lost := 0, ""
				for i, a := range answers {
					switch {
					case a.status == 200:
						won++
						continue
					case a.status == 412 && row.condition && a.problem(t).Reason == "PRECONDITION_FAILED":
					case a.status == 429 && row.statements > kg.MaxPatches && a.header.Get("Retry-After") != "":
					default:
						t.Errorf("%s: got %d %s", owners[i], a.status, a.body)
					}
					lost = owners[i]
				}
				if won == 0 || won == 2 && row.condition {
					t.Fatalf("%d of two were answered 200: %s, %s", won, answers[0].body, answers[1].body)
				}
				holds, now := read(round)
				if tag = now; lost == "" {
					continue
				}
				if holds == lost {
					t.Fatalf("the graph is what %s sent, whose PUT failed", lost)
				}
				if !row.condition {
					tag = ""
				}
				if a := put(lost, round+1, tag); a.status != 200 {
					t.Fatalf("%s tries again: %d %s", lost, a.status, a.body)
				}
				if holds, tag = read(round + 1); holds != lost {
					t.Errorf("behind it the graph is what %s sent, want %s", holds, lost)
				}
			}
		})
	}
}
