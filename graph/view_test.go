package graph_test

import (
	"fmt"
	"testing"
	"time"

	"koine/graph"
	"koine/kg"
)

// An explicit view narrows that of the request, and never widens it.
func TestViewsNarrow(t *testing.T) {
	b := newBench(t, graph.Options{})
	own := kg.IRI(kg.OwnGraphPrefix + "x")
	b.update(
		by("agent://a", 0.2, add(iri("s"), iri("p"), kg.Integer(1))), by("agent://b", 0.6, add(iri("s"), iri("p"), kg.Integer(2))),
		by("agent://a", 0.9, in(iri("g"), add(iri("s"), iri("p"), kg.Integer(3)))), by("agent://c", -1, in(own, add(iri("s"), iri("p"), kg.Integer(4)))),
	)
	later := add(iri("s"), iri("p"), kg.Integer(6))
	later.Validity.From = year(2031)
	b.update(by("agent://a", 1, add(iri("s"), iri("p"), kg.Integer(5))))
	b.update(later)
	for _, tt := range []struct {
		name string
		view kg.View
		arg  string
		want string // the values seen
	}{
		{"neither", kg.View{}, `{at: 2}`, "[1 2 3 5]"},
		{"certainty of the request", kg.View{MinCertainty: 0.5}, `{minCertainty: 0.1}`, "[2 3 5 6]"},
		{"certainty of the field", kg.View{MinCertainty: 0.5}, `{minCertainty: 0.7}`, "[3 5 6]"},
		{"sources of the request", kg.View{Believed: []kg.AgentID{"agent://b"}}, `{believedBy: ["a", "b"]}`, "[2]"},
		{"no source in common", kg.View{Believed: []kg.AgentID{"agent://b"}}, `{believedBy: ["a"]}`, "[]"},
		{"graphs of the field", kg.View{}, `{graphs: ["ex:g"]}`, "[3]"},
		{"own graph, named", kg.View{}, `{graphs: ["urn:koine:graph:x", null]}`, "[1 2 4 5 6]"},
		{"all graphs", kg.View{}, `{allGraphs: true}`, "[1 2 3 4 5 6]"},
		{"graphs of the request", kg.View{Graphs: []kg.Term{iri("g"), own}}, `{graphs: [null, "ex:g"]}`, "[3]"},
		{"graphs of the request, all asked for", kg.View{Graphs: []kg.Term{iri("g")}}, `{allGraphs: true}`, "[3]"},
		{"revision of the request", kg.View{At: 1}, `{}`, "[1 2 3]"},
		{"revision of the field", kg.View{}, `{at: 1}`, "[1 2 3]"},
		{"the same revision", kg.View{At: 1}, `{at: "1"}`, "[1 2 3]"},
		{"valid at the request's time", kg.View{ValidAt: year(1990)}, `{}`, "[1 2 3 5]"},
		{"valid at the field's", kg.View{}, `{validAt: "2031-01-01T00:00:00+00:00"}`, "[1 2 3 5 6]"},
		{"the same time", kg.View{ValidAt: year(2031)}, `{validAt: "2031-01-01T01:00:00+01:00"}`, "[1 2 3 5 6]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := b.request(`{ entity(iri: "ex:s", view: `+tt.arg+`) { values(predicate: "ex:p") } }`, "")
			req.View = tt.view
			r := b.engine.Execute(t.Context(), req)
			want := `{"entity":{"values":` + jsonList(tt.want) + `}}`
			if tt.want == "[]" {
				want = `{"entity":null}`
			}
			if string(r.Data) != want {
				t.Errorf("got %s %v, want %s", r.Data, r.Errors, want)
			}
		})
	}
	req := b.request(`{ entity(iri: "ex:s", view: {at: 2}) { iri } }`, "")
	req.View.At = 1
	if r := b.engine.Execute(t.Context(), req); len(r.Errors) != 1 || r.Errors[0].Extensions["field"] != "view.at" {
		t.Errorf("another revision: got %s %v, want an error at view.at", r.Data, r.Errors)
	}
	req = b.request(`{ entity(iri: "ex:s", view: {validAt: "1990-01-01T00:00:00Z"}) { iri } }`, "")
	req.View.ValidAt = year(2031)
	if r := b.engine.Execute(t.Context(), req); len(r.Errors) != 1 || r.Errors[0].Extensions["field"] != "view.validAt" {
		t.Errorf("another time: got %s %v, want an error at view.validAt", r.Data, r.Errors)
	}
}

func jsonList(s string) (out string) {
	for _, c := range s {
		if c == ' ' {
			c = ','
		}
		out += string(c)
	}
	return out
}

// The age of an assertion counts from its recording to the operation's evaluation time; the
// shorter of two ages holds.
func TestAge(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Clock = func() time.Time { return now } })
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	now = now.Add(10 * time.Second)
	b.update(add(iri("s"), iri("p"), kg.Integer(2)))
	now = now.Add(5 * time.Second)
	count := func(age time.Duration, arg string) int {
		t.Helper()
		req := b.request(`{ statements(view: `+arg+`) { totalCount } }`, "")
		req.View.MaxAge = age
		r := b.engine.Execute(t.Context(), req)
		var n int
		if _, err := fmt.Sscanf(string(r.Data), `{"statements":{"totalCount":%d}}`, &n); err != nil {
			t.Fatalf("%s %v", r.Data, r.Errors)
		}
		return n
	}
	for _, tt := range []struct {
		age  time.Duration
		arg  string
		want int
	}{
		{0, `{}`, 2}, {0, `{maxAgeSeconds: 15}`, 2}, {0, `{maxAgeSeconds: 14}`, 1}, {0, `{maxAgeSeconds: 5}`, 1}, {0, `{maxAgeSeconds: 4}`, 0},
		{0, `{maxAgeSeconds: 0}`, 0}, {0, `{maxAgeSeconds: 9223372036854775807}`, 2},
		{14 * time.Second, `{}`, 1}, {14 * time.Second, `{maxAgeSeconds: 15}`, 1}, {14 * time.Second, `{maxAgeSeconds: 9223372036854775807}`, 1}, {15 * time.Second, `{maxAgeSeconds: 4}`, 0},
	} {
		if got := count(tt.age, tt.arg); got != tt.want {
			t.Errorf("age %v, argument %s: got %d, want %d", tt.age, tt.arg, got, tt.want)
		}
	}
}

// Everything in one operation reads one revision, which the answer has.
func TestOneRevision(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	for i := range 20 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := b.store.Update(t.Context(), kg.Meta{Principal: reader}, func(tx *kg.Tx) error {
				return tx.Apply(add(iri("s"), iri("p"), kg.Integer(int64(i+2))))
			})
			if err != nil {
				t.Error(err)
			}
		}()
		var data struct {
			Revision uint64
			Stats    struct{ Revision uint64 }
			A, B     struct{ TotalCount int }
			Entity   struct{ Degree int }
		}
		r := b.data(`{ a: statements { totalCount } revision stats { revision } entity(iri: "ex:s") { degree } b: statements(where: {object: {gt: 0}}) { totalCount } }`, "", &data)
		<-done
		if data.A.TotalCount != data.B.TotalCount || data.A.TotalCount != data.Entity.Degree || uint64(data.A.TotalCount) != data.Revision ||
			data.Revision != data.Stats.Revision || kg.Revision(data.Revision) != r.Position.Revision {
			t.Fatalf("different revisions in one answer: %+v at %d", data, r.Position.Revision)
		}
	}
}

// Reads are reported.
func TestResultTellsWhatWasRead(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	r := b.execute(`{ entity(iri: "ex:ada") { out { nodes { assertedBy } } } }`, "")
	if got, want := fmt.Sprint(r.Sources), "[agent://doubter agent://scout agent://writer]"; got != want {
		t.Errorf("got the sources %s, want %s", got, want)
	}
	if r.StatementsRead < 8 || r.Duration <= 0 || r.Position != b.store.Head() {
		t.Errorf("got %d statements read in %v at %v", r.StatementsRead, r.Duration, r.Position)
	}
}
