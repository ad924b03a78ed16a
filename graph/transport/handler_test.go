package transport_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/caller"
	"koine/internal/sse"
	"koine/kg"
)

// serve puts the bench's engine on a socket.
func (b *bench) serve(t *testing.T, options transport.Options, streams sse.Options) *httptest.Server {
	t.Helper()
	s := sse.New(streams)
	server := b.serveWith(t, transport.NewHandler(b.deps(s), options))
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

func (b *bench) serveWith(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := caller.With(r.Context(), caller.Caller{Principal: kg.Principal{ID: kg.CanonicalAgent(r.Header.Get("X-Agent-ID")), Method: "open"}})
		h.ServeHTTP(detachable{w, b}, r.WithContext(ctx))
		b.returned.Add(1)
	}))
	t.Cleanup(server.Close)
	return server
}

// detachable is an answer whose stream outlives its handler, as those of httpd.
type detachable struct {
	http.ResponseWriter
	bench *bench
}

func (d detachable) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d detachable) Detach() (net.Conn, func(int64, error), error) {
	conn, _, err := http.NewResponseController(d.ResponseWriter).Hijack()
	return conn, func(_ int64, failure error) {
		if failure != nil {
			d.bench.t.Error(failure)
		}
	}, err
}

// exchange is a request and its expected answer.
type exchange struct {
	name    string
	method  string // POST if empty
	path    string // /graphql if empty
	header  map[string]string
	body    string
	status  int
	reply   string // the body; "*" for any
	headers map[string]string
}

func (b *bench) exchange(t *testing.T, server *httptest.Server, x exchange) {
	t.Helper()
	if x.method == "" {
		x.method = http.MethodPost
	}
	if x.path == "" {
		x.path = "/graphql"
	}
	req, err := http.NewRequestWithContext(t.Context(), x.method, server.URL+x.path, strings.NewReader(x.body))
	if err != nil {
		t.Fatal(err)
	}
	if x.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range x.header {
		req.Header.Set(k, v)
		if v == "" {
			req.Header.Del(k)
		}
	}
	res, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != x.status {
		t.Errorf("status %d, want %d: %s", res.StatusCode, x.status, got)
	}
	reply := strings.ReplaceAll(x.reply, "<head>", b.store.FormatPosition(b.store.Head()))
	if diff := cmp.Diff(reply, string(got)); x.reply != "*" && diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	for k, want := range x.headers {
		if got := res.Header.Get(k); got != want {
			t.Errorf("%s: got %q, want %q", k, got, want)
		}
	}
}

const (
	asJSON     = "application/json; charset=utf-8"
	asResponse = "application/graphql-response+json; charset=utf-8"
	at1        = `"extensions":{"revision":1,"position":"<head>"}`
)

func query(q string) string { return fmt.Sprintf(`{"query":%q}`, q) }

func get(params ...string) string {
	v := url.Values{}
	for i := 0; i < len(params); i += 2 {
		v.Set(params[i], params[i+1])
	}
	return "/graphql?" + v.Encode()
}

func refusal(message, code string) string {
	return fmt.Sprintf(`{"errors":[{"message":%q,"extensions":{"code":%q}}]}`, message, code)
}

// TestHTTP pins statuses, headers and bodies of GraphQL over HTTP.
func TestHTTP(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(add(iri("s"), iri("p"), kg.Integer(12345678901234567)))
	server := b.serve(t, transport.Options{MaxBodyBytes: 5 << 10}, sse.Options{})
	response := map[string]string{"Accept": "application/graphql-response+json"}
	syntax := `{"errors":[{"message":"Expected Name, found \u003cEOF\u003e","locations":[{"line":1,"column":3}],"extensions":{"code":"GRAPHQL_PARSE_FAILED"}}],` + at1 + `}`
	ok := `{"data":{"revision":1},` + at1 + `}`
	for _, x := range []exchange{
		{name: "POST", body: query(`{ revision }`), status: 200, reply: ok, headers: map[string]string{"Content-Type": asJSON, "X-Content-Type-Options": "nosniff"}},
		{name: "POST, the newer type", header: response, body: query(`{ revision }`), status: 200, reply: ok, headers: map[string]string{"Content-Type": asResponse}},
		{name: "POST, the better liked type", header: map[string]string{"Accept": "application/json;q=0.5, application/graphql-response+json;q=0.9"}, body: query(`{ revision }`), status: 200, reply: ok, headers: map[string]string{"Content-Type": asResponse}},
		{name: "POST, anything", header: map[string]string{"Accept": "*/*"}, body: query(`{ revision }`), status: 200, reply: ok, headers: map[string]string{"Content-Type": asJSON}},
		{name: "POST, not acceptable", header: map[string]string{"Accept": "text/html"}, body: query(`{ revision }`), status: 406, reply: refusal("the answer can be application/graphql-response+json, application/json or text/event-stream", "INVALID")},
		{name: "GET", method: "GET", path: get("query", "{ revision }"), status: 200, reply: ok},
		{name: "GET with variables", method: "GET", path: get("query", `query A($i: IRI!) { entity(iri: $i) { value(predicate: "ex:p") } } query B { revision }`, "operationName", "A", "variables", `{"i":"ex:s"}`), status: 200, reply: `{"data":{"entity":{"value":12345678901234567}},` + at1 + `}`},
		{name: "GET without a query", method: "GET", path: "/graphql", status: 400, reply: refusal("the parameter query is missing", "INVALID")},
		{name: "GET with bad variables", method: "GET", path: get("query", "{ revision }", "variables", "{"), status: 400, reply: refusal("the parameter variables is not JSON", "INVALID")},
		{name: "GET a mutation", method: "GET", path: get("query", `mutation { applyPatches(input: {patches: []}) { success } }`), status: 405, reply: refusal("a mutation needs a POST request", "PERMISSION_DENIED"), headers: map[string]string{"Allow": "POST"}},
		{name: "GET from another site", method: "GET", path: get("query", "{ revision }"), header: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: 403, reply: refusal("a request from another site needs a header like GraphQL-Require-Preflight: 1, or POST", "PERMISSION_DENIED")},
		{name: "GET from another site, asked for", method: "GET", path: get("query", "{ revision }"), header: map[string]string{"Sec-Fetch-Site": "cross-site", "GraphQL-Require-Preflight": "1"}, status: 200, reply: ok},
		{name: "PATCH", method: "PATCH", body: query(`{ revision }`), status: 405, reply: refusal("GraphQL requires GET or POST", "INVALID"), headers: map[string]string{"Allow": "GET, POST, PUT, DELETE"}},
		{name: "a form", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, body: "query=%7Brevision%7D", status: 415, reply: refusal("a POST needs Content-Type: application/json in UTF-8", "INVALID")},
		{name: "plain text", header: map[string]string{"Content-Type": "text/plain"}, body: query(`{ revision }`), status: 415, reply: "*"},
		{name: "no content type", header: map[string]string{"Content-Type": ""}, body: query(`{ revision }`), status: 415, reply: "*"},
		{name: "another charset", header: map[string]string{"Content-Type": "application/json; charset=latin1"}, body: query(`{ revision }`), status: 415, reply: "*"},
		{name: "UTF-8 said", header: map[string]string{"Content-Type": "application/json; charset=UTF-8"}, body: query(`{ revision }`), status: 200, reply: ok},
		{name: "empty body", body: "", status: 400, reply: refusal("the body is empty", "INVALID")},
		{name: "no JSON", body: `{"query":`, status: 400, reply: refusal("the body is not JSON", "INVALID")},
		{name: "a batch", body: `[` + query(`{ revision }`) + `]`, status: 400, reply: refusal("the body must be a JSON object", "INVALID")},
		{name: "invalid UTF-8", body: "{\"query\":\"{ entity(iri: \\\"urn:\xff\\\") { iri } }\"}", status: 400, reply: refusal("the body is not valid UTF-8", "INVALID")},
		{name: "too deep", body: `{"query":"{ revision }","variables":` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}`, status: 400, reply: refusal("the body is nested too deeply", "LIMIT_EXCEEDED")},
		{name: "just not too deep", body: `{"query":"{ revision }","variables":{"x":` + strings.Repeat(`[`, 62) + strings.Repeat(`]`, 62) + `}}`, status: 200, reply: ok},
		{name: "as large as allowed", body: padded(5 << 10), status: 200, reply: ok},
		{name: "a byte larger", body: padded(5<<10 + 1), status: 413, reply: refusal("the body is larger than the 5120 bytes that are taken; /data takes RDF of any size", "LIMIT_EXCEEDED")},
		{name: "no query", body: `{"variables":{}}`, status: 400, reply: refusal("query is missing: the document to execute, as a string", "INVALID")},
		{name: "query of a wrong type", body: `{"query":5}`, status: 400, reply: refusal("query must be a string", "INVALID")},
		{name: "operationName of a wrong type", body: `{"query":"{ revision }","operationName":{}}`, status: 400, reply: refusal("operationName must be a string", "INVALID")},
		{name: "variables of a wrong type", body: `{"query":"{ revision }","variables":[]}`, status: 400, reply: refusal("variables must be an object", "INVALID")},
		{name: "extensions of a wrong type", body: `{"query":"{ revision }","extensions":"x"}`, status: 400, reply: refusal("extensions must be an object", "INVALID")},
		{name: "nulls", body: `{"query":"{ revision }","operationName":null,"variables":null,"extensions":null,"other":1}`, status: 200, reply: ok},
		{name: "syntax", body: query(`{ `), status: 200, reply: syntax},
		{name: "syntax, the newer type", header: response, body: query(`{ `), status: 400, reply: syntax},
		{name: "validation, the newer type", header: response, body: query(`{ x }`), status: 400, reply: "*"},
		{name: "limit, the newer type", header: response, body: query(strings.Repeat("{ a ", 41) + strings.Repeat("}", 41)), status: 400, reply: `{"errors":[{"message":"the query is 41 fields deep; at most 40 are allowed","extensions":{"code":"LIMIT_EXCEEDED","hint":"Read the deeper parts in a second operation that starts from this one's results.","limit":"depth"}}],` + at1 + `}`},
		{name: "part of the data, the newer type", header: response, body: query(`{ revision entity(iri: "x") { iri } }`), status: 200, reply: `{"errors":[{"message":"\"x\" is neither an absolute IRI nor a registered prefix:name","path":["entity"],"locations":[{"line":1,"column":12}],"extensions":{"code":"INVALID","field":"iri","hint":"If it is the id of a subject or an object and not an IRI, use \"urn:koine:id:x\"."}}],"data":{"revision":1,"entity":null},` + at1 + `}`},
		{name: "subscription without a stream", header: response, body: query(`subscription { statementChanged { __typename } }`), status: 400, reply: "*"},
		{name: "schema", method: "GET", path: "/graphql/schema", status: 200, reply: b.engine.SDL(), headers: map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
		{name: "schema, posted", path: "/graphql/schema", status: 405, reply: "*", headers: map[string]string{"Allow": "GET, HEAD"}},
	} {
		t.Run(x.name, func(t *testing.T) { b.exchange(t, server, x) })
	}
}

// padded is a valid body of n bytes.
func padded(n int) string {
	body := query(`{ revision }`)
	return body + strings.Repeat(" ", n-len(body))
}

// The principal is the caller that the middleware found.
func TestHTTPCaller(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{})
	mutation := `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 1}}}]}) { revision } }`
	b.exchange(t, server, exchange{body: query(mutation), header: map[string]string{"X-Agent-ID": "smith"}, status: 200, reply: `{"data":{"applyPatches":{"revision":1}},` + at1 + `}`})
	b.exchange(t, server, exchange{body: query(`{ statements { nodes { assertedBy } } }`), status: 200, reply: `{"data":{"statements":{"nodes":[{"assertedBy":["agent://smith"]}]}},` + at1 + `}`})
}

// Tools that go by the end of an address read the schema as a GraphQL document.
func TestSchemaForTools(t *testing.T) {
	b := newBench(t, graph.Options{})
	server := b.serve(t, transport.Options{}, sse.Options{})
	for path, want := range map[string]string{
		"/graphql/schema": "text/plain; charset=utf-8", "/graphql/schema.graphql": "application/graphql; charset=utf-8", "/graphql/schema.graphqls": "application/graphql; charset=utf-8",
	} {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != want || !strings.Contains(string(text), "type Query") {
			t.Errorf("%s: got %s, %s, %.60s, %v", path, resp.Status, resp.Header.Get("Content-Type"), text, err)
		}
	}
}

// A GET of the endpoint that accepts a GraphQL document, and has no operation, reads the
// schema; nothing else does.
func TestSchemaAtTheEndpoint(t *testing.T) {
	b := newBench(t, graph.Options{OnlyTrusted: true})
	server := b.serve(t, transport.Options{}, sse.Options{})
	send := func(method, path, accept, tag string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		if tag != "" {
			r.Header.Set("If-None-Match", tag)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(text)
	}
	const kind = "application/graphql; charset=utf-8"
	for _, accept := range []string{"application/graphql", "text/plain, application/graphql; charset=utf-8;q=0.5", "application/json, application/graphql"} {
		resp, text := send("GET", "/graphql", accept, "")
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != kind || text != b.engine.SDL() || !slices.Contains(resp.Header.Values("Vary"), "Accept") {
			t.Errorf("%s: got %s %v %.60s", accept, resp.Status, resp.Header, text)
		}
	}
	resp, text := send("HEAD", "/graphql", "application/graphql", "")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != kind || text != "" {
		t.Errorf("HEAD: got %s %v %.60s", resp.Status, resp.Header, text)
	}
	tag := resp.Header.Get("ETag")
	for _, held := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
		for _, path := range []string{"/graphql", "/graphql/schema.graphql"} {
			if resp, text := send("GET", path, "application/graphql", held); resp.StatusCode != 304 || text != "" || resp.Header.Get("ETag") != tag || resp.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s with %s: got %s %.60s", path, held, resp.Status, text)
			}
		}
	}
	if resp, _ := send("GET", "/graphql", "application/graphql", `W/"other"`); resp.StatusCode != 200 {
		t.Errorf("another tag: got %s", resp.Status)
	}
	for _, x := range [][3]string{
		{"GET", "/graphql", "application/json"}, {"GET", "/graphql", "*/*"}, {"GET", "/graphql", "application/graphql;q=0"}, {"GET", "/graphql?query={revision}", "application/graphql"},
		{"GET", "/graphql?documentId=x", "application/graphql"}, {"POST", "/graphql", "application/graphql"}, {"PUT", "/graphql", "application/graphql"}, {"DELETE", "/graphql", "application/graphql"},
	} {
		if resp, text := send(x[0], x[1], x[2], ""); strings.Contains(text, "type Query") {
			t.Errorf("%v: got %s, the schema", x, resp.Status)
		}
	}
}
