package rdf

import (
	"path"
	"slices"
	"strings"
)

// Format is a syntax of RDF. The zero Format is invalid.
type Format uint8

// The formats.
const (
	NTriples Format = iota + 1
	NQuads
	Turtle
	TriG
	JSONLD
	RDFXML // read only
)

type formatInfo struct {
	name       string
	mediaType  string
	synonyms   []string // more names and media types
	extensions []string // without the dot; the default first
	graphs     bool     // supports named graphs
	lines      bool     // one statement per line
	readOnly   bool     // there is no writer
}

var formats = [...]formatInfo{
	NTriples: {name: "ntriples", mediaType: "application/n-triples", synonyms: []string{"nt", "n-triples"}, extensions: []string{"nt"}, lines: true},
	NQuads:   {name: "nquads", mediaType: "application/n-quads", synonyms: []string{"nq", "n-quads"}, extensions: []string{"nq"}, graphs: true, lines: true},
	Turtle:   {name: "turtle", mediaType: "text/turtle", synonyms: []string{"ttl", "application/x-turtle"}, extensions: []string{"ttl"}},
	TriG:     {name: "trig", mediaType: "application/trig", synonyms: []string{"application/x-trig"}, extensions: []string{"trig"}, graphs: true},
	JSONLD:   {name: "jsonld", mediaType: "application/ld+json", synonyms: []string{"json-ld", "application/json"}, extensions: []string{"jsonld", "json"}, graphs: true},
	RDFXML:   {name: "rdfxml", mediaType: "application/rdf+xml", synonyms: []string{"rdf/xml", "rdf-xml", "application/xml", "text/xml"}, extensions: []string{"rdf", "owl", "xml"}, readOnly: true},
}

// Formats are the formats that can be read and written, the default of responses first.
var Formats = []Format{NQuads, TriG, Turtle, NTriples, JSONLD}

// ReadFormats are the formats that can be read: Formats and those without a writer.
var ReadFormats = append(slices.Clone(Formats), RDFXML)

// IsWritten reports whether NewWriter supports the format. RDF/XML is not supported,
// because it cannot express every graph: a predicate must be a qualified name.
func (f Format) IsWritten() bool { return f.info().name != "" && !f.info().readOnly }

// String returns the short name of the format.
func (f Format) String() string { return f.info().name }

// MediaType returns the registered media type of the format.
func (f Format) MediaType() string { return f.info().mediaType }

// Extension returns the default file name extension of the format, without the dot.
func (f Format) Extension() string {
	if f.info().extensions == nil {
		return ""
	}
	return f.info().extensions[0]
}

// HasGraphs reports whether the format supports named graphs.
func (f Format) HasGraphs() bool { return f.info().graphs }

// HasLines reports whether each line is a statement of its own.
func (f Format) HasLines() bool { return f.info().lines }

func (f Format) info() formatInfo {
	if int(f) >= len(formats) {
		return formatInfo{}
	}
	return formats[f]
}

// FormatByName returns the format with that name, extension or media type. It ignores
// case and media type parameters.
func FormatByName(name string) (Format, bool) {
	name, _, _ = strings.Cut(name, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	for _, f := range ReadFormats {
		i := formats[f]
		if name == i.name || name == i.mediaType || slices.Contains(i.synonyms, name) || slices.Contains(i.extensions, name) {
			return f, true
		}
	}
	return 0, false
}

// FormatByPath returns the format for a file name. It ignores a trailing ".gz".
func FormatByPath(file string) (Format, bool) {
	name := strings.TrimSuffix(strings.ToLower(file), ".gz")
	ext := strings.TrimPrefix(path.Ext(strings.ReplaceAll(name, `\`, "/")), ".")
	for _, f := range ReadFormats {
		if slices.Contains(formats[f].extensions, ext) {
			return f, true
		}
	}
	return 0, false
}
