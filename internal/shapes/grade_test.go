package shapes_test

import (
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
)

// A node that already violates a shape may stay unchanged or improve, but not become worse.
func TestWhatIsWrongMayNotGetWorse(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	p := func(constraint string) string {
		return `ex:S sh:targetNode ex:a ; sh:property [ sh:path ex:p ; ` + constraint + ` ] .`
	}
	const nested = `[ sh:property [ sh:path ex:p ; sh:maxCount 1 ] ] [ sh:property [ sh:path ex:q ; sh:maxCount 1 ] ]`
	for _, row := range []struct {
		name, shapes, data string
		add, remove        string
		worse              bool
	}{
		{"a fourth of one", p(`sh:maxCount 1`), `ex:a ex:p 1, 2, 3 .`, `ex:a ex:p 4 .`, ``, true},
		{"one for another", p(`sh:maxCount 1`), `ex:a ex:p 1, 2, 3 .`, `ex:a ex:p 4 .`, `ex:a ex:p 1 .`, false},
		{"one for two others", p(`sh:maxCount 1`), `ex:a ex:p 1, 2, 3 .`, `ex:a ex:p 4, 5 .`, `ex:a ex:p 1 .`, true},
		{"one less, and still too many", p(`sh:maxCount 1`), `ex:a ex:p 1, 2, 3 .`, ``, `ex:a ex:p 1 .`, false},
		{"the same value in another graph is no further one", p(`sh:maxCount 1`), `ex:a ex:p 1, 2 .`, `ex:a ex:p 1 .`, ``, false},
		{"taking one of too few", p(`sh:minCount 3`), `ex:a ex:p 1, 2 .`, ``, `ex:a ex:p 1 .`, true},
		{"one more, and still too few", p(`sh:minCount 3`), `ex:a ex:p 1 .`, `ex:a ex:p 2 .`, ``, false},
		{"one of too few for another", p(`sh:minCount 3`), `ex:a ex:p 1 .`, `ex:a ex:p 2 .`, `ex:a ex:p 1 .`, false},
		{"another value of a language that has two", p(`sh:uniqueLang true`), `ex:a ex:p "x"@en, "y"@en .`, `ex:a ex:p "z"@en .`, ``, true},
		{"a second value of another language", p(`sh:uniqueLang true`), `ex:a ex:p "x"@en, "y"@en, "x"@de .`, `ex:a ex:p "z"@de .`, ``, true},
		{"a first value of another language", p(`sh:uniqueLang true`), `ex:a ex:p "x"@en, "y"@en .`, `ex:a ex:p "z"@de .`, ``, false},
		{"one less of a language that has three", p(`sh:uniqueLang true`), `ex:a ex:p "x"@en, "y"@en, "z"@en .`, ``, `ex:a ex:p "x"@en .`, false},
		{"another value of the wrong datatype", p(`sh:datatype xsd:string`), `ex:a ex:p 1 .`, `ex:a ex:p 2 .`, ``, true},
		{"a value of the right datatype beside a wrong one", p(`sh:datatype xsd:string`), `ex:a ex:p 1 .`, `ex:a ex:p "x" .`, ``, false},
		{"a further property of a closed shape", `ex:S sh:targetNode ex:a ; sh:closed true .`, `ex:a ex:p 1 .`, `ex:a ex:q 1 .`, ``, true},
		{"a further value of it", `ex:S sh:targetNode ex:a ; sh:closed true .`, `ex:a ex:p 1 .`, `ex:a ex:p 2 .`, ``, true},
		{"one property less of a closed shape", `ex:S sh:targetNode ex:a ; sh:closed true .`, `ex:a ex:p 1 ; ex:q 1 .`, ``, `ex:a ex:q 1 .`, false},
		{"a second value that is wanted and missed", p(`sh:hasValue 1, 2`), `ex:a ex:p 1, 3 .`, ``, `ex:a ex:p 1 .`, true},
		{"a value that is wanted", p(`sh:hasValue 1, 2`), `ex:a ex:p 3 .`, `ex:a ex:p 1 .`, ``, false},
		{"out of a second class", p(`sh:class ex:C, ex:D`), `ex:a ex:p ex:b . ex:b a ex:C .`, ``, `ex:b a ex:C .`, true},
		{"less than one more", p(`sh:lessThan ex:q`), `ex:a ex:p 5 ; ex:q 4 .`, `ex:a ex:q 3 .`, ``, true},
		{"less than another", p(`sh:lessThan ex:q`), `ex:a ex:p 5 ; ex:q 4 .`, `ex:a ex:q 3 .`, `ex:a ex:q 4 .`, false},
		{"one more that qualifies", p(`sh:qualifiedValueShape [ sh:class ex:C ] ; sh:qualifiedMaxCount 1`), `ex:a ex:p ex:b, ex:c . ex:b a ex:C . ex:c a ex:C . ex:d a ex:C .`, `ex:a ex:p ex:d .`, ``, true},
		{"one more that does not", p(`sh:qualifiedValueShape [ sh:class ex:C ] ; sh:qualifiedMaxCount 1`), `ex:a ex:p ex:b, ex:c . ex:b a ex:C . ex:c a ex:C .`, `ex:a ex:p ex:d .`, ``, false},
		{"one less that qualifies of too few", p(`sh:qualifiedValueShape [ sh:class ex:C ] ; sh:qualifiedMinCount 3`), `ex:a ex:p ex:b, ex:c . ex:b a ex:C . ex:c a ex:C .`, ``, `ex:a ex:p ex:c .`, true},

		// Nested shapes: by the violations of the value there.
		{"a node, further from it", `ex:S sh:targetNode ex:a ; sh:node [ sh:property [ sh:path ex:p ; sh:maxCount 1 ] ] .`, `ex:a ex:p 1, 2 .`, `ex:a ex:p 3 .`, ``, true},
		{"a node, as far", `ex:S sh:targetNode ex:a ; sh:node [ sh:property [ sh:path ex:p ; sh:maxCount 1 ] ] .`, `ex:a ex:p 1, 2 .`, `ex:a ex:p 3 .`, `ex:a ex:p 1 .`, false},
		{"and, further from one", `ex:S sh:targetNode ex:a ; sh:and ( ` + nested + ` ) .`, `ex:a ex:p 1, 2 .`, `ex:a ex:q 1, 2 .`, ``, true},
		{"and, nearer to one", `ex:S sh:targetNode ex:a ; sh:and ( ` + nested + ` ) .`, `ex:a ex:p 1, 2 ; ex:q 1, 2 .`, ``, `ex:a ex:q 1 .`, false},
		{"or, further from all", `ex:S sh:targetNode ex:a ; sh:or ( ` + nested + ` ) .`, `ex:a ex:p 1, 2 ; ex:q 1, 2 .`, `ex:a ex:p 3 ; ex:q 3 .`, ``, true},
		{"or, further from one", `ex:S sh:targetNode ex:a ; sh:or ( ` + nested + ` ) .`, `ex:a ex:p 1, 2 ; ex:q 1, 2 .`, `ex:a ex:q 3 .`, ``, false},
		{"not", `ex:S sh:targetNode ex:a ; sh:not [ sh:property [ sh:path ex:p ; sh:minCount 1 ] ] .`, `ex:a ex:p 1 .`, `ex:a ex:p 2 .`, ``, false},
		{"xone of none, further from all", `ex:S sh:targetNode ex:a ; sh:xone ( ` + nested + ` ) .`, `ex:a ex:p 1, 2 ; ex:q 1, 2 .`, `ex:a ex:p 3 ; ex:q 3 .`, ``, true},
		{"xone of none, as far", `ex:S sh:targetNode ex:a ; sh:xone ( ` + nested + ` ) .`, `ex:a ex:p 1, 2 ; ex:q 1, 2 .`, `ex:a ex:p 3 .`, ``, false},
		{"xone of two, and now of three", `ex:S sh:targetNode ex:a ; sh:xone ( [ sh:class ex:C ] [ sh:class ex:D ] [ sh:class ex:E ] ) .`, `ex:a a ex:C, ex:D .`, `ex:a a ex:E .`, ``, true},
		{"xone of three, and now of two", `ex:S sh:targetNode ex:a ; sh:xone ( [ sh:class ex:C ] [ sh:class ex:D ] [ sh:class ex:E ] ) .`, `ex:a a ex:C, ex:D, ex:E .`, ``, `ex:a a ex:E .`, false},
		{"xone of two, and now of others", `ex:S sh:targetNode ex:a ; sh:xone ( [ sh:class ex:C ] [ sh:class ex:D ] [ sh:class ex:E ] ) .`, `ex:a a ex:C, ex:D .`, `ex:a a ex:E .`, `ex:a a ex:C .`, false},
		{"xone of two, and now of none", `ex:S sh:targetNode ex:a ; sh:xone ( [ sh:class ex:C ] [ sh:class ex:D ] ) .`, `ex:a a ex:C, ex:D .`, ``, `ex:a a ex:C, ex:D .`, true},
		{"xone of a further value", p(`sh:xone ( [ sh:class ex:C ] [ sh:class ex:D ] )`), `ex:a ex:p ex:b .`, `ex:a ex:p ex:c .`, ``, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			store, _ := judgedStore(t, kg.Options{})
			accepts(t, store, row.data)
			put(t, store, row.shapes)
			r, err := write(t, store, by("ann"), parse(t, row.add, ex("other")), parse(t, row.remove, kg.DefaultGraph))
			if err != nil || (r.Verdict.Outcome == kg.Rejected) != row.worse {
				t.Errorf("got %+v, %v", r.Verdict, err)
			}
		})
	}
}

// The details separate new violations from existing ones.
func TestDetailsOfWhatGotWorse(t *testing.T) {
	store, _ := judgedStore(t, kg.Options{})
	accepts(t, store, `ex:ann a ex:Person ; ex:name "Ann", "Anna", 3 .`)
	put(t, store, personShape)
	r, err := write(t, store, by("ann"), parse(t, `ex:ann ex:name "Nan" .`, kg.DefaultGraph), nil)
	refused(t, r, err, "http://example.org/ann, http://example.org/name: has 4 values, at most 1 are allowed", "\nexisting: http://example.org/ann, http://example.org/name, \"3\"")
}
