package rdf_test

import (
	"errors"
	"strings"
	"testing"

	"koine/internal/rdf"
	"koine/kg"
)

// one is a document of one statement in each format, about an IRI and with a literal.
func one(f rdf.Format, iri, literal string) string {
	switch f {
	case rdf.JSONLD:
		return `{"@id":"` + iri + `","urn:p":"` + literal + `"}`
	case rdf.RDFXML:
		return `<rdf:Description xmlns:rdf="` + kg.RDF + `" xmlns:u="urn:" rdf:about="` + iri + `"><u:p>` + literal + `</u:p></rdf:Description>`
	}
	return "<" + iri + "> <urn:p> \"" + literal + "\" ."
}

// A byte order mark at the beginning is no part of the document, in every format. A
// second one, and one elsewhere, is a character: of a literal, or an error.
func TestByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	for _, f := range rdf.ReadFormats {
		text := one(f, "urn:s", mark+"x")
		quads, err := read([]byte(mark+text), f, rdf.Options{})
		if err != nil || len(quads) != 1 || quads[0].Object != kg.String(mark+"x") {
			t.Errorf("%s: %v, %v", f, quads, err)
		}
		if _, err := read([]byte(mark+mark+text), f, rdf.Options{}); err == nil {
			t.Errorf("%s: two marks are accepted", f)
		}
		for _, short := range []string{"", mark, "\xef", "\xef\xbb"} {
			quads, err := read([]byte(short), f, rdf.Options{})
			if len(quads) > 0 || (short == "" || short == mark) && f != rdf.JSONLD && f != rdf.RDFXML && err != nil {
				t.Errorf("%s: %q gives %v, %v", f, short, quads, err)
			}
		}
	}
	if _, err := read([]byte("<urn:s> <urn:p> 1 .\n"+mark+"<urn:s> <urn:p> 1 ."), rdf.NTriples, rdf.Options{}); err == nil {
		t.Error("a mark in the second line is accepted")
	}
}

// An IRI that RFC 3987 forbids is refused with its place; FixIRIs percent-encodes forbidden
// characters.
func TestForbiddenIRIs(t *testing.T) {
	for iri, fixed := range map[string]string{
		"http://x#a#b":           "http://x#a%23b",
		"http://x.example/100%":  "http://x.example/100%25",
		"http://x.example/a[1]":  "http://x.example/a%5B1%5D",
		"http://x.example/?q=[]": "http://x.example/?q=%5B%5D",
	} {
		for _, f := range []rdf.Format{rdf.NTriples, rdf.NQuads, rdf.Turtle, rdf.TriG, rdf.RDFXML} {
			text := one(f, iri, "x")
			var at *rdf.SyntaxError
			if _, err := read([]byte("\n"+text), f, rdf.Options{}); !errors.As(err, &at) || at.Line != 2 || !strings.Contains(err.Error(), "RFC 3987") {
				t.Errorf("%s, %s: %v", f, iri, err)
			}
			quads, err := read([]byte(text), f, rdf.Options{FixIRIs: true})
			if err != nil || len(quads) != 1 || quads[0].Subject != kg.IRI(fixed) {
				t.Errorf("%s, %s: fixed to %v, %v, want %s", f, iri, quads, err, fixed)
			}
		}
	}
	for _, f := range []rdf.Format{rdf.NTriples, rdf.Turtle} {
		quads, err := read([]byte(`<http://x.example/a b\u007C^> <urn:p> <urn:o> .`), f, rdf.Options{FixIRIs: true})
		if err != nil || len(quads) != 1 || quads[0].Subject != kg.IRI("http://x.example/a%20b%7C%5E") {
			t.Errorf("%s: %v, %v", f, quads, err)
		}
	}
}

// A literal of rdf:dirLangString has a base direction, which no format says so; one of
// rdf:langString has a tag.
func TestDatatypesThatNeedMore(t *testing.T) {
	for _, f := range []rdf.Format{rdf.NTriples, rdf.NQuads, rdf.Turtle, rdf.TriG} {
		for _, datatype := range []string{kg.RDFLangString, kg.RDFDirLangString} {
			var at *rdf.SyntaxError
			_, err := read([]byte("\n<urn:s> <urn:p> \"x\"^^<"+datatype+"> ."), f, rdf.Options{})
			if !errors.As(err, &at) || at.Line != 2 || !strings.Contains(err.Error(), "needs a language") {
				t.Errorf("%s, %s: %v", f, datatype, err)
			}
		}
	}
}
