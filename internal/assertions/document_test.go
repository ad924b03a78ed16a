package assertions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/internal/assertions"
	"koine/internal/rdf"
	"koine/kg"
)

const prologue = `@prefix ka: <https://koine.example/ns/assertion#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <urn:x:> .
`

// summary formats each statement of a document as one line.
func summary(t *testing.T, d *assertions.Document) (lines []string, err error) {
	for st, err := range d.Statements() {
		if err != nil {
			return lines, err
		}
		line := fmt.Sprint(st.Subject, " ", st.Predicate, " ", st.Object, " ", st.Graph)
		for _, a := range st.Assertions {
			line += fmt.Sprintf(" [%s %v %s]", a.Source, a.EffectiveCertainty(), a.Justification)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// TestDocument proves how documents by other producers are read.
func TestDocument(t *testing.T) {
	const about = `rdf:subject :s ; rdf:predicate :p ; rdf:object "o" ; `
	const by = `prov:wasAttributedTo <agent://ann> `
	for _, row := range []struct {
		name, text string
		format     rdf.Format
		want       []string // lines, or the end of an error
		fails      bool
		unasserted uint64
	}{
		{"the least", `:s :p "o" . [] a ka:Assertion ; ` + about + by + `.`, rdf.Turtle,
			[]string{`<urn:x:s> <urn:x:p> "o" DEFAULT [agent://ann 1 ]`}, false, 0},
		{"a bare agent", `:s :p "o" . [] a ka:Assertion ; ` + about + `prov:wasAttributedTo <agent://ann> ; ka:certainty 0.5 .`, rdf.Turtle,
			[]string{`<urn:x:s> <urn:x:p> "o" DEFAULT [agent://ann 0.5 ]`}, false, 0},
		{"two sources and a statement without any", `:s :p "o" , 1 . [] a ka:Assertion ; ` + about + by + `. [] a ka:Assertion ; ` + about + `prov:wasAttributedTo <agent://bob> .`, rdf.Turtle,
			[]string{`<urn:x:s> <urn:x:p> "o" DEFAULT [agent://ann 1 ] [agent://bob 1 ]`, `<urn:x:s> <urn:x:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> DEFAULT`}, false, 0},
		{"the same twice", `:s :p "o" . [] a ka:Assertion ; ` + about + by + `. [] a ka:Assertion ; ` + about + by + `.`, rdf.Turtle,
			[]string{`<urn:x:s> <urn:x:p> "o" DEFAULT [agent://ann 1 ]`}, false, 0},
		{"one triple in two graphs", `:s :p "o" . [] a ka:Assertion ; ` + about + by + `; ka:graph :g . [] a ka:Assertion ; ` + about + by + `; ka:graph :h .`, rdf.Turtle,
			[]string{`<urn:x:s> <urn:x:p> "o" <urn:x:g> [agent://ann 1 ]`, `<urn:x:s> <urn:x:p> "o" <urn:x:h> [agent://ann 1 ]`}, false, 0},
		{"a graph of its own", `:g { :s :p "o" } :meta { [] a ka:Assertion ; ` + about + by + `; ka:graph :g . }`, rdf.TriG,
			[]string{`<urn:x:s> <urn:x:p> "o" <urn:x:g> [agent://ann 1 ]`}, false, 0},
		{"another graph than the statement's", `:g { :s :p "o" } :meta { [] a ka:Assertion ; ` + about + by + `; ka:graph :h . }`, rdf.TriG,
			[]string{`<urn:x:s> <urn:x:p> "o" <urn:x:g>`}, false, 1},
		{"no such statement", `:s :p "other" . [] a ka:Assertion ; ` + about + by + `.`, rdf.Turtle,
			[]string{`<urn:x:s> <urn:x:p> "other" DEFAULT`}, false, 1},
		{"no description at all", `:s :p "o" . :x a rdf:Statement ; ` + about + by + `.`, rdf.Turtle, []string{
			`<urn:x:s> <urn:x:p> "o" DEFAULT`,
			`<urn:x:x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#object> "o" DEFAULT`,
			`<urn:x:x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#predicate> <urn:x:p> DEFAULT`,
			`<urn:x:x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#subject> <urn:x:s> DEFAULT`,
			`<urn:x:x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/1999/02/22-rdf-syntax-ns#Statement> DEFAULT`,
			`<urn:x:x> <http://www.w3.org/ns/prov#wasAttributedTo> <agent://ann> DEFAULT`}, false, 0},
		{"a known version", `ka: owl:versionInfo "1" . :s :p "o" .`, rdf.Turtle, []string{`<urn:x:s> <urn:x:p> "o" DEFAULT`}, false, 0},
		{"a newer version", `ka: owl:versionInfo "3" . :s :p "o" .`, rdf.Turtle, []string{"version 3 of the assertion vocabulary; this version of koine supports version 2"}, true, 0},
		{"two subjects", `:x a ka:Assertion ; rdf:subject :t ; ` + about + by + `.`, rdf.Turtle, []string{`<urn:x:x> of an assertion: more than one <http://www.w3.org/1999/02/22-rdf-syntax-ns#subject>`}, true, 0},
		{"no source", `:x a ka:Assertion ; ` + about + `.`, rdf.Turtle, []string{`<http://www.w3.org/ns/prov#wasAttributedTo> is missing`}, true, 0},
		{"a certainty of 2", `:x a ka:Assertion ; ` + about + by + `; ka:certainty 2 .`, rdf.Turtle, []string{"a certainty must be a number between 0 and 1"}, true, 0},
		{"a time without a zone", `:x a ka:Assertion ; ` + about + by + `; prov:generatedAtTime "2026-01-01T00:00:00"^^xsd:dateTime .`, rdf.Turtle, []string{"expected an xsd:dateTime with a time zone"}, true, 0},
		{"an agent that is a text", `:x a ka:Assertion ; ` + about + `prov:wasAttributedTo "ann" .`, rdf.Turtle, []string{"an agent must be an IRI"}, true, 0},
		{"a graph that is a text", `:x a ka:Assertion ; ` + about + by + `; ka:graph "g" .`, rdf.Turtle, []string{"a graph must be a resource"}, true, 0},
		{"a revision that is none", `:x a ka:Assertion ; ` + about + by + `; ka:revision -1 .`, rdf.Turtle, []string{"a revision must be a number"}, true, 0},
		{"an embedding that is none", `:x a ka:Assertion ; ` + about + by + `; ka:embedding "[1]" .`, rdf.Turtle, []string{"expected an embedding in JSON, with model and vector"}, true, 0},
		{"an embedding of zeros", `:x a ka:Assertion ; ` + about + by + `; ka:embedding "{\"model\":\"m\",\"vector\":[0]}" .`, rdf.Turtle, []string{"the numbers of an embedding are all 0: it has no direction"}, true, 0},
		{"an embedding that is a resource", `:x a ka:Assertion ; ` + about + by + `; ka:embedding :m .`, rdf.Turtle, []string{"expected an embedding in JSON, with model and vector"}, true, 0},
		{"a source that says two things", `:s :p "o" . [] a ka:Assertion ; ` + about + by + `. [] a ka:Assertion ; ` + about + by + `; ka:certainty 0.5 .`, rdf.Turtle,
			[]string{`two descriptions of the assertion by agent://ann of <urn:x:s> <urn:x:p> "o" differ`}, true, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := read(t, []byte(prologue+row.text), row.format)
			got, err := summary(t, d)
			if row.fails {
				if err == nil || !strings.HasSuffix(err.Error(), row.want[0]) || kg.CodeOf(err) == kg.CodeInternal {
					t.Fatalf("got %q and %v, want an error that ends with %q", got, err, row.want[0])
				}
				return
			}
			slices.Sort(got)
			slices.Sort(row.want)
			if err != nil || !slices.Equal(got, row.want) || d.Unasserted() != row.unasserted {
				t.Errorf("got %v, %d unasserted:\n%s\nwant %d:\n%s", err, d.Unasserted(), strings.Join(got, "\n"), row.unasserted, strings.Join(row.want, "\n"))
			}
		})
	}
}

// TestDocumentBounds proves that a statement has at most as many sources as a store
// allows, and that a node with many statements is data and not held in memory.
func TestDocumentBounds(t *testing.T) {
	document := func(sources int) string {
		var b strings.Builder
		b.WriteString(prologue + ":s :p 1 .\n")
		for i := range sources {
			fmt.Fprintf(&b, "[] a ka:Assertion ; rdf:subject :s ; rdf:predicate :p ; rdf:object 1 ; prov:wasAttributedTo <agent://a%d> .\n", i)
		}
		return b.String()
	}
	if lines, err := summary(t, read(t, []byte(document(kg.MaxAssertions)), rdf.Turtle)); err != nil || len(lines) != 1 {
		t.Errorf("%d sources: got %d statements, %v", kg.MaxAssertions, len(lines), err)
	}
	if _, err := summary(t, read(t, []byte(document(kg.MaxAssertions+1)), rdf.Turtle)); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("%d sources: got %v", kg.MaxAssertions+1, err)
	}
	var b strings.Builder
	b.WriteString(prologue + ":x a ka:Assertion ; rdf:object ")
	const objects = 1000
	for i := range objects {
		fmt.Fprintf(&b, "%d , ", i)
	}
	b.WriteString(":end .\n")
	lines, err := summary(t, read(t, []byte(b.String()), rdf.Turtle))
	if err != nil || len(lines) != objects+2 {
		t.Errorf("a node of %d statements: got %d, %v", objects+2, len(lines), err)
	}
}
