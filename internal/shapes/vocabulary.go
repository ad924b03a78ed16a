package shapes

import "koine/kg"

const (
	sh   = "http://www.w3.org/ns/shacl#"
	rdfs = "http://www.w3.org/2000/01/rdf-schema#"
	owl  = "http://www.w3.org/2002/07/owl#"
)

var (
	rdfType    = kg.IRI(kg.RDFType)
	rdfFirst   = kg.IRI(kg.RDF + "first")
	rdfRest    = kg.IRI(kg.RDF + "rest")
	rdfNil     = kg.IRI(kg.RDF + "nil")
	subClassOf = kg.IRI(rdfs + "subClassOf")
)

func shTerm(name string) kg.Term { return kg.IRI(sh + name) }

// The severities of findings. Only the first refuses an update.
var (
	Violation = shTerm("Violation")
	Warning   = shTerm("Warning")
	Info      = shTerm("Info")
)

// described are the properties of a shape that are for people or for forms and
// constrain nothing.
var described = map[string]bool{"name": true, "description": true, "order": true, "group": true, "defaultValue": true}
