package rdfdata_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"koine/internal/dialect/rdfdata"
	"koine/internal/policy"
	"koine/internal/proposals"
	"koine/kg"
)

// holdsAll holds every update.
type holdsAll struct{}

func (holdsAll) Verify(context.Context, kg.Judgement) (kg.Verdict, error) {
	return kg.Verdict{Outcome: kg.Held, Reason: "all", Details: "everything is looked at"}, nil
}

// TestHeldImports proves that an import that is one commit becomes a proposal, and
// that one of many commits is refused: neither goes in.
func TestHeldImports(t *testing.T) {
	policies := policy.New(policy.Options{})
	service := proposals.New(proposals.Options{})
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Verifier: holdsAll{}, Holder: service, Access: service.Guard(kg.AllowAll{}), OnSystemChange: service.Follow}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := service.Open(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rdfdata.NewHandler(rdfdata.Deps{Store: store, Prefixes: prefixes, Graphs: policy.NewGraphs(store, policies)}, rdfdata.Options{TempDir: t.TempDir()}))
	defer server.Close()
	for _, row := range []struct {
		method, url string
		status      int
		want        string
		proposals   int
	}{
		{http.MethodPut, server.URL + "/data?graph=urn:g", http.StatusOK, `"statements":0,"commits":0`, 1},
		{http.MethodPost, server.URL + "/data?default", http.StatusUnprocessableEntity, "held for review", 1},
	} {
		r, err := http.NewRequest(row.method, row.url, strings.NewReader("<urn:s> <urn:p> <urn:o> .\n"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/n-triples")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != row.status || !strings.Contains(string(body), row.want) {
			t.Errorf("%s: status %d, %s, %v", row.method, response.StatusCode, body, err)
		}
		page, err := service.List(t.Context(), proposals.Caller{Principal: kg.SystemPrincipal()}, proposals.Query{})
		if err != nil || len(page.Proposals) != row.proposals {
			t.Fatalf("%s: the proposals are %+v, %v", row.method, page, err)
		}
		if id := page.Proposals[0].ID; row.method == http.MethodPut && !strings.Contains(string(body), `"proposalId":"`+id+`"`) {
			t.Errorf("%s does not name %s: %s", row.method, id, body)
		}
	}
	v, err := store.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if n, err := v.Count(kg.Pattern{}); n != 0 || err != nil {
		t.Errorf("%d statements went in, %v", n, err)
	}
}
