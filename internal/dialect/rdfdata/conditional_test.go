package rdfdata_test

import (
	"strings"
	"testing"

	"koine/internal/dialect/rdfdata"
)

// A graph's entity tag depends on its last change and on the format: changes of others do
// not affect it, HEAD and GET agree on it, and both answer 304 to a client that has it.
func TestEntityTags(t *testing.T) {
	f := start(t, rdfdata.Options{})
	put := func(graph, text string) {
		t.Helper()
		f.ask("PUT", "?graph="+graph, strings.NewReader(text), "Content-Type: text/turtle").report(t)
	}
	tag := func(query string, header ...string) string {
		t.Helper()
		a, head := f.get(query, header...), f.ask("HEAD", query, nil, header...)
		got := a.header.Get("ETag")
		if got == "" || head.header.Get("ETag") != got || a.status != 200 || head.status != 200 {
			t.Errorf("%s: GET %d %q, HEAD %d %q", query, a.status, got, head.status, head.header.Get("ETag"))
		}
		for _, method := range []string{"GET", "HEAD"} {
			again := f.ask(method, query, nil, append(header, "If-None-Match: W/\"x\", "+got)...)
			if again.status != 304 || len(again.body) != 0 || again.header.Get("ETag") != got {
				t.Errorf("%s %s again: %d %s", method, query, again.status, again.body)
			}
		}
		if other := f.get(query, append(header, `If-None-Match: "x"`)...); other.status != 200 {
			t.Errorf("%s with another tag: %d", query, other.status)
		}
		return got
	}
	put("urn:a", "<urn:s> <urn:p> 1 .")
	put("urn:b", "<urn:s> <urn:p> 1 .")
	before, store := tag("?graph=urn:a"), tag("")
	formats := map[string]bool{before: true}
	for _, header := range []string{"Accept: text/turtle", "Accept: application/trig", "Accept-Encoding: gzip"} {
		formats[tag("?graph=urn:a", header)] = true
	}
	if len(formats) != 4 {
		t.Errorf("the tags of four forms are %v", formats)
	}
	put("urn:b", "<urn:s> <urn:p> 2 .")
	if got := tag("?graph=urn:a"); got != before {
		t.Errorf("another graph's change made %s of %s", got, before)
	}
	if got := tag(""); got == store {
		t.Errorf("the store's tag is still %s", got)
	}
	past := tag("?graph=urn:a&at=1")
	put("urn:a", "<urn:s> <urn:p> 2 .")
	if got := tag("?graph=urn:a"); got == before {
		t.Errorf("its own change left %s", got)
	}
	if got := tag("?graph=urn:a&at=1"); got != past {
		t.Errorf("the past changed from %s to %s", past, got)
	}
	if one, all := tag("?graph=urn:a&minCertainty=0.5"), tag("?graph=urn:a"); one == all {
		t.Errorf("two views have the tag %s", one)
	}
}

// A write whose condition does not hold changes nothing and is 412.
func TestConditionalWrites(t *testing.T) {
	f := start(t, rdfdata.Options{})
	send := func(method, query string, header ...string) answer {
		t.Helper()
		return f.ask(method, query, strings.NewReader("<urn:s> <urn:p> 1, 2 ."), append(header, "Content-Type: text/turtle")...)
	}
	if a := send("PUT", "?graph=urn:g", "If-None-Match: *"); a.status != 201 {
		t.Fatalf("a graph that was not there: %d %s", a.status, a.body)
	}
	old := f.get("?graph=urn:g", "Accept: text/turtle", "Accept-Encoding: gzip").header.Get("ETag")
	f.post("?graph=urn:g", "text/turtle", "<urn:t> <urn:p> 3 .").report(t)
	now := f.get("?graph=urn:g").header.Get("ETag")
	before := f.store.Head().Revision
	for _, c := range []struct{ method, query, condition string }{
		{"PUT", "?graph=urn:g", "If-None-Match: *"},
		{"PUT", "?graph=urn:g", "If-None-Match: " + now},
		{"PUT", "?graph=urn:g", "If-Match: " + old},
		{"PUT", "?graph=urn:g", "If-Match: W/" + now},
		{"PUT", "?graph=urn:g", "If-Match: \"x\", " + old},
		{"POST", "?graph=urn:g", "If-Match: " + old},
		{"POST", "", "If-Match: *"}, // a graph that is made is not there before
		{"DELETE", "?graph=urn:g", "If-Match: " + old},
		{"PUT", "?graph=urn:h", "If-Match: *"},
		{"DELETE", "?graph=urn:h", "If-Match: *"},
		{"DELETE", "?default", "If-None-Match: *"}, // it is always there
		{"GET", "?graph=urn:g", "If-Match: " + old},
	} {
		if p := send(c.method, c.query, c.condition).problem(t); p.Status != 412 || p.Reason != "PRECONDITION_FAILED" {
			t.Errorf("%s %s, %s: %+v", c.method, c.query, c.condition, p)
		}
	}
	if after := f.store.Head().Revision; after != before {
		t.Errorf("something was written: revision %d, was %d", after, before)
	}
	for _, c := range []struct {
		method, query, condition string
		status                   int
	}{
		{"POST", "?graph=urn:g", "If-Match: \"x\", " + now, 200},
		{"PUT", "?graph=urn:g", "If-Match: *", 200},
		{"PUT", "?graph=urn:g", "If-None-Match: " + old, 200},
		{"DELETE", "?graph=urn:g", "If-Match: *", 200},
		{"DELETE", "?default", "If-Match: *", 200},
	} {
		if a := send(c.method, c.query, c.condition); a.status != c.status {
			t.Errorf("%s %s, %s: %d %s", c.method, c.query, c.condition, a.status, a.body)
		}
	}
}

// A condition that held when the document began to come, and no longer when it was
// there, is 412.
func TestConditionIsOfTheWrite(t *testing.T) {
	f := start(t, rdfdata.Options{})
	f.post("?graph=urn:g", "text/turtle", "<urn:s> <urn:p> 1 .").report(t)
	tag := f.get("?graph=urn:g").header.Get("ETag")
	body := &interrupted{text: "<urn:s> <urn:p> 2 .", meanwhile: func() {
		f.post("?graph=urn:g", "text/turtle", "<urn:s> <urn:p> 3 .").report(t)
	}}
	a := f.ask("PUT", "?graph=urn:g", body, "Content-Type: text/turtle", "If-Match: "+tag, "Expect: 100-continue")
	if p := a.problem(t); p.Status != 412 {
		t.Errorf("got %s", a.body)
	}
	if got := string(f.get("?graph=urn:g").body); strings.Count(got, "\n") != 2 {
		t.Errorf("the graph is %s", got)
	}
}

// interrupted is a document that something happens before. The server has begun to read
// it, and looked at the request's condition, when it is asked for.
type interrupted struct {
	text      string
	meanwhile func()
	reader    *strings.Reader
}

func (i *interrupted) Read(b []byte) (int, error) {
	if i.reader == nil {
		i.meanwhile()
		i.reader = strings.NewReader(i.text)
	}
	return i.reader.Read(b)
}

// Relative IRIs are resolved against the target of the request.
func TestBase(t *testing.T) {
	f := start(t, rdfdata.Options{PublicURL: "https://koine.example/lab"})
	for _, c := range []struct{ query, location, want string }{
		{"?graph=http://x.example/dir/g", "", "<http://x.example/dir/g> <urn:p> <http://x.example/dir/g#x> .\n<http://x.example/dir/g> <urn:p> <http://x.example/dir/y> ."},
		{"?graph=ex:g", "", "<http://x.example/g> <urn:p> <http://x.example/g#x> ."},
		{"?default", "", "<https://koine.example/lab/data?default> <urn:p> <https://koine.example/lab/data?default#x> .\n<https://koine.example/lab/data?default> <urn:p> <https://koine.example/lab/y> ."},
		{"?graph=urn:g", "http://y.example/doc.ttl", "<http://y.example/doc.ttl> <urn:p> <http://y.example/doc.ttl#x> ."},
		{"?graph=urn:g", "file:///home/a.ttl", "<file:///home/a.ttl> <urn:p> <file:///home/a.ttl#x> ."},
		{"?graph=urn:g", "sub/doc", "<https://koine.example/lab/sub/doc> <urn:p> <https://koine.example/lab/sub/doc#x> ."},
	} {
		header := []string{"Content-Type: text/turtle"}
		if c.location != "" {
			header = append(header, "Content-Location: "+c.location)
		}
		f.ask("PUT", c.query, strings.NewReader("<> <urn:p> <#x>, <y> ."), header...).report(t)
		if got := string(f.get(c.query).body); !strings.Contains(got, c.want) {
			t.Errorf("%s, Content-Location %q: got %s\nwant %s", c.query, c.location, got, c.want)
		}
	}
	// The document of a graph that is made up is about that graph.
	a := f.post("", "text/turtle", "<> <urn:p> 1 .")
	if name := a.header.Get("Location"); a.status != 201 || !strings.Contains(string(f.get("?graph="+name).body), "<"+name+"> <urn:p>") {
		t.Errorf("made up: %d, %q", a.status, name)
	}
	if p := f.ask("PUT", "?default", strings.NewReader(""), "Content-Type: text/turtle", "Content-Location: http://[").problem(t); p.Status != 400 {
		t.Errorf("a bad Content-Location: %+v", p)
	}
	local := start(t, rdfdata.Options{})
	local.ask("PUT", "?default", strings.NewReader("<> <urn:p> <#x> ."), "Content-Type: text/turtle").report(t)
	if got := string(local.get("?default").body); !strings.HasPrefix(got, "<"+local.url+"?default> ") {
		t.Errorf("without a public address: %s", got)
	}
}

// The answer to a request that creates a graph is 201 with its name; one to an existing
// graph is 200.
func TestCreated(t *testing.T) {
	f := start(t, rdfdata.Options{})
	for _, c := range []struct {
		method, query, contentType, text string
		status                           int
		location, graph                  string
	}{
		{"PUT", "?graph=urn:a", "text/turtle", "<urn:s> <urn:p> 1 .", 201, "urn:a", "urn:a"},
		{"PUT", "?graph=urn:a", "text/turtle", "<urn:s> <urn:p> 2 .", 200, "", ""},
		{"PUT", "?graph=urn:a", "text/turtle", "", 200, "", ""},
		{"PUT", "?graph=urn:a", "text/turtle", "<urn:s> <urn:p> 1 .", 201, "urn:a", "urn:a"}, // it had no policy, and was gone with its statements
		{"POST", "?graph=ex:b", "text/turtle", "<urn:s> <urn:p> 1 .", 201, "http://x.example/b", "http://x.example/b"},
		{"POST", "?graph=ex:b", "text/turtle", "<urn:s> <urn:p> 1 .", 200, "", ""},
		{"POST", "?graph=urn:c:%C3%BC", "application/n-triples", "<urn:s> <urn:p> \"\" .", 201, "urn:c:%C3%BC", "urn:c:ü"},
		{"POST", "?graph=urn:d", "application/trig", "<urn:e> { <urn:s> <urn:p> 1 }", 200, "", ""}, // another one was made
		{"PUT", "?graph=urn:f", "text/turtle", "", 200, "", ""},                                    // nothing is not a graph
		{"POST", "?default", "text/turtle", "<urn:s> <urn:p> 1 .", 200, "", ""},
		{"POST", "?graph=default", "text/turtle", "<urn:s> <urn:p> 1 .", 200, "", ""},
		{"POST", "", "application/n-quads", "<urn:s> <urn:p> \"1\" <urn:h> .\n", 200, "", ""},
		{"DELETE", "?default", "", "", 200, "", ""},
		{"PUT", "?default", "text/turtle", "<urn:s> <urn:p> 1 .", 201, "", ""},
	} {
		a := f.ask(c.method, c.query, strings.NewReader(c.text), "Content-Type: "+c.contentType)
		if a.status != c.status || a.header.Get("Location") != c.location || strings.Contains(string(a.body), `"graph"`) != (c.graph != "") || c.graph != "" && !strings.Contains(string(a.body), `"graph":"`+c.graph+`"`) {
			t.Errorf("%s %s %q: got %d, Location %q, %s", c.method, c.query, c.text, a.status, a.header.Get("Location"), a.body)
		}
	}
	if a := f.post("", "application/n-quads", ""); a.status != 204 || len(a.body) != 0 {
		t.Errorf("an empty document: %d %s", a.status, a.body)
	}
}

// OPTIONS lists the methods.
func TestOptions(t *testing.T) {
	f := start(t, rdfdata.Options{})
	a := f.ask("OPTIONS", "?graph=urn:g", nil)
	if a.status != 204 || a.header.Get("Allow") != "GET, HEAD, POST, PUT, DELETE, OPTIONS" || !strings.Contains(a.header.Get("Accept-Post"), "text/turtle") || !strings.Contains(a.header.Get("Accept-Post"), "application/rdf+xml") {
		t.Errorf("got %d %v", a.status, a.header)
	}
	if a := f.ask("TRACE", "", nil); a.status != 405 || !strings.Contains(a.header.Get("Allow"), "DELETE") {
		t.Errorf("TRACE: %d %v", a.status, a.header)
	}
}

// RDF/XML is taken, as it is for one graph, and not given.
func TestRDFXMLAtTheDoor(t *testing.T) {
	f := start(t, rdfdata.Options{})
	const document = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://x.example/"><rdf:Description rdf:about=""><ex:p rdf:resource="#x"/></rdf:Description></rdf:RDF>`
	for _, query := range []string{"?graph=http://x.example/g", ""} {
		a := f.post(query, "application/rdf+xml", document)
		name := a.header.Get("Location")
		want := "<" + name + "> <http://x.example/p> <" + name + "#x> .\n"
		if got := string(f.get("?graph=" + name).body); a.status != 201 || got != want {
			t.Errorf("%q: %d %s, the graph is %s, want %s", query, a.status, a.body, got, want)
		}
	}
	if p := f.post("?default", "application/rdf+xml", "<rdf:RDF").problem(t); p.Status != 400 {
		t.Errorf("a fault: %+v", p)
	}
	for _, a := range []answer{f.get("?default", "Accept: application/rdf+xml"), f.get("?default&format=rdfxml")} {
		if p := a.problem(t); p.Status != 406 || strings.Contains(p.Hint, "rdf+xml") {
			t.Errorf("asked for: %s", a.body)
		}
	}
}
