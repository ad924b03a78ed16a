package graph_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/sse"
	"koine/kg"
)

const (
	benchEntities = 1000
	benchFields   = 5
)

// BenchmarkEntities measures a page of 1,000 entities with five fields each
// (the IRI and four properties), and beside it, in the same run, its twin: the
// store's own scan of the same statements with all terms decoded, which is what
// an answer costs at the least.
//
//	go test ./graph -run '^$' -bench Entities -count 10
func BenchmarkEntities(b *testing.B) {
	t := newBench(b, graph.Options{})
	var patches []kg.Patch
	for i := range benchEntities {
		s := iri(fmt.Sprintf("thing/%d", i))
		patches = append(patches, add(s, kg.IRI(kg.RDFType), iri("Thing")),
			add(s, iri("name"), kg.String(fmt.Sprintf("The thing with the number %d", i))), add(s, iri("size"), kg.Integer(int64(i))),
			add(s, iri("next"), iri(fmt.Sprintf("thing/%d", (i+1)%benchEntities))))
	}
	t.update(patches...)
	query := `{ entities(first: 1000, where: {type: {eq: "ex:Thing"}}) { nodes { iri name: value(predicate: "ex:name") size: value(predicate: "ex:size") next: value(predicate: "ex:next") types } } }`
	if n := len(t.execute(query, "").Data); n < 100*benchEntities {
		b.Fatalf("the answer has only %d bytes", n)
	}
	perField := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchEntities/benchFields, "ns/field")
	}
	b.Run("engine", func(b *testing.B) {
		b.ReportAllocs()
		req := t.request(query, "")
		for b.Loop() {
			if r := t.engine.Execute(b.Context(), req); len(r.Errors) > 0 {
				b.Fatal(r.Errors)
			}
		}
		perField(b)
	})
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			t.scanThings(b)
		}
		perField(b)
	})
}

// scanThings reads what the query of BenchmarkEntities answers with, by the
// store's own means: the list of things, and of each its statements.
func (b *bench) scanThings(t *testing.B) {
	s, err := b.store.View(t.Context(), kg.View{Principal: reader})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	things, n := 0, 0
	for st, err := range s.Match(kg.Pattern{Predicate: kg.IRI(kg.RDFType), Object: iri("Thing")}) {
		if err != nil {
			t.Fatal(err)
		}
		things++
		for st, err := range s.Match(kg.Pattern{Subject: st.Subject}) {
			if err != nil {
				t.Fatal(err)
			}
			n += len(st.Object.Value())
		}
	}
	if things != benchEntities || n == 0 {
		t.Fatalf("%d things", things)
	}
}

// BenchmarkOneEntity measures the smallest query that reads something.
func BenchmarkOneEntity(b *testing.B) {
	t := newBench(b, graph.Options{})
	t.team()
	req := t.request(`{ entity(iri: "ex:ada") { iri label age: value(predicate: "ex:age") } }`, "")
	b.ReportAllocs()
	for b.Loop() {
		if r := t.engine.Execute(b.Context(), req); len(r.Errors) > 0 {
			b.Fatal(r.Errors)
		}
	}
}

// BenchmarkHTTP measures a one-entity query over loopback with 16 clients for
// each processor, and its twin: a handler that answers the same bytes.
func BenchmarkHTTP(b *testing.B) {
	t := newBench(b, graph.Options{})
	t.team()
	streams := sse.New(sse.Options{})
	defer func() { _ = streams.Shutdown(b.Context()) }()
	body := `{"query":"{ entity(iri: \"ex:ada\") { iri label age: value(predicate: \"ex:age\") } }"}`
	handlers := map[string]http.Handler{"engine": graph.NewHandler(t.engine, streams, graph.HandlerOptions{})}
	reply := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	handlers["engine"].ServeHTTP(reply, request)
	if reply.Code != 200 || !strings.Contains(reply.Body.String(), `"label":"Ada"`) {
		b.Fatal(reply.Body)
	}
	handlers["echo"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any
		if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
			b.Error(err)
		}
		w.Header().Set("Content-Type", asJSON)
		_, _ = w.Write(reply.Body.Bytes())
	})
	for _, name := range []string{"engine", "echo"} {
		b.Run(name, func(b *testing.B) { benchHTTP(b, handlers[name], body) })
	}
}

func benchHTTP(b *testing.B, h http.Handler, body string) {
	server := httptest.NewServer(h)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			res, err := client.Post(server.URL+"/graphql", "application/json", strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkNested measures three levels: of a hub its things, of each what it
// points at, of that its name.
func BenchmarkNested(b *testing.B) {
	t := newBench(b, graph.Options{})
	t.things(100)
	req := t.request(`{ entity(iri: "ex:hub") { out(first: 100) { nodes { object { ... on Entity { iri out(where: {predicate: {eq: "ex:next"}}) { nodes { object { ... on Entity { iri size: value(predicate: "ex:size") } } } } } } } } } }`, "")
	b.ReportAllocs()
	for b.Loop() {
		if r := t.engine.Execute(b.Context(), req); len(r.Errors) > 0 {
			b.Fatal(r.Errors)
		}
	}
}
