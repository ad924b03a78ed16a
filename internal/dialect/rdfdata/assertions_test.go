package rdfdata_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/dialect/rdfdata"
	"koine/internal/policy"
	"koine/internal/slowtest"
	"koine/internal/throttle"
	"koine/kg"
)

// roleServer is a handler over a store where X-Agent-Id and X-Role identify the caller.
func roleServer(t *testing.T) (*kg.Store, http.Handler) {
	t.Helper()
	return throttledServer(t, nil)
}

// throttledServer is a roleServer that bounds updates.
func throttledServer(t *testing.T, limiter *throttle.Throttle) (*kg.Store, http.Handler) {
	t.Helper()
	policies := policy.New(policy.Options{})
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: policies, OnSystemChange: policies.Follow, Admit: limiter.AdmitUpdate, Charge: limiter.ChargeUpdate}})
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
	handler := rdfdata.NewHandler(rdfdata.Deps{Store: store, Prefixes: prefixes, Graphs: policy.NewGraphs(store, policies), Charge: limiter.ChargeUpdate}, rdfdata.Options{TempDir: t.TempDir()})
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

// TestRestoreIsOneUpdate proves that a document with assertions counts as one update of its
// caller, regardless of its number of justifications and thus commits, and as another for
// each further kg.LoadUpdateQuads assertions, which its next requests pay for.
func TestRestoreIsOneUpdate(t *testing.T) {
	slowtest.Long(t)
	source, from := roleServer(t)
	say := func(statements, justifications int) {
		t.Helper()
		for i := range justifications {
			meta := kg.Meta{Principal: kg.SystemPrincipal(), Justification: fmt.Sprint("because of ", i)}
			_, err := source.Update(t.Context(), meta, func(tx *kg.Tx) error {
				for k := range statements {
					q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:x:", statements, ":", i)), Predicate: kg.IRI("urn:x:p"), Object: kg.Integer(int64(k)), Graph: kg.DefaultGraph}
					if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q, Source: "agent://scout"}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	now := time.Unix(1_700_000_000, 0)
	// Two updates at a time, and then one an hour: a restore that waited for its share would
	// not end.
	limiter := throttle.New(throttle.Options{Principal: throttle.Limits{Updates: 1.0 / 3600}, Burst: 2 * time.Hour, Clock: func() time.Time { return now }})
	_, to := throttledServer(t, limiter)
	post := func(want int, charges string) {
		t.Helper()
		document := ask(from, "GET", "?assertions=rdf", "", "", "").Body.String()
		taken := ask(to, "POST", "?assertions=rdf", kg.RoleAdmin, "application/n-quads", document)
		var report struct{ Commits int }
		if err := json.Unmarshal(taken.Body.Bytes(), &report); err != nil || taken.Code != 200 || report.Commits != want {
			t.Fatalf("%s: got %d %s, want %d commits", charges, taken.Code, taken.Body, want)
		}
	}
	again := func(want int, when string) {
		t.Helper()
		if got := ask(to, "POST", "?default", kg.RoleAdmin, "application/n-triples", "<urn:x:a> <urn:x:b> <urn:x:c> ."); got.Code != want {
			t.Errorf("%s: an update is answered %d %s, want %d", when, got.Code, got.Body, want)
		}
	}
	say(1, 20)
	post(20, "few assertions of many reasons")
	again(200, "behind one restore")
	again(429, "behind another update")
	now = now.Add(2 * time.Hour)
	say(5_000, 3) // 15,000 more: two updates
	post(15, "many assertions")
	again(429, "behind a long restore")
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
