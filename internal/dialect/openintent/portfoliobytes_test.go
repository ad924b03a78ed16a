package openintent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"koine/internal/dialect/openintent"
	"koine/internal/slowtest"
)

// A list of portfolios has at most MaxListBytes: the first ones, and with created_by those of one
// agent, so that no other takes their place.
func TestBytesOfPortfolios(t *testing.T) {
	slowtest.Long(t)
	s := start(t, openintent.Options{})
	ask := func(method, path, agent, body string) (list []struct{ Name string }) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+openintent.Root+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Agent-ID", agent)
		r.Header.Set("Content-Type", "application/json")
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 {
			t.Fatalf("%s %s: %s", method, path, resp.Status)
		}
		if method == http.MethodGet {
			if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
				t.Fatal(err)
			}
		}
		return list
	}
	metadata := `{"k":"` + strings.Repeat("x", 64<<10-8) + `"}` // 64 KiB
	fits := openintent.MaxListBytes / (128<<10 + len("p000"))   // with as much of a governance policy
	for i := range fits + 2 {
		ask(http.MethodPost, "/portfolios", "ann", fmt.Sprintf(`{"name":"p%03d","metadata":%s,"governance_policy":%s}`, i, metadata, metadata))
	}
	ask(http.MethodPost, "/portfolios", "bob", `{"name":"small"}`)
	if list := ask(http.MethodGet, "/portfolios", "bob", ""); len(list) != fits || list[fits-1].Name != fmt.Sprintf("p%03d", fits-1) {
		t.Errorf("%d portfolios are listed, want %d", len(list), fits)
	}
	if list := ask(http.MethodGet, "/portfolios?created_by=bob", "bob", ""); len(list) != 1 || list[0].Name != "small" {
		t.Errorf("of bob are listed %v", list)
	}
}
