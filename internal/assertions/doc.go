// Package assertions moves what koine knows of statements beside what they say:
// who asserts them, how surely, since when and why. It describes assertions in
// RDF 1.1 (Export), reads such descriptions back (Document), writes them into a
// store (Restore), and compares two stores with all of it (Compare).
//
// # Description of an assertion
//
// Each assertion is a blank node:
//
//	_:a1 a rdf:Statement, ka:Assertion ;
//	    rdf:subject ex:ada ; rdf:predicate ex:knows ; rdf:object ex:bob ;
//	    ka:graph ex:team ;
//	    prov:wasAttributedTo <agent://scout> ;
//	    prov:generatedAtTime "2026-01-31T12:00:00Z"^^xsd:dateTime ;
//	    ka:revision 12 ;
//	    ka:certainty "0.9"^^xsd:double ;
//	    ka:validFrom … ; ka:validTo … ;
//	    ka:provenance "{\"page\":7}" ;
//	    ka:justification "Found in the minutes" .
//
// Without ka:graph the statement is in the graph without a name. The last five are
// there where the assertion has them.
//
// # Layout of a document
//
// The statements stand in their graphs as in any export. Behind them come the
// version of the vocabulary (ka: owl:versionInfo "1") and the descriptions, in
// the graph ka:assertions where the format names graphs, and otherwise together
// with the statements. Blank nodes of the store are written as _:s-label and the
// descriptions as _:a1, _:a2, …, so that no statement of the store is about a
// description of this document.
//
// # Which nodes are descriptions
//
// A store may hold descriptions as data, because a document was loaded as data. All
// statements of the store are described in the document, and those of its
// descriptions are not. So a node of the class ka:Assertion is a description
// unless a statement about it is described itself: then it is data. What somebody
// writes into a store can therefore not become somebody else's assertion.
package assertions
