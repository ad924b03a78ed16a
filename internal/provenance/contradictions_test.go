package provenance_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/provenance"
	"koine/internal/slowtest"
	"koine/kg"
)

// search finds one page.
func (w *world) search(s *kg.Snapshot, o provenance.Search) *provenance.Page {
	w.Helper()
	v := s.View()
	limits, err := w.shapes.Limits(slowtest.Context(w), w.view(kg.View{Principal: v.Principal, At: s.Revision(), Graphs: []kg.Term{kg.ShapesGraph}}))
	if err != nil {
		w.Fatal(err)
	}
	found, err := provenance.Contradictions(s, limits, o)
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// contradictions lists all in short form.
func (w *world) contradictions(v kg.View) []string {
	w.Helper()
	found := w.search(w.view(v), provenance.Search{Most: provenance.MaxContradictions})
	if !found.Complete || found.More {
		w.Fatalf("got %+v", found)
	}
	return inShort(found.List)
}

func inShort(list []provenance.Contradiction) (out []string) {
	name := func(t kg.Term) string { return strings.TrimPrefix(t.Name(), "http://example.org/") }
	for _, c := range list {
		text := fmt.Sprintf("%d %s", c.Kind, name(c.About))
		if !c.Property.IsZero() {
			text += " " + name(c.Property)
		}
		var sides []string
		for _, st := range c.Statements {
			sides = append(sides, short(st))
		}
		slices.Sort(sides)
		out = append(out, text+": "+strings.Join(sides, "; "))
	}
	return out
}

// expect compares the contradictions of a view, found at once and by its statements.
func (w *world) expect(v kg.View, want ...string) {
	w.Helper()
	slices.Sort(want)
	for how, got := range map[string][]string{"at once": w.contradictions(v), "by statements": w.contradictionsOfStatements(v)} {
		slices.Sort(got)
		if !slices.Equal(got, want) {
			w.Errorf("%s: got\n%s\nwant\n%s", how, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// contradictionsOfStatements lists those that the statements of the view are part of.
func (w *world) contradictionsOfStatements(v kg.View) []string {
	w.Helper()
	s := w.view(v)
	var statements []kg.Quad
	for st, err := range s.Match(kg.Pattern{}) {
		if err != nil {
			w.Fatal(err)
		}
		statements = append(statements, st.Quad)
	}
	limits, err := w.shapes.Limits(slowtest.Context(w), w.view(kg.View{Principal: v.Principal, At: s.Revision(), Graphs: []kg.Term{kg.ShapesGraph}}))
	if err != nil {
		w.Fatal(err)
	}
	found, complete, err := provenance.ContradictionsOf(s, limits, statements)
	if err != nil || !complete {
		w.Fatal(err, complete)
	}
	return inShort(found)
}

func TestFunctionalProperties(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:born a owl:FunctionalProperty . ex:ssn a owl:InverseFunctionalProperty . ex:ada ex:born 1, 2 ; ex:ssn "7" ; ex:knows ex:bo, ex:cy . ex:bo ex:ssn "7" ; ex:born 1 .`)
	w.write(principal("bob"), w.patches(kg.Add, `ex:bo ex:born 1 . ex:bo ex:ssn "7" .`, ex("g"))...) // the same again
	w.expect(kg.View{},
		`1 ada born: ada born 1 /ann; ada born 2 /ann`,
		`2 7 ssn: ada ssn 7 /ann; bo ssn 7 /ann; bo ssn 7 /bob`)
	w.remove("ann", `ex:ada ex:born 2 .`)
	w.remove("ann", `ex:ada ex:ssn "7" .`)
	w.expect(kg.View{})
}

func TestValidityOfContradictions(t *testing.T) {
	w := newWorld(t, kg.Options{})
	year := func(n int) time.Time {
		if n == 0 {
			return time.Time{}
		}
		return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	says := func(subject string, value int64, from, until int) {
		w.write(principal("ann"), kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: ex(subject), Predicate: ex("job"), Object: kg.Integer(value), Graph: kg.DefaultGraph},
			Validity: kg.TimeSpan{From: year(from), Until: year(until)}})
	}
	w.add("ann", `ex:job a owl:FunctionalProperty .`)
	says("one-after-the-other", 1, 0, 2000)
	says("one-after-the-other", 2, 2000, 2010)
	says("one-after-the-other", 3, 2010, 0)
	says("overlapping", 1, 0, 2001)
	says("overlapping", 2, 2000, 0)
	says("inside", 1, 1990, 2020)
	says("inside", 2, 2000, 2001)
	says("always-and-once", 1, 0, 0)
	says("always-and-once", 2, 2000, 2001)
	w.expect(kg.View{},
		"1 overlapping job: overlapping job 1 /ann; overlapping job 2 /ann",
		"1 inside job: inside job 1 /ann; inside job 2 /ann",
		"1 always-and-once job: always-and-once job 1 /ann; always-and-once job 2 /ann")
	w.expect(kg.View{ValidAt: year(1995)})
}

func TestContradictionsOfShapes(t *testing.T) {
	for _, row := range []struct {
		name, shapes, data string
		want               []string
	}{
		{"a class, with those below", `ex:S sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:maxCount 1 ] .`,
			`ex:D rdfs:subClassOf ex:C . ex:a a ex:C ; ex:p 1, 2 . ex:b a ex:D ; ex:p 1, 2 . ex:c ex:p 1, 2 . ex:d a ex:C ; ex:p 1 .`,
			[]string{"3 a p: a p 1 /ann; a p 2 /ann", "3 b p: b p 1 /ann; b p 2 /ann"}},
		{"the other targets, each node once", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:targetSubjectsOf ex:q ; sh:targetObjectsOf ex:r ; sh:path ex:p ; sh:maxCount 1 .`,
			`ex:a ex:p 1, 2 ; ex:q 1, 2 . ex:b ex:p 1, 2 ; ex:q 1, 2 ; ex:r ex:a, ex:c, "x" . ex:c ex:p 1, 2 . ex:d ex:p 1, 2 .`,
			[]string{"3 a p: a p 1 /ann; a p 2 /ann", "3 b p: b p 1 /ann; b p 2 /ann", "3 c p: c p 1 /ann; c p 2 /ann"}},
		{"shapes for the same node", `ex:S sh:targetNode ex:a ; sh:node ex:T ; sh:and ( [ sh:property [ sh:path ex:q ; sh:maxCount 1 ] ] ) . ex:T a sh:NodeShape ; sh:property [ sh:path ex:p ; sh:maxCount 1 ] .`,
			`ex:a ex:p 1, 2 ; ex:q 1, 2 .`, []string{"3 a p: a p 1 /ann; a p 2 /ann", "3 a q: a q 1 /ann; a q 2 /ann"}},
		{"the other way", `ex:S sh:targetClass ex:C ; sh:property [ sh:path [ sh:inversePath ex:p ] ; sh:maxCount 1 ] .`,
			`ex:a a ex:C . ex:b ex:p ex:a . ex:c ex:p ex:a .`, []string{"3 a p: b p a /ann; c p a /ann"}},
		{"the strictest of several", `ex:S sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:maxCount 2 ] . ex:T sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:maxCount 1 ] .`,
			`ex:a a ex:C ; ex:p 1, 2, 3 . ex:b a ex:C ; ex:p 1, 2 .`, []string{"3 a p: a p 1 /ann; a p 2 /ann; a p 3 /ann", "3 b p: b p 1 /ann; b p 2 /ann"}},
		{"none at all", `ex:S sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:maxCount 0 ] .`, `ex:a a ex:C ; ex:p 1 .`, []string{"3 a p: a p 1 /ann"}},
		{"an alternative, a negation, a longer path, a shape for the values, a switch", `
			ex:S sh:targetClass ex:C ; sh:or ( [ sh:property [ sh:path ex:p ; sh:maxCount 1 ] ] [ sh:class ex:D ] ) ; sh:not [ sh:property [ sh:path ex:q ; sh:maxCount 0 ] ] ;
				sh:property [ sh:path ( ex:p ex:p ) ; sh:maxCount 0 ] , [ sh:path ex:r ; sh:node [ sh:property [ sh:path ex:p ; sh:maxCount 1 ] ] ] , [ sh:path ex:p ; sh:maxCount 0 ; sh:deactivated true ] .
			ex:T sh:targetClass ex:C ; sh:deactivated true ; sh:property [ sh:path ex:p ; sh:maxCount 1 ] .`,
			`ex:a a ex:C ; ex:p 1, 2, ex:b ; ex:q 1 ; ex:r ex:b . ex:b ex:p 1, 2 .`, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, kg.Options{})
			before := w.add("ann", row.data)
			w.put(row.shapes)
			w.expect(kg.View{}, row.want...)
			w.expect(kg.View{At: before}) // there was no shape then
		})
	}
}

// The shapes are those of the revision read.
func TestShapesOfAnOlderRevision(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:a a ex:C ; ex:p 1, 2 ; ex:q 1, 2 .`)
	w.put(`ex:S sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:maxCount 1 ] .`)
	before := w.Head().Revision
	w.put(`ex:S sh:targetClass ex:C ; sh:property [ sh:path ex:q ; sh:maxCount 1 ] .`)
	w.expect(kg.View{At: before}, "3 a p: a p 1 /ann; a p 2 /ann")
	w.expect(kg.View{}, "3 a q: a q 1 /ann; a q 2 /ann")
	if err := w.shapes.Load(slowtest.Context(w), w.Store); err != nil { // as after a start
		t.Fatal(err)
	}
	w.expect(kg.View{At: before}, "3 a p: a p 1 /ann; a p 2 /ann")
	w.expect(kg.View{}, "3 a q: a q 1 /ann; a q 2 /ann")
}

func TestSameAndDifferent(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:a owl:sameAs ex:b . ex:c owl:differentFrom ex:d . ex:e owl:differentFrom ex:e . ex:f owl:sameAs ex:f .`)
	w.add("bob", `ex:b owl:differentFrom ex:a . ex:a owl:differentFrom ex:b . ex:d owl:sameAs ex:e . ex:f owl:differentFrom "text" .`)
	w.write(principal("bob"), w.patches(kg.Add, `ex:b owl:differentFrom ex:a .`, ex("g"))...)
	w.expect(kg.View{},
		"4 a: a http://www.w3.org/2002/07/owl#differentFrom b /bob; a http://www.w3.org/2002/07/owl#sameAs b /ann; b http://www.w3.org/2002/07/owl#differentFrom a /bob; b http://www.w3.org/2002/07/owl#differentFrom a /bob",
		"4 e: e http://www.w3.org/2002/07/owl#differentFrom e /ann")
}

func TestDisjointClasses(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:Cat owl:disjointWith ex:Dog . ex:Dog owl:disjointWith ex:Cat . ex:Tree owl:disjointWith ex:Cat . ex:rex a ex:Cat, ex:Dog . ex:tom a ex:Cat . ex:oak a ex:Tree, ex:Dog .`)
	w.write(principal("bob"), w.patches(kg.Add, `ex:rex a ex:Cat .`, ex("g"))...)
	w.expect(kg.View{}, "5 rex http://www.w3.org/1999/02/22-rdf-syntax-ns#type: rex http://www.w3.org/1999/02/22-rdf-syntax-ns#type Cat /ann; rex http://www.w3.org/1999/02/22-rdf-syntax-ns#type Cat /bob; rex http://www.w3.org/1999/02/22-rdf-syntax-ns#type Dog /ann")
}

// The view decides about contradictions: believed agents, and hidden statements.
func TestContradictionsUnderAView(t *testing.T) {
	private := ex("private")
	w := newWorld(t, kg.Options{Governor: kg.Governor{Access: hiding{private}}})
	w.write(root, w.patches(kg.Add, `ex:born a owl:FunctionalProperty . ex:ada ex:born 1 .`, kg.DefaultGraph)...)
	w.add("ann", `ex:ada ex:born 2 .`)
	w.write(root, w.patches(kg.Add, `ex:bo ex:born 1, 2 .`, private)...)
	both := "1 ada born: ada born 1 /root; ada born 2 /ann"
	w.expect(kg.View{}, both, "1 bo born: bo born 1 /root; bo born 2 /root")
	w.expect(kg.View{Principal: principal("bob")}, both)
	w.expect(kg.View{Believed: []kg.AgentID{"agent://root"}}, "1 bo born: bo born 1 /root; bo born 2 /root")
	w.expect(kg.View{Believed: []kg.AgentID{"agent://ann"}})
	w.expect(kg.View{Principal: principal("bob"), Believed: []kg.AgentID{"agent://root", "agent://ann"}}, both)
	if _, err := w.quarantines.Set(slowtest.Context(t), w.Store, meta(root), "ann", time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.expect(kg.View{Principal: principal("bob")})
}

// hiding is access that shows a graph to administrators only.
type hiding struct{ graph kg.Term }

func (h hiding) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return graph != h.graph || p.HasRole(kg.RoleAdmin) || p.Trusted()
}

// The listed and counted statements of a contradiction are bounded.
func TestTheSidesOfAContradiction(t *testing.T) {
	w := newWorld(t, kg.Options{})
	w.add("ann", `ex:p a owl:FunctionalProperty .`)
	said := 0
	for _, n := range []int{provenance.MaxSides, provenance.MaxSides + 1, provenance.MaxCountedSides, provenance.MaxCountedSides + 1} {
		var some []kg.Patch
		for ; said < n; said++ {
			some = append(some, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: ex("a"), Predicate: ex("p"), Object: kg.Integer(int64(said)), Graph: kg.DefaultGraph}})
		}
		w.write(principal("ann"), some...)
		found := w.search(w.view(kg.View{}), provenance.Search{Most: 100})
		if len(found.List) != 1 || len(found.List[0].Statements) != provenance.MaxSides || found.List[0].Total != min(n, provenance.MaxCountedSides) {
			t.Errorf("of %d: %+v", n, found)
		}
	}
}

// crowdedWorld is a random graph with contradictions of every kind.
func crowdedWorld(t *testing.T, r *rand.Rand, commits int) *world {
	w := newWorld(t, kg.Options{})
	node := func() string { return fmt.Sprintf("ex:n%d", r.IntN(12)) }
	w.add("ann", `ex:p0 a owl:FunctionalProperty . ex:p1 a owl:FunctionalProperty, owl:InverseFunctionalProperty . ex:p2 a owl:InverseFunctionalProperty .
		ex:C0 owl:disjointWith ex:C1 . ex:C1 owl:disjointWith ex:C0, ex:C2 . ex:C2 rdfs:subClassOf ex:C0 .`)
	w.put(`ex:S sh:targetClass ex:C0 ; sh:targetSubjectsOf ex:p1 ; sh:property [ sh:path ex:p2 ; sh:maxCount 1 ] , [ sh:path [ sh:inversePath ex:p0 ] ; sh:maxCount 2 ] .
		ex:T sh:targetNode ex:n1, ex:n2 ; sh:targetObjectsOf ex:p0 ; sh:property [ sh:path ex:p2 ; sh:maxCount 2 ] .`)
	for range commits {
		var b strings.Builder
		for range 12 {
			switch r.IntN(8) {
			case 0:
				fmt.Fprintf(&b, "%s a ex:C%d .\n", node(), r.IntN(3))
			case 1:
				fmt.Fprintf(&b, "%s owl:%s %s .\n", node(), []string{"sameAs", "differentFrom"}[r.IntN(2)], node())
			case 2, 3:
				fmt.Fprintf(&b, "%s ex:p%d %d .\n", node(), r.IntN(3), r.IntN(6))
			default:
				fmt.Fprintf(&b, "%s ex:p%d %s .\n", node(), r.IntN(3), node())
			}
		}
		graph := []kg.Term{kg.DefaultGraph, ex("g"), ex("h")}[r.IntN(3)]
		w.write(principal([]string{"ann", "bob"}[r.IntN(2)]), w.patches(kg.Add, b.String(), graph)...)
	}
	return w
}

// Pages of any size and budget together equal one page: nothing is missed or repeated,
// also while the graph changes.
func TestPagesOfContradictions(t *testing.T) {
	slowtest.Long(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	w := crowdedWorld(t, r, 6)
	const late = `ex:late ex:p0 0, ex:n1, ex:n2 .`
	for i, v := range []kg.View{{}, {Believed: []kg.AgentID{"agent://ann"}}, {Graphs: []kg.Term{kg.DefaultGraph, ex("g")}}, {At: w.Head().Revision - 2}} {
		v.Principal = principal("bob")
		s := w.view(v)
		whole := w.search(s, provenance.Search{Most: provenance.MaxContradictions})
		if whole.More || !whole.Complete || i == 0 && len(whole.List) < 8 {
			t.Fatalf("%d contradictions, %v, %v", len(whole.List), whole.More, whole.Complete)
		}
		want := inShort(whole.List)
		for i, text := range want {
			if slices.Contains(want[:i], text) {
				t.Errorf("twice: %s", text)
			}
		}
		if got := everyContradiction(w, s); !slices.Equal(slices.Sorted(slices.Values(want)), got) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		for _, size := range []int{1, 2, 3, 7, 50} {
			for _, compare := range []int{0, 1, 10, 100} {
				var got []string
				var at provenance.Cursor
				w.remove("cy", late)
				for pages := 0; ; pages++ {
					if pages > 10_000 {
						t.Fatal("the pages do not end")
					}
					switch pages % 8 { // other contradictions come and go meanwhile
					case 1:
						w.add("cy", late)
					case 5:
						w.remove("cy", late)
					}
					page := w.search(w.view(kg.View{Principal: v.Principal, Believed: v.Believed, Graphs: v.Graphs, At: s.Revision()}), provenance.Search{Most: size, After: at, Compare: compare})
					got = append(got, inShort(page.List)...)
					if len(page.List) > size || compare == 0 && !page.Complete || compare == 0 && page.More && len(page.List) < size {
						t.Fatalf("a page of %d: %+v", size, page)
					}
					if !page.More {
						break
					}
					var ok bool
					if at, ok = provenance.ParseCursor(page.End.Bytes()); !ok || at != page.End {
						t.Fatalf("%+v is not read back", page.End)
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("in pages of %d and %d: got\n%s\nwant\n%s", size, compare, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		}
	}
}

// everyContradiction finds the contradictions of a crowdedWorld with lists and loops,
// sorted.
func everyContradiction(w *world, s *kg.Snapshot) (out []string) {
	var all []kg.Statement
	for st, err := range s.Match(kg.Pattern{}) {
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, st)
	}
	owl := func(name string) kg.Term { return kg.IRI("http://www.w3.org/2002/07/owl#" + name) }
	typeOf := kg.IRI(kg.RDFType)
	find := func(s, p, o kg.Term) (list []kg.Statement) {
		for _, st := range all {
			if (kg.Pattern{Subject: s, Predicate: p, Object: o}).Matches(st.Quad) {
				list = append(list, st)
			}
		}
		return list
	}
	any := kg.Term{}
	declared := func(s, p, o kg.Term) bool { return len(find(s, p, o)) > 0 }
	var nodes []kg.Term
	for _, st := range all {
		for _, t := range []kg.Term{st.Subject, st.Object} {
			if !slices.Contains(nodes, t) {
				nodes = append(nodes, t)
			}
		}
	}
	report := func(kind provenance.Kind, about, property kg.Term, limit int, sides []kg.Statement, end func(kg.Quad) kg.Term) {
		seen := map[kg.Term]bool{}
		for _, st := range sides {
			seen[end(st.Quad)] = true
		}
		if len(seen) > limit {
			out = append(out, inShort([]provenance.Contradiction{{Kind: kind, About: about, Property: property, Statements: sides}})...)
		}
	}
	subject := func(q kg.Quad) kg.Term { return q.Subject }
	object := func(q kg.Quad) kg.Term { return q.Object }
	for _, n := range nodes {
		for i := range 3 {
			p := ex(fmt.Sprintf("p%d", i))
			if declared(p, typeOf, owl("FunctionalProperty")) && n.IsResource() {
				report(provenance.Functional, n, p, 1, find(n, p, any), object)
			}
			if declared(p, typeOf, owl("InverseFunctionalProperty")) {
				report(provenance.InverseFunctional, n, p, 1, find(any, p, n), subject)
			}
		}
		isS := n.IsResource() && (declared(n, ex("p1"), any) || declared(n, typeOf, ex("C0")) || declared(ex("C2"), kg.IRI("http://www.w3.org/2000/01/rdf-schema#subClassOf"), ex("C0")) && declared(n, typeOf, ex("C2")))
		isT := n == ex("n1") || n == ex("n2") || declared(any, ex("p0"), n)
		if isS {
			report(provenance.MaxCount, n, ex("p0"), 2, find(any, ex("p0"), n), subject)
		}
		if n.IsResource() && (isS || isT) {
			limit := 2
			if isS {
				limit = 1
			}
			report(provenance.MaxCount, n, ex("p2"), limit, find(n, ex("p2"), any), object)
		}
		for _, pair := range [][2]string{{"C0", "C1"}, {"C1", "C2"}} {
			a, b := ex(pair[0]), ex(pair[1])
			if n.IsResource() && (declared(a, owl("disjointWith"), b) || declared(b, owl("disjointWith"), a)) {
				report(provenance.Disjoint, n, typeOf, 1, append(find(n, typeOf, a), find(n, typeOf, b)...), object)
			}
		}
	}
	for i, a := range nodes {
		for j, b := range nodes {
			if !a.IsResource() || !b.IsResource() || j < i {
				continue
			}
			sides := append(find(a, owl("differentFrom"), b), find(a, owl("sameAs"), b)...)
			if a != b {
				sides = append(append(sides, find(b, owl("differentFrom"), a)...), find(b, owl("sameAs"), a)...)
			}
			about := a
			if !declared(a, owl("differentFrom"), b) || declared(b, owl("differentFrom"), a) && b.Compare(a) < 0 {
				about = b
			}
			has := func(p string) bool {
				return slices.ContainsFunc(sides, func(st kg.Statement) bool { return st.Predicate == owl(p) })
			}
			if has("differentFrom") && (a == b || has("sameAs")) {
				out = append(out, inShort([]provenance.Contradiction{{Kind: provenance.SameAndDifferent, About: about, Statements: sides}})...)
			}
		}
	}
	slices.Sort(out)
	return out
}

// The cost of a page depends on the part between its first and last contradiction, not
// on the part before.
func TestThePriceOfAPage(t *testing.T) {
	w := newWorld(t, kg.Options{})
	var b strings.Builder
	const subjects = 2_000
	for i := range subjects {
		fmt.Fprintf(&b, "ex:s%d ex:p %d, %d .\n", i, 2*i, 2*i+1)
	}
	w.add("ann", `ex:p a owl:FunctionalProperty .`+b.String())
	var at provenance.Cursor
	var pages, dearest, sum int64
	for more := true; more; pages++ {
		s := w.view(kg.View{})
		page := w.search(s, provenance.Search{Most: 20, After: at})
		read := s.StatementsRead()
		dearest, sum = max(dearest, read), sum+read
		more, at = page.More, page.End
	}
	if pages != subjects/20 || dearest > 500 || sum > 20*subjects {
		t.Errorf("%d pages read %d statements, the dearest %d", pages, sum, dearest)
	}
}

// An invalid cursor is refused.
func TestPlaceOf(t *testing.T) {
	whole := provenance.Cursor{}.Bytes()
	if _, ok := provenance.ParseCursor(whole); !ok || len(whole) != provenance.CursorBytes {
		t.Error("the beginning is not read back")
	}
	whole[0] = 6
	for _, b := range [][]byte{nil, whole[1:], append(whole, 0), whole} {
		if _, ok := provenance.ParseCursor(b); ok {
			t.Errorf("%x is read", b)
		}
	}
}
