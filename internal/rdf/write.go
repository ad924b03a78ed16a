package rdf

import (
	"bufio"
	"io"
	"iter"
	"slices"

	"koine/kg"
)

const writeBytes = 64 << 10

// WriteOptions configures a Writer. The zero value has the defaults.
type WriteOptions struct {
	// Prefixes abbreviate IRIs in Turtle and TriG.
	Prefixes *kg.Prefixes
}

// Writer writes quads as a document in a streaming manner. It groups adjacent quads with
// the same graph, subject and predicate if the format supports it: the order graph,
// subject, predicate gives the shortest document, any other order a correct one. Formats
// without HasGraphs omit the graph. A Writer is not safe for concurrent use.
type Writer struct {
	out *bufio.Writer
	enc encoder
	err error
}

// encoder writes one format.
type encoder interface {
	encodeQuad(out *bufio.Writer, q kg.Quad) error
	encodeEnd(out *bufio.Writer) error
}

// NewWriter begins a document. Nothing is written to w before a buffer is full or Close is called.
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
		out.err = invalid("RDF/XML cannot be written: it cannot express every graph")
	default:
		out.err = invalid("the RDF format is missing")
	}
	return out
}

// Write adds a quad. Errors of the underlying writer are sticky.
func (w *Writer) Write(q kg.Quad) error {
	if w.err == nil {
		w.err = w.enc.encodeQuad(w.out, q)
	}
	return w.err
}

// Close ends and flushes the document. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.err == nil {
		w.err = w.enc.encodeEnd(w.out)
	}
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.err
}

// Export yields all statements in the snapshot's view, graph by graph in the order of
// their names. In this order Writer produces the shortest document, and the same document
// for the same statements.
func Export(s *kg.Snapshot) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		graphs, err := s.Graphs()
		if err != nil {
			yield(kg.Quad{}, err)
			return
		}
		slices.SortFunc(graphs, func(a, b kg.TermCount) int { return a.Term.Compare(b.Term) })
		for _, g := range graphs {
			for st, err := range s.Match(kg.Pattern{Graph: g.Term}) {
				if !yield(st.Quad, err) || err != nil {
					return
				}
			}
		}
	}
}
