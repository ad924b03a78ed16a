package shapes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

// Each component of SHACL core, by our own cases in the order of the recommendation: conforming and
// violating nodes. The cases of the W3C suite are not part of this repository;
// docs/decisions/verification.md lists the supported parts of core.
func TestCoreComponents(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	for i, c := range coreCases {
		t.Run(c.name, func(t *testing.T) {
			graph := kg.IRI(fmt.Sprintf("http://example.org/graph/%d", i))
			if quads := parse(t, c.data, graph); len(quads) > 0 {
				if _, err := write(t, store, kg.Meta{}, quads, nil); err != nil {
					t.Fatal(err)
				}
			}
			snapshot, err := store.View(slowtest.Context(t), kg.View{Graphs: []kg.Term{graph}})
			if err != nil {
				t.Fatal(err)
			}
			defer snapshot.Close()
			r, err := shapes.Validate(slowtest.Context(t), snapshot, parse(t, c.shapes, kg.ShapesGraph), shapes.ReportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(r.Findings); !slices.Equal(got, sortedLines(c.want)) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(sortedLines(c.want), "\n"))
			}
			if r.Conforms != (len(c.want) == 0) || !r.Complete {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// lines formats findings as "focus path value component", with the severity unless it is
// sh:Violation, and with ex: for the namespace of the tests.
func lines(list []shapes.Finding) (out []string) {
	for _, f := range list {
		value := "-"
		if !f.Value.IsZero() {
			value = spelled(f.Value)
		}
		path := f.Path
		if path == "" {
			path = "-"
		}
		line := spelled(f.Focus) + " " + path + " " + value + " " + strings.TrimSuffix(strings.TrimPrefix(f.Component, "http://www.w3.org/ns/shacl#"), "ConstraintComponent")
		if f.Severity != shapes.Violation {
			line += " " + f.Severity.Value()
		}
		line = strings.NewReplacer("<http://example.org/", "ex:", "http://example.org/", "ex:", ">", "").Replace(line)
		out = append(out, line)
	}
	return sortedLines(out)
}

// spelled writes integers as Turtle does.
func spelled(t kg.Term) string {
	if _, isNumber := t.Number(); isNumber && t.Datatype() == kg.XSDInteger {
		return t.Value()
	}
	return t.String()
}

func sortedLines(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

var coreCases = []struct {
	name, shapes, data string
	want               []string
}{
	// Targets (section 2.1.3).
	{"target node", `ex:S sh:targetNode ex:a, "text" ; sh:nodeKind sh:BlankNode .`, ``, []string{"ex:a - ex:a NodeKind", `"text" - "text" NodeKind`}},
	{"target class with those below", `ex:S sh:targetClass ex:C ; sh:nodeKind sh:Literal .`, `ex:a a ex:C . ex:b a ex:D . ex:D rdfs:subClassOf ex:E . ex:E rdfs:subClassOf ex:C . ex:c a ex:F .`, []string{"ex:a - ex:a NodeKind", "ex:b - ex:b NodeKind"}},
	{"target class on a cycle of classes", `ex:S sh:targetClass ex:C ; sh:nodeKind sh:Literal .`, `ex:a a ex:D . ex:D rdfs:subClassOf ex:C . ex:C rdfs:subClassOf ex:D .`, []string{"ex:a - ex:a NodeKind"}},
	{"implicit class target", `ex:C a rdfs:Class, sh:NodeShape ; sh:nodeKind sh:Literal .`, `ex:a a ex:C .`, []string{"ex:a - ex:a NodeKind"}},
	{"target subjects of", `ex:S sh:targetSubjectsOf ex:p ; sh:nodeKind sh:Literal .`, `ex:a ex:p 1, 2 . ex:b ex:q 1 .`, []string{"ex:a - ex:a NodeKind"}},
	{"target objects of", `ex:S sh:targetObjectsOf ex:p ; sh:nodeKind sh:IRI .`, `ex:a ex:p 1 . ex:b ex:p ex:c .`, []string{"1 - 1 NodeKind"}},
	{"several targets judge a node once", `ex:S sh:targetNode ex:a ; sh:targetClass ex:C ; sh:nodeKind sh:Literal .`, `ex:a a ex:C .`, []string{"ex:a - ex:a NodeKind"}},
	{"no target", `ex:S a sh:NodeShape ; sh:nodeKind sh:Literal .`, `ex:a a ex:C .`, nil},
	{"a literal target of a property shape", `ex:S a sh:PropertyShape ; sh:targetNode "x" ; sh:path ex:p ; sh:minCount 1 .`, ``, []string{`"x" ex:p - MinCount`}},
	// Severity, deactivated, message.
	{"severity", `ex:S sh:targetNode ex:a ; sh:nodeKind sh:Literal ; sh:severity sh:Warning .`, ``, []string{"ex:a - ex:a NodeKind http://www.w3.org/ns/shacl#Warning"}},
	{"severity of a property", `ex:S sh:targetNode ex:a ; sh:severity sh:Info ; sh:property [ sh:path ex:p ; sh:minCount 1 ] .`, ``, []string{"ex:a ex:p - MinCount"}},
	{"a severity of one's own", `ex:S sh:targetNode ex:a ; sh:nodeKind sh:Literal ; sh:severity ex:Grave .`, ``, []string{"ex:a - ex:a NodeKind ex:Grave"}},
	{"deactivated", `ex:S sh:targetNode ex:a ; sh:nodeKind sh:Literal ; sh:deactivated true .`, ``, nil},
	{"deactivated inside", `ex:S sh:targetNode ex:a ; sh:property [ sh:path ex:p ; sh:minCount 1 ; sh:deactivated true ] ; sh:not [ sh:class ex:C ; sh:deactivated true ] .`, ``, []string{"ex:a - ex:a Not"}},
	{"what describes only", `ex:S sh:targetNode ex:a ; sh:property [ sh:path ex:p ; sh:name "p" ; sh:description "d" ; sh:order 1 ; sh:group ex:g ; sh:defaultValue 1 ; rdfs:comment "c" ] .`, ``, nil},
	// Paths (section 2.3.1).
	{"sequence path", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ( ex:p ex:q ) ; sh:in ( 1 ) .`, `ex:a ex:p ex:b, ex:c . ex:b ex:q 1, 2 . ex:c ex:q 2 .`, []string{"ex:a ex:p/ex:q 2 In"}},
	{"alternative path", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path [ sh:alternativePath ( ex:p ex:q ) ] ; sh:in ( 1 ) .`, `ex:a ex:p 2 ; ex:q 3, 2 .`, []string{"ex:a ex:p|ex:q 2 In", "ex:a ex:p|ex:q 3 In"}},
	{"inverse path", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path [ sh:inversePath ex:p ] ; sh:in ( ex:b ) .`, `ex:b ex:p ex:a . ex:c ex:p ex:a .`, []string{"ex:a ^ex:p ex:c In"}},
	{"inverse of a sequence", `ex:S a sh:PropertyShape ; sh:targetNode ex:c ; sh:path [ sh:inversePath ( ex:p ex:q ) ] ; sh:nodeKind sh:Literal .`, `ex:a ex:p ex:b . ex:b ex:q ex:c .`, []string{"ex:c ^ex:q/^ex:p ex:a NodeKind"}},
	{"zero or more", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path [ sh:zeroOrMorePath ex:p ] ; sh:nodeKind sh:Literal .`, `ex:a ex:p ex:b . ex:b ex:p ex:a .`, []string{"ex:a (ex:p)* ex:a NodeKind", "ex:a (ex:p)* ex:b NodeKind"}},
	{"one or more", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path [ sh:oneOrMorePath ex:p ] ; sh:nodeKind sh:Literal .`, `ex:a ex:p ex:b . ex:b ex:p ex:c .`, []string{"ex:a (ex:p)+ ex:b NodeKind", "ex:a (ex:p)+ ex:c NodeKind"}},
	{"zero or one", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path [ sh:zeroOrOnePath ex:p ] ; sh:nodeKind sh:Literal .`, `ex:a ex:p ex:b . ex:b ex:p ex:c .`, []string{"ex:a (ex:p)? ex:a NodeKind", "ex:a (ex:p)? ex:b NodeKind"}},
	{"a sequence that gives a value twice", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ( ex:p ex:q ) ; sh:maxCount 1 .`, `ex:a ex:p ex:b, ex:c . ex:b ex:q 1 . ex:c ex:q 1 .`, nil},
	{"a path that nothing has", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:unknown ; sh:nodeKind sh:IRI ; sh:maxCount 0 .`, ``, nil},
	// Value types (section 4.1).
	{"class", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:class ex:C .`, `ex:a ex:p ex:b, ex:c, 1 . ex:b a ex:D . ex:D rdfs:subClassOf ex:C . ex:c a ex:E .`, []string{"ex:a ex:p ex:c Class", "ex:a ex:p 1 Class"}},
	{"several classes", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:class ex:C, ex:D .`, `ex:a ex:p ex:b . ex:b a ex:C .`, []string{"ex:a ex:p ex:b Class"}},
	{"datatype", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:datatype xsd:integer .`, `ex:a ex:p 1, "1", ex:b, "x"^^xsd:integer .`, []string{`ex:a ex:p "1" Datatype`, "ex:a ex:p ex:b Datatype", `ex:a ex:p "x"^^<http://www.w3.org/2001/XMLSchema#integer Datatype`}},
	{"datatype with bounds", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:datatype xsd:byte .`, `ex:a ex:p "127"^^xsd:byte, "128"^^xsd:byte .`, []string{`ex:a ex:p "128"^^<http://www.w3.org/2001/XMLSchema#byte Datatype`}},
	{"datatype of a date that is none", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:datatype xsd:date .`, `ex:a ex:p "2024-02-29"^^xsd:date, "2023-02-29"^^xsd:date .`, []string{`ex:a ex:p "2023-02-29"^^<http://www.w3.org/2001/XMLSchema#date Datatype`}},
	{"datatype of a text in a language", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:datatype rdf:langString .`, `ex:a ex:p "x"@en, "x" .`, []string{`ex:a ex:p "x" Datatype`}},
	{"node kinds", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:nodeKind sh:IRIOrLiteral . ex:T a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:q ; sh:nodeKind sh:BlankNodeOrIRI . ex:U a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:r ; sh:nodeKind sh:BlankNodeOrLiteral .`,
		`ex:a ex:p ex:b, 1 ; ex:q ex:b, 1, [] ; ex:r ex:b, 1, [] .`, []string{"ex:a ex:q 1 NodeKind", "ex:a ex:r ex:b NodeKind"}},
	// Cardinality (4.2).
	{"counts", `ex:S a sh:PropertyShape ; sh:targetNode ex:a, ex:b, ex:c ; sh:path ex:p ; sh:minCount 1 ; sh:maxCount 2 .`, `ex:b ex:p 1, 2 . ex:c ex:p 1, 2, 3 .`, []string{"ex:a ex:p - MinCount", "ex:c ex:p - MaxCount"}},
	// Ranges (4.3).
	{"inclusive bounds", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:minInclusive 1 ; sh:maxInclusive 3 .`, `ex:a ex:p 0, 1, 3.0, 3.1e0, "2", ex:b .`,
		[]string{"ex:a ex:p 0 MinInclusive", `ex:a ex:p "2" MinInclusive`, "ex:a ex:p ex:b MinInclusive", `ex:a ex:p "3.1e0"^^<http://www.w3.org/2001/XMLSchema#double MaxInclusive`, `ex:a ex:p "2" MaxInclusive`, "ex:a ex:p ex:b MaxInclusive"}},
	{"exclusive bounds", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:minExclusive 1 ; sh:maxExclusive 3 .`, `ex:a ex:p 1, 2, 3 .`, []string{"ex:a ex:p 1 MinExclusive", "ex:a ex:p 3 MaxExclusive"}},
	{"integers beyond doubles", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:maxInclusive 9007199254740992 .`, `ex:a ex:p 9007199254740993 .`, []string{"ex:a ex:p 9007199254740993 MaxInclusive"}},
	{"moments with and without a zone", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:minInclusive "2002-10-10T12:00:00-05:00"^^xsd:dateTime .`,
		`ex:a ex:p "2002-10-10T17:00:00Z"^^xsd:dateTime, "2002-10-10T16:59:59Z"^^xsd:dateTime, "2002-10-10T18:00:00"^^xsd:dateTime, "2002-10-12T18:00:00"^^xsd:dateTime .`,
		[]string{`ex:a ex:p "2002-10-10T16:59:59Z"^^<http://www.w3.org/2001/XMLSchema#dateTime MinInclusive`, `ex:a ex:p "2002-10-10T18:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime MinInclusive`,
			`ex:a ex:p "2002-10-12T18:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime MinInclusive`}},
	{"times of the day", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:datatype xsd:time ; sh:maxExclusive "12:00:00"^^xsd:time .`, `ex:a ex:p "11:59:59.5"^^xsd:time, "12:00:00"^^xsd:time, "11:00:00Z"^^xsd:time .`,
		[]string{`ex:a ex:p "12:00:00"^^<http://www.w3.org/2001/XMLSchema#time MaxExclusive`, `ex:a ex:p "11:00:00Z"^^<http://www.w3.org/2001/XMLSchema#time MaxExclusive`}},
	{"what is none of its datatype has no order", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:minInclusive 1 .`, `ex:a ex:p "300"^^xsd:byte, "100"^^xsd:byte .`, []string{`ex:a ex:p "300"^^<http://www.w3.org/2001/XMLSchema#byte MinInclusive`}},
	{"the end of a day", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:datatype xsd:dateTime ; sh:minInclusive "2024-01-01T00:00:00Z"^^xsd:dateTime ; sh:maxExclusive "2024-12-31T24:00:00Z"^^xsd:dateTime .`,
		`ex:a ex:p "2023-12-31T24:00:00Z"^^xsd:dateTime, "2023-12-31T23:59:59Z"^^xsd:dateTime, "2024-12-31T23:59:59Z"^^xsd:dateTime, "2025-01-01T00:00:00Z"^^xsd:dateTime .`,
		[]string{`ex:a ex:p "2023-12-31T23:59:59Z"^^<http://www.w3.org/2001/XMLSchema#dateTime MinInclusive`, `ex:a ex:p "2025-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime MaxExclusive`}},
	{"no end of a day", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:datatype xsd:dateTime .`, `ex:a ex:p "2023-12-31T24:00:00.0Z"^^xsd:dateTime, "2023-12-31T24:00:00.5Z"^^xsd:dateTime, "2023-02-30T24:00:00Z"^^xsd:dateTime .`,
		[]string{`ex:a ex:p "2023-12-31T24:00:00.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime Datatype`, `ex:a ex:p "2023-02-30T24:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime Datatype`}},
	{"pairs of times at the end of a day", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:lessThan ex:q .`, `ex:a ex:p "2023-12-31T24:00:00Z"^^xsd:dateTime ; ex:q "2024-01-01T00:00:00Z"^^xsd:dateTime .`, []string{`ex:a ex:p "2023-12-31T24:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime LessThan`}},
	// Strings (4.4).
	{"lengths", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:minLength 2 ; sh:maxLength 3 .`, `ex:a ex:p "é", "éé", "abcd"@en, 12345 .`, []string{`ex:a ex:p "é" MinLength`, `ex:a ex:p "abcd"@en MaxLength`, "ex:a ex:p 12345 MaxLength"}},
	{"a blank node has no length", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:node [ sh:not [ sh:minLength 0 ] ] .`, `ex:a ex:p [] .`, nil},
	{"pattern", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:pattern "^a.c$" .`, `ex:a ex:p "abc", "ABC", "xabc" .`, []string{`ex:a ex:p "ABC" Pattern`, `ex:a ex:p "xabc" Pattern`}},
	{"pattern with flags", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:pattern "^ A . C $" ; sh:flags "ix" .`, `ex:a ex:p "abc", "a c", "ab" .`, []string{`ex:a ex:p "ab" Pattern`}},
	{"pattern taken as it is", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:pattern "a.c" ; sh:flags "q" .`, `ex:a ex:p "a.c", "abc" .`, []string{`ex:a ex:p "abc" Pattern`}},
	{"pattern of an IRI", `ex:S sh:targetNode ex:a, ex:b ; sh:pattern "/a$" .`, ``, []string{"ex:b - ex:b Pattern"}},
	{"languages", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:languageIn ( "en" "fr" ) .`, `ex:a ex:p "x"@en, "x"@en-GB, "x"@de, "x"@eng, "x", ex:b .`, []string{`ex:a ex:p "x"@de LanguageIn`, `ex:a ex:p "x"@eng LanguageIn`, `ex:a ex:p "x" LanguageIn`, "ex:a ex:p ex:b LanguageIn"}},
	{"languages without case", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:languageIn ( "EN-gb" "zh-hant" ) .`, `ex:a ex:p "x"@en-GB, "x"@en-GB-oed, "x"@zh-Hant-TW, "x"@en, "x"@zh .`, []string{`ex:a ex:p "x"@en LanguageIn`, `ex:a ex:p "x"@zh LanguageIn`}},
	{"every language", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:languageIn ( "*" ) .`, `ex:a ex:p "x"@en-GB, "x" .`, []string{`ex:a ex:p "x" LanguageIn`}},
	{"one text in a language, without case", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:uniqueLang true .`, `ex:a ex:p "x"@en-GB, "y"@EN-gb, "z"@en .`, []string{"ex:a ex:p - UniqueLang"}},
	{"one text in a language", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:uniqueLang true .`, `ex:a ex:p "x"@en, "y"@en, "z"@en, "x"@de, "x"@fr, "y"@fr, "x", "y" .`, []string{"ex:a ex:p - UniqueLang", "ex:a ex:p - UniqueLang"}},
	{"uniqueLang has to be true", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:uniqueLang "1"^^xsd:boolean .`, `ex:a ex:p "x"@en, "y"@en .`, nil},
	// Pairs of properties (4.5).
	{"equals", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:equals ex:q .`, `ex:a ex:p 1, 2 ; ex:q 2, 3 .`, []string{"ex:a ex:p 1 Equals", "ex:a ex:p 3 Equals"}},
	{"equals of a node", `ex:S sh:targetNode ex:a, ex:b ; sh:equals ex:p .`, `ex:a ex:p ex:a . ex:b ex:p ex:c .`, []string{"ex:b - ex:b Equals", "ex:b - ex:c Equals"}},
	{"disjoint", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:disjoint ex:q .`, `ex:a ex:p 1, 2 ; ex:q 2, 3 .`, []string{"ex:a ex:p 2 Disjoint"}},
	{"less than", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:lessThan ex:q .`, `ex:a ex:p 1, 4, "x" ; ex:q 2, 4 .`, []string{"ex:a ex:p 4 LessThan", "ex:a ex:p 4 LessThan", `ex:a ex:p "x" LessThan`, `ex:a ex:p "x" LessThan`}},
	{"less than or equal", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:lessThanOrEquals ex:q .`, `ex:a ex:p 1, 4, 5 ; ex:q 4 .`, []string{"ex:a ex:p 5 LessThanOrEquals"}},
	// Logic (4.6).
	{"not", `ex:S sh:targetNode ex:a, ex:b ; sh:not [ a sh:PropertyShape ; sh:path ex:p ; sh:minCount 1 ] .`, `ex:a ex:p 1 .`, []string{"ex:a - ex:a Not"}},
	{"and", `ex:S sh:targetNode ex:a, ex:b ; sh:and ( [ sh:property [ sh:path ex:p ; sh:minCount 1 ] ] [ sh:property [ sh:path ex:q ; sh:minCount 1 ] ] ) .`, `ex:a ex:p 1 ; ex:q 1 . ex:b ex:p 1 .`, []string{"ex:b - ex:b And"}},
	{"or", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:or ( [ sh:datatype xsd:string ] [ sh:class ex:C ] ) .`, `ex:a ex:p "x", 1, ex:c . ex:c a ex:C .`, []string{"ex:a ex:p 1 Or"}},
	{"xone", `ex:S sh:targetNode ex:a, ex:b, ex:c ; sh:xone ( [ sh:property [ sh:path ex:p ; sh:minCount 1 ] ] [ sh:property [ sh:path ex:q ; sh:minCount 1 ] ] ) .`, `ex:a ex:p 1 ; ex:q 1 . ex:b ex:p 1 .`, []string{"ex:a - ex:a Xone", "ex:c - ex:c Xone"}},
	{"xone of the same shape twice", `ex:S sh:targetNode ex:a ; sh:xone ( ex:T ex:T ) . ex:T a sh:NodeShape ; sh:class ex:C .`, `ex:a a ex:C .`, []string{"ex:a - ex:a Xone"}},
	// Shapes in shapes (4.7).
	{"node", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:node ex:T . ex:T a sh:NodeShape ; sh:property [ sh:path ex:q ; sh:minCount 1 ] .`, `ex:a ex:p ex:b, ex:c . ex:b ex:q 1 .`, []string{"ex:a ex:p ex:c Node"}},
	{"a warning inside does not conform", `ex:S sh:targetNode ex:a ; sh:node [ sh:class ex:C ; sh:severity sh:Warning ] .`, ``, []string{"ex:a - ex:a Node"}},
	{"properties of properties", `ex:S sh:targetNode ex:a ; sh:property [ sh:path ex:p ; sh:property [ sh:path ex:q ; sh:minCount 1 ] ] .`, `ex:a ex:p ex:b, ex:c . ex:b ex:q 1 .`, []string{"ex:c ex:q - MinCount"}},
	{"qualified", `ex:S a sh:PropertyShape ; sh:targetNode ex:a, ex:b ; sh:path ex:p ; sh:qualifiedValueShape [ sh:class ex:C ] ; sh:qualifiedMinCount 1 ; sh:qualifiedMaxCount 1 .`, `ex:a ex:p ex:x, ex:y . ex:x a ex:C . ex:y a ex:C . ex:b ex:p 1 .`, []string{"ex:a ex:p - QualifiedMaxCount", "ex:b ex:p - QualifiedMinCount"}},
	{"qualified and disjoint", `ex:S sh:targetNode ex:a ; sh:property [ sh:path ex:p ; sh:qualifiedValueShape [ sh:class ex:C ] ; sh:qualifiedValueShapesDisjoint true ; sh:qualifiedMinCount 1 ] , [ sh:path ex:p ; sh:qualifiedValueShape [ sh:class ex:D ] ; sh:qualifiedValueShapesDisjoint true ; sh:qualifiedMinCount 1 ] .`, `ex:a ex:p ex:x . ex:x a ex:C, ex:D .`, []string{"ex:a ex:p - QualifiedMinCount", "ex:a ex:p - QualifiedMinCount"}},
	// Others (4.8).
	{"closed", `ex:S sh:targetNode ex:a ; sh:closed true ; sh:ignoredProperties ( rdf:type ) ; sh:property [ sh:path ex:p ] , [ sh:path [ sh:inversePath ex:q ] ] .`, `ex:a a ex:C ; ex:p 1 ; ex:q 2 ; ex:r 3 .`, []string{"ex:a ex:q 2 Closed", "ex:a ex:r 3 Closed"}},
	{"not closed", `ex:S sh:targetNode ex:a ; sh:closed false .`, `ex:a ex:p 1 .`, nil},
	{"has value", `ex:S a sh:PropertyShape ; sh:targetNode ex:a, ex:b ; sh:path ex:p ; sh:hasValue 1 .`, `ex:a ex:p 1, 2 . ex:b ex:p 2 .`, []string{"ex:b ex:p - HasValue"}},
	{"has value of a node", `ex:S sh:targetNode ex:a, ex:b ; sh:hasValue ex:a .`, ``, []string{"ex:b - - HasValue"}},
	{"in", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:in ( 1 ex:b "x"@en ) .`, `ex:a ex:p 1, ex:b, "x"@en, "x", 1.0 .`, []string{`ex:a ex:p "x" In`, `ex:a ex:p "1.0"^^<http://www.w3.org/2001/XMLSchema#decimal In`}},
	{"in nothing", `ex:S a sh:PropertyShape ; sh:targetNode ex:a ; sh:path ex:p ; sh:in () .`, `ex:a ex:p 1 .`, []string{"ex:a ex:p 1 In"}},
}

// Invalid shapes are rejected, and the error has the location.
func TestWhatIsNoShape(t *testing.T) {
	for _, row := range []struct{ name, shapes, place string }{
		{"a property shape without a path", `ex:S a sh:PropertyShape ; sh:minCount 1 .`, "<http://example.org/S>: a property shape needs an sh:path"},
		{"two paths", `ex:S sh:path ex:p, ex:q .`, "at most one sh:path"},
		{"a node shape with a path", `ex:S a sh:NodeShape ; sh:path ex:p .`, "a node shape must not have an sh:path"},
		{"a count of a node", `ex:S a sh:NodeShape ; sh:minCount 1 .`, "<http://example.org/S>: sh:minCount: only a property shape can have it"},
		{"a count that is no number", `ex:S sh:path ex:p ; sh:minCount "one" .`, `sh:minCount: "one" is not a non-negative integer`},
		{"a negative count", `ex:S sh:path ex:p ; sh:maxCount -1 .`, "sh:maxCount"},
		{"two counts", `ex:S sh:path ex:p ; sh:minCount 1, 2 .`, "sh:minCount: it must be given once"},
		{"a class that is a text", `ex:S a sh:NodeShape ; sh:class "C" .`, `sh:class: "C" is not an IRI`},
		{"a kind that is none", `ex:S a sh:NodeShape ; sh:nodeKind sh:Node .`, "sh:nodeKind"},
		{"a bound without order", `ex:S a sh:NodeShape ; sh:minInclusive ex:a .`, "is not an ordered value"},
		{"a pattern that cannot be read", `ex:S a sh:NodeShape ; sh:pattern "(" .`, "sh:pattern"},
		{"a pattern that looks behind", `ex:S a sh:NodeShape ; sh:pattern "(?<=a)b" .`, "sh:pattern"},
		{"a pattern that is too long", `ex:S a sh:NodeShape ; sh:pattern "` + strings.Repeat("a", shapes.MaxPatternBytes+1) + `" .`, "1001 bytes exceed the limit of 1000"},
		{"a pattern of too many steps", `ex:S a sh:NodeShape ; sh:pattern "` + strings.Repeat("(a{1,999})", 3) + `" .`, "the limit is 2000"},
		{"flags that are none", `ex:S a sh:NodeShape ; sh:pattern "a" ; sh:flags "g" .`, "unknown 'g'"},
		{"a list that is none", `ex:S a sh:NodeShape ; sh:in ex:a .`, "is not a list"},
		{"a list without end", `ex:S a sh:NodeShape ; sh:in ex:l . ex:l rdf:first 1 ; rdf:rest ex:l .`, "is not a list"},
		{"a path that is none", `ex:S sh:path [ ex:p ex:q ] .`, "is not a path"},
		{"a path that is a text", `ex:S sh:path "p" .`, "is not a path"},
		{"a sequence of one", `ex:S sh:path ( ex:p ) .`, "at least two parts"},
		{"two paths in one", `ex:S sh:path [ sh:inversePath ex:p ; sh:zeroOrOnePath ex:q ] .`, "is not a path"},
		{"a path that leads into itself", `ex:S sh:path ex:x . ex:T sh:path _:p . _:p sh:inversePath _:p .`, "more than 32 deep"},
		{"a property without a path", `ex:S a sh:NodeShape ; sh:property ex:T . ex:T a sh:NodeShape .`, "has no sh:path"},
		{"what is not core", `ex:S a sh:NodeShape ; sh:sparql [] .`, "sh:sparql: a constraint in SPARQL, which is not supported"},
		{"a name that is none", `ex:S a sh:NodeShape ; sh:targetClas ex:C .`, "sh:targetClas: SHACL does not define this term"},
		{"a target that is a text", `ex:S a sh:NodeShape ; sh:targetClass "C" .`, "sh:targetClass"},
		{"a switch that is a text", `ex:S a sh:NodeShape ; sh:deactivated "yes" .`, "sh:deactivated"},
		{"a qualified shape without a count", `ex:S sh:path ex:p ; sh:qualifiedValueShape [ sh:class ex:C ] .`, "sh:qualifiedValueShape: it needs"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := shapes.Validate(slowtest.Context(t), nil, parse(t, row.shapes, kg.ShapesGraph), shapes.ReportOptions{})
			if code := kg.CodeOf(err); code != kg.CodeInvalid && code != kg.CodeLimitExceeded || !strings.Contains(err.Error(), row.place) {
				t.Errorf("got %v, want %q", err, row.place)
			}
		})
	}
}
