package graph_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/slowtest"
	"koine/kg"
)

// limited is a query at a limit, and one past it.
type limited struct {
	name    string
	limits  limit.Limits
	at      string
	past    string
	limit   string
	message string
}

func repeat(n int, of func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(of(i))
	}
	return b.String()
}

// deep is a query whose innermost field is n fields deep.
func deep(n int) string {
	// entity, then out, nodes and subject in turn, then iri: the last field
	// must not be one that needs a selection.
	hops := []string{"out", "nodes", "subject"}
	q, open := `{ entity(iri: "ex:ada")`, 0
	for i := range n - 2 {
		q += " { " + hops[i%3]
		open++
	}
	leaf := map[int]string{0: "iri", 1: "totalCount", 2: "predicate"}[(n-2)%3]
	return q + " { " + leaf + strings.Repeat(" }", open+2)
}

var limitCases = []limited{
	{
		name: "tokens", limits: limit.Limits{Tokens: 20}, limit: "tokens",
		at:      `{ ` + strings.Repeat("revision ", 18) + `}`,
		past:    `{ ` + strings.Repeat("revision ", 19) + `}`,
		message: "the query has more than 20 tokens",
	},
	{
		name: "depth", limits: limit.Limits{Depth: 11}, limit: "depth",
		at: deep(11), past: deep(12), message: "the query is 12 fields deep; at most 11 are allowed",
	},
	{
		name: "fields", limits: limit.Limits{Fields: 5}, limit: "fields",
		at: `{ a: revision b: revision ...F } fragment F on Query { stats { statements } revision }`, past: `{ a: revision b: revision ...F } fragment F on Query { stats { statements graphs } revision }`,
		message: "the query has more than 5 fields",
	},
	{
		name: "aliases", limits: limit.Limits{Aliases: 3}, limit: "aliases",
		at: `{ a: revision b: revision c: revision revision }`, past: `{ a: revision b: revision c: revision d: revision }`,
		message: "the query has more than 3 aliases",
	},
	{
		name: "repeats", limits: limit.Limits{Repeats: 3}, limit: "repeats",
		at: `{ stats { a: graphs a: graphs ...F } } fragment F on Stats { a: graphs }`, past: `{ stats { a: graphs a: graphs ...F } } fragment F on Stats { a: graphs ...G } fragment G on Stats { a: graphs }`,
		message: "the query selects a field more than 3 times in one selection set",
	},
	{
		name: "root fields", limits: limit.Limits{RootFields: 2}, limit: "rootFields",
		at: `{ a: revision b: revision }`, past: `{ a: revision ...F } fragment F on Query { b: revision c: revision }`,
		message: "the operation has more than 2 root fields",
	},
	{
		name: "complexity", limits: limit.Limits{Complexity: 35}, limit: "complexity",
		at: `{ entities(first: 10) { nodes { iri label } } }`, past: `{ entities(first: 10) { nodes { iri label } } revision }`,
		message: "the operation could cost 36; at most 35 is allowed",
	},
	{
		name: "page size", limits: limit.Limits{PageSize: 2}, limit: "pageSize",
		at: `{ entities(first: 2) { totalCount } }`, past: `{ entities(first: 3) { totalCount } }`,
		message: "first is 3; at most 2 is allowed",
	},
	{
		name: "values", limits: limit.Limits{PageSize: 2}, limit: "pageSize",
		at: `{ entity(iri: "ex:ada") { values(predicate: "ex:name", first: 2) } }`, past: `{ entity(iri: "ex:ada") { values(predicate: "ex:name", first: 3) } }`,
		message: "first is 3; at most 2 is allowed",
	},
	{
		name: "vocabulary", limits: limit.Limits{PageSize: 2}, limit: "pageSize",
		at: `{ vocabulary { classes(first: 2) { nodes { iri } } } }`, past: `{ vocabulary { classes(first: 3) { nodes { iri } } } }`,
		message: "first is 3; at most 2 is allowed",
	},
	{
		name: "result bytes", limits: limit.Limits{ResultBytes: 38}, limit: "resultBytes",
		at: `{ entity(iri: "ex:ada") { degree } }`, past: `{ entity(iri: "ex:ada") { degree types } }`,
		message: "the answer is larger than 38 bytes",
	},
	{
		name: "result bytes of one statement", limits: limit.Limits{ResultBytes: 200}, limit: "resultBytes",
		at: `{ statements(first: 1) { totalCount } }`, past: `{ statements(first: 10) { nodes { predicate } } }`,
		message: "the answer is larger than 200 bytes",
	},
	{
		name: "result bytes of names", limits: limit.Limits{ResultBytes: 2000}, limit: "resultBytes",
		at: `{ statements(first: 1) { nodes { ` + long + `: revision } } }`, past: `{ statements(first: 2) { nodes { ` + long + `: revision } } }`,
		message: "the answer is larger than 2000 bytes",
	},
}

var long = strings.Repeat("a", 1000)

// Each limit accepts its bound and refuses past it, with its name.
func TestLimits(t *testing.T) {
	slowtest.Long(t)
	for _, tt := range slices.Concat(limitCases, patternLimitCases()) {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, graph.Options{Limits: tt.limits})
			b.team()
			if r := b.execute(tt.at, ""); len(r.Errors) > 0 {
				t.Errorf("at the bound: %v", r.Errors)
			}
			b.refusedBy(tt.past, "", tt.limit, tt.message)
		})
	}
}

func (b *bench) refusedBy(query, variables, limit, message string) {
	b.t.Helper()
	r := b.execute(query, variables)
	if len(r.Errors) != 1 {
		b.t.Fatalf("past the bound: got the errors %v and the data %.200s, want one error", r.Errors, r.Data)
	}
	e := r.Errors[0]
	code := "LIMIT_EXCEEDED"
	if limit == "duration" {
		code = "TIMEOUT"
	}
	got := []any{e.Message, e.Extensions["code"], e.Extensions["limit"], e.Extensions["hint"] != nil}
	if diff := cmp.Diff([]any{message, code, limit, true}, got); diff != "" {
		b.t.Errorf("past the bound (-want +got):\n%s", diff)
	}
}

func TestVariableLimit(t *testing.T) {
	b := newBench(t, graph.Options{Limits: limit.Limits{VariableBytes: 30}})
	query := `query ($iri: IRI!) { entity(iri: $iri) { iri } }`
	if r := b.execute(query, `{"iri": "urn:123456789012345"}`); len(r.Errors) > 0 {
		t.Errorf("at the bound: %v", r.Errors)
	}
	b.refusedBy(query, `{"iri": "urn:1234567890123456"}`, "variableBytes", "the variables are larger than 30 bytes")
}

func TestVariableDepth(t *testing.T) {
	b := newBench(t, graph.Options{})
	const query = `query ($w: StatementFilter) { statements(where: $w) { totalCount } }`
	variables := func(depth int) string { // in which $w is at depth 1
		return `{"w": ` + strings.Repeat(`{"not": `, depth-1) + `{"subject": null}` + strings.Repeat(`}`, depth)
	}
	if r := b.execute(query, variables(limit.MaxVariableDepth-1)); len(r.Errors) > 0 {
		t.Errorf("at the bound: %v", r.Errors)
	}
	b.refusedBy(query, variables(limit.MaxVariableDepth), "variableDepth", "the variables are nested deeper than 500")
}

// stuck is an access policy that lets the reader wait until its time is over.
type stuck struct{ until chan struct{} }

func (s stuck) Allowed(p kg.Principal, _ kg.Term, _ kg.Right) bool {
	if p.ID == reader.ID {
		<-s.until
	}
	return true
}

func TestDurationLimit(t *testing.T) {
	s := stuck{make(chan struct{})}
	b := newBench(t, graph.Options{Limits: limit.Limits{Duration: 20 * time.Millisecond}}, func(o *kg.Options) { o.Access = s })
	var patches []kg.Patch
	for i := range 5000 {
		patches = append(patches, add(iri("s"), iri("p"), kg.Integer(int64(i))))
	}
	b.update(patches...)
	over := time.AfterFunc(60*time.Millisecond, func() { close(s.until) })
	defer over.Stop()
	b.refusedBy(`{ statements(where: {object: {lt: 0}}) { totalCount } }`, "", "duration", "the operation took longer than 20ms")
}

// Queries that try to occupy the server are refused with their own error, and soon.
func TestHostileQueries(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	doubling := repeat(30, func(i int) string {
		return fmt.Sprintf("fragment F%d on Entity { ...F%d out { nodes { subject { ...F%d } } } }\n", i, i+1, i+1)
	}) + "fragment F30 on Entity { iri }"
	for name, tt := range map[string]struct{ query, code, limit, message string }{
		"100 deep":       {deep(100), "LIMIT_EXCEEDED", "depth", "the query is 100 fields deep; at most 40 are allowed"},
		"1,000 deep":     {deep(1000), "LIMIT_EXCEEDED", "depth", "the query is 1000 fields deep; at most 40 are allowed"},
		"alias bomb":     {`{ entity(iri: "ex:ada") { ` + repeat(501, func(i int) string { return fmt.Sprintf("a%d: iri ", i) }) + `} }`, "LIMIT_EXCEEDED", "aliases", "the query has more than 500 aliases"},
		"root aliases":   {`{ ` + repeat(51, func(i int) string { return fmt.Sprintf("a%d: revision ", i) }) + `}`, "LIMIT_EXCEEDED", "rootFields", "the operation has more than 50 root fields"},
		"token bomb":     {`{ ` + strings.Repeat("revision ", 20_000) + `}`, "LIMIT_EXCEEDED", "tokens", "the query has more than 10000 tokens"},
		"doubling":       {`{ entity(iri: "ex:ada") { ...F0 } } ` + doubling, "LIMIT_EXCEEDED", "depth", "the query is 92 fields deep; at most 40 are allowed"},
		"many fragments": {`{ entity(iri: "ex:ada") { ...F20 } } ` + doubling, "LIMIT_EXCEEDED", "depth", "the query is 91 fields deep; at most 40 are allowed"},
		"wide pages":     {`{ entities(first: 1000) { nodes { out(first: 1000) { nodes { predicate } } } } }`, "LIMIT_EXCEEDED", "complexity", "the operation could cost 2006005; at most 1000000 is allowed"},
		"self fragment":  {`{ ...F } fragment F on Query { revision ...F }`, "GRAPHQL_VALIDATION_FAILED", "", `Cannot spread fragment "F" within itself.`},
		"introspection":  {`{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }`, "GRAPHQL_VALIDATION_FAILED", "", "Maximum introspection depth exceeded"},
		"invalid UTF-8":  {"{ entity(iri: \"urn:\xff\") { iri } }", "INVALID", "", "the query is not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			r := b.execute(tt.query, "")
			if len(r.Errors) == 0 || r.Data != nil {
				t.Fatalf("got the data %.200s, want an error", r.Data)
			}
			e := r.Errors[0]
			limit, _ := e.Extensions["limit"].(string)
			got := []any{e.Message, e.Extensions["code"], limit}
			if diff := cmp.Diff([]any{tt.message, tt.code, tt.limit}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d := time.Since(started); d > slowtest.Slack(5*time.Second) {
				t.Errorf("refused after %v", d)
			}
		})
	}
}

// The worst that the limits let through to validation, which compares fields
// of the same name with each other: it must not keep the server busy.
func TestSameFieldManyTimes(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, graph.Options{})
	b.team()
	same := strings.Repeat(`value(predicate: "ex:age") `, 49)
	query := `{ entity(iri: "ex:ada") { ` + same + strings.Repeat(`out { nodes { subject { `+same[:27*30]+` } } } `, 50) + `} }`
	started := time.Now()
	r := b.execute(query, "")
	if len(r.Errors) > 0 || !strings.HasPrefix(string(r.Data), `{"entity":{"value":36,"out":{"nodes":[{"subject":{"value":36}}`) {
		t.Errorf("got %.200s %v", r.Data, r.Errors)
	}
	// Compared pair by pair it would take minutes.
	if d := time.Since(started); d > slowtest.Slack(20*time.Second) {
		t.Errorf("it took %v", d)
	}
}

// explosive is an access policy with a fault.
type explosive struct{}

func (explosive) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	if p.ID == reader.ID && graph == iri("mine") {
		panic("the policy of " + graph.Value() + " is broken")
	}
	return true
}

// A panic is an internal error of the field that it happened in, and is logged
// once in full.
func TestPanicIsAnErrorOfItsField(t *testing.T) {
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = explosive{} })
	b.update(in(iri("mine"), add(iri("s"), iri("p"), kg.Integer(1))), in(iri("field"), add(iri("t"), iri("p"), kg.Integer(1))))
	r := b.execute(`{ bad: statements { totalCount } revision good: statements(where: {graph: {eq: "ex:field"}}) { nodes { predicate } } }`, "")
	want := `{"bad":null,"revision":1,"good":{"nodes":[{"predicate":"https://example.org/p"}]}}`
	if string(r.Data) != want {
		t.Errorf("got %s, want %s", r.Data, want)
	}
	if len(r.Errors) != 1 || r.Errors[0].Message != "internal error" || r.Errors[0].Path.String() != "bad" {
		t.Errorf("got the errors %v, want one internal error at bad", r.Errors)
	}
	if n := strings.Count(b.log.String(), "the policy of https://example.org/mine is broken"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, b.log.String())
	}
	if !strings.Contains(b.log.String(), "Allowed(") {
		t.Errorf("the log has no stack:\n%s", b.log.String())
	}
}

func TestGivenUp(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := b.engine.Execute(ctx, b.request(`{ statements { totalCount nodes { predicate } } }`, ""))
	if len(r.Errors) != 1 || r.Errors[0].Message != "the request was canceled" {
		t.Errorf("got %v, want that the request was canceled", r.Errors)
	}
	if b.log.Len() > 0 {
		t.Errorf("logged: %s", b.log.String())
	}
}

// Root fields are resolved side by side, and their errors come in the order of
// the fields all the same.
func TestErrorsComeInOrder(t *testing.T) {
	b := newBench(t, graph.Options{})
	query := "{ " + repeat(12, func(i int) string { return fmt.Sprintf("f%d: entities(first: -1) { totalCount } ", 12-i) }) + "}"
	for range 50 {
		for i, e := range b.execute(query, "").Errors {
			if want := fmt.Sprintf("f%d", 12-i); e.Path.String() != want {
				t.Fatalf("error %d is of %s, want %s", i, e.Path, want)
			}
		}
	}
}
