package graph_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/policy"
	"koine/internal/slowtest"
	"koine/kg"
)

// manyQuads are n statements of a graph from a number on, too many for one ordinary commit.
func manyQuads(graph kg.Term, from, n int) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		for i := from; i < from+n; i++ {
			if !yield(kg.Quad{Subject: iri(fmt.Sprint("many", i)), Predicate: iri("p"), Object: kg.Integer(int64(i)), Graph: graph}, nil) {
				return
			}
		}
	}
}

func replaceAll(t *testing.T, s *kg.Store, graph kg.Term, from, n int) kg.ReplaceReport {
	t.Helper()
	m := kg.Meta{Principal: kg.SystemPrincipal(), Actor: "agent://loader", Justification: "a new edition"}
	done, err := s.ReplaceGraph(t.Context(), m, graph, manyQuads(graph, from, n), kg.ReplaceOptions{})
	if err != nil || !done.Whole {
		t.Fatalf("got %+v, %v", done, err)
	}
	return done
}

const replacedFields = `__typename ... on GraphReplaced { graph statementsBefore statementsAfter statementsAdded statementsRemoved commit { revision actor: actorId justification } }`

// The three subscriptions to the graph deliver its replacement as a whole, and then the
// resync; those that no statement of it can concern deliver neither.
func TestReplacedGraphIsAnEvent(t *testing.T) {
	b := newBench(t, graph.Options{})
	const n = kg.MaxPatches + 1
	g := iri("g")
	replaceAll(t, b.store, g, 0, n)
	before := b.store.Head()
	queries := []string{
		`statementChanged(where: {subject: {eq: "ex:any"}})`, `entityChanged(iri: "ex:many7")`, `entityChanged(iri: "ex:many7", depth: 2)`,
		`matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]})`,
	}
	query := func(q string) string { return `subscription { e: ` + q + ` { ` + replacedFields + ` } }` }
	var live []*tail
	for _, q := range queries {
		live = append(live, b.follow(t, query(q), "", operation.Resume{}))
	}
	elsewhere := b.follow(t, `subscription { e: statementChanged(view: {graphs: ["ex:h"]}) { `+changeFields+` } }`, "", operation.Resume{})
	done := replaceAll(t, b.store, g, 5, n)
	p := set("p", 1)
	p.Quad.Graph = iri("h")
	b.update(p)
	want := fmt.Sprintf(`{"e":{"__typename":"GraphReplaced","graph":"https://example.org/g","statementsBefore":%d,"statementsAfter":%d,"statementsAdded":5,"statementsRemoved":5,"commit":{"revision":%d,"actor":"agent://loader","justification":"a new edition"}}}`, n, n, done.Revision)
	resync := func(f *tail, what string) {
		t.Helper()
		_, err, _ := f.next()
		if kg.CodeOf(err) != kg.CodeResync || kg.AsError(err).Oldest.Compare(done.Position) != 0 {
			t.Errorf("%s: behind it comes %v", what, err)
		}
	}
	for i, q := range queries {
		e := live[i].want(want)
		resync(live[i], q)
		// Resuming before it delivers both again, resuming behind it the second.
		again := b.follow(t, query(q), "", operation.Resume{Start: operation.After, After: before})
		if other := again.want(want); other.Position != e.Position {
			t.Errorf("%s: again it is at %v, first at %v", q, other.Position, e.Position)
		}
		resync(again, q)
		resync(b.follow(t, query(q), "", operation.Resume{Start: operation.After, After: e.Position}), q)
	}
	elsewhere.want(change("add", "p", "1"))
}

// Lists of changes have it among their events, in its place, and not among their nodes.
func TestReplacedGraphInLists(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1))
	const n = kg.MaxPatches + 1
	done := replaceAll(t, b.store, iri("g"), 0, n)
	b.update(set("p", 2))
	const event = `__typename ... on GraphReplaced { graph statementsAfter commit { revision } } ... on StatementChange { statement { object { ... on Literal { value } } } }`
	first, last := `{"__typename":"StatementChange","statement":{"object":{"value":1}}}`, `{"__typename":"StatementChange","statement":{"object":{"value":2}}}`
	replaced := fmt.Sprintf(`{"__typename":"GraphReplaced","graph":"https://example.org/g","statementsAfter":%d,"commit":{"revision":%d}}`, n, done.Revision)
	b.wantAs(adminKey, `{ changes { nodes { op } } }`, `{"changes":{"nodes":[{"op":"add"},{"op":"replace"}]}}`)
	b.wantAs(adminKey, `{ changes { nodes { op } edges { node { op } } events { `+event+` } } }`,
		`{"changes":{"nodes":[{"op":"add"},{"op":"replace"}],"edges":[{"node":{"op":"add"}},{"node":{"op":"replace"}}],"events":[`+first+`,`+replaced+`,`+last+`]}}`)
	b.wantAs(adminKey, `{ changes(order: DESC) { events { `+event+` } } }`, `{"changes":{"events":[`+last+`,`+replaced+`,`+first+`]}}`)
	b.wantAs(adminKey, `{ changes(budget: {maxBytes: 10000}) { events { `+event+` } nodes { op } } }`, `{"changes":{"events":[`+first+`,`+replaced+`,`+last+`],"nodes":[{"op":"add"},{"op":"replace"}]}}`)
	b.wantAs(adminKey, `{ changes(view: {graphs: ["ex:h"]}) { events { __typename } } }`, `{"changes":{"events":[]}}`)
	// An entity has it if it changed statements of the entity.
	b.wantAs(adminKey, `{ entity(iri: "ex:many3") { history { events { `+event+` } } } }`, `{"entity":{"history":{"events":[`+replaced+`]}}}`)
	b.wantAs(adminKey, `{ entity(iri: "ex:s") { history { events { `+event+` } } } }`, `{"entity":{"history":{"events":[`+last+`,`+first+`]}}}`)
	// Page by page, of one element each.
	for _, order := range []string{"ASC", "DESC"} {
		var got []string
		after := ""
		for range 3 {
			answer := b.as(adminKey, `{ changes(first: 1, order: `+order+after+`) { events { `+event+` } pageInfo { endCursor hasNextPage } } }`)
			_, rest, _ := strings.Cut(answer, `"events":[`)
			e, rest, _ := strings.Cut(rest, `],"pageInfo":{"endCursor":"`)
			cursor, more, _ := strings.Cut(rest, `"`)
			got = append(got, e)
			after = `, after: "` + cursor + `"`
			if strings.Contains(more, "true") != (len(got) < 3) {
				t.Errorf("%s: after %d of 3 there is %s", order, len(got), more)
			}
		}
		want := []string{first, replaced, last}
		if order == "DESC" {
			want = []string{last, replaced, first}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", order, got, want)
		}
	}
}

// hidesPredicate is an Access under which one agent does not see one predicate.
type hidesPredicate struct{ kg.AllowAll }

func (hidesPredicate) Hides(p kg.Principal) func(predicate, graph kg.Term) bool {
	if p.ID != "agent://dora" {
		return nil
	}
	return func(predicate, _ kg.Term) bool { return predicate == iri("secret") }
}

// A reader from whom a part of the graph may be hidden gets no counts and no reason.
func TestReplacedGraphThatIsSeenInPart(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = hidesPredicate{} })
	from := b.store.Head()
	done := replaceAll(t, b.store, iri("g"), 0, kg.MaxPatches+1)
	want := fmt.Sprintf(`{"e":{"__typename":"GraphReplaced","graph":"https://example.org/g","statementsBefore":null,"statementsAfter":null,"statementsAdded":null,"statementsRemoved":null,"commit":{"revision":%d,"actor":"agent://loader","justification":null}}}`, done.Revision)
	req := b.request(`subscription { e: statementChanged { `+replacedFields+` } }`, "")
	req.Principal, req.Resume = doraKey, operation.Resume{Start: operation.After, After: from}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	sub, err := b.engine.Subscribe(ctx, req)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	f := tailOf(t, sub, cancel)
	f.want(want)
	if _, err, _ := f.next(); kg.CodeOf(err) != kg.CodeResync || strings.Contains(err.Error(), fmt.Sprint(kg.MaxPatches+1)) {
		t.Errorf("behind it comes %v", err)
	}
	b.wantAs(doraKey, `{ changes { events { ... on GraphReplaced { statementsAfter } } } }`, `{"changes":{"events":[{"statementsAfter":null}]}}`)
}

// Subscriptions across the deletion of a graph and its creation anew. The former owner gets
// a resync, with nothing of its content, at any position; for a stranger it is as with a
// name that was never used.
func TestSubscriptionsAcrossAGraphMadeAgain(t *testing.T) {
	slowtest.Long(t)
	const name = "agent://dora/notes"
	run := func(again bool) map[string][]string {
		b := newPoliced(t, policy.Options{DefaultGraph: policy.ReadWrite})
		used := "agent://dora/before"
		if again {
			used = name
		}
		done := func(who kg.Principal, query string) {
			t.Helper()
			if got := b.as(who, query); !strings.HasPrefix(got, "{") {
				t.Fatalf("%s: %s", query, got)
			}
		}
		create := func(graph string) {
			t.Helper()
			done(doraKey, `mutation { createGraph(input: {iri: "`+graph+`"}) { revision } }`)
		}
		say := func(graph, text string) {
			t.Helper()
			done(doraKey, `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: "`+text+`"}`+graph+`}}]}) { revision } }`)
		}
		create(used)
		start := b.store.Head()
		say(`, graph: "`+used+`"`, "secret")
		replaceAll(t, b.store, kg.IRI(used), 0, kg.MaxPatches+1)
		type stream struct {
			*tail
			what string
		}
		var streams []stream
		follow := func(when string, from operation.Resume) {
			t.Helper()
			for _, who := range []kg.Principal{doraKey, eveKey} {
				for what, field := range map[string]string{
					"statements": `statementChanged { __typename ... on StatementChange { op statement { object { ... on Literal { value } } graph } } ... on GraphReplaced { graph statementsBefore statementsAfter } }`,
					"rows":       `matchChanged(pattern: {triples: [{s: "ex:s", p: "ex:p", o: "?o"}]}) { __typename ... on MatchChange { added { values } removed { values } } ... on GraphReplaced { graph } }`,
				} {
					req := b.request(`subscription { e: `+field+` }`, "")
					req.Principal, req.Resume = who, from
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					sub, err := b.engine.Subscribe(ctx, req)
					if err != nil {
						cancel()
						t.Fatal(err)
					}
					streams = append(streams, stream{tailOf(t, sub, cancel), fmt.Sprint(who.ID, " ", what, " ", when)})
				}
			}
		}
		follow("live", operation.Resume{})
		done(doraKey, `mutation { deleteGraph(input: {iri: "`+used+`"}) { revision } }`)
		deleted := b.store.Head()
		create(name)
		say(`, graph: "`+name+`"`, "new")
		replaceAll(t, b.store, kg.IRI(name), 5, kg.MaxPatches+1)
		say("", "end")
		follow("from before", operation.Resume{Start: operation.After, After: start})
		follow("from the deletion", operation.Resume{Start: operation.After, After: deleted})
		follow("from the beginning", operation.Resume{Start: operation.Earliest})
		out := map[string][]string{}
		for _, s := range streams {
			for {
				e, err, _ := s.next()
				if err != nil {
					out[s.what] = append(out[s.what], fmt.Sprint(kg.CodeOf(err), " ", err))
					break
				}
				out[s.what] = append(out[s.what], string(e.Result.Data))
				if strings.Contains(string(e.Result.Data), `"end"`) {
					break
				}
			}
		}
		return out
	}
	again, never := run(true), run(false)
	if len(again) != 16 {
		t.Fatalf("there are %d streams", len(again))
	}
	for what, got := range again {
		all := strings.Join(got, "\n")
		if want := strings.Join(never[what], "\n"); all != want {
			t.Errorf("%s: told is\n%s\nof a name that was never used\n%s", what, all, want)
		}
		last := got[len(got)-1]
		owner := strings.HasPrefix(what, "agent://dora")
		switch {
		case strings.Contains(all, "secret"):
			t.Errorf("%s: told is of what was before:\n%s", what, all)
		case owner && !strings.HasPrefix(last, "RESYNC") && !strings.HasPrefix(last, "ACCESS_CHANGED"):
			t.Errorf("%s: it ends with %s", what, last)
		case !owner && (strings.Contains(all, "notes") || !strings.Contains(last, `"end"`) || len(got) != 1):
			t.Errorf("%s: a stranger is told\n%s", what, all)
		case owner && strings.HasSuffix(what, "from the beginning") && strings.Count(all, `"GraphReplaced"`) != 1:
			t.Errorf("%s: told is\n%s", what, all)
		}
	}
}
