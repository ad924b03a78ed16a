package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

// tangle fills the store with entities that have some, many or no statements,
// in two graphs and with several certainties.
func (b *bench) tangle(r *rand.Rand, n int) {
	b.t.Helper()
	var patches []kg.Patch
	for i := range n {
		s := iri(fmt.Sprintf("n%02d", i))
		patches = append(patches, add(s, kg.IRI(kg.RDFType), iri([]string{"Odd", "Even"}[i%2])))
		for range r.IntN(6) {
			p := by("agent://a", float64(1+r.IntN(9))/10, add(s, iri([]string{"knows", "likes", "near"}[r.IntN(3)]), iri(fmt.Sprintf("n%02d", r.IntN(n)))))
			if r.IntN(3) == 0 {
				p = in(iri("g"), p)
			}
			patches = append(patches, p)
		}
		if r.IntN(4) > 0 {
			patches = append(patches, add(s, iri("size"), kg.Integer(int64(r.IntN(100)))), add(s, iri("name"), kg.String(strings.Repeat("é\"x", r.IntN(8)))))
		}
	}
	for part := range slices.Chunk(patches, len(patches)/3) {
		b.update(part...)
	}
	gone := patches[r.IntN(len(patches))]
	gone.Op = kg.Remove
	b.update(gone)
}

const tangledPage = `pageInfo { truncated hasNextPage startCursor endCursor }`

// budgetWalks are lists with lists in them; %s stands for where, orderBy, first,
// after and view.
var budgetWalks = []string{
	`c: entities(%s) { ` + tangledPage + ` nodes { iri name: value(predicate: "ex:name") } }`,
	`c: entities(%s) { edges { cursor node { iri out(first: 3) { nodes { predicate object { ... on Entity { iri } ... on Literal { lexical } } } ` + tangledPage + ` } in { nodes { id } } } } ` + tangledPage + ` }`,
	`c: entities(%s) { nodes { out { ` + tangledPage + ` nodes { object { ... on Entity { iri in(first: 2) { nodes { subject { iri } } ` + tangledPage + ` } } } } edges { cursor } } iri } ` + tangledPage + ` a: edges { node { label } } }`,
	`c: statements(%s) { ` + tangledPage + ` nodes { id subject { iri } predicate object { ... on Entity { iri } ... on Literal { value } } assertedBy } }`,
	`c: statements(%s) { nodes { id subject { iri out(first: 4) { nodes { predicate } ` + tangledPage + ` } } } ` + tangledPage + ` }`,
}

// historyWalks are lists of changes, each with its arguments.
var historyWalks = [][]string{
	{`c: changes(%s) { ` + tangledPage + ` nodes { op changeId statement { object { ... on Entity { iri out(first: 2) { nodes { id } ` + tangledPage + ` } } } } } }`,
		``, `order: DESC`, `where: {predicate: {eq: "ex:knows"}}`, `ops: remove`, `since: 1, until: 2`},
	{`c: diff(%s) { from nodes { op statement { id subject { iri } } previous { id in: subject { in(first: 2) { nodes { id } } } } } ` + tangledPage + ` to }`,
		`from: 1`, `from: 1, to: 3`, `from: 2, where: {object: {gt: 20}}`, `from: 1, to: 1`},
	{`c: entities(%s) { nodes { iri history(first: 3) { nodes { changeId } ` + tangledPage + ` } } ` + tangledPage + ` }`, ``},
}

// pathWalks are lists that go from entity to entity, each with its arguments. A
// row of a match is named by its values.
var pathWalks = [][]string{
	{`c: match(%s) { ` + tangledPage + ` columns nodes { iri: value(var: "a") id: value(var: "b") entity(var: "b") { out(first: 2) { nodes { id } ` + tangledPage + ` } } } }`,
		`pattern: {triples: [{s: "?a", p: "ex:knows", o: "?b"}]}`,
		`pattern: {triples: [{s: "?a", p: "ex:knows", o: "?b"}, {s: "?b", p: "ex:likes", o: "?c"}]}`,
		`pattern: {triples: [{s: "?a", p: "ex:near", o: "?b"}], optional: [{triples: [{s: "?b", p: "ex:size", o: "?c"}]}]}`},
	{`c: entities(%s) { nodes { iri follow(path: "ex:knows+", first: 3) { nodes { iri in(first: 1) { nodes { id } } } ` + tangledPage + ` } } ` + tangledPage + ` }`,
		``, `where: {type: {eq: "ex:Odd"}}`},
	{`c: entities(%s) { edges { node { iri neighborhood(depth: 2, budget: {maxStatements: 4}) { statements { predicate } entities { iri out(first: 2) { nodes { id } ` + tangledPage + ` } } truncated } } } ` + tangledPage + ` }`,
		``, `where: {type: {eq: "ex:Even"}}`},
}

var entityArguments = []string{
	``, `where: {type: {eq: "ex:Odd"}}`, `where: {property: {predicate: "ex:size", gte: 30}}`, `where: {iri: {contains: "3"}}`,
	`where: {label: {eq: "nobody"}}`, `orderBy: {property: "ex:size", direction: DESC}`, `view: {minCertainty: 0.5}`, `view: {graphs: ["ex:g"]}`,
}

var statementArguments = []string{
	``, `where: {predicate: {eq: "ex:knows"}}`, `where: {object: {gt: 50}}`, `where: {certainty: {lt: 0.4}}`, `where: {graph: {eq: "ex:g"}}`,
	`orderBy: {by: OBJECT}`, `view: {minCertainty: 0.5}`,
}

// A walk under any budget gives the elements of the list, each once and in
// order, in pages that keep to the budget and are complete otherwise.
func TestBudgetedWalksGiveTheList(t *testing.T) {
	slowtest.Long(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	b := newBench(t, graph.Options{})
	b.tangle(r, 24)
	others := slices.Concat(historyWalks, pathWalks)
	for range 160 {
		k := r.IntN(len(budgetWalks) + len(others))
		query, args := "", entityArguments
		if k >= 3 {
			args = statementArguments
		}
		if k < len(budgetWalks) {
			query = budgetWalks[k]
		} else {
			query, args = others[k-len(budgetWalks)][0], others[k-len(budgetWalks)][1:]
		}
		w := budgetedWalk{bench: b, seed: seed, query: query, args: args[r.IntN(len(args))], first: []int{1, 3, 10, 200}[r.IntN(4)]}
		switch r.IntN(4) {
		case 0:
			w.budget = operation.Budget{MaxTokens: 60 + r.IntN(800)}
		case 1:
			w.budget = operation.Budget{MaxStatements: 1 + r.IntN(120)}
			if strings.Contains(w.args, "orderBy") {
				w.budget.MaxStatements += 300
			}
		case 2:
			w.budget = operation.Budget{MaxBytes: 200 + r.IntN(4000), MaxStatements: 300 + r.IntN(300)}
		default:
			w.budget = operation.Budget{MaxBytes: 200 + r.IntN(6000)}
		}
		if w.where = r.IntN(3); strings.Contains(query, "history") {
			w.budget.MaxStatements *= 2 // all versions of an entity are one step
		}
		w.run(t)
	}
}

type budgetedWalk struct {
	*bench
	seed   uint64
	query  string
	args   string
	first  int
	budget operation.Budget
	where  int // the budget is said: in the request, at the field, at the operation
}

func (w *budgetedWalk) String() string {
	return fmt.Sprintf("seed %d: %s with %s first %d, %+v said in way %d", w.seed, w.query, w.args, w.first, w.budget, w.where)
}

func (w *budgetedWalk) said() string {
	var parts []string
	for name, n := range map[string]int{"maxBytes": w.budget.MaxBytes, "maxTokens": w.budget.MaxTokens, "maxStatements": w.budget.MaxStatements} {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", name, n))
		}
	}
	return strings.Join(parts, ", ")
}

// page requests a page of a list; without a budget when bounded is false.
func (w *budgetedWalk) page(after string, first int, bounded bool) operation.Result {
	args := fmt.Sprintf("first: %d", first)
	if w.args != "" {
		args += ", " + w.args
	}
	if after != "" {
		args += fmt.Sprintf(", after: %q", after)
	}
	head := "query "
	req := operation.Request{Principal: reader}
	if bounded {
		switch w.where {
		case 0:
			req.Budget = w.budget
		case 1:
			args += ", budget: {" + w.said() + "}"
		case 2:
			head += "@budget(" + w.said() + ") "
		}
	}
	req.Query = head + "{ " + fmt.Sprintf(w.query, args) + " }"
	return w.engine.Execute(context.Background(), req)
}

type budgetedPage struct {
	C struct {
		Nodes, Edges, A []json.RawMessage
		PageInfo        tangledInfo
	}
}

type tangledInfo struct {
	Truncated, HasNextPage bool
	StartCursor, EndCursor *string
}

func (w *budgetedWalk) run(t *testing.T) {
	t.Helper()
	whole, wholeText := w.decode(t, w.page("", 200, false))
	want := w.names(t, whole)
	var got []string
	after := ""
	for pages := 0; ; pages++ {
		if pages > 2000 {
			t.Fatalf("%v: does not end", w)
		}
		result := w.page(after, w.first, true)
		if len(result.Errors) > 0 {
			w.refused(t, result)
			return
		}
		w.within(t, result)
		p, text := w.decode(t, result)
		got = append(got, w.names(t, p)...)
		w.cut(t, p, result)
		if !p.C.PageInfo.Truncated && len(result.Cuts) == 0 && after == "" && w.first == 200 && text != wholeText {
			t.Fatalf("%v: the answer is whole and not the same:\n%s\n%s", w, text, wholeText)
		}
		if !p.C.PageInfo.HasNextPage {
			break
		}
		after = *p.C.PageInfo.EndCursor
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%v:\n got %v\nwant %v", w, got, want)
	}
}

func (w *budgetedWalk) decode(t *testing.T, result operation.Result) (p budgetedPage, text string) {
	t.Helper()
	if len(result.Errors) > 0 {
		t.Fatalf("%v: %v", w, result.Errors)
	}
	if err := json.Unmarshal(result.Data, &p); err != nil {
		t.Fatalf("%v: %v\n%s", w, err, result.Data)
	}
	return p, sealed.ReplaceAllString(string(result.Data), `"…"`)
}

// sealed is a cursor: each is sealed anew.
var sealed = regexp.MustCompile(`"[-\w]{60,}"`)

// names identify the elements of a page.
func (w *budgetedWalk) names(t *testing.T, p budgetedPage) (list []string) {
	t.Helper()
	elements := slices.Concat(p.C.Nodes, p.C.Edges)
	if p.C.A != nil && len(p.C.A) != len(p.C.Nodes) {
		t.Fatalf("%v: %d edges beside %d nodes", w, len(p.C.A), len(p.C.Nodes))
	}
	for _, raw := range elements {
		var e struct {
			IRI, ID, ChangeID string
			Node              struct{ IRI string }
			Statement         struct{ ID string }
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e.IRI+e.ID+e.ChangeID+e.Node.IRI+e.Statement.ID)
	}
	return list
}

// within checks that the answer keeps to the budget.
func (w *budgetedWalk) within(t *testing.T, result operation.Result) {
	t.Helper()
	n := len(result.Data)
	if w.where == 1 {
		n -= len(`{"c":}`)
	}
	if b := w.budget.MaxBytes; b > 0 && n > b {
		t.Fatalf("%v: %d bytes: %s", w, n, result.Data)
	}
	if b := w.budget.MaxTokens; b > 0 && (n+2)/3 > b {
		t.Fatalf("%v: %d tokens: %s", w, (n+2)/3, result.Data)
	}
	if b := w.budget.MaxStatements; b > 0 && result.StatementsRead > int64(b) {
		t.Fatalf("%v: %d statements", w, result.StatementsRead)
	}
}

// cut checks that pageInfo and the places that the result lists agree.
func (w *budgetedWalk) cut(t *testing.T, p budgetedPage, result operation.Result) {
	t.Helper()
	var outer *operation.Cut
	for i, c := range result.Cuts {
		if len(c.Path) == 1 {
			outer = &result.Cuts[i]
		}
		if c.Cursor == "" || c.Reason == "" {
			t.Fatalf("%v: %+v", w, c)
		}
	}
	info := p.C.PageInfo
	if (outer != nil) != info.Truncated || info.Truncated && (!info.HasNextPage || info.EndCursor == nil) {
		t.Fatalf("%v: %+v but %+v", w, info, result.Cuts)
	}
}

// refused checks that the budget is too small, and that the one that the error
// names is not.
func (w *budgetedWalk) refused(t *testing.T, result operation.Result) {
	t.Helper()
	e := result.Errors[0]
	if len(result.Errors) != 1 || e.Extensions["code"] != "BUDGET_EXCEEDED" || e.Extensions["hint"] == nil {
		t.Fatalf("%v: %v %v", w, result.Errors, e.Extensions)
	}
	needs, _ := e.Extensions["budget"].(map[string]int)
	was := w.budget
	w.budget.MaxBytes = max(was.MaxBytes, needs["maxBytes"])
	w.budget.MaxTokens = max(was.MaxTokens, needs["maxTokens"])
	w.budget.MaxStatements = max(was.MaxStatements, needs["maxStatements"])
	if w.budget == was {
		if !strings.Contains(w.args, "orderBy") {
			t.Fatalf("%v: asks for nothing more: %v", w, e.Extensions)
		}
		return
	}
	w.run(t)
}
