package shapes_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

var (
	rounds = flag.Int("shapes.rounds", 12, "random sets of shapes")
	seed   = flag.Uint64("shapes.seed", 0, "seed of the random shapes; 0 is a new one")
)

// The verdict on an update equals the comparison of all violations of the whole graph
// before and after it, and a report lists these.
func TestVerdictsAreThoseOfTheWholeGraph(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with: go test -run %s -shapes.seed=%d -shapes.rounds=%d", t.Name(), *seed, *rounds)
	store, set := judgedStore(t, kg.Options{})
	counts := map[kg.Outcome]int{}
	w := &world{rand: rand.New(rand.NewPCG(*seed, 1)), quads: map[kg.Quad]bool{}}
	whole := 0 // rounds that were compared
	for range *rounds {
		var ids []kg.Term
		for _, s := range set.List() {
			if s.ID.Kind() == kg.KindIRI {
				ids = append(ids, s.ID)
			}
		}
		if len(ids) > 0 {
			if _, err := shapes.Remove(slowtest.Context(t), store, kg.Meta{Principal: admin}, ids); err != nil {
				t.Fatal(err)
			}
		}
		text := w.shapes()
		put(t, store, text)
		kept := triplesOf(parse(t, text, kg.ShapesGraph))
		steps := 40
		for steps > 0 && w.step(t, store, set, kept, text, counts) {
			steps--
		}
		if steps == 0 {
			whole++
		}
	}
	if t.Logf("%d rounds came to their end: %v", whole, counts); whole < *rounds/3 {
		t.Errorf("%d of %d rounds came to their end", whole, *rounds)
	}
	if counts[kg.Accepted] < *rounds || counts[kg.Rejected] < *rounds {
		t.Errorf("too few of a kind: %v", counts)
	}
}

// world generates random graphs, shapes and updates.
type world struct {
	rand  *rand.Rand
	quads map[kg.Quad]bool
	depth int
}

func pick[T any](w *world, list ...T) T { return list[w.rand.IntN(len(list))] }

func (w *world) node() string     { return fmt.Sprintf("ex:n%d", w.rand.IntN(5)) }
func (w *world) class() string    { return fmt.Sprintf("ex:C%d", w.rand.IntN(3)) }
func (w *world) property() string { return fmt.Sprintf("ex:p%d", w.rand.IntN(3)) }
func (w *world) literal() string {
	return pick(w, `1`, `2`, `3`, `"a"`, `"b"`, `"a"@en`, `"b"@en`, `"c"@de`)
}

func (w *world) path() string {
	if w.rand.IntN(3) > 0 {
		return w.property()
	}
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > 2 {
		return w.property()
	}
	switch w.rand.IntN(6) {
	case 0:
		return "[ sh:inversePath " + w.path() + " ]"
	case 1:
		return "[ sh:zeroOrMorePath " + w.path() + " ]"
	case 2:
		return "[ sh:oneOrMorePath " + w.path() + " ]"
	case 3:
		return "[ sh:zeroOrOnePath " + w.path() + " ]"
	case 4:
		return "[ sh:alternativePath ( " + w.path() + " " + w.path() + " ) ]"
	}
	return "( " + w.path() + " " + w.path() + " )"
}

// constraints returns some constraints, for a shape with or without a path.
func (w *world) constraints(onPath bool) string {
	w.depth++
	defer func() { w.depth-- }()
	used := map[string]bool{}
	var b strings.Builder
	for range 1 + w.rand.IntN(2) {
		name := pick(w, "class", "datatype", "nodeKind", "minInclusive", "pattern", "in", "hasValue", "equals", "disjoint", "closed",
			"property", "node", "not", "and", "or", "xone", "minCount", "maxCount", "uniqueLang", "lessThan", "qualifiedValueShape")
		if used[name] || w.depth > 3 && slices.Contains([]string{"property", "node", "not", "and", "or", "xone", "qualifiedValueShape"}, name) ||
			!onPath && slices.Contains([]string{"minCount", "maxCount", "uniqueLang", "lessThan", "qualifiedValueShape"}, name) {
			continue
		}
		used[name] = true
		inner := func() string {
			if w.rand.IntN(4) == 0 {
				return "ex:R" + fmt.Sprint(w.rand.IntN(3)) // sometimes recursive
			}
			return "[ " + w.constraints(false) + " sh:deactivated false ]"
		}
		value := ""
		switch name {
		case "class":
			value = pick(w, w.class(), w.class()+", "+w.class())
		case "datatype":
			value = pick(w, "xsd:integer", "xsd:string")
		case "nodeKind":
			value = pick(w, "sh:IRI", "sh:BlankNodeOrLiteral")
		case "minInclusive":
			value = pick(w, `2`, `"b"`)
		case "pattern":
			value = pick(w, `"^http"`, `"a|1"`)
		case "in":
			value = "( " + w.node() + " " + w.node() + " " + w.literal() + " )"
		case "hasValue":
			value = pick(w, w.node(), w.literal(), w.node()+", "+w.literal())
		case "equals", "disjoint", "lessThan":
			value = w.property()
		case "closed":
			value = "true ; sh:ignoredProperties ( " + w.property() + " " + pick(w, "rdf:type", w.property()) + " )"
		case "property":
			value = "[ sh:path " + w.path() + " ; " + w.constraints(true) + " sh:deactivated " + pick(w, "false", "false", "false", "true") + " ]"
		case "node", "not":
			value = inner()
		case "and", "or", "xone":
			value = "( " + inner() + " " + inner() + pick(w, "", " "+inner()) + " )"
		case "minCount":
			value = pick(w, "1", "2", "3")
		case "maxCount":
			value = pick(w, "0", "1", "2")
		case "uniqueLang":
			value = "true"
		case "qualifiedValueShape":
			value = inner() + " ; " + pick(w, "sh:qualifiedMinCount 1", "sh:qualifiedMaxCount 1", "sh:qualifiedMinCount 1 ; sh:qualifiedMaxCount 1")
		}
		fmt.Fprintf(&b, "sh:%s %s ; ", name, value)
	}
	return b.String()
}

func (w *world) shapes() string {
	var b strings.Builder
	for i := range 3 {
		target := pick(w, "sh:targetClass "+w.class(), "sh:targetNode "+w.node(), "sh:targetSubjectsOf "+w.property(), "sh:targetObjectsOf "+w.property())
		severity := pick(w, "", "", "", "sh:severity sh:Warning ; ")
		if w.rand.IntN(2) == 0 {
			fmt.Fprintf(&b, "ex:S%d a sh:PropertyShape ; %s ; %s sh:path %s ; %s .\n", i, target, severity, w.path(), w.constraints(true))
		} else {
			fmt.Fprintf(&b, "ex:S%d a sh:NodeShape ; %s ; %s %s .\n", i, target, severity, w.constraints(false))
		}
	}
	for i := range 3 {
		fmt.Fprintf(&b, "ex:R%d sh:deactivated false ; %s sh:property [ sh:path %s ; sh:%s ex:R%d ] .\n", i, w.constraints(false), w.path(), pick(w, "node", "node", "node", "not"), w.rand.IntN(3))
	}
	return b.String()
}

// statement returns a statement in Turtle that is relevant to the shapes.
func (w *world) statement() string {
	switch w.rand.IntN(8) {
	case 0:
		return w.node() + " a " + w.class()
	case 1:
		return w.class() + " rdfs:subClassOf " + w.class()
	case 2, 3:
		return w.node() + " " + w.property() + " " + w.literal()
	}
	return w.node() + " " + w.property() + " " + w.node()
}

func (w *world) update(t *testing.T) (add, remove []kg.Quad) {
	graph := func() kg.Term { return pick(w, kg.DefaultGraph, ex("g")) }
	for range 1 + w.rand.IntN(3) {
		if standing := sortedQuads(w.quads); len(standing) > 0 && w.rand.IntN(5) < 2 {
			remove = append(remove, pick(w, standing...))
		} else {
			add = append(add, parse(t, w.statement()+" .", graph())...)
		}
	}
	return add, remove
}

func sortedQuads(quads map[kg.Quad]bool) []kg.Quad {
	var out []kg.Quad
	for q := range quads {
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b kg.Quad) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

// step makes an update and compares. It reports false if recursive shapes made the
// comparison too expensive.
func (w *world) step(t *testing.T, store *kg.Store, set *shapes.Set, by triples, text string, counts map[kg.Outcome]int) bool {
	t.Helper()
	add, remove := w.update(t)
	next := map[kg.Quad]bool{}
	for q := range w.quads {
		next[q] = true
	}
	for _, q := range remove {
		delete(next, q)
	}
	for _, q := range add {
		next[q] = true
	}
	before, after := &naive{shapes: by, data: triplesOf(sortedQuads(w.quads))}, &naive{shapes: by, data: triplesOf(sortedQuads(next))}
	old := before.findings()
	var violations []string
	for id, f := range after.findings() {
		if then, found := old[id]; f.refuses && after.brings(f, then, found, before) {
			violations = append(violations, id)
		}
	}
	if before.gaveUp() || after.gaveUp() {
		return false
	}
	r, err := write(t, store, kg.Meta{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}, add, remove)
	if err != nil {
		t.Fatalf("%v\nshapes:\n%s", err, text)
	}
	counts[r.Verdict.Outcome]++
	if want := len(violations) > 0; want != (r.Verdict.Outcome == kg.Rejected) {
		t.Fatalf("the verdict is %v (%s)\nthe whole graph says %q\nshapes:\n%s\nadd %v\nremove %v\ndata %v", r.Verdict.Outcome, r.Verdict.Details, violations, text, add, remove, sortedQuads(w.quads))
	}
	if r.Verdict.Outcome == kg.Accepted {
		w.quads = next
	}
	if w.rand.IntN(5) > 0 {
		return true
	}
	snapshot, err := store.View(slowtest.Context(t), kg.View{Principal: admin})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	report, err := set.Report(slowtest.Context(t), snapshot, shapes.ReportOptions{Limit: shapes.MaxReported})
	if err != nil || !report.Complete {
		t.Fatalf("%+v, %v", report, err)
	}
	got := map[string]bool{}
	for _, f := range report.Findings {
		got[fmt.Sprintf("%s %s %s %s %s %s", f.Shape, f.Target, f.Focus, f.Severity, f.Component, f.Value)] = true
	}
	want := map[string]bool{}
	now := &naive{shapes: by, data: triplesOf(sortedQuads(w.quads))}
	for _, f := range now.findings() {
		want[f.reported] = true
	}
	if now.gaveUp() {
		return false
	}
	for f := range want {
		if !got[f] {
			t.Fatalf("the report lacks %s\nit has %v\nshapes:\n%s\ndata %v", f, got, text, sortedQuads(w.quads))
		}
	}
	for f := range got {
		if !want[f] {
			t.Fatalf("the report has %s\nshapes:\n%s\ndata %v", f, text, sortedQuads(w.quads))
		}
	}
	return true
}
