package rdf

import (
	"bufio"
	"io"

	"koine/kg"
)

const writeBytes = 64 << 10

// WriteOptions say how a document is written. The zero WriteOptions work.
type WriteOptions struct {
	// Prefixes shorten IRIs in Turtle and TriG.
	Prefixes *kg.Prefixes
}

// Writer writes quads as a document while they come. It groups neighbours of
// the same graph, subject and predicate where the format can say so: quads in
// the order graph, subject, predicate give the shortest document, any other
// order gives a correct one. Formats without HasGraphs leave the graph out. It
// is not safe for concurrent use.
type Writer struct {
	out *bufio.Writer
	enc encoder
	err error
}

// encoder is one notation.
type encoder interface {
	quad(out *bufio.Writer, q kg.Quad) error
	end(out *bufio.Writer) error
}

// NewWriter begins a document. Nothing reaches w before a buffer is full or
// Close is called.
func NewWriter(w io.Writer, f Format, o WriteOptions) *Writer {
	out := &Writer{out: bufio.NewWriterSize(w, writeBytes)}
	switch f {
	case NTriples, NQuads:
		out.enc = &lineWriter{graphs: f.HasGraphs()}
	case Turtle, TriG:
		out.enc = newTurtleWriter(f.HasGraphs(), o.Prefixes)
	case JSONLD:
		out.enc = &jsonldWriter{}
	case RDFXML:
		out.err = invalid("RDF/XML is read, not written: it cannot say every graph")
	default:
		out.err = invalid("no RDF format was named")
	}
	return out
}

// Write adds a quad. Errors are those of the writer underneath and stay.
func (w *Writer) Write(q kg.Quad) error {
	if w.err == nil {
		w.err = w.enc.quad(w.out, q)
	}
	return w.err
}

// Close ends the document and hands all of it over. The writer underneath
// stays open.
func (w *Writer) Close() error {
	if w.err == nil {
		w.err = w.enc.end(w.out)
	}
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.err
}
