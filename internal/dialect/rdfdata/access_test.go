package rdfdata_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"koine/internal/caller"
	"koine/internal/dialect/rdfdata"
	"koine/internal/policy"
	"koine/kg"
)

// A graph that its caller may not read is answered like one that does not exist, word for
// word, for every request; koine's own graphs cannot be written.
func TestHiddenGraphs(t *testing.T) {
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
	handler := rdfdata.NewHandler(rdfdata.Deps{Store: store, Prefixes: prefixes, Graphs: policy.NewGraphs(store, policies)}, rdfdata.Options{TempDir: t.TempDir()})
	root := kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, Method: "key"}
	eve := kg.Principal{ID: "agent://eve", Method: "key"}
	ask := func(who kg.Principal, method, query, body string, header ...string) string {
		r := httptest.NewRequest(method, "/data"+query, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/n-quads")
		if method == http.MethodGet {
			r.Body = http.NoBody
		}
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(caller.With(context.Background(), caller.Caller{Principal: who})))
		text, _ := io.ReadAll(w.Result().Body)
		return fmt.Sprint(w.Code, " ", w.Result().Header, " ", string(text))
	}
	const hidden, gone, absent = "urn:g:hidden", "urn:g:gone", "urn:g:absent"
	for _, method := range []string{"PUT", "DELETE"} {
		if got := ask(root, method, "?graph="+gone, "<urn:s> <urn:p> \"past\" .\n"); !strings.HasPrefix(got, "20") {
			t.Fatal(got)
		}
	}
	if got := ask(root, "POST", "?graph="+hidden, "<urn:s> <urn:p> \"secret\" .\n"); !strings.HasPrefix(got, "201") {
		t.Fatal(got)
	}
	tag := regexp.MustCompile(`Etag:\[("[^"]+")\]`).FindStringSubmatch(ask(root, "GET", "?graph="+hidden, ""))
	if tag == nil {
		t.Fatal("no ETag")
	}
	const one = "<urn:s> <urn:p> \"x\" .\n"
	for _, row := range []struct{ method, body, condition, want string }{
		{"GET", "", "", "404"},
		{"GET", "", "If-None-Match: " + tag[1], "404"},
		{"GET", "", "If-Match: " + tag[1], "404"},
		{"HEAD", "", "", "404"},
		{"OPTIONS", "", "", "204"},
		{"POST", one, "", "404"},
		{"POST", one, "If-Match: *", "412"},
		{"POST", one, "If-Match: " + tag[1], "412"},
		{"POST", one, "If-None-Match: *", "404"},
		{"POST", "", "", "204"},
		{"POST", "<secret> <urn:p> 1", "", "400"},
		{"PUT", one, "", "404"},
		{"PUT", one, "If-Match: *", "412"},
		{"PUT", one, "If-Match: " + tag[1], "412"},
		{"PUT", one, "If-None-Match: *", "404"},
		{"PUT", "", "", "200"}, // it is empty already, as far as can be told
		{"PUT", "", "If-None-Match: *", "200"},
		{"DELETE", "", "", "404"},
		{"DELETE", "", "If-Match: *", "412"},
		{"DELETE", "", "If-Match: " + tag[1], "412"},
		{"DELETE", "", "If-None-Match: *", "404"},
		{"PATCH", "", "", "501"},
	} {
		of := func(graph string) string {
			return strings.ReplaceAll(ask(eve, row.method, "?graph="+graph, row.body, row.condition), graph, "G")
		}
		want := of(absent)
		if !strings.HasPrefix(want, row.want) {
			t.Errorf("%s %q %s: %s, want %s", row.method, row.body, row.condition, want, row.want)
		}
		for _, name := range []string{hidden, gone} {
			if got := of(name); got != want {
				t.Errorf("%s %q %s: %s %s\nabsent %s", row.method, row.body, row.condition, name, got, want)
			}
		}
	}
	if got := ask(eve, "GET", "", ""); strings.Contains(got, "secret") {
		t.Errorf("exported: %s", got)
	}
	// She may create her graph although something hidden exists beside it.
	if got := ask(eve, "PUT", "?graph=agent://eve/notes", one); !strings.HasPrefix(got, "201") || !strings.Contains(got, "Location:[agent://eve/notes]") {
		t.Errorf("a graph of her own: %s", got)
	}
	made := ask(eve, "POST", "", one, "Content-Type: application/n-triples")
	if !strings.HasPrefix(made, "201") || !strings.Contains(made, "Location:[agent://eve/") {
		t.Errorf("a made-up graph: %s", made)
	}
	if got := ask(kg.Principal{ID: "https://idp.example/eve", Method: "jwt"}, "POST", "", one, "Content-Type: application/n-triples"); !strings.HasPrefix(got, "403") {
		t.Errorf("a made-up graph of who has no names: %s", got)
	}
	head := store.Head()
	for _, who := range []kg.Principal{eve, root} {
		for _, row := range []struct{ method, query, body string }{
			{"POST", "", "<urn:s> <urn:p> \"x\" .\n<urn:g:hidden> <urn:koine:vocab:graphReader> \"*\" <urn:koine:graph:system> .\n"},
			{"POST", "?graph=urn:koine:graph:system", "<urn:g:hidden> <urn:koine:vocab:graphReader> \"*\" .\n"},
			{"PUT", "?graph=urn:koine:graph:system", "<urn:g:hidden> <urn:koine:vocab:graphReader> \"*\" .\n"},
			{"POST", "", "<urn:g:hidden> <urn:koine:vocab:graphReader> \"*\" .\n"},
			{"POST", "", "<urn:g:hidden> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:koine:vocab:GraphPolicy> .\n"},
		} {
			if got := ask(who, row.method, row.query, row.body); !strings.HasPrefix(got, "403") || !strings.Contains(got, "RESERVED") {
				t.Errorf("%s %s %s by %s: %s", row.method, row.query, row.body, who.ID, got)
			}
		}
	}
	if store.Head() != head {
		t.Errorf("something was written: %+v, was %+v", store.Head(), head)
	}
}

// hiding hides the statements with one predicate from callers that are not administrators.
type hiding struct{ kg.Front }

func (hiding) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	if p.IsAdmin() {
		return nil
	}
	return func(predicate, _ kg.Term) bool { return predicate == kg.IRI("urn:hidden") }
}

// A caller from whom single statements of a graph are hidden does not learn of their
// changes: it gets no entity tag, and the same answers for any of them.
func TestHiddenStatements(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: hiding{kg.Front{Access: kg.AllowAll{}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		t.Fatal(err)
	}
	handler := rdfdata.NewHandler(rdfdata.Deps{Store: store, Prefixes: prefixes, Graphs: policy.NewGraphs(store, policy.New(policy.Options{}))}, rdfdata.Options{TempDir: t.TempDir()})
	ask := func(who kg.Principal, method, query, body string, header ...string) (int, http.Header, string) {
		r := httptest.NewRequest(method, "/data"+query, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/n-triples")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(caller.With(context.Background(), caller.Caller{Principal: who})))
		h := w.Result().Header
		h.Del("Koine-Revision") // of the store, which is public
		h.Del("Koine-Position")
		return w.Code, h, w.Body.String()
	}
	root := kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, Method: "key"}
	eve := kg.Principal{ID: "agent://eve", Method: "key"}
	ask(root, "POST", "?graph=urn:g", "<urn:s> <urn:p> \"seen\" .\n")
	_, shown, _ := ask(root, "GET", "?graph=urn:g", "")
	all := func() (out string) {
		for _, header := range [][]string{nil, {"If-None-Match", shown.Get("ETag")}, {"If-Match", shown.Get("ETag")}} {
			for _, query := range []string{"?graph=urn:g", "", "?default", "?graph=urn:other"} {
				status, h, body := ask(eve, "GET", query, "", header...)
				if h.Get("ETag") != "" {
					t.Errorf("%s has the tag %s", query, h.Get("ETag"))
				}
				out += fmt.Sprintln(query, header, status, h, body)
			}
		}
		return out
	}
	before := all()
	if status, _, body := ask(root, "POST", "?graph=urn:g", "<urn:s> <urn:hidden> \"secret\" .\n<urn:t> <urn:hidden> \"secret\" .\n"); status != http.StatusOK {
		t.Fatal(status, body)
	}
	ask(root, "POST", "?graph=urn:other", "<urn:t> <urn:hidden> \"secret\" .\n")
	if after := all(); after != before {
		t.Errorf("what is hidden is told:\n%s\nbefore\n%s", after, before)
	}
	if _, now, _ := ask(root, "GET", "?graph=urn:g", ""); shown.Get("ETag") == "" || now.Get("ETag") == shown.Get("ETag") {
		t.Errorf("who sees all has the tag %q, before %q", now.Get("ETag"), shown.Get("ETag"))
	}
}
