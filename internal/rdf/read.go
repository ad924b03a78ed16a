package rdf

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"

	"koine/kg"
)

// MaxDepth is the largest nesting of lists, brackets and JSON.
const MaxDepth = 128

const (
	// escapedBytes is the number of input bytes per byte of a literal: all of it may be
	// written as \u and four digits, as koine writes control characters.
	escapedBytes = 6
	// minTokenBytes is the smallest limit on the length of a term: an IRI of
	// kg.MaxResourceBytes with escapes. minLineBytes is that of a line.
	minTokenBytes = 12 * kg.MaxResourceBytes
	minLineBytes  = 16 << 20
)

// Options configures the reading of a document. The zero value has the defaults.
type Options struct {
	// Name is the name of the document in errors, usually a file name.
	Name string
	// Tag is the prefix of blank node labels: letters and digits, from DocumentTag or RandomTag. ""
	// means a random tag.
	Tag string
	// Graph receives the statements of the document's default graph. Zero means kg.DefaultGraph.
	Graph kg.Term
	// Base resolves relative IRIs; "" means that the document must declare one. It is not used for
	// N-Triples and N-Quads, which have no relative IRIs.
	Base string
	// FixIRIs percent-encodes characters that an IRI must not contain (RFC 3987), instead
	// of rejecting the IRI.
	FixIRIs bool
	// ContinueOnError skips invalid lines if the format HasLines, and statements of JSON-LD with an
	// invalid term. Rejected, if set, is called for each. All other errors end the sequence.
	ContinueOnError bool
	Rejected        func(*SyntaxError)
	// LiteralBytes is the largest lexical form of a literal (kg.Options.LiteralBytes); 0 means
	// kg.DefaultLiteralBytes.
	LiteralBytes int
	// JSONLD configures the reading of JSON-LD.
	JSONLD JSONLDOptions
	// Prefix, if set, is called for each prefix that the document declares: @prefix and PREFIX in
	// Turtle and TriG, and the terms of a JSON-LD document's outermost contexts that can be used as
	// prefixes.
	Prefix func(name, namespace string)
}

// Read yields the quads of a document while its text is read. An error, which is a
// *SyntaxError or one of r, ends the sequence. The sequence can be iterated once.
func Read(r io.Reader, f Format, o Options) iter.Seq2[kg.Quad, error] {
	return ReadContext(context.Background(), r, f, o)
}

// ReadContext is Read that ends with the error of the context once it is done.
func ReadContext(ctx context.Context, r io.Reader, f Format, o Options) iter.Seq2[kg.Quad, error] {
	if o.Graph.IsZero() {
		o.Graph = kg.DefaultGraph
	}
	if o.Tag == "" {
		o.Tag = RandomTag()
	}
	if err := o.validate(); err != nil {
		return failWith(&SyntaxError{Document: o.Name, Err: err})
	}
	r = withoutMark(&contextReader{ctx, r})
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
	return failWith(&SyntaxError{Document: o.Name, Err: invalid("the RDF format is missing")})
}

// contextReader returns the context's error once it is done.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(b)
}

func (o *Options) validate() error {
	if !validTag(o.Tag) {
		return invalid("%q cannot begin the labels of blank nodes", o.Tag)
	}
	if !o.Graph.NamesGraph() {
		return invalid("a graph name must be an IRI or a blank node, not %s", o.Graph)
	}
	if err := o.JSONLD.validate(); err != nil {
		return err
	}
	if o.Base != "" {
		if _, err := kg.ParseIRI(o.Base); err != nil {
			return err
		}
	}
	return nil
}

// TokenBytes returns the largest length of a term in Turtle and TriG, and of a text or
// the attributes of an element in RDF/XML.
func (o Options) TokenBytes() int { return max(minTokenBytes, escapedBytes*o.literalBytes()) }

// LineBytes returns the largest length of a line of N-Triples and N-Quads.
func (o Options) LineBytes() int {
	return max(minLineBytes, escapedBytes*o.literalBytes()+8*kg.MaxResourceBytes)
}

func (o *Options) literalBytes() int { return cmp.Or(o.LiteralBytes, kg.DefaultLiteralBytes) }

// checkedIRI returns the term of an absolute IRI, after checking it.
func (o *Options) checkedIRI(text string) (kg.Term, error) {
	iri := kg.IRI(text)
	err := iri.ValidNew()
	if err != nil && o.FixIRIs {
		iri = kg.IRI(kg.FixIRI(text))
		err = iri.ValidNew()
	}
	return iri, err
}

func (o *Options) checkedLiteral(lexical, lang string, datatype kg.Term) (kg.Term, error) {
	return newLiteral(lexical, lang, datatype, o.literalBytes())
}

func (o *Options) errorAt(line int, err error) error {
	var done *SyntaxError
	if errors.As(err, &done) {
		return err
	}
	return &SyntaxError{Document: o.Name, Line: line, Err: err}
}

func failWith(err error) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) { yield(kg.Quad{}, err) }
}

const byteOrderMark = "\ufeff"

// withoutMark skips a byte order mark at the beginning, which every format allows. Elsewhere it is
// an ordinary character.
func withoutMark(r io.Reader) io.Reader { return &markReader{r: r} }

type markReader struct {
	r     io.Reader
	begun bool
	head  []byte // read ahead and not returned yet
	err   error  // error of the read ahead
}

func (m *markReader) Read(b []byte) (int, error) {
	if !m.begun {
		m.begun = true
		head := make([]byte, len(byteOrderMark))
		n, err := io.ReadFull(m.r, head)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if m.head, m.err = head[:n], err; string(m.head) == byteOrderMark {
			m.head = nil
		}
	}
	if len(m.head) > 0 {
		n := copy(b, m.head)
		m.head = m.head[n:]
		return n, nil
	}
	if m.err != nil {
		return 0, m.err
	}
	return m.r.Read(b)
}
