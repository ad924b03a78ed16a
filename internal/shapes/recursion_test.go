package shapes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

// Findings of recursive shapes: a node that is being validated counts as conforming.
func TestRecursiveShapes(t *testing.T) {
	slowtest.Long(t)
	const friends = `ex:Person a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:name ; sh:minCount 1 ] , [ sh:path ex:knows ; sh:node ex:Person ] .`
	for _, row := range []struct {
		name, shapes, data string
		want               []string
	}{
		{"a cycle of good ones", friends, `ex:a a ex:P ; ex:name "a" ; ex:knows ex:b, ex:a . ex:b ex:name "b" ; ex:knows ex:a .`, nil},
		{"the end of a chain", friends, `ex:a a ex:P ; ex:name "a" ; ex:knows ex:b . ex:b ex:name "b" ; ex:knows ex:c . ex:c ex:knows ex:a .`, []string{"ex:a ex:knows ex:b Node"}},
		{"a bad one in a cycle", friends, `ex:a a ex:P ; ex:knows ex:b . ex:b ex:name "b" ; ex:knows ex:a .`, []string{"ex:a ex:name - MinCount"}},
		{"two targets of a cycle", friends, `ex:a a ex:P ; ex:knows ex:b . ex:b a ex:P ; ex:name "b" ; ex:knows ex:a .`, []string{"ex:a ex:name - MinCount", "ex:b ex:knows ex:a Node"}},
		{"a shape that is itself only", `ex:S a sh:NodeShape ; sh:targetNode ex:a ; sh:node ex:S .`, ``, nil},
		{"a shape that is not itself", `ex:S a sh:NodeShape ; sh:targetNode ex:a ; sh:not ex:S .`, ``, []string{"ex:a - ex:a Not"}},
		{"a property inside of itself", `ex:S a sh:NodeShape ; sh:targetNode ex:a ; sh:property ex:Q . ex:Q sh:path ex:p ; sh:maxCount 1 ; sh:property ex:Q .`, `ex:a ex:p ex:b . ex:b ex:p ex:c . ex:c ex:p ex:a, ex:d .`, []string{"ex:c ex:p - MaxCount"}},
		{"alternatives", `ex:Tree a sh:NodeShape ; sh:nodeKind sh:IRI ; sh:targetNode ex:a ; sh:property [ sh:path ex:child ; sh:or ( [ sh:datatype xsd:string ] ex:Tree ) ] .`, `ex:a ex:child "leaf", ex:b . ex:b ex:child ex:a, ex:c . ex:c ex:child 1 .`, []string{"ex:a ex:child ex:b Or"}},
		{"two shapes of each other", `ex:Odd a sh:NodeShape ; sh:targetNode ex:a ; sh:property [ sh:path ex:next ; sh:node ex:Even ] . ex:Even a sh:NodeShape ; sh:class ex:E ; sh:property [ sh:path ex:next ; sh:node ex:Odd ] .`,
			`ex:a ex:next ex:b . ex:b a ex:E ; ex:next ex:c . ex:c ex:next ex:d .`, []string{"ex:a ex:next ex:b Node"}},
		{"at least one that qualifies", `ex:S a sh:NodeShape ; sh:targetNode ex:a ; sh:property [ sh:path ex:p ; sh:qualifiedValueShape ex:S ; sh:qualifiedMinCount 1 ] .`, `ex:a ex:p ex:b . ex:b ex:p ex:c . ex:c ex:p ex:b .`, nil},
		{"at least one, and none does", `ex:S a sh:NodeShape ; sh:targetNode ex:a ; sh:property [ sh:path ex:p ; sh:qualifiedValueShape ex:S ; sh:qualifiedMinCount 1 ] .`, `ex:a ex:p ex:b . ex:b ex:p ex:c .`, []string{"ex:a ex:p - QualifiedMinCount"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			store, set := judgedStore(t, kg.Options{})
			if quads := parse(t, row.data, kg.DefaultGraph); len(quads) > 0 {
				if _, err := write(t, store, kg.Meta{}, quads, nil); err != nil {
					t.Fatal(err)
				}
			}
			put(t, store, row.shapes)
			r := reportOf(t, store, set, shapes.ReportOptions{})
			if got := lines(r.Findings); !slices.Equal(got, sortedLines(row.want)) || !r.Complete {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(sortedLines(row.want), "\n"))
			}
		})
	}
}

func reportOf(t testing.TB, store *kg.Store, set *shapes.Set, o shapes.ReportOptions) *shapes.Report {
	t.Helper()
	snapshot, err := store.View(slowtest.Context(t), kg.View{Principal: admin})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	r, err := set.Report(slowtest.Context(t), snapshot, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An update far from a target is rejected for its effect on the target through recursive
// shapes. If the first nodes keep conforming, validation goes no further.
func TestRecursiveShapesFollowTheData(t *testing.T) {
	store, set := judgedStore(t, kg.Options{})
	put(t, store, `ex:Person a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:name ; sh:minCount 1 ] , [ sh:path ex:knows ; sh:node ex:Person ] .`)
	const n = 200
	var text strings.Builder
	fmt.Fprintf(&text, "ex:n0 a ex:P . ex:n%d ex:knows ex:n0 . ", n-1)
	for i := range n {
		fmt.Fprintf(&text, "ex:n%d ex:name \"%d\", \"second\" . ", i, i)
		if i > 0 {
			fmt.Fprintf(&text, "ex:n%d ex:knows ex:n%d . ", i-1, i)
		}
	}
	accepts(t, store, text.String())
	remove := func(names ...string) (kg.Receipt, error) {
		var quads []kg.Quad
		for _, name := range names {
			quads = append(quads, parse(t, fmt.Sprintf(`ex:n%d ex:name "%s" .`, n-2, name), kg.DefaultGraph)...)
		}
		return write(t, store, by("ann"), nil, quads)
	}
	r, err := remove(fmt.Sprint(n-2), "second")
	refused(t, r, err, "http://example.org/n0, http://example.org/knows, <http://example.org/n1>: does not conform to http://example.org/Person")
	if r, err := remove("second"); err != nil || !r.Committed {
		t.Errorf("got %+v, %v", r, err)
	}
	refuses(t, store, `ex:n100 ex:knows ex:stranger .`, "n0, http://example.org/knows, <http://example.org/n1>")
	accepts(t, store, `ex:n100 ex:knows ex:friend . ex:friend ex:name "f" ; ex:knows ex:n50 .`)
	if r := reportOf(t, store, set, shapes.ReportOptions{}); !r.Conforms || !r.Complete {
		t.Errorf("got %+v", r)
	}
}

// A node is validated once, however many paths lead to it: a ladder of two nodes per
// rung, each connected to both of the next rung, has 2^40 paths.
func TestRecursiveShapesJudgeANodeOnce(t *testing.T) {
	for _, row := range []struct {
		name, end string
		found     int
	}{{"good", `ex:a40 ex:name "x" . ex:b40 ex:name "x" ; ex:knows ex:a0 .`, 0}, {"bad", `ex:a40 ex:name "x" . ex:b40 ex:knows ex:a0 .`, 2}} {
		store, set := judgedStore(t, kg.Options{})
		var text strings.Builder
		text.WriteString("ex:a0 a ex:P . ")
		for i := range 40 {
			for _, side := range []string{"a", "b"} {
				fmt.Fprintf(&text, "ex:%s%d ex:name \"x\" ; ex:knows ex:a%d, ex:b%d . ", side, i, i+1, i+1)
			}
		}
		if _, err := write(t, store, kg.Meta{}, parse(t, text.String()+row.end, kg.DefaultGraph), nil); err != nil {
			t.Fatal(err)
		}
		put(t, store, `ex:Person a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:name ; sh:minCount 1 ] , [ sh:path ex:knows ; sh:node ex:Person ] .`)
		r := reportOf(t, store, set, shapes.ReportOptions{Budget: shapes.Budget{Steps: 20_000}})
		if len(r.Findings) != row.found || !r.Complete {
			t.Errorf("%s: got %+v", row.name, r)
		}
	}
}

func TestDepthOfRecursion(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	store, set := judgedStore(t, kg.Options{})
	put(t, store, `ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:next ; sh:node ex:S ] .`)
	chain := func(from string, n int) []kg.Quad {
		quads := []kg.Quad{{Subject: ex(from + "0"), Predicate: kg.IRI(kg.RDFType), Object: ex("P"), Graph: kg.DefaultGraph}}
		for i := range n - 1 {
			quads = append(quads, kg.Quad{Subject: ex(fmt.Sprint(from, i)), Predicate: ex("next"), Object: ex(fmt.Sprint(from, i+1)), Graph: kg.DefaultGraph})
		}
		return quads
	}
	// A node of the chain is validated by the shape, and the next one by the nested property shape.
	o := shapes.ReportOptions{Budget: shapes.Budget{Time: time.Hour}}
	set.Budget = o.Budget
	for i, n := range []int{shapes.MaxDepth / 2, shapes.MaxDepth/2 + 1} {
		// Validation of the update itself starts at the chain's end and is not nested.
		if r, err := write(t, store, by("ann"), chain("c"+fmt.Sprint(i), n), nil); err != nil || !r.Committed {
			t.Fatalf("got %+v, %v", r, err)
		}
		if r := reportOf(t, store, set, o); !r.Conforms || r.Complete != (i == 0) {
			t.Errorf("a chain of %d: got %+v", n, r)
		}
	}
}
