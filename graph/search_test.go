package graph_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/search"
	"koine/kg"
)

// ownerReads lets agents read the graphs with their name, and everybody all others.
type ownerReads struct{}

func (ownerReads) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	owner, ok := strings.CutPrefix(graph.Value(), ex+"private/")
	return !ok || string(p.ID) == "agent://"+owner || p.ID == kg.SystemPrincipal().ID || p.ID == "agent://writer"
}

// newSearching is a bench with search, over two lakes and a river.
func newSearching(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Governor = kg.Governor{Access: ownerReads{}} })
	b.search(t)
	b.clock.stop()
	label, rdfType := kg.IRI(kg.RDFSLabel), kg.IRI(kg.RDFType)
	for i, p := range []kg.Patch{
		add(iri("como"), label, kg.String("Lake of deep water")), add(iri("como"), rdfType, iri("Lake")), by("agent://scout", 0.5, in(iri("g"), add(iri("como"), iri("note"), kg.String("cold water")))),
		add(iri("garda"), label, kg.String("Lake of warm water")), add(iri("garda"), rdfType, iri("Lake")),
		add(iri("po"), label, kg.String("River of water")), add(iri("po"), rdfType, iri("River")), add(iri("po"), iri("from"), iri("garda")),
	} {
		b.updateAt(i, p)
	}
	return b
}

// search makes the bench find texts, and waits for those that are there.
func (b *bench) search(t testing.TB) {
	t.Helper()
	texts, err := search.Open(b.store, search.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	texts.Start()
	t.Cleanup(func() {
		if err := texts.Close(); err != nil {
			t.Error(err)
		}
	})
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Prefixes: prefixes, Search: texts, Logger: slog.New(slog.NewTextHandler(b.log, nil))},
		graph.Options{Limits: limit.Limits{Wait: 50 * time.Millisecond}})
	if err := texts.WaitFor(t.Context(), b.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
}

// updateAt makes one commit at a second of the first day.
func (b *bench) updateAt(second int, patches ...kg.Patch) {
	b.t.Helper()
	b.clock.mu.Lock()
	b.clock.now = time.Date(2026, 1, 2, 0, 0, second, 0, time.UTC)
	b.clock.mu.Unlock()
	b.update(patches...)
}

// ask returns the data of a query that must have no errors.
func (b *bench) ask(query string) string {
	b.t.Helper()
	var data json.RawMessage
	b.data(query, "", &data)
	return string(data)
}

func TestSearch(t *testing.T) {
	b := newSearching(t)
	for text, of := range map[string]struct {
		name   string
		vector []float32
	}{"stream": {"po", []float32{2, 0}}, "basin": {"garda", []float32{0, 3}}} {
		p := add(iri(of.name), iri("kind"), kg.String(text))
		p.Embedding = &kg.Embedding{Model: "m", Vector: of.vector}
		b.updateAt(1, p)
	}
	for _, tt := range []struct{ arguments, selection, want string }{
		{`query: "", near: {model: "m", vector: [1, 0]}`, `totalCount nodes { score similarity wordScore entity { iri } matches { predicate text } }`, `{"totalCount":2,"nodes":[{"score":1,"similarity":1,"wordScore":null,"entity":{"iri":"ex:po"},"matches":[{"predicate":"ex:kind","text":"stream"}]},{"score":0,"similarity":0,"wordScore":null,"entity":{"iri":"ex:garda"},"matches":[{"predicate":"ex:kind","text":"basin"}]}]}`},
		{`query: "river", first: 1, near: {model: "m", vector: [0, 1], metric: DOT}`, `nodes { similarity entity { iri } } pageInfo { hasNextPage }`, `{"nodes":[{"similarity":0,"entity":{"iri":"ex:po"}}],"pageInfo":{"hasNextPage":true}}`},
		{`query: "waters"`, `totalCount nodes { entity { iri } }`, `{"totalCount":3,"nodes":[{"entity":{"iri":"ex:como"}},{"entity":{"iri":"ex:po"}},{"entity":{"iri":"ex:garda"}}]}`},
		{`query: "water", order: TIME`, `nodes { time entity { iri } }`, `{"nodes":[{"time":"2026-01-02T00:00:05.000Z","entity":{"iri":"ex:po"}},{"time":"2026-01-02T00:00:03.000Z","entity":{"iri":"ex:garda"}},{"time":"2026-01-02T00:00:02.000Z","entity":{"iri":"ex:como"}}]}`},
		{`query: "lake water", filter: {graphs: ["ex:g"]}`, `nodes { matches { predicate graph text pieces } }`, `{"nodes":[{"matches":[{"predicate":"ex:note","graph":"ex:g","text":"cold water","pieces":["cold ","water"]}]}]}`},
		{`query: "water", filter: {graphs: [null], classes: ["ex:Lake"]}, order: TIME`, `nodes { entity { iri } }`, `{"nodes":[{"entity":{"iri":"ex:garda"}},{"entity":{"iri":"ex:como"}}]}`},
		{`query: "water", filter: {authorIds: ["scout"], minCertainty: 0.5}`, `nodes { entity { iri } }`, `{"nodes":[{"entity":{"iri":"ex:como"}}]}`},
		{`query: "water", filter: {authorIds: ["scout"], minCertainty: 0.6}`, `totalCount`, `{"totalCount":0}`},
		{`query: "water", filter: {since: "2026-01-02T00:00:03Z", until: "2026-01-02T00:00:05Z"}`, `nodes { entity { iri } }`, `{"nodes":[{"entity":{"iri":"ex:garda"}}]}`},
		{`query: "water", filter: {match: {var: "lake", pattern: {triples: [{s: "?river", p: "ex:from", o: "?lake"}]}}}`, `nodes { entity { iri } }`, `{"nodes":[{"entity":{"iri":"ex:garda"}}]}`},
		{`query: "water"`, `facets(by: [CLASS, GRAPH, AUTHOR], first: 1) { by distinct exact values { iri nodeId count } }`, `{"facets":[` +
			`{"by":"CLASS","distinct":2,"exact":true,"values":[{"iri":"ex:Lake","nodeId":null,"count":2}]},` +
			`{"by":"GRAPH","distinct":2,"exact":true,"values":[{"iri":null,"nodeId":null,"count":3}]},` +
			`{"by":"AUTHOR","distinct":2,"exact":true,"values":[{"iri":null,"nodeId":"agent://writer","count":3}]}]}`},
	} {
		if got := strings.ReplaceAll(b.ask("{ search("+tt.arguments+") { "+tt.selection+" } }"), ex, "ex:"); got != `{"search":`+tt.want+`}` {
			t.Errorf("search(%s) answers\n%s, want\n%s", tt.arguments, got, tt.want)
		}
	}
}

// Pages of one view have no gap and no duplicate, in either order, while texts come.
func TestSearchPages(t *testing.T) {
	b := newSearching(t)
	for i := range 40 {
		b.updateAt(100+i/3, add(iri(fmt.Sprint("e", i)), kg.IRI(kg.RDFSLabel), kg.String(strings.Repeat("water ", 1+i%4)+strings.Repeat("stone ", i%3))))
	}
	at := b.store.Head().Revision
	for _, order := range []string{"SCORE", "TIME"} {
		type page struct {
			Search struct {
				Nodes    []struct{ Entity struct{ IRI string } }
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		ask := func(first int, after string) (p page) {
			b.data(fmt.Sprintf(`{ search(query: "water stone", order: %s, first: %d, after: %s, view: {at: %d}) { nodes { entity { iri } } pageInfo { hasNextPage endCursor } } }`, order, first, after, at), "", &p)
			return p
		}
		want := fmt.Sprint(ask(100, "null").Search.Nodes)
		var got []struct{ Entity struct{ IRI string } }
		for after := "null"; ; {
			p := ask(7, after)
			got = append(got, p.Search.Nodes...)
			if !p.Search.PageInfo.HasNextPage {
				break
			}
			after = fmt.Sprintf("%q", p.Search.PageInfo.EndCursor)
			b.updateAt(1000, add(iri(fmt.Sprint("later", len(got), order)), kg.IRI(kg.RDFSLabel), kg.String("water water water")))
		}
		if fmt.Sprint(got) != want || len(got) != 43 {
			t.Errorf("order %s: pages have\n%v, and the whole\n%s", order, got, want)
		}
	}
	// A cursor is for the filter and the order that it is of.
	var p struct {
		Search struct{ PageInfo struct{ EndCursor string } }
	}
	b.data(`{ search(query: "water", first: 1) { pageInfo { endCursor } } }`, "", &p)
	for _, other := range []string{"order: TIME", `filter: {minCertainty: 0.1}`} {
		if r := b.execute(fmt.Sprintf(`{ search(query: "water", %s, first: 1, after: %q) { totalCount } }`, other, p.Search.PageInfo.EndCursor), ""); len(r.Errors) != 1 || r.Errors[0].Extensions["field"] != "after" {
			t.Errorf("the cursor of another search with %s: %v", other, r.Errors)
		}
	}
}

// A graph that the reader may not read changes no byte of an answer.
func TestSearchHidesOthers(t *testing.T) {
	both, own := newSearching(t), newSearching(t)
	secret := iri("private/ann")
	label := kg.IRI(kg.RDFSLabel)
	both.updateAt(20, in(secret, add(iri("hidden"), label, kg.String(strings.Repeat("water lake cold river ", 1000)))), in(secret, add(iri("po"), kg.IRI(kg.RDFType), iri("Lake"))),
		in(secret, add(iri("po"), iri("note"), kg.String("cold water"))), by("agent://ann", 1, in(secret, add(iri("garda"), label, kg.String("Lake of warm water")))), in(secret, add(iri("po"), iri("from"), iri("como"))))
	both.updateAt(21, in(secret, add(iri("wather"), label, kg.String("wather"))))
	for _, arguments := range []string{
		`query: "water"`, `query: "wather lake"`, `query: "wat*", order: TIME`, `query: "cold -deep"`, `query: "water", filter: {classes: ["ex:Lake"]}`, `query: "water", filter: {graphs: ["ex:private/ann", null]}`,
		`query: "water", filter: {authorIds: ["ann"]}`, `query: "water", filter: {since: "2026-01-02T00:00:04Z"}`, `query: "water", filter: {predicates: ["ex:note"]}, order: TIME`,
		`query: "water", filter: {match: {var: "x", pattern: {triples: [{s: "?river", p: "ex:from", o: "?x"}]}}}`, `query: "water", filter: {match: {var: "y", pattern: {triples: [{s: "?river", p: "ex:from", o: "?x"}]}}}`,
	} {
		query := `{ search(` + arguments + `) { totalCount nodes { score time entity { iri } matches { predicate graph text pieces } } pageInfo { hasNextPage } facets(by: [CLASS, PREDICATE, GRAPH, CHANNEL, AUTHOR]) { by exact distinct values { iri nodeId count } } } }`
		answer := func(b *bench) string {
			r := b.execute(query, "")
			text, err := json.Marshal([]any{r.Data, r.Errors})
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if got, want := answer(both), answer(own); got != want {
			t.Errorf("%s answers\n%s\nand without Ann's graph\n%s", arguments, got, want)
		}
	}
	ann := kg.Principal{ID: "agent://ann", Method: "test"}
	both.reading = &ann
	if got := both.ask(`{ search(query: "water", filter: {authorIds: ["ann"]}) { totalCount } }`); got != `{"search":{"totalCount":1}}` {
		t.Errorf("Ann finds %s", got)
	}
}

func TestSearchRefuses(t *testing.T) {
	b := newSearching(t)
	for _, tt := range []struct{ arguments, selection, code, field string }{
		{`query: "` + strings.Repeat("water ", 1707) + `"`, `totalCount`, "LIMIT_EXCEEDED", "query"},
		{`query: "-water"`, `totalCount`, "INVALID", "query"},
		{`query: "water", filter: {classes: [` + strings.Repeat(`"ex:Lake",`, 101) + `]}`, `totalCount`, "LIMIT_EXCEEDED", "filter.classes"},
		{`query: "water", filter: {minCertainty: 2}`, `totalCount`, "INVALID", "filter.minCertainty"},
		{`query: "water", filter: {since: "2026-01-02T00:00:04Z", until: "2026-01-01T00:00:04Z"}`, `totalCount`, "INVALID", "filter.until"},
		{`query: "water", filter: {match: {var: "x", pattern: {triples: [{s: "?y", p: "ex:from", o: "?z"}]}}}`, `totalCount`, "INVALID", "filter.match.var"},
		{`query: "water"`, `facets(by: [` + strings.Repeat("CLASS ", 10_000) + `]) { exact }`, "LIMIT_EXCEEDED", ""},
		{`query: "water"`, `facets(by: [CLASS CLASS]) { exact }`, "INVALID", "by"},
		{`query: "water"`, `facets(by: [CLASS], first: 101) { exact }`, "INVALID", "first"},
		{`query: "water", view: {minRevision: 9999}`, `totalCount`, "TIMEOUT", "view.minRevision"},
	} {
		r := b.execute("{ search("+tt.arguments+") { "+tt.selection+" } }", "")
		if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != tt.code || tt.field != "" && r.Errors[0].Extensions["field"] != tt.field {
			t.Errorf("search(%.80s) { %.40s } has errors %+v, want %s at %s", tt.arguments, tt.selection, r.Errors, tt.code, tt.field)
		}
	}
}

// withSearch gives channels a search.
func (c *conversing) withSearch(t *testing.T) {
	t.Helper()
	texts, err := search.Open(c.store, search.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	texts.Start()
	t.Cleanup(func() {
		if err := texts.Close(); err != nil {
			t.Error(err)
		}
	})
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	c.engine = graph.NewEngine(graph.Deps{Store: c.store, Prefixes: prefixes, Search: texts, Channels: c.service, Logger: slog.New(slog.NewTextHandler(c.log, nil))}, graph.Options{})
	if err := texts.WaitFor(t.Context(), c.store.Head().Revision); err != nil { // until it is built no search waits
		t.Fatal(err)
	}
}

// Readers of a channel find its messages, with channel and author. Others learn
// nothing of them.
func TestSearchMessages(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	c.withSearch(t)
	c.update(add(iri("po"), kg.IRI(kg.RDFSLabel), kg.String("water of the river")))
	hall := c.lab("PUBLIC")
	c.say("ann", hall, "water for all", "")
	const everything = `{ search(query: "water", order: TIME%s) { totalCount nodes { score time entity { iri } message { id text } matches { pieces } } facets(by: [CHANNEL, AUTHOR, CLASS, GRAPH]) { values { iri nodeId count } distinct } } }`
	before := c.told("eve", everything, "") + c.told("eve", everything, `, filter: {authorIds: ["ann"]}`)
	secret := c.lab("PRIVATE")
	for range 5 {
		c.say("ann", secret, strings.Repeat("water and waters ", 50), "")
	}
	if after := c.told("eve", everything, "") + c.told("eve", everything, `, filter: {authorIds: ["ann"]}`); after != before {
		t.Errorf("Eve finds\n%s\nand before\n%s", after, before)
	}
	c.want("what Eve finds in the private channel", c.told("eve", `{ search(query: "water", filter: {channelIds: [%q]}) { totalCount } }`, secret), c.told("eve", `{ search(query: "water", filter: {channelIds: ["unknown"]}) { totalCount } }`))
	c.want("what Ann finds", c.told("ann", `{ search(query: "water", filter: {channelIds: [%q], authorIds: ["ann"]}) { totalCount facets(by: [CHANNEL]) { values { nodeId count } } } }`, secret),
		fmt.Sprintf(`{"search":{"totalCount":5,"facets":[{"values":[{"nodeId":%q,"count":5}]}]}}`, secret))
	c.want("messages and entities", c.told("ann", `{ search(query: "water for all rivers", first: 2) { nodes { message { text } } } }`), `{"search":{"nodes":[{"message":{"text":"water for all"}},{"message":null}]}}`)
}

// The statements of a proposal are in no filter and no facet, unless the view includes it.
func TestSearchWithoutProposals(t *testing.T) {
	c := newConversing(t, limit.Limits{})
	c.withSearch(t)
	c.update(add(iri("po"), kg.IRI(kg.RDFSLabel), kg.String("water of the river")))
	c.told("ann", `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:po"}, predicate: {id: "rdf:type"}, object: {id: "ex:Lake"}}}, {op: add, statement: {subject: {id: "ex:po"}, predicate: {id: "ex:pay"}, object: {value: 1}}}]}) { proposalId } }`)
	c.want("the class that is proposed", c.told("ann", `{ search(query: "water", filter: {classes: ["ex:Lake"]}) { totalCount } }`), `{"search":{"totalCount":0}}`)
	c.want("the class in a view with proposals", c.told("ann", `{ search(query: "water", filter: {classes: ["ex:Lake"]}, view: {includePending: true}) { totalCount } }`), `{"search":{"totalCount":1}}`)
	c.want("facets", c.told("ann", `{ search(query: "water") { totalCount facets(by: [CLASS]) { distinct } } }`), `{"search":{"totalCount":1,"facets":[{"distinct":0}]}}`)
}
