package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/operation"
	"koine/internal/query/livematch"
	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

const knownBy = `pattern: {triples: [{s: "?who", p: "ex:knows", o: "?whom"}], optional: [{triples: [{s: "?whom", p: "ex:age", o: "?age"}]}]}`

func matched(added, removed string, rest string) string {
	return `{"e":{"added":[` + added + `],"removed":[` + removed + `],` + rest + `}}`
}

// Rows are added and removed with the commits, and show entities as of the commit: removed
// ones as of before.
func TestMatchChanged(t *testing.T) {
	b := newBench(t, graph.Options{})
	label := kg.IRI(kg.RDFSLabel)
	b.update(add(iri("ada"), iri("knows"), iri("bob")), add(iri("bob"), label, kg.String("Bob")))
	f := b.follow(t, `subscription { e: matchChanged(`+knownBy+`, resume: "snapshot") { ... on MatchChange {
		added { values entity(var: "whom") { label } } removed { age: value(var: "age") entity(var: "whom") { label } } changes { op } snapshot snapshotEnd commit { revision } columns } } }`, "", operation.Resume{})
	b.update(add(iri("bob"), iri("age"), kg.Integer(7)))
	b.update(add(iri("bob"), iri("likes"), kg.Integer(7))) // nothing to the pattern
	bobby := add(iri("bob"), label, kg.String("Bobby"))
	bobby.Op = kg.Replace
	b.update(bobby, kg.Patch{Op: kg.Remove, Quad: add(iri("ada"), iri("knows"), iri("bob")).Quad})
	row := func(age, label string) string {
		return `{"values":["https://example.org/ada","https://example.org/bob",` + age + `],"entity":{"label":"` + label + `"}}`
	}
	const columns = `"columns":["who","whom","age"]`
	if e := f.want(matched(row("null", "Bob"), "", `"changes":[],"snapshot":true,"snapshotEnd":true,"commit":null,`+columns)); !e.SnapshotEnd || e.Position.Revision != 1 {
		t.Errorf("got %+v, want the end of the snapshot of revision 1", e)
	}
	f.want(matched(row("7", "Bob"), `{"age":null,"entity":{"label":"Bob"}}`, `"changes":[{"op":"add"}],"snapshot":false,"snapshotEnd":false,"commit":{"revision":2},`+columns))
	if e := f.want(matched("", `{"age":7,"entity":{"label":"Bob"}}`, `"changes":[{"op":"remove"}],"snapshot":false,"snapshotEnd":false,"commit":{"revision":4},`+columns)); e.Position.Index != kg.EndOfCommit {
		t.Errorf("got the position %v, want it behind the commit", e.Position)
	}
}

// A snapshot comes in parts; only the last has a position. An empty one is up to date.
func TestMatchChangedSnapshot(t *testing.T) {
	b := newBench(t, graph.Options{Limits: limit.Limits{SnapshotRows: 2}})
	const query = `subscription { e: matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}, select: ["o"], resume: "snapshot") { __typename ... on MatchChange { added { values } snapshotEnd } } }`
	f := b.follow(t, query, "", operation.Resume{})
	f.want(`{"e":{"__typename":"Progress"}}`)
	for n := range 4 {
		b.update(set("p", int64(n)), add(iri("other"), iri("p"), kg.Integer(int64(n))))
		f := b.follow(t, query, "", operation.Resume{})
		var rows []string
		for {
			e, data := f.event()
			var got struct {
				E struct{ Added []struct{ Values []int } }
			}
			if err := json.Unmarshal([]byte(data), &got); err != nil {
				t.Fatal(err)
			}
			for _, r := range got.E.Added {
				rows = append(rows, fmt.Sprint(r.Values))
			}
			if e.SnapshotEnd != (e.Position != kg.Position{}) || len(got.E.Added) > 2 {
				t.Errorf("got %s at %v", data, e.Position)
			}
			if e.SnapshotEnd {
				break
			}
		}
		if slices.Sort(rows); len(rows) != n+1 || len(slices.Compact(rows)) != n+1 {
			t.Errorf("got the rows %v, want %d", rows, n+1)
		}
	}
}

// Values equal by meaning to the pattern's text or number match when they are written, also
// in a new notation.
func TestMatchChangedByMeaning(t *testing.T) {
	b := newBench(t, graph.Options{})
	number := b.follow(t, `subscription { e: matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", value: 5}]}) { ... on MatchChange { added { values } } } }`, "", operation.Resume{})
	text := b.follow(t, `subscription { e: matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", value: "five"}]}) { ... on MatchChange { added { values } } } }`, "", operation.Resume{})
	b.update(add(iri("a"), iri("p"), kg.Typed("5.0", kg.XSDDecimal)))
	b.update(add(iri("b"), iri("p"), kg.LangString("five", "nl")))
	number.want(`{"e":{"added":[{"values":["https://example.org/a"]}]}}`)
	text.want(`{"e":{"added":[{"values":["https://example.org/b"]}]}}`)
}

// At the bound rows are delivered; past it the subscription ends with the reason.
func TestMatchChangedBounds(t *testing.T) {
	b := newBench(t, graph.Options{Limits: limit.Limits{Live: livematch.Limits{Rows: 2, Triples: 1}}})
	f := b.follow(t, `subscription { e: matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}) { ... on MatchChange { added { values } } ... on Resync { reason oldest } } }`, "", operation.Resume{})
	many := func(n int) (patches []kg.Patch) {
		for i := range n {
			patches = append(patches, add(iri(fmt.Sprint(n)), iri("p"), kg.Integer(int64(i))))
		}
		return patches
	}
	b.update(many(2)...)
	b.update(many(3)...)
	if _, data := f.event(); strings.Count(data, "values") != 2 {
		t.Errorf("got %s, want two rows", data)
	}
	_, err, _ := f.next()
	known := kg.AsError(err)
	if known.Code != kg.CodeResync {
		t.Fatalf("got %v, want %s", err, kg.CodeResync)
	}
	if got := string(f.sub.(*graph.Stream).Resync(known).Data); !strings.Contains(got, `"reason":"revision 2 changed 3 rows; the limit is 2"`) {
		t.Errorf("got %s", got)
	}
	for query, want := range map[string]string{
		`matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}, {s: "?s", p: "ex:q", o: "?o"}]})`: "a pattern has at most 1 triples",
		`matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}, select: ["x"])`:                 "no variable",
		`matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}, view: {maxAgeSeconds: 1})`:      "cannot be followed",
	} {
		_, err := b.engine.Subscribe(t.Context(), b.request(`subscription { `+query+` { __typename } }`, ""))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", query, err, want)
		}
	}
}

// A stream that lags behind the history kept ends with a resync: its client must not miss a row.
func TestMatchChangedBehindHistory(t *testing.T) {
	b := newBench(t, graph.Options{}, func(o *kg.Options) {
		begun := o.Clock()
		o.History, o.Uptime = time.Minute, func() time.Duration { return o.Clock().Sub(begun) }
	})
	f := b.follow(t, `subscription { e: matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}) { ... on MatchChange { added { values } } ... on Resync { reason } } }`, "", operation.Resume{})
	b.update(set("p", 0))
	f.want(`{"e":{"added":[{"values":["https://example.org/s",0]}]}}`)
	for n := range 100 { // each is a second
		b.update(set("p", int64(n+1)))
	}
	if r, err := b.store.Maintenance().Retain(t.Context()); err != nil || r.Oldest < 3 {
		t.Fatalf("Retain: %+v, %v", r, err)
	}
	e, err, _ := f.next()
	if kg.CodeOf(err) != kg.CodeResync {
		t.Fatalf("got %s, %v, %v, want %s", e.Result.Data, e.Result.Errors, err, kg.CodeResync)
	}
	if got := string(f.sub.(*graph.Stream).Resync(kg.AsError(err)).Data); !strings.Contains(got, "the changes of revision 2 cannot be reported: its history is gone") {
		t.Errorf("got %s", got)
	}
}

// A position means the same after the store was closed and opened again.
func TestCommitsAcrossRestarts(t *testing.T) {
	slowtest.Long(t)
	s := kgtest.Disk(t, kg.Options{})
	prefixes, err := kg.NewPrefixes(map[string]string{"ex": ex})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: s.Store}
	for n := range 3 {
		b.update(add(iri("s"), iri("p"), kg.Integer(int64(n))), add(iri("s"), iri("q"), kg.Integer(int64(n))))
	}
	for _, query := range []string{
		`subscription { e: entityChanged(iri: "ex:s") { ... on EntityChange { entity { p: values(predicate: "ex:p") } } } }`,
		`subscription { e: matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}) { ... on MatchChange { added { values } } } }`,
	} {
		var want []string
		at := operation.Resume{Start: operation.Earliest}
		for n := range 6 { // three events, and the same three again
			b.store = s.Store
			b.engine = graph.NewEngine(graph.Deps{Store: s.Store, Prefixes: prefixes}, graph.Options{})
			f := b.follow(t, query, "", at)
			e, data := f.event()
			f.stop()
			if n < 3 {
				want = append(want, data)
			} else if data != want[n-3] {
				t.Errorf("got %s, want %s", data, want[n-3])
			}
			at = operation.Resume{Start: operation.After, After: e.Position}
			if n == 2 {
				at = operation.Resume{Start: operation.Earliest}
			}
			s.Reopen()
		}
		if want[0] == want[1] || want[1] == want[2] {
			t.Errorf("the events are %q", want)
		}
	}
}

// The patterns that are followed through a random history.
var livePatterns = []string{
	`{triples: [{s: "?a", p: "ex:p0", o: "?b"}]}`,
	`{triples: [{s: "?a", p: "ex:p0", o: "?b"}, {s: "?b", p: "ex:p1", o: "?c"}]}`,
	`{triples: [{s: "?a", p: "ex:p0", o: "?b"}], optional: [{triples: [{s: "?b", p: "ex:p1", o: "?c"}]}]}`,
	`{triples: [{s: "?a", p: "ex:p0", o: "?b"}], notExists: [{triples: [{s: "?b", p: "ex:p1", o: "?x"}]}]}`,
	`{triples: [{s: "?a", p: "ex:p0", o: "?b"}], union: [{triples: [{s: "?b", p: "ex:p1", o: "?c"}]}, {triples: [{s: "?a", p: "ex:p1", value: 1}]}]}`,
	`{triples: [{s: "?a", p: "ex:p0", o: "?b"}], notExists: [{triples: [{s: "?b", p: "ex:p1", o: "?x"}], notExists: [{triples: [{s: "?x", p: "ex:p0", o: "?y"}]}]}]}`,
	`{triples: [{s: "?a", p: "ex:p0+", o: "?b"}]}`,
	`{triples: [{s: "?a", p: "?p", o: "?b", g: "?g"}], filter: [{var: "b", neVar: "a"}]}`,
}

// The snapshot and the events give the result of a query, at each revision; a stream that
// is cut anywhere resumes without a gap or a duplicate, also at a position of
// statementChanged within a commit.
func TestMatchChangedGivesTheRows(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 8))
	b := newBench(t, graph.Options{})
	node := func() kg.Term { return iri(fmt.Sprintf("n%d", dice.IntN(4))) }
	for range 40 {
		var patches []kg.Patch
		for range 1 + dice.IntN(3) {
			p := by("agent://a", []float64{0.2, 0.9}[dice.IntN(2)], add(node(), iri(fmt.Sprintf("p%d", dice.IntN(2))), node()))
			if dice.IntN(5) == 0 {
				p.Quad.Object = kg.Integer(1)
			}
			if p.Op = []kg.Op{kg.Add, kg.Remove, kg.Replace}[dice.IntN(3)]; p.Op == kg.Remove {
				p = kg.Patch{Op: kg.Remove, Quad: p.Quad}
			}
			patches = append(patches, p)
		}
		b.update(patches...)
	}
	for _, pattern := range livePatterns {
		for _, view := range []string{"", ", minCertainty: 0.5"} {
			b.givesTheRows(t, dice, pattern, view)
		}
	}
}

type liveEvent struct {
	E struct {
		Added, Removed []struct{ Values []any }
		Changes        []struct{ Position string }
	}
}

func (b *bench) givesTheRows(t *testing.T, dice *rand.Rand, pattern, view string) {
	t.Helper()
	query := `subscription { e: matchChanged(pattern: ` + pattern + `, view: {allGraphs: false` + view + `}) { ... on MatchChange { added { values } removed { values } changes { position } } } }`
	standing := func(r kg.Revision) string {
		var got struct {
			Match struct{ Nodes []struct{ Values []any } }
		}
		b.data(fmt.Sprintf(`{ match(pattern: %s, distinct: true, first: 1000, view: {at: "%d"%s}) { nodes { values } } }`, pattern, r, view), "", &got)
		var rows []string
		for _, n := range got.Match.Nodes {
			rows = append(rows, fmt.Sprint(n.Values))
		}
		slices.Sort(rows)
		return fmt.Sprint(rows)
	}
	head := b.store.Head().Revision
	state := map[string]bool{}
	f := b.follow(t, query, "", operation.Resume{Start: operation.Earliest})
	text := func() string {
		var rows []string
		for r := range state {
			rows = append(rows, r)
		}
		slices.Sort(rows)
		return fmt.Sprint(rows)
	}
	for r := kg.Revision(1); r <= head; r++ {
		if want := standing(r); text() != want { // so an event must come, and of this revision
			e, data := f.event()
			if e.Position.Revision != r {
				t.Fatalf("%s%s: got an event of %d, want one of %d", pattern, view, e.Position.Revision, r)
			}
			var got liveEvent
			if err := json.Unmarshal([]byte(data), &got); err != nil {
				t.Fatal(err)
			}
			for _, row := range got.E.Removed {
				delete(state, fmt.Sprint(row.Values))
			}
			for _, row := range got.E.Added {
				state[fmt.Sprint(row.Values)] = true
			}
			if text() != want {
				t.Fatalf("%s%s at %d: got %s, want %s", pattern, view, r, text(), want)
			}
			if dice.IntN(3) == 0 { // cut, within the commit
				within, err := b.store.ParsePosition(got.E.Changes[dice.IntN(len(got.E.Changes))].Position)
				if err != nil {
					t.Fatal(err)
				}
				again := b.follow(t, query, "", operation.Resume{Start: operation.After, After: within})
				if last := got.E.Changes[len(got.E.Changes)-1].Position; b.store.FormatPosition(within) != last {
					rows, _, _ := strings.Cut(data, `"changes"`)
					if _, got := again.event(); !strings.HasPrefix(got, rows) {
						t.Fatalf("%s%s resumed within %d: got %s, want %s", pattern, view, r, got, rows)
					}
				}
				f.stop()
				f = again
			}
		}
	}
}
