// Package rdf reads and writes RDF documents as kg quads: N-Triples, N-Quads, Turtle, TriG and
// JSON-LD 1.1. RDF/XML is read only.
//
// Readers and writers stream. A JSON-LD document may have any size if it is in streaming
// order: in each object @context first, then @type and @id, then the rest, as the writer
// produces. Otherwise parts of it are held in memory, within JSONLDOptions.MaxBytes. A
// reader yields quads in document order and ends at the first error, which has the line.
// With Options.ContinueOnError, a reader of N-Triples or N-Quads skips invalid lines, and
// a reader of JSON-LD skips statements with an invalid term; in all other formats and
// cases an error ends the sequence.
//
// Blank nodes are local to their document. Each gets a label in the store, made of the
// document's tag and its own label (see DocumentTag), so that two documents never share a
// node by accident, and the same document yields the same nodes again. Relative IRIs need
// a base (Options.Base or the document's own). The name of a graph may be a blank node.
//
// All readers and writers are part of koine: docs/decisions/rdf.md lists the faults of
// libraries that made this necessary. Nothing is ever fetched from the network: a JSON-LD
// context is part of the document or one of JSONLDContexts.
//
// The reader of JSON-LD converts JSON to quads without a tree. A jsonScanner puts a part of the
// document on a tape; jsonldReader.expand works on tapes, and jsonldReader.stream on the input. An
// activeContext shares the terms of its parent.
package rdf
