package rdfdata_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/dialect/rdfdata"
	"koine/internal/policy"
	"koine/kg"
)

// roleServer is a handler over a store where X-Agent-Id and X-Role say who asks.
func roleServer(t *testing.T) (*kg.Store, http.Handler) {
	t.Helper()
	policies := policy.New(policy.Options{})
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Access: policies, OnSystemChange: policies.Follow})
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
	handler := rdfdata.NewHandler(rdfdata.Deps{Store: store, Prefixes: prefixes, Graphs: policy.NewGraphs(store, policies)}, rdfdata.Options{TempDir: t.TempDir()})
	return store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := kg.Principal{ID: kg.AgentID(r.Header.Get("X-Agent-Id")), Method: "key"}
		if role := r.Header.Get("X-Role"); role != "" {
			p.Roles = []string{role}
		}
		handler.ServeHTTP(w, r.WithContext(caller.With(r.Context(), caller.Caller{Principal: p})))
	})
}

func ask(h http.Handler, method, query, role, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/data"+query, strings.NewReader(body))
	r.Header.Set("X-Agent-Id", "agent://ann")
	r.Header.Set("X-Role", role)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAssertions proves that a document with assertions goes out and in over HTTP, and
// that only an administrator brings one in.
func TestAssertions(t *testing.T) {
	store, from := roleServer(t)
	meta := kg.Meta{Principal: kg.SystemPrincipal(), Justification: "seen"}
	q := kg.Quad{Subject: kg.IRI("urn:x:s"), Predicate: kg.IRI("urn:x:p"), Object: kg.Blank("b"), Graph: kg.DefaultGraph}
	then := time.UnixMilli(1234567890123).UTC()
	if _, err := store.Update(t.Context(), meta, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: q, Source: "agent://scout", Certainty: 0.75, HasCertainty: true, Time: then})
	}); err != nil {
		t.Fatal(err)
	}
	for _, mediaType := range []string{"application/n-quads", "application/trig", "text/turtle", "application/n-triples", "application/ld+json"} {
		t.Run(mediaType, func(t *testing.T) {
			exported := ask(from, "GET", "?assertions=rdf&format="+url.QueryEscape(mediaType), "", "", "")
			document := exported.Body.String()
			if exported.Code != 200 || exported.Header().Get("ETag") != "" || !strings.Contains(document, "agent://scout") || !strings.Contains(document, "2009-02-13T23:31:30.123Z") {
				t.Fatalf("got %d, %v\n%s", exported.Code, exported.Header(), document)
			}
			other, to := roleServer(t)
			for _, role := range []string{"", kg.RoleReviewer, kg.RoleReader} {
				if refused := ask(to, "POST", "?assertions=rdf", role, mediaType, document); refused.Code != 403 {
					t.Errorf("role %q: got %d %s", role, refused.Code, refused.Body)
				}
			}
			if r := other.Head().Revision; r != 0 {
				t.Errorf("somebody else wrote revision %d", r)
			}
			taken := ask(to, "POST", "?assertions=rdf&justification=moved", kg.RoleAdmin, mediaType, document)
			var report struct {
				Statements, Commits uint64
				Restored            struct{ Statements, Assertions uint64 }
			}
			if err := json.Unmarshal(taken.Body.Bytes(), &report); err != nil || taken.Code != 200 || report.Statements != 1 || report.Commits != 1 || report.Restored.Statements != 1 || report.Restored.Assertions != 1 {
				t.Fatalf("got %d %s", taken.Code, taken.Body)
			}
			view, err := other.View(t.Context(), kg.View{Principal: kg.SystemPrincipal()})
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			for st, err := range view.Match(kg.Pattern{}) {
				if err != nil {
					t.Fatal(err)
				}
				why, err := view.Justification(st.Assertions[0].Revision)
				if a := st.Assertions[0]; err != nil || st.Graph != q.Graph || a.Source != "agent://scout" || a.Certainty != 0.75 || !a.Time.Equal(then) || why != "seen" {
					t.Errorf("got %v, %q, %v", st, why, err)
				}
			}
		})
	}
	for _, row := range []struct {
		method, query string
		want          int
	}{
		{"GET", "?assertions=json", 400}, {"GET", "?assertions=", 400}, {"GET", "?assertions=rdf&assertions=rdf", 400}, {"POST", "?assertions=yes", 400},
		{"PUT", "?default&assertions=rdf", 400}, {"DELETE", "?default&assertions=rdf", 400}, {"HEAD", "?assertions=rdf", 200}, {"HEAD", "?assertions=x", 400},
	} {
		if got := ask(from, row.method, row.query, kg.RoleAdmin, "text/turtle", ""); got.Code != row.want {
			t.Errorf("%s %s: got %d %s, want %d", row.method, row.query, got.Code, got.Body, row.want)
		}
	}
}
