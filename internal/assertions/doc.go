// Package assertions moves assertions together with their statements: their sources,
// certainties, times and reasons. It describes assertions in RDF 1.1 (Export), parses
// such descriptions (Document), writes them into a store (Restore), and compares two
// stores including assertions (Compare).
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
// Without ka:graph the statement is in the default graph. The last five properties are
// optional.
//
// # Layout of a document
//
// The statements come first, in their graphs, as in any export. Then follow the version
// of the vocabulary (ka: owl:versionInfo "1") and the descriptions, in the graph
// ka:assertions if the format supports named graphs, else in the same graph. Blank
// nodes of the store are written as _:s-label and descriptions as _:a1, _:a2, …, so
// that no statement of the store can refer to a description.
//
// # Descriptions and data
//
// A store may contain descriptions as data, because a document was loaded as data. An
// export describes all statements of the store, but not those of its own descriptions.
// Thus a node of the class ka:Assertion is a description unless a statement about it
// is itself described: then it is data. This keeps agents from forging assertions of
// others by writing descriptions into a store.
package assertions
