package a2a_test

import (
	"net/http"
	"strings"
	"testing"

	"koine/a2a"
)

// Extensions that are requested and supported, or called, are active; others are
// ignored.
func TestExtensionsAreActivated(t *testing.T) {
	s := newTestServer(t)
	knowledge, channels := a2a.KnowledgeExtensionURI, a2a.ChannelsExtensionURI
	query := `{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":"{ __typename }"}}`
	task := `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}`
	list := `{"jsonrpc":"2.0","id":1,"method":"channels/list"}`
	stream := `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"do it"}]}}}`
	for name, row := range map[string]struct{ path, body, header, asks, want string }{
		"nothing":          {"/", task, "A2A-Extensions", "", ""},
		"one":              {"/", task, "A2A-Extensions", knowledge, knowledge},
		"0.3":              {"/", task, "X-A2A-Extensions", knowledge, knowledge},
		"two, and unknown": {"/", task, "A2A-Extensions", "urn:x , " + channels + "," + knowledge + "," + channels, channels + ", " + knowledge},
		"unknown":          {"/", task, "A2A-Extensions", "urn:x", ""},
		"by its method":    {"/", query, "A2A-Extensions", "", knowledge},
		"of a batch":       {"/", "[" + query + "," + list + "]", "A2A-Extensions", "", knowledge + ", " + channels},
		"a stream":         {"/", stream, "A2A-Extensions", channels, channels},
		"another agent":    {"/known", task, "A2A-Extensions", knowledge, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+row.path, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if row.asks != "" {
			r.Header.Set(row.header, row.asks)
		}
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get(row.header); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
