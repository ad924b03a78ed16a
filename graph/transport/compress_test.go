package transport_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/sse"
)

// Answers are compressed from a size on, for clients that accept gzip, unless they are
// streamed.
func TestCompression(t *testing.T) {
	b := newBench(t, graph.Options{})
	body := query(`{ revision }`)
	reply := len(`{"data":{"revision":0},"extensions":{"revision":0,"position":""}}`) + len(b.store.FormatPosition(b.store.Head()))
	for _, x := range []struct {
		name       string
		threshold  int
		header     map[string]string
		compressed bool
	}{
		{"at the size", reply, map[string]string{"Accept-Encoding": "gzip"}, true},
		{"the newer type", reply, map[string]string{"Accept-Encoding": "br, gzip;q=0.5", "Accept": "application/graphql-response+json"}, true},
		{"below the size", reply + 1, map[string]string{"Accept-Encoding": "gzip"}, false},
		{"not taken", 1, map[string]string{"Accept-Encoding": "identity"}, false},
		{"declined", 1, map[string]string{"Accept-Encoding": "gzip;q=0"}, false},
		{"another coding", 1, map[string]string{"Accept-Encoding": "zstd, br"}, false},
		{"a stream", 1, map[string]string{"Accept-Encoding": "gzip", "Accept": "text/event-stream"}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			server := b.serve(t, transport.Options{CompressBytes: x.threshold}, sse.Options{})
			r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/graphql", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			for k, v := range x.header {
				r.Header.Set(k, v)
			}
			response, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if got := response.Header.Get("Content-Encoding") == "gzip"; got != x.compressed {
				t.Errorf("compressed: got %v, want %v", got, x.compressed)
			}
			content := io.Reader(response.Body)
			if x.compressed {
				if content, err = gzip.NewReader(response.Body); err != nil {
					t.Fatal(err)
				}
			}
			text, err := io.ReadAll(content)
			if err != nil || !strings.Contains(string(text), `"data":{"revision":0}`) {
				t.Errorf("got %s, %v", text, err)
			}
			if vary := fmt.Sprint(response.Header.Values("Vary")); x.header["Accept"] == "" && vary != "[Accept-Encoding Accept]" {
				t.Errorf("Vary: got %s", vary)
			}
		})
	}
	server := b.serve(t, transport.Options{}, sse.Options{})
	for encoding, status := range map[string]int{"gzip": 415, "identity": 200} {
		b.exchange(t, server, exchange{name: encoding, body: body, header: map[string]string{"Content-Encoding": encoding}, status: status, reply: "*"})
	}
	response, err := server.Client().Get(server.URL + "/graphql/schema")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if !response.Uncompressed { // by net/http, which had asked for gzip
		t.Error("the schema was not compressed")
	}
	b.exchange(t, server, exchange{method: "GET", path: "/graphql/schema", header: map[string]string{"If-None-Match": response.Header.Get("ETag")}, status: 304, reply: ""})
}
