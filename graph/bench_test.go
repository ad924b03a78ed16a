package graph_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/transport"
	"koine/internal/sse"
	"koine/kg"
)

const (
	benchEntities = 1000
	benchFields   = 5
)

// BenchmarkEntities measures a page of 1,000 entities with five fields each (the IRI and
// four properties), and in turns with it two twins that read the same statements by the
// store's own means: Match, a scan for each entity, with all terms and assertions, and
// Sweep, one walk over all of them that decodes only the parts in the answer. It reports
// per field: the engine's time, that of each twin, the ratio and the engine's additional
// time.
//
//	go test ./graph -run '^$' -bench Entities -benchtime 20x -count 10
func BenchmarkEntities(b *testing.B) {
	t := newBench(b, graph.Options{})
	t.manyThings()
	req := t.request(thingsQuery, "")
	sides := []side{
		{"engine", func() {
			if r := t.engine.Execute(b.Context(), req); len(r.Errors) > 0 {
				b.Fatal(r.Errors)
			}
		}},
		{"match", func() { t.matchThings(b) }},
		{"sweep", func() { t.sweepThings(b) }},
	}
	for _, s := range sides {
		b.Run("allocs/"+s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.do()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchEntities/benchFields, "ns/field")
		})
	}
	b.Run("in turns", func(b *testing.B) { inTurns(b, "field", benchEntities*benchFields, sides) })
}

// side is one side of a comparison.
type side struct {
	name string
	do   func()
}

// inTurns measures the sides in turns, in as many rounds as the benchmark has, and reports
// the time of the median round for one of n units, the ratio of the first to each of the
// others, and its additional time.
func inTurns(b *testing.B, unit string, n int, sides []side) {
	took := make([][]float64, len(sides))
	for b.Loop() {
		for i, s := range sides {
			start := time.Now()
			s.do()
			took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/float64(n))
		}
	}
	b.ReportMetric(0, "ns/op") // a round is no unit
	first := median(took[0])
	b.ReportMetric(first, "ns/"+unit)
	for i, s := range sides[1:] {
		twin := median(took[i+1])
		b.ReportMetric(twin, s.name+"-ns/"+unit)
		b.ReportMetric(first/twin, "x-"+s.name)
		b.ReportMetric(first-twin, "ns-over-"+s.name)
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// thingsQuery requests the things of BenchmarkEntities.
const thingsQuery = `{ entities(first: 1000, where: {type: {eq: "ex:Thing"}}) { nodes { iri name: value(predicate: "ex:name") size: value(predicate: "ex:size") next: value(predicate: "ex:next") types } } }`

// manyThings fills the store with the things of BenchmarkEntities.
func (b *bench) manyThings() {
	b.t.Helper()
	var patches []kg.Patch
	for i := range benchEntities {
		s := iri(fmt.Sprintf("thing/%d", i))
		patches = append(patches, add(s, kg.IRI(kg.RDFType), iri("Thing")),
			add(s, iri("name"), kg.String(fmt.Sprintf("The thing with the number %d", i))), add(s, iri("size"), kg.Integer(int64(i))),
			add(s, iri("next"), iri(fmt.Sprintf("thing/%d", (i+1)%benchEntities))))
	}
	b.update(patches...)
	if n := len(b.execute(thingsQuery, "").Data); n < 100*benchEntities {
		b.t.Fatalf("the answer has only %d bytes", n)
	}
}

// matchThings reads the data of the answer to BenchmarkEntities by the store's own means:
// the list of things, and of each its statements.
func (b *bench) matchThings(t *testing.B) {
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

// sweepThings reads the same in ids: the list of things in one scan, their
// statements in one sweep, and decodes each subject once and all objects: no
// less can be read for the answer.
func (b *bench) sweepThings(t *testing.B) {
	s, err := b.store.View(t.Context(), kg.View{Principal: reader})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	must := func(id kg.ID, known bool, err error) kg.ID {
		if !known || err != nil {
			t.Fatal(err)
		}
		return id
	}
	sweep := s.Sweep()
	defer sweep.Close()
	pattern := kg.IDPattern{Predicate: must(s.ID(kg.IRI(kg.RDFType))), Object: must(s.ID(iri("Thing")))}
	statements, n := 0, 0
	for row, err := range s.MatchIDs(pattern, nil) {
		if err != nil {
			t.Fatal(err)
		}
		subject, err := s.Term(row.Subject)
		if err != nil {
			t.Fatal(err)
		}
		n += len(subject.Value())
		for sweep.Seek(kg.IDPattern{Subject: row.Subject}, nil); sweep.Next(); {
			object, err := s.Term(sweep.Row().Object)
			if err != nil {
				t.Fatal(err)
			}
			statements++
			n += len(object.Value())
		}
	}
	if statements != 4*benchEntities || n == 0 || sweep.Err() != nil {
		t.Fatalf("%d statements, %v", statements, sweep.Err())
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

// BenchmarkMutation measures a mutation of one patch, which replaces a value: without the
// store's wait for the disk, which the benchmarks of kg measure.
func BenchmarkMutation(b *testing.B) {
	t := newBench(b, graph.Options{})
	t.team()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		req := t.request(`mutation M($n: JSON) { applyPatches(input: {patches: [{op: replace, statement: {subject: {id: "ex:ada"}, predicate: {id: "ex:count"}, object: {value: $n}}}]}) { success statementsAffected revision commitId } }`, `{"n": `+strconv.Itoa(n)+`}`)
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
	handlers := map[string]http.Handler{"engine": transport.NewHandler(transport.Deps{Engine: t.engine, Positions: t.store, Streams: streams}, transport.Options{})}
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
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
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

// BenchmarkNested measures three levels: films, their performances, the actors
// of these, and their names. It reports the walks over the index beside the time.
func BenchmarkNested(b *testing.B) {
	t := newBench(b, graph.Options{})
	t.performances(100)
	req := t.request(filmQuery, `{"n": 100}`)
	b.ReportAllocs()
	var scans int64
	for b.Loop() {
		r := t.engine.Execute(b.Context(), req)
		if len(r.Errors) > 0 {
			b.Fatal(r.Errors)
		}
		scans = r.Scans
	}
	b.ReportMetric(float64(scans), "scans/op")
}
