// Package rdf reads and writes RDF documents as kg quads: N-Triples, N-Quads,
// Turtle, TriG and JSON-LD 1.1. RDF/XML is read only.
//
// Readers and writers stream. A JSON-LD document may have any size in streaming
// order: in each object @context first, then @type and @id, then the rest, as
// the writer has it. Of others what has to be known as a whole is held, within
// JSONLDOptions.MaxBytes. A reader yields quads in the order of the document
// and ends at the first error, which says the line. Where a line is a statement
// (N-Triples, N-Quads) Options.ContinueOnError skips a bad one instead, and in
// JSON-LD a statement of which a term is none; elsewhere nothing sensible can
// be skipped, so an error always ends the reading.
//
// Blank nodes belong to their document. Each becomes one of the store with a
// label made of the document's tag and its own label (see DocumentTag), so
// that two documents never share one by accident, and reading the same
// document again gives the same ones. Relative IRIs need a base (Options.Base
// or the document's own). A graph that is named by a blank node keeps that name: the
// node of the store.
//
// All readers and writers are our own: docs/decisions/rdf.md says which faults
// of a library made that necessary. Nothing is ever fetched from the network: a
// JSON-LD context is part of the document or one of JSONLDContexts.
//
// The reader of JSON-LD goes from JSON to quads without a tree between them. A
// jsonScanner puts a part of the document on a tape; jsonldReader.expand works
// on tapes, and jsonldReader.stream on what is received. An activeContext
// shares the terms of the one that it was made of.
package rdf
