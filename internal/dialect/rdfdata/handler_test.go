package rdfdata_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/dialect/rdfdata"
	"koine/internal/policy"
	"koine/internal/slowtest"
	"koine/kg"
)

// fixture is a server over a store of its own.
type fixture struct {
	*testing.T
	store *kg.Store
	url   string
}

func start(t *testing.T, o rdfdata.Options) *fixture {
	t.Helper()
	policies := policy.New(policy.Options{})
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: policies, OnSystemChange: policies.Follow}})
	if err != nil {
		t.Fatal(err)
	}
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": "http://x.example/"})
	if err != nil {
		t.Fatal(err)
	}
	o.TempDir = t.TempDir()
	handler := rdfdata.NewHandler(rdfdata.Deps{Store: store, Prefixes: prefixes, Graphs: policy.NewGraphs(store, policies)}, o)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := cmp.Or(kg.AgentID(r.Header.Get("X-Agent-Id")), "agent://ann")
		r = r.WithContext(caller.With(r.Context(), caller.Caller{Principal: kg.Principal{ID: id, Roles: []string{kg.RoleAdmin}, Method: kg.MethodOpen}}))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &fixture{T: t, store: store, url: server.URL + "/data"}
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

type problem struct {
	Status              int
	Reason, Field, Hint string
	Message             string
	Line                int
}

func (a answer) problem(t *testing.T) problem {
	t.Helper()
	var body struct {
		Error struct {
			Message string
			Data    problem
		}
	}
	if err := json.Unmarshal(a.body, &body); err != nil || body.Error.Message == "" || a.status < 400 {
		t.Fatalf("status %d is no problem: %s", a.status, a.body)
	}
	p := body.Error.Data
	p.Status, p.Message = a.status, body.Error.Message
	return p
}

func (a answer) report(t *testing.T) (r struct {
	Quads, Statements, Removed, Commits, Revision, Rejected uint64
	Position                                                string
	CommitID                                                *string
	Errors                                                  []string
}) {
	t.Helper()
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// ask sends a request; header lines are "Name: value".
func (f *fixture) ask(method, query string, body io.Reader, header ...string) answer {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.url+query, body)
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	response, err := (&http.Transport{DisableCompression: true, ExpectContinueTimeout: time.Minute}).RoundTrip(r)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		f.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, text}
}

func (f *fixture) post(query, contentType, text string) answer {
	f.Helper()
	return f.ask("POST", query, strings.NewReader(text), "Content-Type: "+contentType)
}

func (f *fixture) get(query string, header ...string) answer {
	f.Helper()
	return f.ask("GET", query, nil, header...)
}

func zipped(text string) *bytes.Buffer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	z.Close()
	return &b
}

const twoGraphs = `@prefix ex: <http://x.example/> .
ex:a ex:p "in the default graph" .
ex:g { ex:a ex:p "in a named one"@en . _:b ex:p 1 . }
`

// An imported document is exported, in the format that the client prefers.
func TestImportAndExport(t *testing.T) {
	f := start(t, rdfdata.Options{})
	r := f.post("", "application/trig", twoGraphs).report(t)
	if r.Quads != 3 || r.Statements != 3 || r.Commits != 1 || r.Revision != 1 || r.CommitID == nil || r.Position == "" {
		t.Errorf("got %+v", r)
	}
	for _, c := range []struct{ accept, query, contentType, holds string }{
		{"", "", "application/n-quads", `"in a named one"@en <http://x.example/g> .`},
		{"*/*", "", "application/n-quads", `"in the default graph" .`},
		{"text/html, application/trig;q=0.9, */*;q=0.1", "", "application/trig", "ex:g {"},
		{"application/trig;q=0.5, text/turtle", "", "text/turtle; charset=utf-8", "@prefix ex:"},
		{"application/*", "", "application/n-quads", `"in the default graph" .`},
		{"application/*", "?graph=default", "application/n-triples", `"in the default graph" .`},
		{"*/*", "?default", "application/n-triples", `"in the default graph" .`},
		{"application/ld+json", "?graph=ex:g", "application/ld+json", `"@graph"`},
		{"text/html", "?format=nt&graph=http://x.example/g", "application/n-triples", `"in a named one"@en .`},
	} {
		a := f.get(c.query, "Accept: "+c.accept)
		if c.accept == "" {
			a = f.get(c.query)
		}
		if a.status != 200 || a.header.Get("Content-Type") != c.contentType || !strings.Contains(string(a.body), c.holds) {
			t.Errorf("Accept %q %s: got %d, %s\n%s", c.accept, c.query, a.status, a.header.Get("Content-Type"), a.body)
		}
		if a.header.Get("Koine-Revision") != "1" || !strings.Contains(a.header.Get("Vary"), "Accept") {
			t.Errorf("headers %v", a.header)
		}
	}
	if one := f.get("?graph=default"); bytes.Count(one.body, []byte("\n")) != 1 {
		t.Errorf("the default graph alone is\n%s", one.body)
	}
	whole := f.get("", "Accept-Encoding: gzip")
	z, err := gzip.NewReader(bytes.NewReader(whole.body))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, f.get("").body) {
		t.Errorf("compressed it is something else: %v", err)
	}
	if head := f.ask("HEAD", "", nil); head.status != 200 || len(head.body) != 0 {
		t.Errorf("HEAD: %d", head.status)
	}
}

// The same document again changes nothing, its blank nodes included; another
// one with the same labels has nodes of its own.
func TestBlankNodesOfADocument(t *testing.T) {
	f := start(t, rdfdata.Options{})
	const doc = "_:a <urn:p> _:b .\n"
	f.post("", "application/n-quads", doc)
	if again := f.post("", "application/n-quads", doc).report(t); again.Statements != 0 || again.Commits != 0 || again.CommitID != nil || again.Revision != 1 {
		t.Errorf("again: %+v", again)
	}
	if compressed := f.ask("POST", "", zipped(doc), "Content-Type: application/n-quads", "Content-Encoding: gzip").report(t); compressed.Statements != 0 {
		t.Errorf("compressed: %+v", compressed)
	}
	if other := f.post("", "application/n-quads", doc+"# another\n").report(t); other.Statements != 1 {
		t.Errorf("another: %+v", other)
	}
}

// A fault anywhere in the document leaves nothing of it behind.
func TestWhatIsRefusedWritesNothing(t *testing.T) {
	slowtest.Long(t)
	many := strings.Repeat("<urn:s> <urn:p> <urn:o> .\n", 60_000) // larger than the buffer in memory
	for _, c := range []struct {
		name, method, query, contentType, encoding string
		body                                       io.Reader
		status                                     int
		reason                                     string
		line                                       int
	}{
		{"a bad last line", "POST", "", "application/n-quads", "", strings.NewReader(many + "oops\n"), 400, "INVALID", 60_001},
		{"a bad line, compressed", "POST", "", "application/n-quads", "gzip", zipped(many + "oops\n"), 400, "INVALID", 60_001},
		{"Turtle", "POST", "", "text/turtle", "", strings.NewReader("<urn:s>\n<urn:p>\n."), 400, "INVALID", 3},
		{"JSON", "POST", "", "application/ld+json", "", strings.NewReader("{\n\n!"), 400, "INVALID", 3},
		{"remote context", "POST", "", "application/ld+json", "", strings.NewReader(`{"@context":"http://x.example/c"}`), 400, "INVALID", 1},
		{"not UTF-8", "POST", "", "application/n-quads", "", strings.NewReader("<urn:s> <urn:p> \"\xff\" .\n"), 400, "INVALID", 1},
		{"no content type", "POST", "", "", "", strings.NewReader(many), 415, "UNSUPPORTED_MEDIA_TYPE", 0},
		{"a form", "POST", "", "application/x-www-form-urlencoded", "", strings.NewReader(many), 415, "UNSUPPORTED_MEDIA_TYPE", 0},
		{"Latin-1", "POST", "", "text/turtle; charset=iso-8859-1", "", strings.NewReader(""), 415, "UNSUPPORTED_MEDIA_TYPE", 0},
		{"an unknown encoding", "POST", "", "text/turtle", "br", strings.NewReader(""), 415, "UNSUPPORTED_MEDIA_TYPE", 0},
		{"not gzip", "POST", "", "text/turtle", "gzip", strings.NewReader("plain"), 400, "INVALID", 0},
		{"gzip cut short", "POST", "", "application/n-quads", "gzip", bytes.NewReader(zipped(many).Bytes()[:100]), 400, "INVALID", 0},
		{"too large", "POST", "", "application/n-quads", "", strings.NewReader(strings.Repeat(many, 3)), 413, "BODY_TOO_LARGE", 0},
		{"too large once decompressed", "POST", "", "application/n-quads", "gzip", zipped(strings.Repeat(many, 3)), 413, "BODY_TOO_LARGE", 0},
		{"a graph that is no IRI", "POST", "?graph=here", "text/turtle", "", strings.NewReader(""), 400, "INVALID", 0},
		{"two graphs", "POST", "?graph=urn:a&graph=urn:b", "text/turtle", "", strings.NewReader(""), 400, "INVALID", 0},
		{"PUT without a graph", "PUT", "", "text/turtle", "", strings.NewReader(""), 400, "INVALID", 0},
		{"PUT of other graphs", "PUT", "?graph=urn:g", "application/trig", "", strings.NewReader(twoGraphs), 400, "INVALID", 0},
		{"two graphs by two names", "POST", "?graph=urn:a&default", "text/turtle", "", strings.NewReader(""), 400, "INVALID", 0},
		{"a default with a value", "POST", "?default=urn:a", "text/turtle", "", strings.NewReader(""), 400, "INVALID", 0},
		{"DELETE without a graph", "DELETE", "", "", "", nil, 400, "INVALID", 0},
		{"DELETE of an absent one", "DELETE", "?graph=urn:g", "", "", nil, 404, "GRAPH_NOT_FOUND", 0},
		{"DELETE of one of koine's own", "DELETE", "?graph=urn:koine:graph:system", "", "", nil, 403, "RESERVED", 0},
		{"PATCH", "PATCH", "?graph=urn:g", "application/sparql-update", "", strings.NewReader(""), 501, "NOT_IMPLEMENTED", 0},
		{"multipart", "POST", "?graph=urn:g", "multipart/form-data; boundary=x", "", strings.NewReader("--x--"), 501, "NOT_IMPLEMENTED", 0},
		{"another method", "PROPFIND", "?graph=urn:g", "", "", nil, 405, "METHOD_NOT_ALLOWED", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := start(t, rdfdata.Options{MaxBytes: 3 << 20})
			a := f.ask(c.method, c.query, c.body, "Content-Type: "+c.contentType, "Content-Encoding: "+c.encoding)
			p := a.problem(t)
			if p.Status != c.status || p.Reason != c.reason || c.line > 0 && p.Line != c.line {
				t.Errorf("got %s", a.body)
			}
			if r := f.store.Head().Revision; r != 0 {
				t.Errorf("something was written: revision %d", r)
			}
		})
	}
}

func TestExportRefusals(t *testing.T) {
	f := start(t, rdfdata.Options{})
	f.post("", "application/trig", twoGraphs)
	for _, c := range []struct {
		query, accept string
		status        int
		reason        string
	}{
		{"", "text/html", 406, "NOT_ACCEPTABLE"},
		{"", "application/n-quads;q=0", 406, "NOT_ACCEPTABLE"},
		{"?format=xml", "*/*", 406, "NOT_ACCEPTABLE"},
		{"?graph=urn:absent", "*/*", 404, "GRAPH_NOT_FOUND"},
		{"?graph=", "*/*", 400, "INVALID"},
		{"?at=99", "*/*", 400, "REVISION_AHEAD"},
		{"?at=yesterday", "*/*", 400, "INVALID"},
		{"?at=1970-01-01T00:00:00Z", "*/*", 410, "REVISION_GONE"},
		{"?minCertainty=2", "*/*", 400, "INVALID"},
		{"?minCertainty=NaN", "*/*", 400, "INVALID"},
	} {
		a := f.get(c.query, "Accept: "+c.accept)
		if p := a.problem(t); p.Status != c.status || p.Reason != c.reason {
			t.Errorf("%s, %s: got %s", c.query, c.accept, a.body)
		}
	}
}

// A misspelt parameter is told with those that there are: it must neither write
// into the default graph nor show everything.
func TestUnknownParameters(t *testing.T) {
	f := start(t, rdfdata.Options{})
	for _, c := range []struct{ method, query, field, known string }{
		{"GET", "?grph=urn:g", "grph", "graph, default, at, minCertainty, format"},
		{"GET", "?graph=urn:g&continueOnError=true", "continueOnError", "graph, default, at, minCertainty, format"},
		{"GET", "?Graph=urn:g", "Graph", "graph, default, at, minCertainty, format"},
		{"POST", "?grap=urn:g", "grap", "graph, default, continueOnError, justification"},
		{"POST", "?format=turtle", "format", "graph, default, continueOnError, justification"},
		{"PUT", "?graph=urn:g&at=3", "at", "graph, default, continueOnError, justification"},
		{"POST", "?" + strings.Repeat("x", 65), strings.Repeat("x", 64) + "…", "graph, default, continueOnError, justification"},
		{"POST", "?graph=urn:g;x", "", ""},
	} {
		a := f.ask(c.method, c.query, strings.NewReader("<urn:s> <urn:p> <urn:o> ."), "Content-Type: text/turtle")
		p := a.problem(t)
		if p.Status != 400 || p.Reason != "INVALID" || p.Field != c.field || !strings.Contains(p.Message, c.field) || !strings.Contains(p.Hint, c.known) {
			t.Errorf("%s %s: got %s", c.method, c.query, a.body)
		}
	}
	if r := f.store.Head().Revision; r != 0 {
		t.Errorf("something was written: revision %d", r)
	}
}

// Lines that are no statements are skipped and told when the client asks for
// it.
func TestContinueOnError(t *testing.T) {
	f := start(t, rdfdata.Options{})
	text := "<urn:s> <urn:p> <urn:o> .\nbad\n" + strings.Repeat("worse\n", 30) + "<urn:s> <urn:p> <urn:q> .\n"
	r := f.post("?continueOnError=true", "application/n-quads", text).report(t)
	if r.Statements != 2 || r.Rejected != 31 || len(r.Errors) != 20 || !strings.HasPrefix(r.Errors[0], "line 2: ") {
		t.Errorf("got %+v", r)
	}
}

// PUT makes a graph hold exactly the document, in one commit, and touches no
// other.
func TestReplace(t *testing.T) {
	f := start(t, rdfdata.Options{})
	f.post("", "application/trig", twoGraphs)
	put := func(text string) answer {
		return f.ask("PUT", "?graph=ex:g", strings.NewReader(text), "Content-Type: text/turtle")
	}
	const next = "<http://x.example/a> <http://x.example/p> \"in a named one\"@en, \"new\" ."
	if r := put(next).report(t); r.Quads != 2 || r.Statements != 1 || r.Removed != 1 || r.Commits != 1 || r.Revision != 2 {
		t.Errorf("got %+v", r)
	}
	if r := put(next).report(t); r.Commits != 0 || r.Revision != 2 {
		t.Errorf("again: %+v", r)
	}
	if body := string(f.get("").body); strings.Count(body, "\n") != 3 || !strings.Contains(body, `"new"`) || !strings.Contains(body, "default graph") {
		t.Errorf("got\n%s", body)
	}
	if then := string(f.get("?at=1&graph=ex:g").body); strings.Contains(then, `"new"`) || strings.Count(then, "\n") != 2 {
		t.Errorf("before, it was\n%s", then)
	}
	if r := put("").report(t); r.Removed != 2 {
		t.Errorf("emptied: %+v", r)
	}
	if a := f.get("?graph=ex:g"); a.status != 404 {
		t.Errorf("the empty graph is still there: %d", a.status)
	}
}

// Beyond the size of one commit, a graph is replaced as a whole.
func TestReplaceBound(t *testing.T) {
	f := start(t, rdfdata.Options{})
	document := func(n int) io.Reader {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "<urn:s> <urn:p> %d .\n", i)
		}
		return strings.NewReader(b.String())
	}
	if r := f.ask("PUT", "?graph=urn:g", document(kg.MaxPatches+1), "Content-Type: text/turtle").report(t); r.Statements != kg.MaxPatches+1 || r.Commits != 1 {
		t.Errorf("past the bound: %+v", r)
	}
	if r := f.ask("PUT", "?graph=urn:g", strings.NewReader(""), "Content-Type: text/turtle").report(t); r.Removed != kg.MaxPatches+1 {
		t.Errorf("emptied: %+v", r)
	}
	if r := f.ask("PUT", "?graph=urn:g", document(kg.MaxPatches), "Content-Type: text/turtle").report(t); r.Statements != kg.MaxPatches {
		t.Errorf("at the bound: %+v", r)
	}
	if a := f.ask("PUT", "?graph=urn:g", strings.NewReader("<urn:s> <urn:p> 1, 2, \"other\" ."), "Content-Type: text/turtle"); a.status != 200 {
		t.Errorf("from the bound to a few: %s", a.body)
	}
}

// The commits of an import have the client's reason, if it gives one; a document that
// cannot be stored writes nothing.
func TestJustification(t *testing.T) {
	f := start(t, rdfdata.Options{})
	longest := strings.Repeat("w", kg.MaxJustificationBytes)
	n := 0
	send := func(method, query string) answer {
		n++
		return f.ask(method, query, strings.NewReader(fmt.Sprintf("<urn:s> <urn:p> %d .", n)), "Content-Type: text/turtle")
	}
	for _, c := range []struct{ method, query, want string }{
		{"POST", "?justification=As%20agreed%3A+%C3%BC", "As agreed: ü"},
		{"POST", "", "Import over HTTP"},
		{"POST", "?justification=", "Import over HTTP"},
		{"POST", "?justification=" + longest, longest},
		{"PUT", "?graph=urn:g&justification=Anew", "Anew"},
		{"PUT", "?graph=urn:g", "Replace a graph over HTTP"},
	} {
		r := send(c.method, c.query).report(t)
		commit, err := f.store.Commit(t.Context(), kg.Principal{ID: kg.System}, kg.Revision(r.Revision))
		if err != nil {
			t.Fatal(err)
		}
		if got := commit.Justification; got != c.want {
			t.Errorf("%s %.60s: the commit says %.60q, want %.60q", c.method, c.query, got, c.want)
		}
	}
	before := f.store.Head().Revision
	for query, reason := range map[string]string{
		"?justification=w" + longest:       "LIMIT_EXCEEDED",
		"?justification=%FF":               "INVALID",
		"?justification=a&justification=b": "INVALID",
	} {
		// Before the document: one that is none does not come to be looked at.
		a := f.ask("POST", query, strings.NewReader("no turtle"), "Content-Type: text/turtle")
		if p := a.problem(t); p.Reason != reason || p.Field != "justification" {
			t.Errorf("%.60s: got %s, want %s", query, a.body, reason)
		}
	}
	if after := f.store.Head().Revision; after != before {
		t.Errorf("something was written: revision %d after %d", after, before)
	}
}

// One caller has half of the imports that go on at one time, and another finds a place.
func TestShareOfImports(t *testing.T) {
	f := start(t, rdfdata.Options{MaxImports: 4})
	var ended []chan answer
	var feeds []*io.PipeWriter
	begin := func() {
		body, feed := io.Pipe()
		done := make(chan answer, 1)
		go func() { done <- f.ask("POST", "", body, "Content-Type: application/n-quads", "Expect: 100-continue") }()
		if _, err := io.WriteString(feed, "<urn:s> <urn:p> <urn:o> .\n"); err != nil { // once it has its place
			t.Fatal(err)
		}
		ended, feeds = append(ended, done), append(feeds, feed)
	}
	begin()
	begin()
	if a := f.post("", "application/n-quads", ""); a.status != 429 {
		t.Errorf("the third of one caller: got %d %s", a.status, a.body)
	}
	if a := f.ask("POST", "", strings.NewReader(""), "Content-Type: application/n-quads", "X-Agent-Id: another"); a.status != 204 {
		t.Errorf("another caller: got %d %s", a.status, a.body)
	}
	for i, feed := range feeds {
		feed.Close()
		if a := <-ended[i]; a.status != 200 {
			t.Errorf("import %d: got %d %s", i, a.status, a.body)
		}
	}
}

// Past the bound of imports at one time a client is told to come back.
func TestTooManyImports(t *testing.T) {
	f := start(t, rdfdata.Options{MaxImports: 1})
	body, feed := io.Pipe()
	first := make(chan answer)
	// The client sends the body only when the server has begun to read it, and
	// the server does so only after it has given the import its place.
	go func() { first <- f.ask("POST", "", body, "Content-Type: application/n-quads", "Expect: 100-continue") }()
	if _, err := io.WriteString(feed, "<urn:s> <urn:p> <urn:o> .\n"); err != nil {
		t.Fatal(err)
	}
	a := f.post("", "application/n-quads", "")
	if p := a.problem(t); p.Reason != "OVERLOADED" || a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", a.status, a.body)
	}
	feed.Close()
	if r := (<-first).report(t); r.Statements != 1 {
		t.Errorf("the first: %+v", r)
	}
}
