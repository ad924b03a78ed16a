package rdf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/geoknoesis/rdf-go/rdf"

	"koine/kg"
)

// readJSONLD reads a JSON-LD 1.1 document by way of the library's expansion
// and deserialisation algorithms, which want it in memory.
func readJSONLD(r io.Reader, o Options) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		text, err := io.ReadAll(io.LimitReader(r, MaxJSONLDBytes+1))
		if err != nil {
			yield(kg.Quad{}, o.failure(0, err))
			return
		}
		if len(text) > MaxJSONLDBytes {
			yield(kg.Quad{}, o.failure(0, tooLong("a JSON-LD document has at most %d bytes; N-Quads has no such bound", MaxJSONLDBytes)))
			return
		}
		statements, err := jsonldStatements(text, o)
		if err != nil {
			yield(kg.Quad{}, err)
			return
		}
		blanks := &blankNodes{tag: o.Tag}
		for _, s := range statements {
			q, err := fromLibrary(s, o.Graph, blanks)
			if err != nil {
				yield(kg.Quad{}, o.failure(0, err))
				return
			}
			if !yield(q, nil) {
				return
			}
		}
	}
}

func jsonldStatements(text []byte, o Options) (statements []rdf.Quad, err error) {
	document, err := decodeJSON(text, o)
	if err != nil {
		return nil, err
	}
	if o.Prefix != nil {
		tellContexts(document, o.Prefix)
	}
	// The processor under the library panics on some documents.
	defer func() {
		if p := recover(); p != nil {
			err = o.failure(0, invalid("not a JSON-LD document: %v", p))
		}
	}()
	loader := &noLoader{}
	ctx := context.Background() // the processor does nothing that takes one
	statements, err = rdf.NewJSONLDProcessor().ToRDF(ctx, document, rdf.JSONLDOptions{
		BaseIRI:        o.Base,
		DocumentLoader: loader,
		SafeMode:       true, // refuse what would otherwise be dropped without a word
	})
	switch {
	case loader.wanted != "":
		return nil, o.failure(0, invalid("the document's context %s would have to be fetched, which is never done: put the context into the document", excerpt([]byte(loader.wanted))))
	case err != nil:
		return nil, o.failure(0, invalid("not a JSON-LD document: %s", strings.TrimPrefix(err.Error(), "jsonld: ")))
	}
	return statements, nil
}

// noLoader refuses to load anything and remembers what was asked for.
type noLoader struct{ wanted string }

func (l *noLoader) LoadDocument(_ context.Context, iri string) (rdf.RemoteDocument, error) {
	if l.wanted == "" {
		l.wanted = iri
	}
	return rdf.RemoteDocument{}, errors.New("nothing is fetched")
}

// decodeJSON parses and prepares a document: see prepare.
func decodeJSON(text []byte, o Options) (any, error) {
	if !utf8.Valid(text) {
		return nil, o.failure(0, invalid("a JSON document is UTF-8, and this one is not")) // encoding/json would replace it
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var document any
	if err := d.Decode(&document); err != nil {
		line := 1 + bytes.Count(text[:min(int(d.InputOffset()), len(text))], []byte{'\n'})
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line = 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte{'\n'})
		}
		return nil, o.failure(line, invalid("not JSON: %v", err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, o.failure(1+bytes.Count(text[:d.InputOffset()], []byte{'\n'}), invalid("something follows the JSON document"))
	}
	switch document.(type) {
	case map[string]any, []any:
	default:
		return nil, o.failure(1, invalid("a JSON-LD document is an object or an array"))
	}
	document, err := prepare(document, 0)
	if err != nil {
		return nil, o.failure(0, err)
	}
	return document, nil
}

// verbatimJSON stands for rdf:JSON in documents handed to the library, which
// takes the text of {"@value": text, "@type": rdf:JSON} for a JSON string and
// encodes it once more.
const verbatimJSON = "urn:koine:rdf:json-as-it-is"

const rdfJSON = kg.RDF + "JSON"

// prepare bounds the nesting, refuses integers that the processor would round
// (it computes with doubles), and hides rdf:JSON from it.
func prepare(v any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, tooLong("the JSON nests deeper than %d", MaxDepth)
	}
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i := range v {
			item, err := prepare(v[i], depth+1)
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
	case map[string]any:
		_, text := v["@value"].(string)
		for key, member := range v {
			if key == "@type" && text && member == rdfJSON {
				v[key] = verbatimJSON
				continue
			}
			member, err := prepare(member, depth+1)
			if err != nil {
				return nil, err
			}
			v[key] = member
		}
	}
	return v, nil
}

func number(n json.Number) (any, error) {
	f, err := n.Float64()
	if err != nil {
		return nil, invalid("the number %s is out of range", excerpt([]byte(n)))
	}
	if !strings.ContainsAny(n.String(), ".eE") && fmt.Sprintf("%.0f", f) != n.String() && n != "-0" {
		return nil, invalid("JSON-LD rounds the integer %s; write it as a string with a type: {\"@value\": \"%s\", \"@type\": \"%sinteger\"}", n, n, kg.XSD)
	}
	return f, nil
}

// fromLibrary is the quad of one of the library's.
func fromLibrary(s rdf.Quad, graph kg.Term, blanks *blankNodes) (q kg.Quad, err error) {
	q.Graph = graph
	if q.Subject, err = resourceFrom(s.S, blanks); err != nil {
		return q, err
	}
	if q.Predicate, err = kg.ParseIRI(s.P.Value); err != nil {
		return q, err
	}
	if l, ok := s.O.(rdf.Literal); ok {
		q.Object, err = literalFrom(l)
	} else {
		q.Object, err = resourceFrom(s.O, blanks)
	}
	if err != nil {
		return q, err
	}
	if s.G != nil {
		q.Graph, err = resourceFrom(s.G, blanks)
		if err == nil && q.Graph.Kind() != kg.KindIRI {
			err = invalid("a graph is named by an IRI, not by a blank node")
		}
	}
	return q, err
}

func resourceFrom(t rdf.Term, blanks *blankNodes) (kg.Term, error) {
	switch t := t.(type) {
	case rdf.IRI:
		iri := kg.IRI(t.Value)
		return iri, iri.Valid()
	case rdf.BlankNode:
		return blanks.named([]byte(t.ID)), nil
	}
	return kg.Term{}, invalid("a resource is an IRI or a blank node, not %v", t)
}

func literalFrom(l rdf.Literal) (kg.Term, error) {
	datatype := kg.Term{}
	switch l.Datatype.Value {
	case "":
	case verbatimJSON:
		datatype = kg.IRI(rdfJSON)
	default:
		datatype = kg.IRI(l.Datatype.Value)
	}
	return literal(l.Lexical, l.Lang, datatype)
}
