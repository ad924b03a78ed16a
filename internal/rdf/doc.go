// Package rdf reads and writes RDF documents as kg quads: N-Triples, N-Quads,
// Turtle, TriG and JSON-LD 1.1.
//
// Readers and writers stream, with one exception: a JSON-LD document is held
// in memory as a whole (MaxJSONLDBytes), since its algorithms need all of it.
// A reader yields quads in the order of the document and ends at the first
// error, which says the line. Where a line is a statement (N-Triples,
// N-Quads) Options.ContinueOnError skips a bad one instead; in the other
// formats nothing sensible can be skipped, so an error always ends them.
//
// Blank nodes belong to their document. Each becomes one of the store with a
// label made of the document's tag and its own label (see DocumentTag), so
// that two documents never share one by accident, and reading the same
// document again gives the same ones. Relative IRIs need a base (Options.Base
// or the document's own). A graph that is named by a blank node keeps that name: the
// node of the store.
//
// JSON-LD goes through github.com/geoknoesis/rdf-go. The other formats have
// readers and writers of their own here: docs/decisions/rdf.md says which
// faults of the library made that necessary. Nothing is ever fetched from the
// network: a JSON-LD context has to be part of the document.
package rdf
