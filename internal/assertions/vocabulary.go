package assertions

import "koine/kg"

// Namespace is the namespace of koine's assertion properties, abbreviated ka:.
const Namespace = "https://koine.example/ns/assertion#"

// Version is the version of the vocabulary, which a document states as owl:versionInfo of
// the namespace. It is incremented if a reader of the previous version could misread. A
// document without embeddings is written in version 1.
const (
	Version                 = "2" // with embeddings
	VersionWithoutEmbedding = "1"
)

const (
	prov = "http://www.w3.org/ns/prov#"
	owl  = "http://www.w3.org/2002/07/owl#"
)

// WithPrefixes adds ka: for the namespace unless p has a ka: already.
func WithPrefixes(p *kg.Prefixes) *kg.Prefixes {
	all := map[string]string{"ka": Namespace}
	for _, part := range p.All() {
		all[part.Name] = part.Namespace
	}
	with, err := kg.NewPrefixes(all)
	if err != nil {
		return p
	}
	return with
}

// Graph is the graph of the descriptions in formats that support named graphs.
var Graph = kg.IRI(Namespace + "assertions")

var (
	namespace   = kg.IRI(Namespace)
	versionInfo = kg.IRI(owl + "versionInfo")

	rdfType      = kg.IRI(kg.RDFType)
	rdfStatement = kg.IRI(kg.RDF + "Statement")
	assertion    = kg.IRI(Namespace + "Assertion")

	subject         = kg.IRI(kg.RDF + "subject")
	predicate       = kg.IRI(kg.RDF + "predicate")
	object          = kg.IRI(kg.RDF + "object")
	graph           = kg.IRI(Namespace + "graph")
	wasAttributedTo = kg.IRI(prov + "wasAttributedTo")
	generatedAtTime = kg.IRI(prov + "generatedAtTime")
	revision        = kg.IRI(Namespace + "revision")
	certainty       = kg.IRI(Namespace + "certainty")
	validFrom       = kg.IRI(Namespace + "validFrom")
	validTo         = kg.IRI(Namespace + "validTo")
	provenance      = kg.IRI(Namespace + "provenance")
	justification   = kg.IRI(Namespace + "justification")
	embedding       = kg.IRI(Namespace + "embedding")
)

// properties are the properties of a description besides rdf:type.
var properties = map[kg.Term]bool{
	subject: true, predicate: true, object: true, graph: true, wasAttributedTo: true, generatedAtTime: true, revision: true,
	certainty: true, validFrom: true, validTo: true, provenance: true, justification: true, embedding: true,
}

// isDescriptive reports whether a statement may be part of a description or state the version
// of the vocabulary.
func isDescriptive(q *kg.Quad) bool {
	switch q.Predicate {
	case rdfType:
		return q.Object == rdfStatement || q.Object == assertion
	case versionInfo:
		return statesVersion(q)
	}
	return properties[q.Predicate]
}

// statesVersion reports whether a statement states the version of the vocabulary.
func statesVersion(q *kg.Quad) bool { return q.Subject == namespace && q.Predicate == versionInfo }
