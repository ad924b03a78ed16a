package rdf_test

import (
	"testing"

	"koine/internal/rdf"
	"koine/kg"
)

// Reading any document ends with quads that the store accepts or with an error, and the
// quads survive being written and read again.
func fuzz(f *testing.F, format rdf.Format, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		quads, _ := read(text, format, rdf.Options{Base: "http://base.example/x"})
		if len(quads) > 64 {
			quads = quads[:64]
		}
		for _, q := range quads {
			for _, term := range []kg.Term{q.Subject, q.Predicate, q.Object, q.Graph} {
				if err := term.Valid(); err != nil {
					t.Fatalf("%s: %v", q.Subject, err)
				}
			}
		}
		again := collect(t, write(t, quads, rdf.TriG, rdf.WriteOptions{Prefixes: prefixes(t)}), rdf.TriG, rdf.Options{})
		if len(unique(again)) != len(unique(quads)) {
			t.Fatalf("%d quads became %d", len(quads), len(again))
		}
	})
}

func FuzzNQuads(f *testing.F) {
	fuzz(f, rdf.NQuads, "<urn:s> <urn:p> \"x\\u0041\\n\"@en <urn:g> .\n_:a.b <urn:p> _:c .", `<urn:s> <urn:p> "x"^^<urn:t> . # c`)
}

func FuzzTriG(f *testing.F) {
	fuzz(f, rdf.TriG, "@prefix a: <urn:a:> .\na:g { a:s a a:T ; a:p 1, -2.5, 1e3, true, \"x\"@en, '''y\nz''' ; . }", "BASE <http://x.example/>\nGRAPH <g> { [ <p> ( 1 [] ) ] <q> _:b }", "<a> <b> <c\\u0041> .")
}

func FuzzRDFXML(f *testing.F) {
	fuzz(f, rdf.RDFXML, xmlHead+`<e:T rdf:ID="a" e:p="1"><e:q rdf:parseType="Collection"><rdf:Description rdf:nodeID="x"/></e:q><rdf:li xml:lang="en">x</rdf:li></e:T></rdf:RDF>`,
		`<!DOCTYPE r [<!ENTITY e "urn:&#65;">]><x:y xmlns:x="&e;"><x:z rdf:parseType="Literal" xmlns:rdf="`+kg.RDF+`"><![CDATA[<]]><!-- c --></x:z></x:y>`)
}

func FuzzJSONLD(f *testing.F) {
	fuzz(f, rdf.JSONLD, `{"@context":{"p":{"@id":"urn:p","@type":"@id"},"@vocab":"urn:v:"},"@id":"x","p":["y",{"@id":"_:b"}],"q":{"@list":[1,2.5,true,null,"z"]}}`,
		`[{"@id":"urn:g","@graph":[{"@type":"urn:T","urn:p":{"@value":"v","@language":"en"}}]}]`)
}
