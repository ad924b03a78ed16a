package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/kg"
)

func (b *bench) budgeted(query string, budget operation.Budget) operation.Result {
	return b.engine.Execute(context.Background(), operation.Request{Query: query, Principal: reader, Budget: budget})
}

// An answer that fits whole is whole; one byte less, and a list is cut. The
// same goes for statements.
func TestBudgetAtItsBound(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.tangle(rand.New(rand.NewPCG(1, 2)), 12)
	for _, query := range []string{
		`{ entities { nodes { iri } } }`,
		`{ entities(first: 5) { pageInfo { hasNextPage truncated endCursor } nodes { iri out(first: 2) { nodes { predicate } pageInfo { truncated hasNextPage endCursor startCursor } } } } }`,
		`{ a: entities(first: 4) { nodes { iri in { nodes { id } pageInfo { endCursor } } } } __typename v: vocabulary { predicates { nodes { iri count } } } s: statements(first: 3) { edges { cursor node { id } } pageInfo { startCursor truncated } totalCount } n: entity(iri: "ex:none") { iri } }`,
		`{ e: entity(iri: "ex:n03") { iri out { nodes { id subject { in { nodes { id } pageInfo { truncated hasNextPage } } } } pageInfo { endCursor truncated } } in { pageInfo { endCursor truncated } nodes { id } } degree } }`,
		`{ entities { groups(by: {as: "t", property: "ex:likes"}) { count key(as: "t") entity(as: "t") { iri in(first: 3) { nodes { id } pageInfo { truncated } } } } nodes { iri } } }`,
	} {
		whole := b.execute(query, "")
		if len(whole.Errors) > 0 {
			t.Fatal(whole.Errors)
		}
		n := len(whole.Data)
		at := b.budgeted(query, operation.Budget{MaxBytes: n})
		if len(at.Errors) > 0 || len(at.Cuts) > 0 || sealed.ReplaceAllString(string(at.Data), "") != sealed.ReplaceAllString(string(whole.Data), "") {
			t.Errorf("%s: with the %d bytes that it has: %v %v\n%s\n%s", query, n, at.Errors, at.Cuts, at.Data, whole.Data)
		}
		for _, less := range []int{1, 2, 3, 10, n / 4} {
			past := b.budgeted(query, operation.Budget{MaxBytes: n - less})
			if len(past.Errors) > 0 || len(past.Cuts) == 0 || len(past.Data) > n-less || past.Cuts[0].Reason != operation.CutBytes {
				t.Errorf("%s: with %d bytes of %d: %d bytes, %v %v", query, n-less, n, len(past.Data), past.Errors, past.Cuts)
			}
		}
		at = b.budgeted(query, operation.Budget{MaxStatements: 10_000})
		reads := int(at.StatementsRead)
		if at = b.budgeted(query, operation.Budget{MaxStatements: reads}); len(at.Errors) > 0 || len(at.Cuts) > 0 {
			t.Errorf("%s: with the %d statements that it reads: %v %v", query, reads, at.Errors, at.Cuts)
		}
		past := b.budgeted(query, operation.Budget{MaxStatements: reads - 1})
		if len(past.Errors) == 0 && len(past.Cuts) == 0 || past.StatementsRead > int64(reads-1) {
			t.Errorf("%s: with a statement less than %d: %d read, %v", query, reads, past.StatementsRead, past.Cuts)
		}
	}
}

// A cut inside an element is reported with its path, and the cursor continues there, in a
// query of its own and without a budget.
func TestCutInsideGoesOn(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.things(9)
	query := `{ entities(where: {iri: {in: ["ex:thing/001", "ex:hub"]}}) { nodes { iri l: out(first: 50) { nodes { object { ... on Entity { iri } } } } } } }`
	for size := 260; size < 900; size += 40 {
		result := b.budgeted(query, operation.Budget{MaxBytes: size})
		if len(result.Errors) > 0 {
			t.Fatal(size, result.Errors)
		}
		var inner *operation.Cut
		for i, c := range result.Cuts {
			if len(c.Path) == 4 {
				inner = &result.Cuts[i]
			}
		}
		var data struct {
			Entities struct {
				Nodes []struct {
					IRI string
					L   struct {
						Nodes []struct{ Object struct{ IRI string } }
					}
				}
			}
		}
		if err := json.Unmarshal(result.Data, &data); err != nil {
			t.Fatal(err)
		}
		if inner == nil {
			continue
		}
		k := len(data.Entities.Nodes) - 1
		if want := fmt.Sprintf("entities.nodes[%d].l", k); inner.Path.String() != want {
			t.Fatalf("%d: cut at %v, want %s", size, inner.Path, want)
		}
		last := data.Entities.Nodes[k]
		rest := `{ entity(iri: "` + last.IRI + `") { %sout(first: 50%s) { nodes { object { ... on Entity { iri } } } } } }`
		var whole, behind struct {
			Entity struct {
				Out struct {
					Nodes []struct{ Object struct{ IRI string } }
				}
			}
		}
		b.data(fmt.Sprintf(rest, "", ""), "", &whole)
		b.data(fmt.Sprintf(rest, "", `, after: "`+inner.Cursor+`"`), "", &behind)
		if got, want := slices.Concat(last.L.Nodes, behind.Entity.Out.Nodes), whole.Entity.Out.Nodes; !slices.Equal(got, want) || len(last.L.Nodes) == len(want) {
			t.Fatalf("%d: %v, want %v", size, got, want)
		}
	}
}

// A cursor of a budget continues at the revision of its answer, and does not depend on the
// budget.
func TestCutIsPinned(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.things(20)
	query := `{ entities(where: {type: {eq: "ex:Thing"}}%s) { nodes { iri } } }`
	result := b.budgeted(fmt.Sprintf(query, ""), operation.Budget{MaxBytes: 300})
	if len(result.Cuts) != 1 || result.Cuts[0].Reason != operation.CutBytes {
		t.Fatal(result.Cuts)
	}
	b.things(23)
	next := b.execute(fmt.Sprintf(query, `, budget: {maxTokens: 5000}, after: "`+result.Cuts[0].Cursor+`"`), "")
	if len(next.Errors) > 0 || next.Position.Revision != result.Position.Revision {
		t.Fatal(next.Errors, next.Position, result.Position)
	}
	if n := strings.Count(string(result.Data), "thing/") + strings.Count(string(next.Data), "thing/"); n != 20 {
		t.Errorf("%d things of the 20 there were", n)
	}
}

// The root fields share a budget in order; where nothing is left for a list it
// is empty, and its cursor begins it.
func TestBudgetIsShared(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.things(10)
	result := b.budgeted(`{ a: entities { nodes { iri } } b: statements { nodes { id } pageInfo { endCursor truncated } } }`, operation.Budget{MaxBytes: 420})
	var data struct {
		A struct{ Nodes []struct{ IRI string } }
		B struct {
			Nodes    []struct{ ID string }
			PageInfo tangledInfo
		}
	}
	if err := json.Unmarshal(result.Data, &data); err != nil || len(result.Errors) > 0 {
		t.Fatal(err, result.Errors)
	}
	if len(data.A.Nodes) == 0 || len(data.B.Nodes) != 0 || !data.B.PageInfo.Truncated || len(result.Cuts) != 2 {
		t.Fatalf("%s %v", result.Data, result.Cuts)
	}
	first := b.execute(`{ statements { nodes { id } } }`, "")
	from := b.execute(`{ statements(after: "`+*data.B.PageInfo.EndCursor+`") { nodes { id } } }`, "")
	if string(first.Data) != string(from.Data) || len(from.Errors) > 0 {
		t.Errorf("%v\n%s\n%s", from.Errors, first.Data, from.Data)
	}
}

// Fields that need the whole list are an error under an insufficient budget of statements.
func TestBudgetForTheWhole(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.things(30)
	for _, query := range []string{
		`{ entities(orderBy: {property: "ex:size"}) { nodes { iri } } }`,
		`{ statements(where: {certainty: {gt: 0}}) { groups(by: {as: "p", by: PREDICATE}) { count } } }`,
		`{ entity(iri: "ex:hub") { predicates { count } } }`,
	} {
		result := b.budgeted(query, operation.Budget{MaxStatements: 20})
		if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != "BUDGET_EXCEEDED" || result.Errors[0].Extensions["hint"] == nil || result.StatementsRead > 20 {
			t.Errorf("%s: %v, %d read", query, result.Errors, result.StatementsRead)
		}
	}
}

// A budget of statements that does not suffice to count a list leaves the total
// out, with a hint, and some of it for the page.
func TestBudgetEndsTheCount(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.things(30)
	for _, query := range []string{
		`{ c: statements(where: {object: {gt: 3}}) { totalCount nodes { id } pageInfo { truncated } } }`,
		`{ c: entities(where: {iri: {contains: "thing"}}) { totalCount nodes { id } pageInfo { truncated } } }`,
		`{ c: match(pattern: {triples: [{s: "?s", p: "?p", o: "?o"}]}) { totalCount nodes { id: values } pageInfo { truncated } } }`,
	} {
		var data struct {
			C struct {
				TotalCount *int
				Nodes      []struct{ ID any }
				PageInfo   struct{ Truncated bool }
			}
		}
		result := b.budgeted(query, operation.Budget{MaxStatements: 20})
		if err := json.Unmarshal(result.Data, &data); err != nil || len(result.Errors) > 0 {
			t.Fatal(query, err, result.Errors)
		}
		if c := data.C; c.TotalCount != nil || len(c.Nodes) == 0 || !c.PageInfo.Truncated || result.StatementsRead > 20 || len(result.Hints) != 1 || result.Hints[0].Path.String() != "c.totalCount" {
			t.Errorf("%s: %s, hints %v, %d read", query, result.Data, result.Hints, result.StatementsRead)
		}
		result = b.budgeted(query, operation.Budget{MaxStatements: 20_000})
		if err := json.Unmarshal(result.Data, &data); err != nil || data.C.TotalCount == nil || *data.C.TotalCount < 10 || len(result.Hints) > 0 {
			t.Errorf("%s: %s, hints %v", query, result.Data, result.Hints)
		}
	}
}

// An invalid budget is refused, in any place.
func TestWrongBudgets(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.things(1)
	for _, req := range []operation.Request{
		{Query: `query @budget(maxBytes: 0) { revision }`},
		{Query: `query ($n: Int) @budget(maxTokens: $n) { revision }`, Variables: map[string]any{"n": json.Number("-1")}},
		{Query: `{ entities(budget: {maxStatements: 0}) { nodes { iri } } }`},
		{Query: `{ revision }`, Extensions: map[string]any{"budget": map[string]any{"maxByte": json.Number("5")}}},
		{Query: `{ revision }`, Extensions: map[string]any{"budget": map[string]any{"maxBytes": "5"}}},
		{Query: `{ revision }`, Extensions: map[string]any{"budget": map[string]any{"maxBytes": json.Number("1.5")}}},
		{Query: `{ revision }`, Extensions: map[string]any{"budget": json.Number("5")}},
	} {
		req.Principal = reader
		result := b.engine.Execute(context.Background(), req)
		if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != "INVALID" || !strings.Contains(result.Errors[0].Message, "budget") {
			t.Errorf("%+v: %v", req, result.Errors)
		}
	}
	result := b.engine.Execute(context.Background(), operation.Request{Principal: reader, Query: `query ($n: Int) @budget(maxBytes: $n) { entities { nodes { iri } } }`,
		Extensions: map[string]any{"budget": map[string]any{"maxBytes": json.Number("80"), "maxTokens": nil}}})
	if len(result.Errors) > 0 || len(result.Cuts) != 1 || len(result.Data) > 80 {
		t.Errorf("%v %v", result.Errors, result.Cuts)
	}
}

// A budget of a field that does not reach for its lists when they are empty is
// one error.
func TestFieldBudgetTooSmall(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.update(set("p", 1))
	b.update(set("p", 2))
	for _, field := range []string{`entities(budget: {maxBytes: 60})`, `changes(budget: {maxBytes: 60})`, `diff(from: 1, budget: {maxBytes: 60})`} {
		result := b.execute(`{ c: `+field+` { pageInfo { hasNextPage startCursor endCursor truncated } } other: revision }`, "")
		if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != "BUDGET_EXCEEDED" || string(result.Data) != `{"c":null,"other":2}` {
			t.Errorf("%s: got %s, %v", field, result.Data, result.Errors)
		}
	}
}

// A condition that takes all values of a property to read is answered under a
// budget that does not reach for them: the entities are looked at one by one.
func TestBudgetUnderAScannedCondition(t *testing.T) {
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for i := range 200 {
		s := iri(fmt.Sprintf("thing/%03d", i))
		patches = append(patches, add(s, iri("name"), kg.String(s.Value())), add(s, iri("size"), kg.Integer(int64(i*7%10))))
	}
	b.update(patches...)
	for _, condition := range []string{`gte: 5`, `lt: 2`, `ne: 1`} {
		query := `{ entities(first: 1000, where: {property: {predicate: "ex:size", ` + condition + `}}%s) { nodes { iri } pageInfo { truncated hasNextPage endCursor } } }`
		type walked struct {
			Entities struct {
				Nodes    []struct{ IRI string }
				PageInfo tangledInfo
			}
		}
		var whole walked
		b.data(fmt.Sprintf(query, ""), "", &whole)
		var got []struct{ IRI string }
		after, pages := "", 0
		for {
			result := b.budgeted(fmt.Sprintf(query, after), operation.Budget{MaxStatements: 150})
			if len(result.Errors) > 0 || result.StatementsRead > 150 {
				t.Fatalf("%s, page %d: %d read, %v", condition, pages, result.StatementsRead, result.Errors)
			}
			var p walked
			if err := json.Unmarshal(result.Data, &p); err != nil {
				t.Fatal(err)
			}
			got, pages = append(got, p.Entities.Nodes...), pages+1
			if !p.Entities.PageInfo.HasNextPage || pages > 100 {
				break
			}
			after = `, after: "` + *p.Entities.PageInfo.EndCursor + `"`
		}
		if !slices.Equal(got, whole.Entities.Nodes) || len(got) == 0 || pages < 3 {
			t.Errorf("%s: %d entities in %d pages, want %d", condition, len(got), pages, len(whole.Entities.Nodes))
		}
	}
}
