package kg

import (
	"maps"
	"slices"
	"strings"
)

// Prefixes are the short names of IRI namespaces that people may write in
// place of them. A value never changes once made; it may be used concurrently.
type Prefixes struct {
	namespace map[string]string
	longest   []string // prefixes, the longest namespace first
}

// BuiltinPrefixes are registered in every store.
var BuiltinPrefixes = map[string]string{
	"rdf":     RDF,
	"rdfs":    "http://www.w3.org/2000/01/rdf-schema#",
	"xsd":     XSD,
	"owl":     "http://www.w3.org/2002/07/owl#",
	"sh":      "http://www.w3.org/ns/shacl#",
	"skos":    "http://www.w3.org/2004/02/skos/core#",
	"dcterms": "http://purl.org/dc/terms/",
	"foaf":    "http://xmlns.com/foaf/0.1/",
	"prov":    "http://www.w3.org/ns/prov#",
	"schema":  "https://schema.org/",
	"koine":   "urn:koine:vocab:",
}

// NewPrefixes registers the built-in prefixes and these, which win. A prefix
// must be a name of letters, digits, "-", "_" and "." that is no URI scheme in
// use, and its namespace an absolute IRI.
func NewPrefixes(more map[string]string) (*Prefixes, error) {
	p := &Prefixes{namespace: maps.Clone(BuiltinPrefixes)}
	for name, ns := range more {
		if !validPrefix(name) {
			return nil, Errorf(CodeInvalid, "%q cannot be a prefix: use letters, digits, - and _, and no URI scheme", clip(name))
		}
		if err := validIRI(ns); err != nil {
			return nil, err
		}
		p.namespace[name] = ns
	}
	p.longest = slices.SortedFunc(maps.Keys(p.namespace), func(a, b string) int {
		if d := len(p.namespace[b]) - len(p.namespace[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return p, nil
}

func validPrefix(s string) bool {
	return s != "_" && !IsScheme(s) && validScheme(strings.ReplaceAll(s, "_", "-"))
}

// IsScheme tells whether a name is one of the URI schemes in use that no prefix
// may be called by.
func IsScheme(name string) bool {
	switch strings.ToLower(name) {
	case "http", "https", "urn", "agent", "file", "mailto", "data", "did", "tag", "chan", "ws", "wss":
		return true
	}
	return false
}

// Registrable tells whether a name could be a prefix and is not registered.
func (p *Prefixes) Registrable(name string) bool {
	_, known := p.namespace[name]
	return !known && validPrefix(name)
}

// Resource is the resource that a text names: a registered prefix:name, an
// absolute IRI, or a blank node as "_:label".
func (p *Prefixes) Resource(text string) (Term, error) {
	if name, local, ok := strings.Cut(text, ":"); ok && !strings.HasPrefix(local, "//") {
		if ns, ok := p.namespace[name]; ok {
			return ParseIRI(ns + local)
		}
	}
	t, err := ParseIRI(text)
	if err != nil && !strings.Contains(text, ":") {
		return t, Errorf(CodeInvalid, "%q is neither an absolute IRI nor a registered prefix:name", clip(text))
	}
	return t, err
}

// Shorten writes an IRI with the prefix of its namespace, if there is one and
// the rest can stand behind it.
func (p *Prefixes) Shorten(iri string) string {
	for _, name := range p.longest {
		if local, ok := strings.CutPrefix(iri, p.namespace[name]); ok && local != "" && !strings.ContainsAny(local, "/#?:") {
			return name + ":" + local
		}
	}
	return iri
}

// All yields the registered prefixes in order, each with its namespace.
func (p *Prefixes) All() []Prefix {
	var out []Prefix
	for _, name := range slices.Sorted(maps.Keys(p.namespace)) {
		out = append(out, Prefix{name, p.namespace[name]})
	}
	return out
}

// Prefix is a short name and the namespace IRI that it stands for.
type Prefix struct{ Name, Namespace string }
