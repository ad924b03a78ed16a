package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"koine/graph"
	"koine/internal/slowtest"
	"koine/kg"
)

// things fills the store with n things of a type, numbered, that point at the
// next one.
func (b *bench) things(n int) {
	b.t.Helper()
	var patches []kg.Patch
	for i := range n {
		s := iri(fmt.Sprintf("thing/%03d", i))
		patches = append(patches,
			add(s, kg.IRI(kg.RDFType), iri("Thing")),
			add(s, iri("size"), kg.Integer(int64(i*7%10))),
			add(s, iri("next"), iri(fmt.Sprintf("thing/%03d", (i+1)%n))),
			add(iri("hub"), iri("has"), s),
		)
	}
	b.update(patches...)
}

type connection struct {
	TotalCount int64
	Nodes      []struct {
		IRI     string
		Object  struct{ IRI string }
		Subject struct{ IRI string }
	}
	Edges    []struct{ Cursor string }
	PageInfo struct {
		HasNextPage, HasPreviousPage bool
		StartCursor, EndCursor       string
	}
}

const pageFields = `totalCount edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }`

// walks are connections of all kinds: each query takes $first and $after, and
// lists the things.
var walks = map[string]string{
	"entities":                    `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {iri: {contains: "thing"}}) { nodes { iri } ` + pageFields + ` } }`,
	"entities by type":            `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {type: {eq: "ex:Thing"}}) { nodes { iri } ` + pageFields + ` } }`,
	"entities by value":           `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {property: {predicate: "ex:size", gte: 0}}) { nodes { iri } ` + pageFields + ` } }`,
	"entities in order":           `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {type: {eq: "ex:Thing"}}, orderBy: [{property: "ex:size", direction: DESC}]) { nodes { iri } ` + pageFields + ` } }`,
	"entities by degree":          `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {type: {eq: "ex:Thing"}}, orderBy: [{by: IN_DEGREE, direction: DESC}, {by: OUT_DEGREE}]) { nodes { iri } ` + pageFields + ` } }`,
	"entities by two keys":        `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {type: {eq: "ex:Thing"}}, orderBy: [{property: "ex:none", nulls: FIRST}, {property: "ex:size", direction: DESC, nulls: FIRST}, {by: LABEL}]) { nodes { iri } ` + pageFields + ` } }`,
	"entities by statement":       `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {property: {predicate: "ex:size", graph: {default: true}, assertedBy: {regex: "^agent"}, ageSeconds: {gte: 0}}}) { nodes { iri } ` + pageFields + ` } }`,
	"statements by graph":         `query ($first: Int, $after: Cursor) { c: statements(first: $first, after: $after, where: {predicate: {regex: "/has$"}, object: {iri: {exists: true}}}, orderBy: [{by: GRAPH, nulls: LAST}, {by: CERTAINTY}]) { nodes { object { ... on Entity { iri } } } ` + pageFields + ` } }`,
	"entities by path":            `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {path: {path: "^ex:has/a?", where: {iri: {eq: "ex:hub"}}}}) { nodes { iri } ` + pageFields + ` } }`,
	"entities in order of a path": `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {type: {eq: "ex:Thing"}}, orderBy: [{path: "ex:next/ex:size", direction: DESC}, {path: "^ex:next", nulls: FIRST}]) { nodes { iri } ` + pageFields + ` } }`,
	"entities by neighbours":      `query ($first: Int, $after: Cursor) { c: entities(first: $first, after: $after, where: {path: [{path: "ex:next", where: {type: {eq: "ex:Thing"}}}, {path: "^ex:next", quantifier: SINGLE}, {path: "ex:size", count: {lte: 1}}]}) { nodes { iri } ` + pageFields + ` } }`,
	"statements":                  `query ($first: Int, $after: Cursor) { c: statements(first: $first, after: $after, where: {predicate: {eq: "ex:has"}}) { nodes { object { ... on Entity { iri } } } ` + pageFields + ` } }`,
	"statements tested":           `query ($first: Int, $after: Cursor) { c: statements(first: $first, after: $after, where: {predicate: {startsWith: "https://example.org/has"}}) { nodes { object { ... on Entity { iri } } } ` + pageFields + ` } }`,
	"statements ordered":          `query ($first: Int, $after: Cursor) { c: statements(first: $first, after: $after, where: {predicate: {eq: "ex:has"}}, orderBy: {by: OBJECT, direction: DESC}) { nodes { object { ... on Entity { iri } } } ` + pageFields + ` } }`,
	"out":                         `query ($first: Int, $after: Cursor) { e: entity(iri: "ex:hub") { c: out(first: $first, after: $after) { nodes { object { ... on Entity { iri } } } ` + pageFields + ` } } }`,
	"in":                          `query ($first: Int, $after: Cursor) { e: entity(iri: "ex:Thing") { c: in(first: $first, after: $after) { nodes { subject { iri } } ` + pageFields + ` } } }`,
}

// page requests one page of a list.
func (b *bench) page(query string, first int, after string) (c connection, revision kg.Revision) {
	b.t.Helper()
	variables := fmt.Sprintf(`{"first": %d, "after": %q}`, first, after)
	if after == "" {
		variables = fmt.Sprintf(`{"first": %d, "after": null}`, first)
	}
	var data struct {
		C connection
		E struct{ C connection }
	}
	result := b.data(query, variables, &data)
	if strings.Contains(query, "e: entity") {
		data.C = data.E.C
	}
	return data.C, result.Position.Revision
}

func (c *connection) iris() (list []string) {
	for _, n := range c.Nodes {
		list = append(list, n.IRI+n.Object.IRI+n.Subject.IRI)
	}
	return list
}

// The pages of a list fit together: no element twice, none left out, for any size of the
// pages, and with concurrent writes.
func TestPagesAreStable(t *testing.T) {
	slowtest.Long(t)
	const n = 40
	for name, query := range walks {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, graph.Options{})
			b.things(n)
			whole, revision := b.page(query, 1000, "")
			want := whole.iris()
			if len(want) != n || whole.TotalCount != n || whole.PageInfo.HasNextPage || whole.PageInfo.HasPreviousPage {
				t.Fatalf("got %d elements of %d, page %+v", len(want), whole.TotalCount, whole.PageInfo)
			}
			for _, size := range []int{1, 7, 20, n} {
				got := b.walk(query, size, revision, n)
				if !slices.Equal(got, want) {
					t.Fatalf("pages of %d: got %v, want %v", size, got, want)
				}
				revision = b.store.Head().Revision
				whole, _ = b.page(query, 1000, "")
				want = whole.iris()
			}
		})
	}
}

// walk reads all pages while things come and go, and gives their elements.
func (b *bench) walk(query string, size int, revision kg.Revision, total int64) (all []string) {
	b.t.Helper()
	after := ""
	for i := 0; ; i++ {
		c, read := b.page(query, size, after)
		if c.TotalCount != total {
			b.t.Fatalf("page %d says that there are %d elements, not %d", i, c.TotalCount, total)
		}
		if read != revision {
			b.t.Fatalf("page %d reads revision %d, the walk began at %d", i, read, revision)
		}
		if c.PageInfo.HasPreviousPage != (after != "") || len(c.Edges) != len(c.Nodes) {
			b.t.Fatalf("page %d: %+v with %d edges of %d nodes", i, c.PageInfo, len(c.Edges), len(c.Nodes))
		}
		all = append(all, c.iris()...)
		if !c.PageInfo.HasNextPage {
			return all
		}
		if c.PageInfo.EndCursor == "" || len(c.Nodes) != size {
			b.t.Fatalf("page %d of %d has %d elements and the cursor %q", i, size, len(c.Nodes), c.PageInfo.EndCursor)
		}
		after = c.PageInfo.EndCursor
		b.churn(i)
	}
}

// churn removes one thing and restores it: an older revision must not change.
func (b *bench) churn(i int) {
	s := iri(fmt.Sprintf("thing/%03d", i%40))
	quads := []kg.Patch{
		add(s, kg.IRI(kg.RDFType), iri("Thing")), add(s, iri("size"), kg.Integer(int64(i%40*7%10))),
		add(iri("hub"), iri("has"), s), add(s, iri("next"), iri(fmt.Sprintf("thing/%03d", (i%40+1)%40))),
	}
	gone := slices.Clone(quads)
	for k := range gone {
		gone[k].Op = kg.Remove
	}
	b.update(gone...)
	b.update(append(quads, add(iri(fmt.Sprintf("other/%d", i)), iri("p"), kg.Integer(int64(i))))...)
}

// Walks that run while writers write see each their own revision.
func TestPagesUnderConcurrentWrites(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.things(40)
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			op := []kg.Op{kg.Remove, kg.Add}[i%2]
			_, err := b.store.Update(t.Context(), kg.Meta{Principal: reader}, func(tx *kg.Tx) error {
				return tx.Apply(kg.Patch{Op: op, Quad: add(iri("hub"), iri("has"), iri(fmt.Sprintf("thing/%03d", i/2%40))).Quad})
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	t.Run("walks", func(t *testing.T) {
		for name, query := range walks {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := b.of(t)
				first, revision := b.page(query, 9, "")
				all, after := first.iris(), first.PageInfo.EndCursor
				for more := first.PageInfo.HasNextPage; more; {
					c, read := b.page(query, 9, after)
					if read != revision {
						t.Errorf("a page read revision %d, the walk began at %d", read, revision)
					}
					all, after, more = append(all, c.iris()...), c.PageInfo.EndCursor, c.PageInfo.HasNextPage
				}
				slices.Sort(all)
				if n := len(slices.Compact(all)); int64(n) != first.TotalCount {
					t.Errorf("%d different elements, want the %d that the first page counted", n, first.TotalCount)
				}
			})
		}
	})
	close(stop)
	writer.Wait()
}

// A cursor is good for its own list only.
func TestCursorsAreBound(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.things(3)
	list := func(args string) string {
		return `query ($after: Cursor) { c: statements(first: 1, after: $after, ` + args + `) { ` + pageFields + ` } }`
	}
	first, _ := b.page(list(`where: {predicate: {eq: "ex:has"}}`), 1, "")
	after := fmt.Sprintf(`{"after": %q}`, first.PageInfo.EndCursor)
	code := func(query string) any {
		r := b.execute(query, after)
		if len(r.Errors) == 0 {
			return nil
		}
		return r.Errors[0].Extensions["code"]
	}
	for name, tt := range map[string]struct {
		query string
		want  any
	}{
		"the same":          {list(`where: {predicate: {eq: "ex:has"}}`), nil},
		"the same, in full": {list(`where: {predicate: {eq: "https://example.org/has"}}, view: null`), "CURSOR_FOREIGN"},
		"another filter":    {list(`where: {predicate: {eq: "ex:next"}}`), "CURSOR_FOREIGN"},
		"another order":     {list(`where: {predicate: {eq: "ex:has"}}, orderBy: {by: OBJECT}`), "CURSOR_FOREIGN"},
		"another view":      {list(`where: {predicate: {eq: "ex:has"}}, view: {minCertainty: 0.1}`), "CURSOR_FOREIGN"},
		"another field":     {`query ($after: Cursor) { entities(after: $after) { totalCount } }`, "CURSOR_FOREIGN"},
		"a nested list":     {`query ($after: Cursor) { entity(iri: "ex:hub") { out(after: $after) { totalCount } } }`, "CURSOR_FOREIGN"},
		"another page size": {strings.Replace(list(`where: {predicate: {eq: "ex:has"}}`), "first: 1", "first: 2", 1), nil},
	} {
		if got := code(tt.query); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	req := b.request(list(`where: {predicate: {eq: "ex:has"}}`), after)
	req.Principal.ID = "agent://other"
	if r := b.engine.Execute(t.Context(), req); len(r.Errors) == 0 || r.Errors[0].Extensions["code"] != "CURSOR_FOREIGN" {
		t.Errorf("another caller: got %v, want CURSOR_FOREIGN", r.Errors)
	}
	other := newBench(t, graph.Options{})
	other.things(3)
	if r := other.execute(list(`where: {predicate: {eq: "ex:has"}}`), after); len(r.Errors) == 0 || r.Errors[0].Extensions["code"] != "CURSOR_FOREIGN" {
		t.Errorf("another store: got %v, want CURSOR_FOREIGN", r.Errors)
	}
}
