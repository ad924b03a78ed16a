package shapes_test

import (
	"os"
	"strings"
	"testing"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

// likeSchemaOrg returns a vocabulary in the style of schema.org's shapes: one per class,
// with the allowed types of each property, so that most are recursive.
const likeSchemaOrg = `
	ex:Anything a sh:NodeShape ; sh:nodeKind sh:BlankNodeOrIRI ; sh:targetClass ex:Thing ;
		sh:property [ sh:path ex:name ; sh:node ex:Text ], [ sh:path ex:about ; sh:node ex:Anything ], [ sh:path ex:image ; sh:or ( [ sh:node ex:Text ] [ sh:node ex:APicture ] ) ] .
	ex:APicture a sh:NodeShape ; sh:nodeKind sh:BlankNodeOrIRI ; sh:targetClass ex:Picture ;
		sh:property [ sh:path ex:creator ; sh:or ( [ sh:node ex:AnOrganization ] [ sh:node ex:APerson ] ) ], [ sh:path ex:width ; sh:node ex:Number ] .
	ex:APerson a sh:NodeShape ; sh:nodeKind sh:BlankNodeOrIRI ; sh:targetClass ex:Person ;
		sh:property [ sh:path ex:knows ; sh:node ex:APerson ], [ sh:path ex:worksFor ; sh:node ex:AnOrganization ], [ sh:path ex:portrait ; sh:node ex:APicture ] .
	ex:AnOrganization a sh:NodeShape ; sh:nodeKind sh:BlankNodeOrIRI ; sh:targetClass ex:Organization ;
		sh:property [ sh:path ex:member ; sh:or ( [ sh:node ex:APerson ] [ sh:node ex:AnOrganization ] ) ], [ sh:path ex:founded ; sh:node ex:Day ] .
	ex:Text a sh:NodeShape ; sh:datatype xsd:string . ex:Number a sh:NodeShape ; sh:datatype xsd:integer . ex:Day a sh:NodeShape ; sh:datatype xsd:date .`

func TestShapesLikeThoseOfSchemaOrg(t *testing.T) {
	store, _ := judgedStore(t, kg.Options{})
	put(t, store, likeSchemaOrg)
	accepts(t, store, `ex:Person rdfs:subClassOf ex:Thing . ex:Organization rdfs:subClassOf ex:Thing . ex:Picture rdfs:subClassOf ex:Thing .`)
	accepts(t, store, `ex:ann a ex:Person ; ex:name "Ann" ; ex:knows ex:bob ; ex:worksFor ex:firm ; ex:portrait ex:oil .
		ex:bob a ex:Person ; ex:knows ex:ann, ex:bob . ex:firm a ex:Organization ; ex:member ex:ann, ex:bob, ex:firm .
		ex:oil a ex:Picture ; ex:creator ex:bob ; ex:about ex:ann .`)
	refuses(t, store, `ex:bob ex:knows "Cid" .`, `bob, http://example.org/knows, "Cid": does not conform to http://example.org/APerson`,
		"http://example.org/ann, http://example.org/knows, <http://example.org/bob>: does not conform to http://example.org/APerson")
	refuses(t, store, `ex:firm ex:founded "long ago" .`, "http://example.org/ann, http://example.org/worksFor, <http://example.org/firm>")
	refuses(t, store, `ex:oil ex:width "wide" .`, "http://example.org/ann, http://example.org/portrait")
	accepts(t, store, `ex:firm ex:founded "1999-12-31"^^xsd:date . ex:oil ex:width 30 .`)
	refuses(t, store, `ex:new a ex:Thing ; ex:name 5 .`, "http://example.org/new, http://example.org/name")
}

// TestShapeNamedByAForbiddenIRI proves that an invalid IRI as a shape's name, as in
// schema.org's shapes, is escaped, and that the shape takes effect.
func TestShapeNamedByAForbiddenIRI(t *testing.T) {
	store, _ := judgedStore(t, kg.Options{})
	put(t, store, `<http://x.example/a#bhttp://x.example/c#d> a sh:NodeShape ; sh:targetClass ex:Set ; sh:property [ sh:path ex:size ; sh:datatype xsd:integer ] .`)
	refuses(t, store, `ex:s a ex:Set ; ex:size "big" .`, "http://example.org/s, http://example.org/size")
	accepts(t, store, `ex:s a ex:Set ; ex:size 3 .`)
}

// TestShapesOfSchemaOrg puts schema.org's own shapes (data/releases/*/schemaorg-shapes.shacl of
// github.com/schemaorg/schemaorg), which are not part of this repository.
func TestShapesOfSchemaOrg(t *testing.T) {
	const file = "KOINE_SCHEMAORG_SHAPES"
	name := os.Getenv(file)
	if name == "" {
		t.Skipf("%s is not set: no shapes to take", file)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	store, set := judgedStore(t, kg.Options{})
	quads, err := shapes.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shapes.Put(slowtest.Context(t), store, kg.Meta{Principal: admin}, quads); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d shapes", len(set.List()))
	const s = `@prefix s: <http://schema.org/> . `
	accepts(t, store, s+`s:Person rdfs:subClassOf s:Thing . s:Organization rdfs:subClassOf s:Thing .`)
	accepts(t, store, s+`ex:ann a s:Person ; s:knows ex:bob ; s:worksFor ex:firm . ex:bob a s:Person ; s:knows ex:ann ; s:siblings ex:ann .
		ex:firm a s:Organization ; s:employee ex:ann, ex:bob ; s:founder ex:bob ; s:subOrganization ex:firm .`)
	refuses(t, store, s+`ex:bob s:children "Cid" .`, `http://example.org/bob, http://schema.org/children, "Cid": does not conform to http://schema.org/validation#ValidSchemaPerson`)
	refuses(t, store, s+`ex:firm s:founder "Dan" .`, "http://example.org/firm, http://schema.org/founder")
	accepts(t, store, s+`ex:firm s:founder ex:dan . ex:dan s:knows ex:firm .`)
	r := reportOf(t, store, set, shapes.ReportOptions{})
	if !r.Conforms || !r.Complete || r.LeftOut > 0 {
		t.Errorf("got %+v", r)
	}
	t.Logf("%d targets judged", r.Judged)
	if !strings.Contains(string(text), "ValidSchemaPerson") {
		t.Error("these are other shapes")
	}
}
