package shapes_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

// putSupported puts the supported parts of shapes and returns the omitted ones, one line
// each, with ex: for the namespace of the tests.
func putSupported(t testing.TB, store *kg.Store, turtle string) []string {
	t.Helper()
	quads, err := shapes.Parse(prefixes + turtle)
	if err != nil {
		t.Fatal(err)
	}
	r, left, err := shapes.PutSupported(slowtest.Context(t), store, kg.Meta{Principal: admin}, quads)
	if err != nil || !r.Committed {
		t.Fatalf("%s: %+v, %v", turtle, r, err)
	}
	return placesOf(left)
}

func placesOf(left []shapes.LeftOut) (out []string) {
	for _, l := range left {
		text := strings.TrimSuffix(l.String(), l.Reason)
		out = append(out, strings.TrimSuffix(strings.NewReplacer("<http://example.org/", "ex:", ">", "").Replace(text), ": "))
	}
	return out
}

const component = `ex:Component a sh:ConstraintComponent ;
	sh:parameter [ sh:path ex:lang ; sh:datatype xsd:string ] ;
	sh:validator [ a sh:SPARQLAskValidator ; sh:ask "ASK { FILTER (lang($value) = $lang) }" ] .`

// Unsupported terms of SHACL are rejected with name and location, and omitted with
// PutSupported. The supported parts take effect.
func TestNothingPassesSilently(t *testing.T) {
	slowtest.Long(t)
	const judged = ` sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:minCount 1 ] . `
	for _, row := range []struct {
		name, shapes string
		left         []string
	}{
		{"a constraint in SPARQL", `ex:S a sh:NodeShape ; sh:sparql [ a sh:SPARQLConstraint ; sh:select "SELECT $this WHERE {}" ; sh:prefixes ex: ] ; ` + judged, []string{"ex:S: sh:sparql"}},
		{"a constraint in SPARQL with a name", `ex:S a sh:NodeShape ; sh:sparql ex:Q ; ` + judged + ` ex:Q a sh:SPARQLConstraint ; sh:select "" .`, []string{"ex:S: sh:sparql"}},
		{"one in a property", `ex:S a sh:NodeShape ; sh:property [ sh:path ex:q ; sh:sparql [ sh:select "" ] ] ; ` + judged, []string{"ex:S: sh:property: property ex:q: sh:sparql"}},
		{"a shape that is nothing else", `ex:S a sh:NodeShape ; ` + judged + ` ex:T sh:sparql [ sh:ask "" ] .`, []string{"ex:T: sh:sparql"}},
		{"a component that is declared", `ex:S a sh:NodeShape ; ` + judged + component, []string{"ex:Component: sh:ConstraintComponent"}},
		{"a component that is used", `ex:S a sh:NodeShape ; ex:lang "en" ; ` + judged + component, []string{"ex:Component: sh:ConstraintComponent", "ex:S: ex:lang"}},
		{"a component used in a property", `ex:S a sh:NodeShape ; sh:property [ sh:path ex:q ; ex:lang "en" ] ; ` + judged + component, []string{"ex:Component: sh:ConstraintComponent", "ex:S: sh:property: property ex:q: ex:lang"}},
		{"a component of a class below", `ex:S a sh:NodeShape ; ex:lang "en" ; ` + judged + `ex:Kind rdfs:subClassOf sh:ConstraintComponent . ex:Component a ex:Kind ; sh:parameter ex:P . ex:P a sh:Parameter ; sh:path ex:lang .`, []string{"ex:Component: sh:ConstraintComponent", "ex:S: ex:lang"}},
		{"a component without a class", `ex:S a sh:NodeShape ; ex:lang "en" ; ` + judged + `ex:Component sh:parameter [ sh:path ex:lang ] ; sh:nodeValidator [ sh:ask "" ] .`, []string{"ex:Component: sh:nodeValidator", "ex:Component: sh:parameter", "ex:S: ex:lang"}},
		{"a target in SPARQL", `ex:S a sh:NodeShape ; sh:target [ a sh:SPARQLTarget ; sh:select "" ] ; ` + judged, []string{"ex:S: sh:target"}},
		{"a type of targets", `ex:S a sh:NodeShape ; ` + judged + `ex:T a sh:SPARQLTargetType ; sh:select "" .`, []string{"ex:T: sh:SPARQLTargetType"}},
		{"rules", `ex:S a sh:NodeShape ; sh:rule [ a sh:TripleRule ; sh:subject sh:this ; sh:predicate ex:p ; sh:object ex:o ] ; ` + judged, []string{"ex:S: sh:rule"}},
		{"JavaScript", `ex:S a sh:NodeShape ; sh:js [ a sh:JSConstraint ; sh:jsFunctionName "f" ] ; ` + judged, []string{"ex:S: sh:js"}},
		{"a function", `ex:S a sh:NodeShape ; ` + judged + `ex:f a sh:SPARQLFunction ; sh:returnType xsd:string ; sh:select "" .`, []string{"ex:f: sh:SPARQLFunction"}},
		{"node expressions", `ex:S a sh:NodeShape ; sh:expression [ sh:path ex:p ] ; sh:property [ sh:path ex:q ; sh:values [ sh:union ( ex:a ex:b ) ] ] ; ` + judged, []string{"ex:S: sh:expression", "ex:S: sh:property: property ex:q: sh:values"}},
		{"entailment", `ex:S a sh:NodeShape ; ` + judged + `ex:Graph sh:entailment <http://www.w3.org/ns/entailment/RDFS> .`, []string{"ex:Graph: sh:entailment"}},
		{"shapes that are elsewhere", `ex:S a sh:NodeShape ; ` + judged + `ex:Graph <http://www.w3.org/2002/07/owl#imports> ex:Other .`, []string{"ex:Graph: <http://www.w3.org/2002/07/owl#imports"}},
		{"a property that is none", `ex:S a sh:NodeShape ; sh:minCuont 1 ; ` + judged, []string{"ex:S: sh:minCuont"}},
		{"a property that is none, of nothing else", `ex:S a sh:NodeShape ; ` + judged + `ex:T sh:claas ex:D .`, []string{"ex:T: sh:claas"}},
		{"a class that is none", `ex:S a sh:NodeShape ; ` + judged + `ex:T a sh:NodeShap ; ex:q 1 .`, []string{"ex:T: sh:NodeShap"}},
		{"a severity that is none", `ex:S a sh:NodeShape ; sh:severity sh:Violaton ; ` + judged, []string{"ex:S: sh:severity"}},
		// The shapes of shapes (SHACL, appendix B).
		{"a target that is a blank node", `ex:S a sh:NodeShape ; sh:targetNode [] ; ` + judged, []string{"ex:S: sh:targetNode"}},
		{"a target class that is a text", `ex:S a sh:NodeShape ; sh:targetClass "C" ; ` + judged, []string{"ex:S: sh:targetClass"}},
		{"a message that is a node", `ex:S a sh:NodeShape ; sh:message ex:m ; ` + judged, []string{"ex:S: sh:message"}},
		{"a switch that is a number", `ex:S a sh:NodeShape ; sh:deactivated "0"^^xsd:boolean ; ` + judged, []string{"ex:S: sh:deactivated"}},
		{"a language that is none", `ex:S a sh:NodeShape ; sh:property [ sh:path ex:q ; sh:languageIn ( "en" 5 ) ] ; ` + judged, []string{"ex:S: sh:property: property ex:q: sh:languageIn"}},
		{"a pattern in a language", `ex:S a sh:NodeShape ; sh:property [ sh:path ex:q ; sh:pattern "a"@en ; sh:flags "i"@en ] ; ` + judged, []string{"ex:S: sh:property: property ex:q: sh:flags", "ex:S: sh:property: property ex:q: sh:pattern"}},
		{"properties that are texts", `ex:S a sh:NodeShape ; sh:ignoredProperties ( "p" ) ; ` + judged, []string{"ex:S: sh:ignoredProperties"}},
		{"a property shape as a node", `ex:S a sh:NodeShape ; sh:node [ sh:path ex:q ; sh:maxCount 9 ] ; ` + judged, []string{"ex:S: sh:node"}},
		{"qualified twice", `ex:S a sh:NodeShape ; sh:property [ sh:path ex:q ; sh:qualifiedValueShape [ sh:class ex:D ], [ sh:class ex:E ] ; sh:qualifiedMinCount 0 ] ; ` + judged, []string{"ex:S: sh:property: property ex:q: sh:qualifiedValueShape"}},
		{"a count that is none", `ex:S a sh:NodeShape ; sh:property [ sh:path ex:q ; sh:minCount "one" ] ; ` + judged, []string{"ex:S: sh:property: property ex:q: sh:minCount"}},
		{"a list that is none", `ex:S a sh:NodeShape ; sh:in ex:l ; ` + judged, []string{"ex:S: sh:in"}},
		{"two paths", `ex:S a sh:NodeShape ; sh:property [ sh:path ex:q, ex:r ; sh:minCount 1 ] ; ` + judged, []string{"ex:S: sh:property"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			quads, err := shapes.Parse(prefixes + row.shapes)
			if err != nil {
				t.Fatal(err)
			}
			store, set := judgedStore(t, kg.Options{})
			_, err = shapes.Put(slowtest.Context(t), store, kg.Meta{Principal: admin}, quads)
			if message := strings.NewReplacer("<http://example.org/", "ex:", ">", "").Replace(fmt.Sprint(err)); kg.CodeOf(err) != kg.CodeInvalid || !slices.ContainsFunc(row.left, func(l string) bool { return strings.Contains(message, l+": ") }) ||
				!strings.Contains(kg.AsError(err).Hint, "--supported-only") {
				t.Errorf("got %v", err)
			}
			if left := keptShapes(t, store); len(left) > 0 {
				t.Errorf("%d statements are kept", len(left))
			}
			if got := putSupported(t, store, row.shapes); !slices.Equal(got, row.left) {
				t.Errorf("left out are %q, want %q", got, row.left)
			}
			if got := placesOf(set.LeftOut()); !slices.Equal(got, row.left) {
				t.Errorf("listed as left out are %q, want %q", got, row.left)
			}
			refuses(t, store, `ex:a a ex:C .`, "has 0 of at least 1")
			accepts(t, store, `ex:a a ex:C ; ex:p 1 .`)
		})
	}
}

// Omitting a part never makes a shape stricter: constraints that would become stricter
// are omitted as well.
func TestLeavingOutRefusesNothingMore(t *testing.T) {
	slowtest.Long(t)
	const query = `sh:sparql [ sh:select "" ]`
	for _, row := range []struct {
		name, shapes string
		left         []string
		refused      bool // a node ex:a of the class with ex:p 1
	}{
		{"and", `sh:and ( [ sh:class ex:D ; ` + query + ` ] )`, []string{"ex:S: sh:and: sh:sparql"}, true},
		{"and of nothing else", `sh:and ( [ ` + query + ` ] )`, []string{"ex:S: sh:and: sh:sparql"}, false},
		{"node", `sh:node [ sh:class ex:D ; ` + query + ` ]`, []string{"ex:S: sh:node: sh:sparql"}, true},
		{"or", `sh:or ( [ sh:class ex:D ; ` + query + ` ] [ sh:class ex:E ] )`, []string{"ex:S: sh:or: sh:sparql"}, true},
		{"or of nothing else", `sh:or ( [ ` + query + ` ] [ sh:class ex:E ] )`, []string{"ex:S: sh:or: sh:sparql"}, false},
		{"not", `sh:not [ sh:class ex:C ; ` + query + ` ]`, []string{"ex:S: sh:not", "ex:S: sh:not: sh:sparql"}, false},
		{"not of not", `sh:not [ sh:not [ sh:class ex:D ; ` + query + ` ] ]`, []string{"ex:S: sh:not", "ex:S: sh:not: sh:not", "ex:S: sh:not: sh:not: sh:sparql"}, false},
		{"not of a shape with a name", `sh:not ex:T . ex:T a sh:NodeShape ; sh:property [ sh:path ex:p ; sh:minCount 1 ; ` + query + ` ]`, []string{"ex:S: sh:not", "ex:T: sh:property: property ex:p: sh:sparql"}, false},
		{"xone", `sh:xone ( [ sh:class ex:C ; ` + query + ` ] [ sh:class ex:C ] )`, []string{"ex:S: sh:xone", "ex:S: sh:xone: sh:sparql"}, false},
		{"qualified, at most", `sh:property [ sh:path ex:p ; sh:qualifiedValueShape [ ` + query + ` ] ; sh:qualifiedMaxCount 0 ]`, []string{"ex:S: sh:property: property ex:p: sh:qualifiedValueShape", "ex:S: sh:property: property ex:p: sh:qualifiedValueShape: sh:sparql"}, false},
		{"qualified, at least", `sh:property [ sh:path ex:p ; sh:qualifiedValueShape [ sh:class ex:D ; ` + query + ` ] ; sh:qualifiedMinCount 1 ]`, []string{"ex:S: sh:property: property ex:p: sh:qualifiedValueShape: sh:sparql"}, true},
		{"a closed shape with properties that cannot be read", `sh:closed true ; sh:ignoredProperties ( rdf:type "p" )`, []string{"ex:S: sh:closed", "ex:S: sh:ignoredProperties"}, false},
		{"a pattern with flags that cannot be read", `sh:property [ sh:path ex:p ; sh:pattern "A" ; sh:flags "y" ]`, []string{"ex:S: sh:property: property ex:p: sh:pattern"}, false},
		{"a severity that cannot be read", `sh:class ex:D ; sh:severity "low"`, []string{"ex:S: sh:severity"}, false},
		{"a switch that cannot be read", `sh:class ex:D ; sh:deactivated "yes"`, []string{"ex:S: sh:deactivated"}, false},
		{"a computed target", `sh:class ex:D ; sh:target [ a sh:SPARQLTarget ]`, []string{"ex:S: sh:target"}, true},
		{"not of a shape with a target that is computed", `sh:not [ sh:class ex:C ; sh:target [ a sh:SPARQLTarget ] ]`, []string{"ex:S: sh:not: sh:target"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			store, _ := judgedStore(t, kg.Options{})
			if got := putSupported(t, store, `ex:S a sh:NodeShape ; sh:targetClass ex:C ; `+row.shapes+` .`); !slices.Equal(got, row.left) {
				t.Errorf("left out are %q, want %q", got, row.left)
			}
			r, err := write(t, store, by("ann"), parse(t, `ex:a a ex:C ; ex:p 1 .`, kg.DefaultGraph), nil)
			if err != nil || (r.Verdict.Outcome == kg.Rejected) != row.refused {
				t.Errorf("got %+v, %v", r.Verdict, err)
			}
		})
	}
}

// Put rejects shapes for their own issues and for those that they cause in others, not
// for issues that existed before.
func TestWhatIsLeftOutAlready(t *testing.T) {
	store, set := judgedStore(t, kg.Options{})
	const old = `ex:S a sh:NodeShape ; sh:targetClass ex:C ; sh:sparql [ sh:ask "" ] .`
	putSupported(t, store, old)
	put(t, store, `ex:T a sh:NodeShape ; sh:targetClass ex:D ; sh:class ex:E ; ex:lang "en" .`)
	refusedPut := func(text string) error {
		quads, err := shapes.Parse(prefixes + text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = shapes.Put(slowtest.Context(t), store, kg.Meta{Principal: admin}, quads)
		return err
	}
	if err := refusedPut(old); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("the same again: got %v", err)
	}
	if err := refusedPut(`ex:U a sh:NodeShape ; sh:not ex:S .`); kg.CodeOf(err) != kg.CodeInvalid || !strings.Contains(err.Error(), "ex") || !strings.Contains(err.Error(), "U>: sh:not") {
		t.Errorf("the negation of what is left out: got %v", err)
	}
	if got, want := putSupported(t, store, component), []string{"ex:Component: sh:ConstraintComponent", "ex:T: ex:lang"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, s := range set.List() {
		if want := map[kg.Term]int{ex("S"): 1, ex("T"): 1}[s.ID]; len(s.LeftOut) != want {
			t.Errorf("%s: left out are %v", s.ID, s.LeftOut)
		}
	}
	if _, err := shapes.Remove(slowtest.Context(t), store, kg.Meta{Principal: admin}, []kg.Term{ex("S"), ex("Component")}); err != nil {
		t.Fatal(err)
	}
	if left := set.LeftOut(); len(left) > 0 {
		t.Errorf("got %v", left)
	}
}

// Shapes that an older build stored, and Put rejects today, keep their effect; a start
// logs one warning.
func TestShapesOfBefore(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	set := &shapes.Set{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	store := openJudged(t, dir, set, kg.Options{})
	before := parse(t, component+`
		ex:S a sh:NodeShape ; sh:targetClass ex:C ; ex:lang "en" ; sh:property [ sh:path ex:p ; sh:pattern "^a"@en ; sh:minCount 1 ] .
		ex:T a sh:NodeShape ; sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:minCount "one" ] .`, kg.ShapesGraph)
	if _, err := write(t, store, kg.Meta{Principal: kg.SystemPrincipal()}, before, nil); err != nil {
		t.Fatal(err)
	}
	store.Close()
	if log.Len() > 0 {
		t.Errorf("before the start: %s", &log)
	}
	store = openJudged(t, dir, set, kg.Options{})
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "things=4") {
		t.Errorf("the log has\n%s", &log)
	}
	want := []string{"ex:Component: sh:ConstraintComponent", "ex:S: ex:lang", "ex:S: sh:property: property ex:p: sh:pattern", "ex:T: sh:property: property ex:p: sh:minCount"}
	if got := placesOf(set.LeftOut()); !slices.Equal(got, want) {
		t.Errorf("left out are %q, want %q", got, want)
	}
	refuses(t, store, `ex:a a ex:C .`, "has 0 of at least 1")
	refuses(t, store, `ex:a a ex:C ; ex:p "b" .`, "does not match")
	accepts(t, store, `ex:a a ex:C ; ex:p "ab" .`)
	if _, err := shapes.Remove(slowtest.Context(t), store, kg.Meta{Principal: admin}, []kg.Term{ex("T")}); err != nil {
		t.Error(err)
	}
}

func TestBoundOfWhatIsLeftOut(t *testing.T) {
	many := func(n int) []kg.Quad {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "ex:S%d a sh:NodeShape ; sh:class \"%d\" .\n", i, i)
		}
		quads, err := shapes.Parse(prefixes + b.String())
		if err != nil {
			t.Fatal(err)
		}
		return quads
	}
	store, set := judgedStore(t, kg.Options{})
	_, _, err := shapes.PutSupported(slowtest.Context(t), store, kg.Meta{Principal: admin}, many(shapes.MaxLeftOut+1))
	if kg.CodeOf(err) != kg.CodeLimitExceeded || !strings.Contains(err.Error(), "1001 parts would be left out") {
		t.Errorf("got %v", err)
	}
	if _, left, err := shapes.PutSupported(slowtest.Context(t), store, kg.Meta{Principal: admin}, many(shapes.MaxLeftOut)); err != nil || len(left) != shapes.MaxLeftOut {
		t.Errorf("%d are left out, %v", len(left), err)
	}
	over := &shapes.Set{}
	if _, err := write(t, store, kg.Meta{Principal: kg.SystemPrincipal()}, parse(t, `ex:Last a sh:NodeShape ; sh:class "x" .`, kg.ShapesGraph), nil); err != nil {
		t.Fatal(err)
	}
	if err := over.Load(slowtest.Context(t), store); err != nil {
		t.Fatal(err)
	}
	if left := set.LeftOut(); len(left) != shapes.MaxLeftOut+1 || left[shapes.MaxLeftOut].String() != "and: 1 more" {
		t.Errorf("%d are listed", len(left))
	}
}
