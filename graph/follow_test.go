package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"koine/graph"
	"koine/internal/query/path"
	"koine/kg"
)

// followed is an answer of Entity.follow.
type followed struct {
	Entity struct {
		Follow struct {
			Nodes []struct {
				IRI   string
				Types []string
			}
			PageInfo struct {
				HasNextPage, HasPreviousPage bool
				EndCursor                    *string
			}
			TotalCount int
		}
	}
}

// follow returns the ends of the path that are entities and match, each once and in a
// steady order, the same in pages as at once.
func TestFollow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	name := func() kg.Term { return iri(fmt.Sprint("n", r.IntN(12))) }
	for range 40 {
		patches = append(patches, add(name(), iri(fmt.Sprint("p", r.IntN(3))), name()))
	}
	for i := range 12 {
		patches = append(patches, add(iri(fmt.Sprint("n", i)), iri("age"), kg.Integer(int64(i))))
		if i%2 == 0 {
			patches = append(patches, in(iri("g"), add(iri(fmt.Sprint("n", i)), kg.IRI(kg.RDFType), iri("Even"))))
		}
	}
	b.update(patches...)
	compared := 0
	for _, way := range []string{"ex:p0", "^ex:p0", "ex:p0+", "(ex:p0|^ex:p1)*", "ex:p0/ex:p1", "!(ex:p0|^ex:p1)", "ex:p0{2,3}", "ex:p1/ex:age", "ex:age/^ex:age", "ex:unknown", "a/^a"} {
		for i := range 12 {
			from := iri(fmt.Sprint("n", i))
			for _, even := range []bool{false, true} {
				want := b.leadsTo(from, way, even)
				compared += len(want)
				where := ""
				if even {
					where = `, where: {type: {eq: "ex:Even"}}`
				}
				for _, first := range []int{1, 3, 100} {
					if got := b.pagesOfFollow(from, way, where, first, len(want)); !slices.Equal(got, want) {
						t.Errorf("%v by %s%s, %d at a time: got %v, want %v", from, way, where, first, got, want)
					}
				}
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d entities were compared", compared)
	}
}

// leadsTo is where a path leads, in the order of ids.
func (b *bench) leadsTo(from kg.Term, way string, even bool) (names []string) {
	b.t.Helper()
	s, err := b.store.View(b.t.Context(), kg.View{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	prefixes, _ := kg.NewPrefixes(map[string]string{"ex": ex})
	p, err := path.Parse(way, prefixes)
	if err != nil {
		b.t.Fatal(err)
	}
	bound, err := p.Bind(s, path.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	id, _, err := s.ID(from)
	var ids []kg.ID
	for end, err := range bound.Forward(id) {
		if err != nil {
			b.t.Fatal(err)
		}
		t, err := s.Term(end)
		if err != nil {
			b.t.Fatal(err)
		}
		n, _ := s.Count(kg.Pattern{Subject: t, Predicate: kg.IRI(kg.RDFType), Object: iri("Even")})
		if t.IsResource() && (!even || n > 0) {
			ids = append(ids, end)
		}
	}
	if err != nil {
		b.t.Fatal(err)
	}
	slices.SortFunc(ids, func(a, b kg.ID) int { return slices.Compare(a[:], b[:]) })
	for _, id := range ids {
		t, err := s.Term(id)
		if err != nil {
			b.t.Fatal(err)
		}
		names = append(names, t.Value())
	}
	return names
}

// pagesOfFollow walks through all pages.
func (b *bench) pagesOfFollow(from kg.Term, way, where string, first, total int) (names []string) {
	b.t.Helper()
	query := `query($from: IRI!, $way: Path!, $first: Int, $after: Cursor) { entity(iri: $from) { follow(path: $way, first: $first, after: $after` + where +
		`) { nodes { iri types } pageInfo { hasNextPage hasPreviousPage endCursor } totalCount } } }`
	variables := map[string]any{"from": from.Value(), "way": way, "first": first}
	for {
		text, err := json.Marshal(variables)
		if err != nil {
			b.t.Fatal(err)
		}
		var got followed
		b.data(query, string(text), &got)
		f := got.Entity.Follow
		if f.TotalCount != total || f.PageInfo.HasPreviousPage != (variables["after"] != nil) {
			b.t.Errorf("%s: got %+v, want %d in all", way, f, total)
		}
		for _, n := range f.Nodes {
			names = append(names, n.IRI)
		}
		if !f.PageInfo.HasNextPage {
			return names
		}
		variables["after"] = *f.PageInfo.EndCursor
	}
}

// Values at the end of a path, for one entity and for many, and errors of a path.
func TestValuesAtTheEndOfAPath(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	for _, row := range []struct{ ask, want string }{
		{`value(path: "ex:knows/ex:age")`, `7`},
		{`values(path: "ex:knows/ex:age")`, `[7,36.5]`},
		{`values(path: "ex:knows/ex:age", first: 1)`, `[7]`},
		{`values(path: "ex:knows")`, `["https://example.org/bob","https://example.org/cy"]`},
		{`values(path: "ex:knows*/ex:age")`, `[7,36,36.5]`},
		{`values(path: "ex:nothing/ex:age")`, `[]`},
		{`value(path: "ex:nothing/ex:age")`, `null`},
		{`value(path: "ex:age")`, `36`},
		{`value(path: "^ex:knows")`, `null`},
		{`values(path: "a/^a/ex:lives/ex:name")`, `["Roma","Rome"]`},
	} {
		var got struct{ Entity struct{ V json.RawMessage } }
		b.data(`{ entity(iri: "ex:ada") { v: `+row.ask+` } }`, "", &got)
		if string(got.Entity.V) != row.want {
			t.Errorf("%s: got %s, want %s", row.ask, got.Entity.V, row.want)
		}
	}
	for _, row := range []struct{ ask, message, hint string }{
		{`value`, "predicate: exactly one of predicate and path is required", ""},
		{`value(predicate: "ex:age", path: "ex:age")`, "predicate: exactly one of predicate and path is required", ""},
		{`value(path: "ex:knows/")`, "path: path, offset 9: expected a predicate, ^, ! or (, but the path ends", ""},
		{`follow(path: "shema:knows") { totalCount }`, `path: path, offset 0: the prefix "shema" is not registered`, "Did you mean schema? Put an IRI with a scheme of that name in angle brackets."},
	} {
		r := b.execute(`{ entity(iri: "ex:ada") { `+row.ask+` } }`, "")
		if len(r.Errors) != 1 {
			t.Fatalf("%s: got %s %v", row.ask, r.Data, r.Errors)
		}
		hint, _ := r.Errors[0].Extensions["hint"].(string)
		if r.Errors[0].Message != row.message && "path: "+r.Errors[0].Message != row.message && "predicate: "+r.Errors[0].Message != row.message || hint != row.hint {
			t.Errorf("%s: got %q, hint %q", row.ask, r.Errors[0].Message, hint)
		}
	}
}

// A cursor of one entity's list is none of another's.
func TestFollowCursorIsOfOneEntity(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	var got followed
	b.data(`{ entity(iri: "ex:ada") { follow(path: "ex:knows", first: 1) { pageInfo { endCursor } } } }`, "", &got)
	r := b.execute(`{ entity(iri: "ex:bob") { follow(path: "ex:knows", first: 1, after: "`+*got.Entity.Follow.PageInfo.EndCursor+`") { nodes { iri } } } }`, "")
	if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != string(kg.CodeCursorForeign) {
		t.Errorf("got %s %v", r.Data, r.Errors)
	}
}

// A budget ends the list of a path's ends between elements, and its cursor continues: the
// pages together are the whole.
func TestFollowWithABudget(t *testing.T) {
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for i := range 60 {
		patches = append(patches, add(iri("hub"), iri("p"), iri(fmt.Sprintf("spoke%02d", i))))
	}
	b.update(patches...)
	after, seen, pages := "null", map[string]bool{}, 0
	for {
		var got struct {
			Entity struct {
				Follow struct {
					Nodes    []struct{ IRI string }
					PageInfo struct {
						HasNextPage, Truncated bool
						EndCursor              string
					}
				}
			}
		}
		b.data(`query @budget(maxBytes: 900) { entity(iri: "ex:hub") { follow(path: "ex:p", first: 1000, after: `+after+`) { nodes { iri } pageInfo { hasNextPage truncated endCursor } } } }`, "", &got)
		for _, n := range got.Entity.Follow.Nodes {
			if seen[n.IRI] {
				t.Fatalf("%s comes twice", n.IRI)
			}
			seen[n.IRI] = true
		}
		pages++
		info := got.Entity.Follow.PageInfo
		if info.Truncated != info.HasNextPage {
			t.Errorf("got %+v", info)
		}
		if !info.HasNextPage {
			break
		}
		after = `"` + info.EndCursor + `"`
	}
	if len(seen) != 60 || pages < 3 {
		t.Errorf("got %d entities on %d pages", len(seen), pages)
	}
}

// A condition on nothing but the class is tested also where no index gave the
// entities: at the ends of a path.
func TestClassAtTheEndOfAPath(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	for where, want := range map[string]int{
		`quantifier: SOME, where: {type: {eq: "ex:Person"}}`: 1,
		`quantifier: SOME, where: {type: {eq: "ex:City"}}`:   0,
	} {
		var got struct{ Entities struct{ TotalCount int } }
		b.data(`{ entities(where: {path: {path: "ex:knows", `+where+`}, iri: {eq: "ex:ada"}}) { totalCount } }`, "", &got)
		if got.Entities.TotalCount != want {
			t.Errorf("%s: got %d, want %d", where, got.Entities.TotalCount, want)
		}
	}
}
