package rdf

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"

	"koine/kg"
)

// MaxDepth bounds how deep lists, brackets and JSON may nest.
const MaxDepth = 128

const (
	// escapedBytes is how many bytes a reader takes for each of a literal's: all of it
	// may be written as \u and four digits, as koine writes control characters.
	escapedBytes = 6
	// minTokenBytes is the least that is taken of a term as it is written, an IRI of
	// kg.MaxResourceBytes with escapes, and minLineBytes of a line.
	minTokenBytes = 12 * kg.MaxResourceBytes
	minLineBytes  = 16 << 20
)

// Options say how a document is read. The zero Options work.
type Options struct {
	// Name is what errors call the document: a file's name, usually.
	Name string
	// Tag begins the labels of its blank nodes: letters and digits, from
	// DocumentTag or RandomTag. "" means a random one.
	Tag string
	// Graph is where statements go that the document puts into its default
	// graph. Zero means kg.DefaultGraph.
	Graph kg.Term
	// Base resolves relative IRIs; "" means that the document must say its
	// own. Not for N-Triples and N-Quads, which have none.
	Base string
	// FixIRIs percent-encodes what stands in an IRI and may not (RFC 3987), instead of
	// refusing it.
	FixIRIs bool
	// ContinueOnError skips lines that are no statement instead of ending
	// there, where the format HasLines, and statements of JSON-LD of which a term
	// is none; Rejected, if set, is told of each. All else ends the reading.
	ContinueOnError bool
	Rejected        func(*SyntaxError)
	// LiteralBytes bounds the lexical form of a literal (kg.Options.LiteralBytes); 0 is
	// kg.DefaultLiteralBytes.
	LiteralBytes int
	// JSONLD says how JSON-LD is read.
	JSONLD JSONLDOptions
	// Prefix, if set, is told of each prefix that the document declares, with what it
	// stands for: that of @prefix and PREFIX in Turtle and TriG, and the terms of a
	// JSON-LD document's outermost contexts that can be prefixes.
	Prefix func(name, namespace string)
}

// Read yields the quads of a document as its text is read. After an error,
// which is a *SyntaxError or comes from r, nothing follows. The sequence can
// be ranged over once.
func Read(r io.Reader, f Format, o Options) iter.Seq2[kg.Quad, error] {
	return ReadContext(context.Background(), r, f, o)
}

// ReadContext is Read that ends when a context does. Of formats other than
// JSON-LD, the end of the context is found by what r gives.
func ReadContext(ctx context.Context, r io.Reader, f Format, o Options) iter.Seq2[kg.Quad, error] {
	if o.Graph.IsZero() {
		o.Graph = kg.DefaultGraph
	}
	if o.Tag == "" {
		o.Tag = RandomTag()
	}
	if err := o.valid(); err != nil {
		return fails(&SyntaxError{Document: o.Name, Err: err})
	}
	r = withoutMark(r)
	switch f {
	case NTriples, NQuads:
		return readLines(r, f, o)
	case Turtle, TriG:
		return readTurtle(r, f, o)
	case JSONLD:
		return readJSONLD(ctx, r, o)
	case RDFXML:
		return readRDFXML(r, o)
	}
	return fails(&SyntaxError{Document: o.Name, Err: invalid("no RDF format was named")})
}

func (o *Options) valid() error {
	if !validTag(o.Tag) {
		return invalid("%q cannot begin the labels of blank nodes", o.Tag)
	}
	if !o.Graph.NamesGraph() {
		return invalid("a graph is named by an IRI or a blank node, not by %s", o.Graph)
	}
	if err := o.JSONLD.valid(); err != nil {
		return err
	}
	if o.Base != "" {
		if _, err := kg.ParseIRI(o.Base); err != nil {
			return err
		}
	}
	return nil
}

// TokenBytes bounds one term of Turtle and TriG as it is written, and a run of text or
// the attributes of an element of RDF/XML.
func (o Options) TokenBytes() int { return max(minTokenBytes, escapedBytes*o.literalBytes()) }

// LineBytes bounds a line of N-Triples and N-Quads.
func (o Options) LineBytes() int {
	return max(minLineBytes, escapedBytes*o.literalBytes()+8*kg.MaxResourceBytes)
}

func (o *Options) literalBytes() int { return cmp.Or(o.LiteralBytes, kg.DefaultLiteralBytes) }

// iri is the term of an absolute IRI, which is checked.
func (o *Options) iri(text string) (kg.Term, error) {
	iri := kg.IRI(text)
	err := iri.ValidNew()
	if err != nil && o.FixIRIs {
		iri = kg.IRI(kg.FixIRI(text))
		err = iri.ValidNew()
	}
	return iri, err
}

func (o *Options) literal(lexical, lang string, datatype kg.Term) (kg.Term, error) {
	return literal(lexical, lang, datatype, o.literalBytes())
}

func (o *Options) failure(line int, err error) error {
	var done *SyntaxError
	if errors.As(err, &done) {
		return err
	}
	return &SyntaxError{Document: o.Name, Line: line, Err: err}
}

func fails(err error) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) { yield(kg.Quad{}, err) }
}
