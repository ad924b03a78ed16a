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

// A graph that its caller may not read is answered as one that is not there,
// word for word, whatever is asked of it; what is koine's own is nobody's to
// write.
func TestHiddenGraphs(t *testing.T) {
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
	const hidden, absent = "urn:g:hidden", "urn:g:absent"
	if got := ask(root, "POST", "?graph="+hidden, "<urn:s> <urn:p> \"secret\" .\n"); !strings.HasPrefix(got, "201") {
		t.Fatal(got)
	}
	head := store.Head()
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
		if got, want := of(hidden), of(absent); got != want || !strings.HasPrefix(got, row.want) {
			t.Errorf("%s %q %s: hidden %s\nabsent %s", row.method, row.body, row.condition, got, want)
		}
	}
	if got := ask(eve, "GET", "", ""); strings.Contains(got, "secret") {
		t.Errorf("exported: %s", got)
	}
	// What she may make is made though something of another's is hidden beside it.
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
	head = store.Head()
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
